//! What people say of tables, columns, indexes, constraints, schemas and types, as rows of `pg_description`.

use messages::numbers::{enum_number, schema_number, table_number};
use syntax::names::{PUBLIC, SCHEMA, catalog_name, constraint_of, of_schema, schema_of};
use table::Tables;

use crate::pg_catalog::build::{Built, ViewColumns};
use crate::pg_catalog::relations::{COMPOSITE, relations};
use crate::pg_catalog::schemas::schemas;

/// `pg_description`.
pub(super) fn descriptions(all: &Tables, views: &ViewColumns) -> Built {
    let mut rows: Vec<(i64, i64, String)> = Vec::new();
    let mut of_constraints = Vec::new();
    for relation in relations(all) {
        let name = relation.name.as_ref();
        let is_own = !matches!(relation.kind, "i" | COMPOSITE);
        let Some(said) = all.comments(name).filter(|_| is_own) else {
            continue;
        };
        let number = table_number(name);
        rows.extend(said.own.iter().map(|text| (number, 0, text.clone())));
        let definition = relation.definition.or_else(|| views.get(name));
        let columns = definition.map(|own| &own.columns);
        for (at, column) in (1..).zip(columns.into_iter().flatten()) {
            let text = said.columns.get(&column.name);
            rows.extend(text.map(|text| (number, at, text.clone())));
        }
        let index = |key: &str| table_number(&catalog_name(schema_of(name), key));
        for (key, text) in &said.keys {
            match constraint_of(key) {
                Some(constraint) => of_constraints.push((index(constraint), 0, text.clone())),
                None => rows.push((index(key), 0, text.clone())),
            }
        }
    }
    let relations = rows.len();
    for schema in schemas(all) {
        let said = all.comments(&of_schema(schema));
        let text = said.and_then(|said| said.own.clone());
        rows.extend(text.map(|text| (schema_number(schema), 0, text)));
    }
    if all.comments(&of_schema(SCHEMA)).is_none() {
        // What PostgreSQL says of it. `pg_dump` writes what is said otherwise.
        rows.push((schema_number(SCHEMA), 0, PUBLIC.to_owned()));
    }
    let schemas = rows.len();
    for name in all.types().into_iter().chain(all.domains()) {
        let text = all.comments(name).and_then(|said| said.own.clone());
        rows.extend(text.map(|text| (enum_number(name).into(), 0, text)));
    }
    let types = rows.len();
    rows.append(&mut of_constraints);
    let catalog = |at: usize| {
        table_number(match at {
            at if at < relations => "pg_class",
            at if at < schemas => "pg_namespace",
            at if at < types => "pg_type",
            _ => "pg_constraint",
        })
    };
    Built::default()
        .numbers("objoid", rows.iter().map(|row| row.0))
        .numbers("classoid", (0..rows.len()).map(catalog))
        .numbers("objsubid", rows.iter().map(|row| row.1))
        .names("description", rows.iter().map(|row| row.2.as_str()))
}
