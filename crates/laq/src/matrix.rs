//! Matrices and their shapes (L1).

use std::collections::BTreeSet;

use crate::catalog::Catalog;
use crate::show;
use crate::space::{Domain, Space, TermId};
use crate::term::Terms;

/// The labels of a matrix's rows: each of its columns has a one in the row of its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub term: TermId,
    pub domain: Domain,
}

/// A matrix: what is not zero, in which row, and its value (1 if there is none).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    pub space: Space,
    pub conditions: BTreeSet<TermId>,
    pub keys: Vec<Key>,
    pub value: Option<TermId>,
    pub transposed: bool,
}

impl Matrix {
    pub fn over(space: Space) -> Matrix {
        Matrix {
            space,
            conditions: BTreeSet::new(),
            keys: vec![],
            value: None,
            transposed: false,
        }
    }

    pub fn domains(&self) -> Vec<Domain> {
        self.keys.iter().map(|key| key.domain.clone()).collect()
    }

    /// Its type in readable form, such as `bitmap matrix`.
    pub fn kind(&self) -> &'static str {
        match (self.keys.is_empty(), self.value, &self.space) {
            (_, Some(_), Space::One) => "number",
            (true, None, _) => "filtered bit vector",
            (true, Some(_), _) if self.conditions.is_empty() => "decimal vector",
            (true, Some(_), _) => "filtered decimal vector",
            (false, None, _) if self.conditions.is_empty() => "bitmap matrix",
            (false, None, _) => "filtered bitmap matrix",
            (false, Some(_), _) => "map",
        }
    }

    /// Its shape, such as `7 x 60175 (labels of lineitem.l_shipmode x rows of lineitem)`.
    pub fn shape(&self, catalog: &Catalog<'_>, terms: &Terms) -> String {
        if self.space == Space::One {
            return "1 x 1".into();
        }
        let mut sides = [
            side(&self.domains(), catalog, terms),
            columns(&self.space, catalog, terms),
        ];
        if self.transposed {
            sides.reverse();
        }
        let [(a, x), (b, y)] = sides;
        let names: Vec<String> = [x, y].into_iter().flatten().collect();
        format!("{a} x {b} ({})", names.join(" x "))
    }
}

/// How many columns there are, and what they are called.
pub(crate) fn columns(
    space: &Space,
    catalog: &Catalog<'_>,
    terms: &Terms,
) -> (String, Option<String>) {
    match space {
        Space::Rows(table) => {
            let table = catalog.table(*table);
            let name = &table.definition().name;
            (table.rows().to_string(), Some(format!("rows of {name}")))
        }
        Space::Labels(domains) => side(domains, catalog, terms),
        Space::One => ("1".into(), None),
    }
}

/// How many combinations of labels there are at most, and what they are called.
fn side(domains: &[Domain], catalog: &Catalog<'_>, terms: &Terms) -> (String, Option<String>) {
    if domains.is_empty() {
        return ("1".into(), None);
    }
    let mut count = Some(1u64);
    let mut names = Vec::with_capacity(domains.len());
    for domain in domains {
        let own = match domain {
            Domain::Column(table, column) => catalog.labels(*table, *column),
            Domain::Computed(_) => None,
        };
        count = count.zip(own).and_then(|(a, b)| a.checked_mul(b));
        names.push(show::domain(domain, catalog, terms));
    }
    let count = count.map_or("?".into(), |count| count.to_string());
    let names = match &names[..] {
        [one] => format!("labels of {one}"),
        _ => format!("labels of ({})", names.join(", ")),
    };
    (count, Some(names))
}
