//! The relations that PostgreSQL itself has in `pg_catalog` and `information_schema`, with their columns, by the files of
//! [`system`]: what a query of each finds is [completed](system::completed) by the same lines.

use messages::numbers::{is_system_table, table_number};
use syntax::names::{INFORMATION_SCHEMA, PG_CATALOG, base, catalog_name, schema_of};
use table::{Column, Definition};

use crate::pg_catalog::build::type_of;
use crate::pg_catalog::composites::{as_table, plain_column};
use crate::pg_catalog::system;

/// The tables of `information_schema`, in which everything else is a view.
const STANDARD_TABLES: [&str; 4] = [
    "sql_features",
    "sql_implementation_info",
    "sql_parts",
    "sql_sizing",
];

/// One of them.
pub(super) struct SystemRelation {
    schema: &'static str,
    name: &'static str,
    /// As the files have them.
    columns: &'static str,
}

impl SystemRelation {
    /// The name with its schema, as the catalog writes both.
    pub(super) fn full_name(&self) -> String {
        catalog_name(self.schema, self.name)
    }

    /// What `pg_class` has as its kind.
    pub(super) fn kind(&self) -> &'static str {
        let is_table = match self.schema {
            PG_CATALOG => is_system_table(self.name),
            _ => STANDARD_TABLES.contains(&self.name),
        };
        if is_table { "r" } else { "v" }
    }

    /// Its columns: their names, each with a letter for its type.
    fn columns(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.columns
            .split(' ')
            .filter_map(|own| own.split_once(':'))
    }

    /// How many columns it has.
    pub(super) fn width(&self) -> usize {
        self.columns().count()
    }

    /// As a table, by the name that has its [number](number).
    fn as_table(&self) -> Definition {
        let name = match self.schema {
            PG_CATALOG => self.name.to_owned(),
            _ => self.full_name(),
        };
        let columns = self.columns();
        let columns = columns.map(|(name, letter)| plain_column(name.to_owned(), type_of(letter)));
        as_table(name, columns.collect::<Vec<Column>>())
    }
}

/// All of them.
pub(super) fn relations() -> impl Iterator<Item = SystemRelation> {
    let of_schema = |schema: &'static str, lines: Vec<(&'static str, &'static str)>| {
        let lines = lines.into_iter();
        lines.map(move |(name, columns)| SystemRelation {
            schema,
            name,
            columns,
        })
    };
    let own = of_schema(PG_CATALOG, system::catalogs());
    own.chain(of_schema(INFORMATION_SCHEMA, system::standard_views()))
}

/// The same as tables.
pub(super) fn as_tables() -> impl Iterator<Item = Definition> {
    relations().map(|own| own.as_table())
}

/// The number of a relation with this name, be it one of these or somebody's.
pub(super) fn number(full_name: &str) -> i64 {
    match schema_of(full_name) {
        // Their names alone have the numbers that PostgreSQL has given them.
        PG_CATALOG => table_number(base(full_name)),
        _ => table_number(full_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_views_have_numbers_and_columns() {
        let kinds = |kind: &str| relations().filter(|own| own.kind() == kind).count();
        assert_eq!((kinds("r"), kinds("v")), (64 + 4, 75 + 60));
        for (own, table) in relations().zip(as_tables()) {
            let number = number(&own.full_name());
            assert_eq!(number, table_number(&table.name), "{}", own.full_name());
            let found = system::table_of(number).unwrap();
            assert_eq!(found.rsplit('.').next(), Some(own.name));
            assert_eq!(table.columns.len(), own.width());
            assert!(own.width() > 0);
        }
    }
}
