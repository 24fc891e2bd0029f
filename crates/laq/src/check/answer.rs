//! The `return` of a program: which columns it has, and their order.

use std::collections::BTreeSet;

use crate::check::checker::Checker;
use crate::error::{Checked, Span, wrong};
use crate::matrix::Matrix;
use crate::show;
use crate::space::{Domain, Space, TermId};
use crate::syntax::{Item, Name, Operand, Return, What};
use crate::term::{Instance, Source, Term};

/// Columns over records, labels, or one row.
#[derive(Debug)]
pub(crate) struct Answer {
    pub space: Space,
    /// The conditions under which there is a row.
    pub conditions: BTreeSet<TermId>,
    pub columns: Vec<Column>,
    /// Positions among the columns, and whether the greatest come first.
    pub order: Vec<(usize, bool)>,
    pub limit: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub name: String,
    pub term: TermId,
    /// As the program says it.
    pub written: String,
}

/// An item of `return`, checked.
struct Given<'p> {
    item: &'p Item,
    matrix: Matrix,
}

impl Checker<'_> {
    pub fn answer(&mut self, result: &Return) -> Checked<Answer> {
        let mut given = Vec::with_capacity(result.items.len());
        for item in &result.items {
            let matrix = self.operand(&item.value)?;
            if matrix.transposed {
                let what = "a transposed matrix can only be the second operand of `dot`";
                return wrong(item.value.span, what);
            }
            given.push(Given { item, matrix });
        }
        let labels = |g: &&Given<'_>| matches!(g.matrix.space, Space::Labels(_));
        let rows = |g: &&Given<'_>| matches!(g.matrix.space, Space::Rows(_));
        let first = given.iter().find(labels).or(given.iter().find(rows));
        let mut answer = match first.map(|g| (g.matrix.space.clone(), g.item.value.span)) {
            Some((Space::Labels(domains), span)) => self.of_labels(&given, domains, span)?,
            Some((space, span)) => self.of_rows(&given, space, span)?,
            None => self.of_numbers(&given),
        };
        if answer.columns.is_empty() {
            let what =
                "there are no values or labels to return; return an attribute too, or a `count`";
            return wrong(result.span, what);
        }
        for key in &result.order {
            let position = self.ordered(&answer, &key.by)?;
            answer.order.push((position, key.descending));
        }
        answer.limit = result.limit;
        Ok(answer)
    }

    fn of_numbers(&mut self, given: &[Given<'_>]) -> Answer {
        let columns = given.iter().filter_map(|g| {
            let term = g.matrix.value?;
            Some(column(g.item, term))
        });
        Answer {
            space: Space::One,
            conditions: BTreeSet::new(),
            columns: columns.collect(),
            order: vec![],
            limit: None,
        }
    }

    fn of_rows(&mut self, given: &[Given<'_>], space: Space, first: Span) -> Checked<Answer> {
        let mut conditions = BTreeSet::new();
        let mut columns = Vec::new();
        for Given { item, matrix } in given {
            if matrix.space != space && matrix.space != Space::One {
                return self.apart(first, &space, item, matrix);
            }
            conditions.extend(&matrix.conditions);
            let single = matrix.keys.len() == 1 && matrix.value.is_none();
            for key in &matrix.keys {
                if single {
                    columns.push(column(item, key.term))
                } else {
                    columns.push(Column {
                        name: self.label_name(&key.domain),
                        term: key.term,
                        written: show::term(key.term, &self.catalog, &self.terms),
                    })
                }
            }
            columns.extend(matrix.value.map(|value| column(item, value)));
        }
        Ok(Answer {
            space,
            conditions,
            columns,
            order: vec![],
            limit: None,
        })
    }

    fn of_labels(
        &mut self,
        given: &[Given<'_>],
        domains: Vec<Domain>,
        first: Span,
    ) -> Checked<Answer> {
        let space = Space::Labels(domains.clone());
        let over = |g: &Given<'_>| g.matrix.space == space;
        let over_labels: Vec<&Given<'_>> = given.iter().filter(|g| over(g)).collect();
        let conditions = self.common_conditions(&over_labels, first)?;
        let labels: Vec<TermId> = (0..domains.len())
            .filter_map(|n| self.label(n, &conditions))
            .collect();
        let mut columns = Vec::new();
        let mut named = false;
        for g in given {
            let Given { item, matrix } = g;
            if over(g) || matrix.space == Space::One {
                if let Some(value) = matrix.value {
                    columns.push(column(item, value));
                }
                continue;
            }
            let key = match (&matrix.space, &matrix.keys[..], matrix.value) {
                (Space::Rows(_), [key], None) => key.term,
                _ => return self.apart(first, &space, item, matrix),
            };
            match self.place(key, &domains, &conditions)? {
                Some(place) => columns.push(column(item, labels[place])),
                None => {
                    let names: Vec<String> = domains.iter().map(|d| self.domain_name(d)).collect();
                    let what = format!(
                        "{} is not among the rows of {}: they are labels of {}",
                        self.quote(item.value.span),
                        self.quote(first),
                        names.join(", ")
                    );
                    return wrong(item.value.span, what);
                }
            }
            named = true;
        }
        if !named {
            let keys = domains.iter().zip(&labels).map(|(domain, label)| Column {
                name: self.label_name(domain),
                term: *label,
                written: self.domain_name(domain),
            });
            columns = keys
                .collect::<Vec<_>>()
                .into_iter()
                .chain(columns)
                .collect();
        }
        Ok(Answer {
            space,
            conditions,
            columns,
            order: vec![],
            limit: None,
        })
    }

    /// Where all of `given` are not zero, which must be the same places.
    fn common_conditions(&self, given: &[&Given<'_>], first: Span) -> Checked<BTreeSet<TermId>> {
        let mut conditions: Option<BTreeSet<TermId>> = None;
        for g in given {
            match &conditions {
                None => conditions = Some(g.matrix.conditions.clone()),
                Some(known) if *known == g.matrix.conditions => {}
                Some(_) => {
                    let what = format!(
                        "{} and {} are not zero in different places; make them one by `hadamard` with the bit \
                         vector of the places that are meant, or count with `case`",
                        self.quote(first),
                        self.quote(g.item.value.span)
                    );
                    return wrong(g.item.value.span, what);
                }
            }
        }
        Ok(conditions.unwrap_or_default())
    }

    fn apart<T>(&self, first: Span, space: &Space, item: &Item, matrix: &Matrix) -> Checked<T> {
        let what = format!(
            "{} and {} cannot be returned together: the one has {}, the other {}",
            self.quote(first),
            self.quote(item.value.span),
            self.columns(space),
            self.columns(&matrix.space)
        );
        wrong(item.value.span, what)
    }

    /// The term of the label at a position.
    fn label(&mut self, position: usize, conditions: &BTreeSet<TermId>) -> Option<TermId> {
        let key = self
            .folds_of(conditions)
            .into_iter()
            .next()?
            .get(position)
            .copied()?;
        let data = self.terms.data(key).clone();
        Some(self.terms.add(Term::Label(position), data))
    }

    /// The keys of the folds that `conditions` want a group of.
    fn folds_of(&self, conditions: &BTreeSet<TermId>) -> Vec<Vec<TermId>> {
        let mut all = Vec::new();
        for condition in conditions {
            if let Term::Present(instance) = self.terms.get(*condition)
                && let Instance::Lookup {
                    source: Source::Fold(fold),
                    ..
                } = self.terms.of(*instance)
            {
                all.push(self.terms.fold(*fold).groups.keys.clone());
            }
        }
        all
    }

    /// Which label `key` is: the very term that was grouped by, else the same attribute, however it was reached.
    fn place(
        &self,
        key: TermId,
        domains: &[Domain],
        conditions: &BTreeSet<TermId>,
    ) -> Checked<Option<usize>> {
        let folds = self.folds_of(conditions);
        for keys in &folds {
            if let Some(place) = keys.iter().position(|k| *k == key) {
                return Ok(Some(place));
            }
        }
        let attribute = self.attribute_of(key);
        for keys in &folds {
            let same = |k: &TermId| attribute.is_some() && self.attribute_of(*k) == attribute;
            if let Some(place) = keys.iter().position(same) {
                return Ok(Some(place));
            }
        }
        let Term::Column(instance, column) = self.terms.get(key) else {
            return Ok(None);
        };
        // The key that the labels are those of.
        Ok(match self.terms.of(*instance) {
            Instance::Root(table) => {
                let own = Domain::Column(*table, *column);
                domains.iter().position(|domain| *domain == own)
            }
            Instance::Lookup { .. } => None,
        })
    }

    fn attribute_of(&self, term: TermId) -> Option<(usize, usize)> {
        let Term::Column(instance, column) = self.terms.get(term) else {
            return None;
        };
        match self.terms.of(*instance) {
            Instance::Root(table)
            | Instance::Lookup {
                source: Source::Table(table),
                ..
            } => Some((*table, *column)),
            _ => None,
        }
    }

    fn domain_name(&self, domain: &Domain) -> String {
        show::domain(domain, &self.catalog, &self.terms)
    }

    /// The name of a column of labels.
    fn label_name(&self, domain: &Domain) -> String {
        match domain {
            Domain::Column(table, column) => self.catalog.definition(*table).columns[*column]
                .name
                .clone(),
            Domain::Computed(_) => self.domain_name(domain),
        }
    }

    /// The column that `by` is.
    fn ordered(&self, answer: &Answer, by: &Operand) -> Checked<usize> {
        let written = by.to_string();
        let name = match &by.what {
            What::Name(Name { text, .. }) | What::Attribute(_, Name { text, .. }) => text,
            _ => &written,
        };
        let columns = || answer.columns.iter();
        let found = match by.what {
            What::Attribute(..) => columns().position(|c| c.written == written),
            _ => columns().position(|c| c.name == *name || c.written == written),
        };
        match found {
            Some(position) => Ok(position),
            None => {
                let names: Vec<&str> = columns().map(|c| c.name.as_str()).collect();
                let what = format!(
                    "{} is not returned; order by one of {}",
                    self.quote(by.span),
                    names.join(", ")
                );
                wrong(by.span, what)
            }
        }
    }
}

/// A column as an item names it.
fn column(item: &Item, term: TermId) -> Column {
    let written = item.value.to_string();
    let name = match (&item.alias, &item.value.what) {
        (Some(alias), _) => alias.text.clone(),
        (None, What::Name(name) | What::Attribute(_, name)) => name.text.clone(),
        _ => written.clone(),
    };
    Column {
        name,
        term,
        written,
    }
}
