//! Which columns of a result are columns of a table, as they are: clients that let people edit rows ask for it.

use std::sync::Arc;

use table::Definition;

use crate::frontend::lengths;
use crate::messages::numbers::table_number;
use crate::names::session_of;

/// The column of a table that a column of a result is, by its numbers in `pg_attribute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `attrelid`: the number of the table, that of `pg_class`.
    pub table: u32,
    /// `attnum`: its place in the table, from 1 on.
    pub column: i16,
    /// Most characters of its texts, if it is declared with a length.
    pub length: Option<usize>,
}

impl Origin {
    fn new(table: &str, at: usize) -> Option<Origin> {
        // The catalogs do not tell of tables of a session.
        if session_of(table).is_some() {
            return None;
        }
        Some(Origin {
            table: u32::try_from(table_number(table)).ok()?,
            column: i16::try_from(at + 1).ok()?,
            length: None,
        })
    }
}

/// The origins of the columns of a result. Expressions have none, nor have columns of views.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Option<Arc<[Option<Origin>]>>);

impl From<Vec<Option<Origin>>> for Origins {
    fn from(found: Vec<Option<Origin>>) -> Origins {
        if found.iter().all(Option::is_none) {
            return Origins::default();
        }
        Origins(Some(found.into()))
    }
}

impl Origins {
    /// That of the column at this place, from 0 on.
    pub fn of(&self, at: usize) -> Option<Origin> {
        self.0.as_ref()?.get(at).copied().flatten()
    }

    /// Those of columns of one table, by their places in it.
    pub(crate) fn of_table(name: &str, definition: &Definition, places: &[usize]) -> Origins {
        let Some(first) = Origin::new(name, 0) else {
            return Origins::default();
        };
        let origin = |at: &usize| {
            let column = i16::try_from(at.checked_add(1)?).ok()?;
            // Lengths are checks.
            let own = definition.columns.get(*at);
            let own = own.filter(|_| !definition.checks.is_empty());
            let length = own.and_then(|own| lengths::of_column(definition, &own.name));
            let length = length.map(|(most, _)| most);
            Some(Origin {
                column,
                length,
                ..first
            })
        };
        Origins(Some(places.iter().map(origin).collect()))
    }
}
