//! What a statement sees of the catalog, by the numbers and texts that name it: comments, and where names are looked up.

use std::sync::Arc;

use table::Tables;

use crate::frontend::views::query_text;
use crate::functions::descriptions::{Descriptions, Made};
use crate::functions::sequences::relation;
use crate::messages::numbers::{
    enum_array_number, enum_number, schema_number, table_number, type_named, type_title,
};
use crate::names::{PG_CATALOG, SCHEMA, base, catalog_name, of_schema, quoted, schema_of};
use crate::scan::catalog::{constraints, indexes};
use crate::search_path::SearchPath;

/// The tables of a statement, and where it looks names up.
#[derive(Debug)]
pub(super) struct Said {
    tables: Arc<Tables>,
    path: SearchPath,
}

impl Said {
    pub(super) fn of(tables: &Arc<Tables>, path: &SearchPath) -> Arc<dyn Descriptions> {
        Arc::new(Said {
            tables: Arc::clone(tables),
            path: path.clone(),
        })
    }

    /// The names of tables, views and sequences.
    fn names(&self) -> impl Iterator<Item = &str> {
        let tables = &self.tables;
        let names = [tables.names(), tables.views(), tables.sequences()];
        names.into_iter().flatten()
    }
}

impl Descriptions for Said {
    fn of(&self, relation: i64, column: i64) -> Option<String> {
        let tables = &self.tables;
        if let Some(name) = self.names().find(|name| table_number(name) == relation) {
            let said = tables.comments(name)?;
            if column == 0 {
                return said.own.clone();
            }
            let definition = tables.get(name)?.definition();
            let place = usize::try_from(column - 1).ok()?;
            let column = definition.columns.get(place)?;
            return said.columns.get(&column.name).cloned();
        }
        let mut types = tables.types().into_iter().chain(tables.domains());
        if let Some(name) = types.find(|name| i64::from(enum_number(name)) == relation) {
            return tables.comments(name)?.own.clone();
        }
        let mut said = tables.names().into_iter();
        said.find_map(|name| {
            let keys = &tables.comments(name)?.keys;
            let mut keys = keys.iter();
            let number = |key: &str| table_number(&catalog_name(schema_of(name), key));
            let found = keys.find(|(key, _)| column == 0 && number(key) == relation);
            found.map(|(_, text)| text.clone())
        })
    }

    fn of_schema(&self, schema: i64) -> Option<String> {
        let tables = &self.tables;
        let mut names = tables.schemas().into_iter().chain([SCHEMA]);
        let name = names.find(|name| schema_number(name) == schema)?;
        tables.comments(&of_schema(name))?.own.clone()
    }

    fn schema(&self) -> Option<String> {
        self.path.current(&self.tables).map(str::to_owned)
    }

    fn schemas(&self, implicit: bool) -> Vec<String> {
        self.path.all(&self.tables, implicit)
    }

    fn number(&self, text: &str) -> crate::error::Result<Option<i64>> {
        let written = relation(text)?;
        let there = |name: &str| self.names().any(|own| own == name);
        let name = self.path.resolve(&self.tables, &written);
        let name = match table::schema_of(&name) {
            Some(PG_CATALOG) => table::base_of(&name).to_owned(),
            _ => name,
        };
        let of_system = name.starts_with("pg_") && table::schema_of(&name).is_none();
        if there(&name) || of_system {
            return Ok(Some(table_number(&name)));
        }
        // An index is in the schema of its table.
        let index = table::base_of(&written);
        let has = |name: &&str| {
            let definition = self.tables.get(name).map(|table| table.definition());
            definition.is_some_and(|own| {
                let mut indexes = own.indexes.iter();
                own.keys.iter().any(|own| own.name == index) || indexes.any(|own| own.name == index)
            })
        };
        let with = self.tables.names().into_iter().filter(has);
        let found = self.path.first_in(&self.tables, &written, with);
        Ok(found.map(|table| table_number(&catalog_name(schema_of(table), index))))
    }

    fn definition(&self, what: Made, number: i64) -> Option<String> {
        let tables = &self.tables;
        match what {
            Made::View => {
                let name = self.names().find(|name| table_number(name) == number)?;
                let text = match tables.view(name) {
                    Some(text) => text,
                    None => tables.materialized(name)?.text,
                };
                Some(query_text(text))
            }
            Made::Index => indexes(tables)
                .into_iter()
                .find(|own| own.number() == number)
                .map(|own| own.text()),
            Made::Constraint => constraints(tables)
                .into_iter()
                .find(|own| own.number == number)
                .map(|own| own.text),
        }
    }

    fn name(&self, number: i64) -> Option<String> {
        let name = self.names().find(|name| table_number(name) == number)?;
        let own = quoted(base(name));
        Some(if self.path.sees(&self.tables, name) {
            own
        } else {
            format!("{}.{own}", quoted(schema_of(name)))
        })
    }

    fn type_title(&self, number: i64, modifier: i64) -> Option<String> {
        if let Some(title) = type_title(number, modifier) {
            return Some(title);
        }
        let title = |name: &str| {
            let seen = self.path.resolve_type(&self.tables, base(name)) == name;
            if seen {
                quoted(base(name))
            } else {
                format!("{}.{}", quoted(schema_of(name)), quoted(base(name)))
            }
        };
        let names = self.tables.types().into_iter();
        let mut names = names.chain(self.tables.domains());
        names.find_map(|name| {
            if i64::from(enum_number(name)) == number {
                Some(title(name))
            } else if i64::from(enum_array_number(name)) == number {
                Some(format!("{}[]", title(name)))
            } else {
                None
            }
        })
    }

    fn type_number(&self, text: &str) -> Option<i64> {
        if let Some(number) = type_named(text) {
            return Some(number);
        }
        let item = text.trim().strip_suffix("[]");
        let written = relation(item.unwrap_or(text).trim()).ok()?;
        let name = self.path.resolve_type(&self.tables, &written);
        if !self.tables.has_type(&name) {
            return None;
        }
        Some(match item {
            Some(_) if self.tables.domain(&name).is_some_and(|own| !own.composite) => {
                return None;
            }
            Some(_) => enum_array_number(&name).into(),
            None => enum_number(&name).into(),
        })
    }

    fn is_visible(&self, number: i64) -> Option<bool> {
        let name = self.names().find(|name| table_number(name) == number)?;
        Some(self.path.sees(&self.tables, name))
    }
}
