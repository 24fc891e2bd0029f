//! Outer lookups: left joins with what a `dot` with a default looks up.

use engine::{Error, Rel, Result, Var};

use crate::lower::lowering::{Frame, Lowering};
use crate::lower::needs::Needs;
use crate::space::{InstanceId, TermId};
use crate::term::{Instance, Source};

impl Lowering<'_> {
    /// `rel` with the record that an outer lookup finds, or NULLs.
    pub(super) fn outer(
        &mut self,
        mut rel: Rel,
        instance: InstanceId,
        frame: &mut Frame,
        needs: &Needs,
    ) -> Result<Rel> {
        let Instance::Lookup {
            source, by, keys, ..
        } = self.terms.of(instance)
        else {
            return Err(Error::Internal("an outer lookup without keys".into()));
        };
        let (mut right, own, columns, found) = match source {
            Source::Table(table) => {
                let mut columns = needs.columns(instance);
                columns.extend(by);
                let (right, columns) = self.scan(instance, *table, columns, vec![])?;
                let of = |by: &usize| columns.iter().find(|(column, _)| column == by);
                let own: Vec<Var> = by.iter().filter_map(of).map(|(_, var)| *var).collect();
                (right, own, columns, vec![])
            }
            Source::Fold(fold) => {
                let (right, own, found) = self.fold(*fold, &needs.aggregates(instance))?;
                (right, own, vec![], found.into_iter().collect())
            }
        };
        let equal = self.keys(keys, &own, [&mut rel, &mut right], frame)?;
        let mut outer: Vec<(Var, Var)> = Vec::new();
        for (column, var) in columns {
            let var = self.or_null(var, &mut outer);
            frame.columns.insert((instance, column), var);
        }
        for (n, var) in found {
            let var = self.or_null(var, &mut outer);
            frame.aggregates.insert((instance, n), var);
        }
        let first = own.first().copied();
        let first = first.ok_or_else(|| Error::Internal("an outer lookup without keys".into()))?;
        let exists = self.or_null(first, &mut outer);
        frame.exists.insert(instance, exists);
        Ok(Rel::Left {
            left: Box::new(rel),
            right: Box::new(right),
            equal,
            residual: vec![],
            outer,
        })
    }

    /// Which vectors of a relation and of one that is looked up must be equal.
    fn keys(
        &mut self,
        keys: &[TermId],
        own: &[Var],
        [rel, right]: [&mut Rel; 2],
        frame: &Frame,
    ) -> Result<Vec<(Var, Var)>> {
        let mut equal = Vec::with_capacity(keys.len());
        for (key, var) in keys.iter().zip(own) {
            let key = self.expr(*key, frame)?;
            let (a, b) = engine::alike(key, self.query.expr(*var))?;
            let a = match a.as_var() {
                Some(var) => var,
                None => self.map(rel, a),
            };
            let b = match b.as_var() {
                Some(var) => var,
                None => self.map(right, b),
            };
            equal.push((a, b));
        }
        Ok(equal)
    }

    /// The vector that has the values of `var` after the join, or NULLs; `outer` has those so far.
    fn or_null(&mut self, var: Var, outer: &mut Vec<(Var, Var)>) -> Var {
        if let Some((_, known)) = outer.iter().find(|(of, _)| *of == var) {
            return *known;
        }
        let ty = self.query.ty(var).clone().nullable(true);
        let name = self.query.vars[var].name.clone();
        let new = self.query.add(name, ty);
        outer.push((var, new));
        new
    }
}
