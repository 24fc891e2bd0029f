//! The tables of a program, and which columns refer to which.

use std::collections::HashMap;
use std::sync::Arc;

use table::{Definition, Dictionary, Table, Tables};

use crate::space::Domain;

/// The tables that a program names, numbered as they appear.
pub(crate) struct Catalog<'t> {
    all: &'t Tables,
    used: Vec<Arc<Table>>,
    dictionaries: HashMap<(usize, usize), Arc<Dictionary>>,
}

impl<'t> Catalog<'t> {
    pub fn new(all: &'t Tables) -> Catalog<'t> {
        Catalog {
            all,
            used: vec![],
            dictionaries: HashMap::new(),
        }
    }

    /// The number of the table of that name.
    pub fn number(&mut self, name: &str) -> Option<usize> {
        let known = |table: &Arc<Table>| table.definition().name == name;
        if let Some(number) = self.used.iter().position(known) {
            return Some(number);
        }
        self.used.push(Arc::clone(self.all.get(name)?));
        Some(self.used.len() - 1)
    }

    pub fn table(&self, number: usize) -> &Arc<Table> {
        &self.used[number]
    }

    pub fn definition(&self, number: usize) -> &Definition {
        self.used[number].definition()
    }

    pub fn names(&self) -> Vec<&str> {
        self.all.names()
    }

    /// `table.column`
    pub fn attribute(&self, table: usize, column: usize) -> String {
        let definition = self.definition(table);
        format!("{}.{}", definition.name, definition.columns[column].name)
    }

    /// The labels of a column: those of the key that it refers to, if it is declared to refer to one.
    pub fn domain(&mut self, table: usize, column: usize) -> Domain {
        let mut at = (table, column);
        // As many steps as there are tables: declarations may run in a circle.
        for _ in 0..self.all.names().len() {
            match self.parent(at.0, at.1) {
                Some(parent) if parent != at => at = parent,
                _ => break,
            }
        }
        Domain::Column(at.0, at.1)
    }

    /// The column that a column refers to; by itself rather than with others.
    fn parent(&mut self, table: usize, column: usize) -> Option<(usize, usize)> {
        let mut keys = self.definition(table).foreign_keys.clone();
        keys.sort_by_key(|key| key.columns.len());
        for key in keys {
            let Some(place) = key.columns.iter().position(|c| *c == column) else {
                continue;
            };
            let Some(parent) = self.number(&key.parent) else {
                continue;
            };
            if let Ok(column) = self.definition(parent).position(&key.parent_columns[place]) {
                return Some((parent, column));
            }
        }
        None
    }

    /// The columns of `table` by which labels of `domains` find its records: its primary key, else columns that
    /// have just these labels and refer to no other table.
    pub fn found_by(&mut self, table: usize, domains: &[Domain]) -> Option<Vec<usize>> {
        let key = self.definition(table).primary_key.clone();
        let own: Vec<Domain> = key.iter().map(|c| self.domain(table, *c)).collect();
        if own.len() == domains.len() {
            let place = |domain: &Domain| own.iter().position(|o| o == domain).map(|at| key[at]);
            let by: Option<Vec<usize>> = domains.iter().map(place).collect();
            if by.as_ref().is_some_and(|by| distinct(by)) {
                return by;
            }
        }
        let own_column = |domain: &Domain| match domain {
            Domain::Column(of, column) if *of == table => Some(*column),
            _ => None,
        };
        let by: Option<Vec<usize>> = domains.iter().map(own_column).collect();
        by.filter(|by| distinct(by))
    }

    /// How many labels a column has, as far as that is known.
    pub fn labels(&self, table: usize, column: usize) -> Option<u64> {
        if let Some(dictionary) = self.dictionary(table, column) {
            return Some(dictionary.len() as u64);
        }
        let of = &self.used[table];
        if of.definition().primary_key[..] == [column] {
            Some(of.rows())
        } else {
            of.statistics(column).distinct
        }
    }

    pub fn dictionary(&self, table: usize, column: usize) -> Option<&Arc<Dictionary>> {
        self.dictionaries.get(&(table, column))
    }

    /// Reads the dictionary of a column, if it has one.
    pub async fn read_dictionary(&mut self, table: usize, column: usize) -> table::Result<()> {
        let of = &self.used[table];
        if !self.dictionaries.contains_key(&(table, column))
            && of.is_coded(column)
            && let Some(dictionary) = of.dictionary(column).await?
        {
            self.dictionaries.insert((table, column), dictionary);
        }
        Ok(())
    }
}

fn distinct(columns: &[usize]) -> bool {
    let mut sorted = columns.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// `; did you mean x?` for the name nearest to `name`, if any is near.
pub(crate) fn did_you_mean<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let near = names
        .into_iter()
        .map(|other| (distance(name, other), other))
        .filter(|(far, other)| {
            // Names of one letter are as near to each other.
            *far <= 1 + other.len().min(name.len()) / 3 && 2 * *far <= other.len().max(name.len())
        })
        .min();
    near.map_or(String::new(), |(_, other)| {
        format!("; did you mean {other}?")
    })
}

/// The edit distance: characters to insert, leave out or change.
fn distance(a: &str, b: &str) -> usize {
    // `shipdate` is as near to `l_shipdate` as can be.
    if a.len() > 3 && b.ends_with(a) {
        return 1;
    }
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
