//! The outer `dot`: a composition that has a default where its first operand has nothing.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;

use crate::check::checker::Checker;
use crate::check::element::{self, Class, Over, class};
use crate::error::{Checked, Span, wrong};
use crate::matrix::{Key, Matrix};
use crate::space::{Domain, InstanceId, Space, TermId};
use crate::syntax::{Element, Operand};
use crate::term::{Instance, Literal, Op, Substitution, Term};

impl Checker<'_> {
    /// `dot(a, b, default)`: for each column of `b` the element of `a` that its label names, else `default`. A bit vector
    /// has ones.
    pub fn outer(&mut self, a: &Operand, b: &Operand, default: &Element) -> Checked<Matrix> {
        let spans = [a.span, b.span];
        let (a, b) = (self.operand(a)?, self.operand(b)?);
        for (matrix, at) in [&a, &b].into_iter().zip(spans) {
            if matrix.transposed {
                let what =
                    "a `dot` with a transposed matrix has no default: its result is a bit vector";
                return wrong(at, what);
            }
        }
        if b.value.is_some() {
            let what = format!("{} must be a bitmap matrix", self.quote(spans[1]));
            return wrong(spans[1], what);
        }
        if a.keys.len() + usize::from(a.value.is_some()) > 1 {
            let what = format!(
                "{} is a {} of {}: a default stands for one label or one value",
                self.quote(spans[0]),
                a.kind(),
                self.shape(&a)
            );
            return wrong(spans[0], what);
        }
        let kept = self.read_by(&b);
        let over = b.conditions.clone();
        let composed = self.dot(a, b, spans)?;
        let place = Substitution::Outer(kept);
        let mut there = Vec::new();
        for condition in composed.conditions.difference(&over) {
            there.push(self.terms.substitute(*condition, &place));
        }
        let is_label = !composed.keys.is_empty();
        let of = composed.value.or(composed.keys.first().map(|key| key.term));
        let of = of.map(|of| self.terms.substitute(of, &place));
        let term = self.or_default(of, there, default, spans[0])?;
        let mut matrix = Matrix {
            conditions: over,
            ..Matrix::over(composed.space)
        };
        if is_label {
            let domain = Domain::Computed(term);
            matrix.keys.push(Key { term, domain });
        } else {
            matrix.value = Some(term);
        }
        Ok(matrix)
    }

    /// The records that `b` reads, which are there wherever it has a column.
    fn read_by(&mut self, b: &Matrix) -> BTreeSet<InstanceId> {
        let terms = b
            .keys
            .iter()
            .map(|key| key.term)
            .chain(b.conditions.iter().copied());
        let mut kept = self.terms.all_instances(terms);
        if let Space::Rows(table) = b.space {
            kept.insert(self.terms.instance(Instance::Root(table)));
        }
        kept
    }

    /// `of`, or 1, where it is there and `there` holds, else the default.
    fn or_default(
        &mut self,
        of: Option<TermId>,
        mut there: Vec<TermId>,
        default: &Element,
        at: Span,
    ) -> Checked<TermId> {
        let mut over = Over::default();
        let last = self.element(default, &mut over)?;
        if over.space.is_some_and(|(space, _)| space != Space::One) {
            return wrong(
                default.span,
                "the default of a `dot` is one value, such as 0",
            );
        }
        let of = match of {
            Some(of) => {
                let null = Term::Apply(Op::IsNull, vec![of]);
                let null = self.terms.add(null, DataType::Boolean);
                let some = Term::Apply(Op::Not, vec![null]);
                there.push(self.terms.add(some, DataType::Boolean));
                of
            }
            None => {
                let one = Term::Literal(Literal::Number(1, 0));
                self.terms.add(one, element::number(0))
            }
        };
        let [data, own] = [of, last].map(|term| self.terms.data(term).clone());
        if (class(&data) == Class::Text) != (class(&own) == Class::Text)
            && class(&data) != Class::Time
        {
            let what = format!(
                "the default is {}, and what it stands for is {}",
                element::called(&own),
                element::called(&data)
            );
            return wrong(default.span, what);
        }
        let (of, last) = self.same_class(of, at, last, default.span)?;
        let data = self.common(of, last, default.span)?;
        let there = self.terms.and(there);
        let case = Term::Apply(Op::Case, vec![there, of, last]);
        Ok(self.terms.add(case, data))
    }
}
