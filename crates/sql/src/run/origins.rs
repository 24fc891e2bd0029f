//! Which columns of a result are columns of a table, as they are: clients that let people edit rows ask for it.

use std::sync::Arc;

use syntax::names::session_of;
use table::Definition;

use crate::messages::numbers::table_number;
use crate::run::modifiers::Modifier;

/// The column of a table that a column of a result is, by its numbers in `pg_attribute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `attrelid`: the number of the table, that of `pg_class`.
    pub table: u32,
    /// `attnum`: its place in the table, from 1 on.
    pub column: i16,
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
        })
    }
}

/// The origins of the columns of a result. Expressions have none, nor have columns of views. And what the types of the columns
/// say [beside their names](Modifier), whatever they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    origins: Option<Arc<[Option<Origin>]>>,
    modifiers: Option<Arc<[Option<Modifier>]>>,
}

/// A list for columns of which some have one of these.
fn some<T>(found: Vec<Option<T>>) -> Option<Arc<[Option<T>]>> {
    found.iter().any(Option::is_some).then(|| found.into())
}

impl Origins {
    pub(crate) fn new(origins: Vec<Option<Origin>>, modifiers: Vec<Option<Modifier>>) -> Origins {
        Origins {
            origins: some(origins),
            modifiers: some(modifiers),
        }
    }

    /// That of the column at this place, from 0 on.
    pub fn of(&self, at: usize) -> Option<Origin> {
        self.origins.as_ref()?.get(at).copied().flatten()
    }

    /// What the type of the column at this place says beside its name.
    pub fn modifier(&self, at: usize) -> Option<Modifier> {
        self.modifiers.as_ref()?.get(at).copied().flatten()
    }

    /// Those of columns of one table, by their places in it.
    pub(crate) fn of_table(name: &str, definition: &Definition, places: &[usize]) -> Origins {
        let modifiers = places.iter();
        let modifiers = modifiers.map(|at| Modifier::of_column(definition, *at));
        let origins = of_columns(name, places);
        Origins::new(origins, modifiers.collect())
    }
}

/// The origins that columns of one table are, by their places in it.
pub(crate) fn of_columns(name: &str, places: &[usize]) -> Vec<Option<Origin>> {
    let Some(first) = Origin::new(name, 0) else {
        return vec![None; places.len()];
    };
    let origin = |at: &usize| {
        let column = i16::try_from(at.checked_add(1)?).ok()?;
        Some(Origin { column, ..first })
    };
    places.iter().map(origin).collect()
}
