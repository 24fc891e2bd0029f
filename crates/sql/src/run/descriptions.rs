//! The comments that a statement sees, by the numbers of what they are on.

use std::sync::Arc;

use table::Tables;

use crate::functions::descriptions::Descriptions;
use crate::messages::numbers::table_number;

/// The comments of tables.
#[derive(Debug)]
pub(super) struct Said {
    tables: Arc<Tables>,
}

impl Said {
    pub(super) fn of(tables: &Arc<Tables>) -> Arc<dyn Descriptions> {
        Arc::new(Said {
            tables: Arc::clone(tables),
        })
    }
}

impl Descriptions for Said {
    fn of(&self, relation: i64, column: i64) -> Option<String> {
        let tables = &self.tables;
        let names = [tables.names(), tables.views(), tables.sequences()];
        let mut names = names.into_iter().flatten();
        if let Some(name) = names.find(|name| table_number(name) == relation) {
            let said = tables.comments(name)?;
            if column == 0 {
                return said.own.clone();
            }
            let definition = tables.get(name)?.definition();
            let place = usize::try_from(column - 1).ok()?;
            let column = definition.columns.get(place)?;
            return said.columns.get(&column.name).cloned();
        }
        let mut said = tables.names().into_iter();
        said.find_map(|name| {
            let keys = &tables.comments(name)?.keys;
            let mut keys = keys.iter();
            let found = keys.find(|(key, _)| column == 0 && table_number(key) == relation);
            found.map(|(_, text)| text.clone())
        })
    }
}
