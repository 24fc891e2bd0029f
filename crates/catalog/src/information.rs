//! `information_schema`: what the database says about its tables.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::array::{ArrayRef, Int32Array, StringArray};
use arrow::datatypes::DataType;
use datafusion_common::Result as DataFusionResult;
use messages::numbers::{short_name, type_number};
use messages::types;
use syntax::lengths;
use syntax::names::{CATALOG, base, schema_of, session_of};
use table::{Column, Definition, Sequence, Tables, enum_name, is_enum};

use crate::pg_catalog::{self, Built, Seen, ViewColumns};
use crate::search_path::SearchPath;

/// The view of `information_schema` of that name, if there is one. `views` are the columns of views.
pub fn view(
    seen: &Seen<'_>,
    name: &str,
    views: &ViewColumns,
) -> DataFusionResult<Option<RecordBatch>> {
    let built = match name {
        "columns" => Some(columns(seen, views)),
        "tables" => Some(tables(seen)),
        "views" => Some(view_texts(seen)),
        "view_table_usage" => Some(view_tables(seen)),
        _ => None,
    };
    pg_catalog::of_standard(seen, name, built)
}

/// `information_schema.tables`.
fn tables(seen: &Seen<'_>) -> Built {
    let (tables, views) = (seen.names(), seen.views());
    let kind = |name: &&str| match session_of(name) {
        Some(_) => "LOCAL TEMPORARY",
        None => "BASE TABLE",
    };
    let kinds = tables.iter().map(kind);
    let rows = tables.len() + views.len();
    let all = || tables.iter().chain(&views);
    let writes = std::iter::repeat_n("YES", tables.len());
    let writes = writes.chain(std::iter::repeat_n("NO", views.len()));
    Built::default()
        .text("table_catalog", CATALOG, rows)
        .names("table_schema", all().map(|name| schema_of(name)))
        .names("table_name", all().map(|name| base(name)))
        .names(
            "table_type",
            kinds.chain(std::iter::repeat_n("VIEW", views.len())),
        )
        .names("is_insertable_into", writes)
        .text("is_typed", "NO", rows)
}

/// `information_schema.views`. The query is shown to those alone whose view it is.
fn view_texts(seen: &Seen<'_>) -> Built {
    let views = seen.views();
    let rows = views.len();
    let text = |name: &&str| {
        let own = seen.rights.owns(seen.tables, name);
        let text = seen.tables.view(name).filter(|_| own)?;
        Some(match seen.path {
            Some(path) => pg_catalog::seen_view(seen.tables, path, text),
            None => pg_catalog::seen_view(seen.tables, &SearchPath::kept(), text),
        })
    };
    let built = Built::default()
        .text("table_catalog", CATALOG, rows)
        .names("table_schema", views.iter().map(|name| schema_of(name)))
        .names("table_name", views.iter().map(|name| base(name)))
        .texts("view_definition", views.iter().map(text))
        .text("check_option", "NONE", rows);
    [
        "is_updatable",
        "is_insertable_into",
        "is_trigger_updatable",
        "is_trigger_deletable",
        "is_trigger_insertable_into",
    ]
    .into_iter()
    .fold(built, |built, name| built.text(name, "NO", rows))
}

/// `information_schema.view_table_usage`: the tables that views read, of those that belong to whoever asks.
fn view_tables(seen: &Seen<'_>) -> Built {
    let views = seen.views().into_iter();
    let pairs = views.flat_map(|view| {
        let text = seen.tables.view(view).unwrap_or_default();
        let read = pg_catalog::read_by(seen.tables, text).into_iter();
        read.map(move |table| (view, table))
    });
    let pairs: Vec<(&str, String)> = pairs
        .filter(|(_, table)| seen.rights.owns(seen.tables, table))
        .collect();
    let rows = pairs.len();
    Built::default()
        .text("view_catalog", CATALOG, rows)
        .names("view_schema", pairs.iter().map(|(view, _)| schema_of(view)))
        .names("view_name", pairs.iter().map(|(view, _)| base(view)))
        .text("table_catalog", CATALOG, rows)
        .names(
            "table_schema",
            pairs.iter().map(|(_, table)| schema_of(table)),
        )
        .names("table_name", pairs.iter().map(|(_, table)| base(table)))
}

/// A table or view, the position of a column in it, counted from 1, and the column.
type Place<'t> = (&'t Definition, i32, &'t Column);

/// The columns of all tables and of these views.
fn places<'t>(seen: &Seen<'t>, views: &'t ViewColumns) -> Vec<Place<'t>> {
    let tables = seen.tables;
    let names = seen.names();
    let of_tables = names.into_iter().filter_map(|name| tables.get(name));
    let of_tables = of_tables.map(|table| table.definition());
    let of_views = views.iter().filter(|(name, _)| seen.has(name));
    let mut rows = Vec::new();
    for definition in of_tables.chain(of_views.map(|(_, view)| view)) {
        let columns = definition.columns.iter().enumerate();
        rows.extend(columns.map(|(at, column)| (definition, at as i32 + 1, column)));
    }
    rows
}

/// The name in the catalog of the enum that a type is, or whose arrays it is of.
fn type_of_own(data_type: &DataType) -> Option<(bool, &str)> {
    match data_type {
        DataType::List(item) => enum_name(item.data_type()).map(|name| (true, name)),
        own => enum_name(own).map(|name| (false, name)),
    }
}

/// The same of the composite type that a column is of.
fn composite_of<'t>(tables: &'t Tables, column: &Column) -> Option<(bool, &'t str)> {
    let own = tables.domain(column.domain.as_deref()?)?;
    let is_list = matches!(column.data_type, DataType::List(_));
    own.composite.then_some((is_list, own.name.as_str()))
}

/// The default of a column, its names as far as the session's search path does not tell them.
fn shown_default(seen: &Seen<'_>, table: &Definition, column: &Column) -> Option<String> {
    let text = pg_catalog::default(seen.tables, table, column)?;
    Some(match seen.path {
        Some(path) => pg_catalog::seen_expression(seen.tables, path, &text),
        None => text,
    })
}

/// The number of the type of texts.
const TEXT: u32 = 25;

/// How many digits of seconds a column has, as far as clients see them.
fn second_digits(column: &Column) -> Option<i32> {
    let digits = match column.digits {
        Some(digits) if !matches!(column.data_type, DataType::List(_)) => Some(digits.into()),
        _ => types::second_digits(&column.data_type),
    };
    digits.map(|digits| digits.min(6))
}

/// `information_schema.columns`, of tables and of these views.
fn columns(seen: &Seen<'_>, views: &ViewColumns) -> Built {
    let tables = seen.tables;
    let rows = places(seen, views);
    let texts = |of: &dyn Fn(&Place<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let numbers = |of: &dyn Fn(&Place<'_>) -> Option<i32>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int32Array>())
    };
    let digits = |column: &Column| types::digits(&column.data_type);
    let arrays = [
        ("table_catalog", texts(&|_| Some(CATALOG.into()))),
        (
            "table_schema",
            texts(&|(table, _, _)| Some(schema_of(&table.name).to_owned())),
        ),
        (
            "table_name",
            texts(&|(table, _, _)| Some(base(&table.name).to_owned())),
        ),
        ("column_name", texts(&|(_, _, c)| Some(c.name.clone()))),
        ("ordinal_position", numbers(&|(_, at, _)| Some(*at))),
        (
            "column_default",
            texts(&|(table, _, c)| shown_default(seen, table, c)),
        ),
        (
            "is_nullable",
            texts(&|(_, _, c)| yes_or_no(c.nullable && !of_no_null(tables, c))),
        ),
        (
            "data_type",
            texts(&|(table, _, c)| {
                Some(match text_type(tables, table, c) {
                    Some(title) => title.to_owned(),
                    None => standard_name(tables, c),
                })
            }),
        ),
        (
            "character_maximum_length",
            numbers(&|(table, _, c)| length(table, c).map(|(most, _)| most)),
        ),
        (
            "character_octet_length",
            numbers(&|(table, _, c)| octets(table, c)),
        ),
        (
            "numeric_precision",
            numbers(&|(_, _, c)| digits(c).map(|d| d.precision)),
        ),
        (
            "numeric_precision_radix",
            numbers(&|(_, _, c)| digits(c).map(|d| d.radix)),
        ),
        (
            "numeric_scale",
            numbers(&|(_, _, c)| digits(c).and_then(|d| d.scale)),
        ),
        ("datetime_precision", numbers(&|(_, _, c)| second_digits(c))),
    ];
    let arrays = arrays
        .into_iter()
        .chain(plain(&rows))
        .chain(of_domains(tables, &rows))
        .chain(typed(tables, &rows))
        .chain(made(tables, &rows));
    Built::of(arrays.collect())
}

/// Most characters of the texts of a column, if it has a length, and whether it is a `char(n)`.
fn length(table: &Definition, column: &Column) -> Option<(i32, bool)> {
    if column.domain.is_some() {
        return None;
    }
    let (most, of_char) = lengths::of_column(table, &column.name)?;
    Some((i32::try_from(most).ok()?, of_char))
}

/// As many bytes as the texts of a column may have.
fn octets(table: &Definition, column: &Column) -> Option<i32> {
    /// As many as PostgreSQL says of texts without a length.
    const MOST: i32 = 1 << 30;
    match length(table, column) {
        Some((most, _)) => Some(most.saturating_mul(4)),
        None => (type_number(&column.data_type) == TEXT).then_some(MOST),
    }
}

/// Whether a column is of a domain that refuses NULL.
fn of_no_null(tables: &Tables, column: &Column) -> bool {
    let own = column.domain.as_ref().and_then(|name| tables.domain(name));
    own.is_some_and(|own| own.not_null)
}

/// What the standard calls a type of texts with a length, if a column is of one, or of a domain over one.
fn text_type(tables: &Tables, table: &Definition, column: &Column) -> Option<&'static str> {
    if let Some(name) = &column.domain {
        return pg_catalog::domain_length(tables.domain(name)?).map(|(title, _)| title);
    }
    let (_, of_char) = length(table, column)?;
    Some(if of_char {
        "character"
    } else {
        "character varying"
    })
}

/// The columns of `information_schema.columns` that say little.
fn plain(rows: &[Place<'_>]) -> [(&'static str, ArrayRef); 3] {
    let texts = |of: &dyn Fn(&Place<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    [
        ("interval_type", texts(&|_| None)),
        // By which `element_types` knows it.
        ("dtd_identifier", texts(&|(_, at, _)| Some(at.to_string()))),
        ("is_self_referencing", texts(&|_| yes_or_no(false))),
    ]
}

/// What the standard calls the type of a column.
fn standard_name(tables: &Tables, column: &Column) -> String {
    let own = column.domain.as_ref().and_then(|name| tables.domain(name));
    // A domain over a domain, too.
    let made = match &column.data_type {
        DataType::List(_) => own.is_some_and(|own| own.parent.is_some()),
        data_type => {
            is_enum(data_type) || own.is_some_and(|own| own.composite || own.parent.is_some())
        }
    };
    match &column.data_type {
        _ if made => "USER-DEFINED".to_owned(),
        DataType::List(_) => "ARRAY".to_owned(),
        data_type => types::standard_name(data_type),
    }
}

/// The columns of `information_schema.columns` about domains.
fn of_domains(tables: &Tables, rows: &[Place<'_>]) -> [(&'static str, ArrayRef); 3] {
    let texts = |of: fn(&str) -> &str| -> ArrayRef {
        let domains = rows.iter().map(|(_, _, column)| {
            let own = tables.domain(column.domain.as_deref()?)?;
            (!own.composite).then_some(own.name.as_str())
        });
        Arc::new(domains.map(|name| name.map(of)).collect::<StringArray>())
    };
    [
        ("domain_catalog", texts(|_| CATALOG)),
        ("domain_schema", texts(schema_of)),
        ("domain_name", texts(base)),
    ]
}

/// The columns of `information_schema.columns` about the name of a column's type as clients know it.
fn typed(tables: &Tables, rows: &[Place<'_>]) -> [(&'static str, ArrayRef); 3] {
    let texts = |of: &dyn Fn(&Place<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    [
        ("udt_catalog", texts(&|_| Some(CATALOG.into()))),
        (
            "udt_schema",
            texts(&|(_, _, c)| {
                let name = composite_of(tables, c).or_else(|| type_of_own(&c.data_type));
                Some(
                    name.map_or("pg_catalog", |(_, name)| schema_of(name))
                        .into(),
                )
            }),
        ),
        (
            "udt_name",
            texts(&|(table, _, c)| {
                let name = composite_of(tables, c).or_else(|| type_of_own(&c.data_type));
                Some(match name {
                    Some((array, name)) => {
                        format!("{}{}", if array { "_" } else { "" }, base(name))
                    }
                    None => match text_type(tables, table, c) {
                        Some("character") => "bpchar".to_owned(),
                        Some(_) => "varchar".to_owned(),
                        None => short_name(type_number(&c.data_type)),
                    },
                })
            }),
        ),
    ]
}

/// The columns of `information_schema.columns` about what makes the values of a column.
fn made(tables: &Tables, rows: &[Place<'_>]) -> [(&'static str, ArrayRef); 10] {
    let texts = |of: &dyn Fn(&Place<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let of_sequence = |column: &Column, of: fn(&Sequence) -> String| {
        let (sequence, _) = column.identity()?;
        tables.sequence(sequence).map(|own| of(own))
    };
    [
        (
            "is_identity",
            texts(&|(_, _, c)| yes_or_no(c.identity().is_some())),
        ),
        (
            "identity_generation",
            texts(&|(_, _, c)| {
                c.identity()
                    .map(|(_, always)| if always { "ALWAYS" } else { "BY DEFAULT" }.into())
            }),
        ),
        (
            "identity_start",
            texts(&|(_, _, c)| of_sequence(c, |own| own.start.to_string())),
        ),
        (
            "identity_increment",
            texts(&|(_, _, c)| of_sequence(c, |own| own.increment.to_string())),
        ),
        (
            "identity_maximum",
            texts(&|(_, _, c)| of_sequence(c, |own| own.max.to_string())),
        ),
        (
            "identity_minimum",
            texts(&|(_, _, c)| of_sequence(c, |own| own.min.to_string())),
        ),
        (
            "identity_cycle",
            texts(&|(_, _, c)| {
                of_sequence(c, |own| if own.cycle { "YES" } else { "NO" }.into())
                    .or_else(|| yes_or_no(false))
            }),
        ),
        (
            "is_generated",
            texts(&|(_, _, c)| {
                let made = c.expression().is_some();
                Some(if made { "ALWAYS" } else { "NEVER" }.into())
            }),
        ),
        (
            "generation_expression",
            texts(&|(table, _, c)| pg_catalog::generated(tables, table, c)),
        ),
        (
            "is_updatable",
            texts(&|(table, _, _)| yes_or_no(tables.view(&table.name).is_none())),
        ),
    ]
}

fn yes_or_no(yes: bool) -> Option<String> {
    Some(if yes { "YES" } else { "NO" }.to_owned())
}
