//! `pg_type` and `pg_enum`: the types of the system, those that people have made, and the arrays of both.

use table::{EnumType, Label, Tables};

use crate::messages::numbers::{
    CATALOG_SCHEMA, OWNER, TYPES, enum_array_number, enum_number, role_number, schema_number,
    table_number,
};
use crate::names::{base, schema_of};
use crate::rights;
use crate::scan::catalog::build::Built;

/// A row of `pg_type`.
struct Row {
    number: i64,
    name: String,
    schema: i64,
    owner: i64,
    length: i32,
    kind: &'static str,
    category: &'static str,
    array: i64,
    item: i64,
}

/// The function of PostgreSQL that reads or writes values of a type: ADBC's driver knows types by these.
fn reader(name: &str, what: &str) -> String {
    match name {
        array if array.starts_with('_') => format!("array_{what}"),
        "date" | "time" | "timetz" | "timestamp" | "timestamptz" | "interval" | "numeric"
        | "uuid" | "json" | "jsonb" => format!("{name}_{what}"),
        name => format!("{name}{what}"),
    }
}

/// The types of the system, and their arrays.
fn of_system() -> impl Iterator<Item = Row> {
    let row = |number, name: String| Row {
        number,
        name,
        schema: CATALOG_SCHEMA,
        owner: OWNER,
        length: -1,
        kind: "b",
        category: "A",
        array: 0,
        item: 0,
    };
    let arrays = TYPES.iter().filter(|known| known.array != 0);
    let plain = TYPES.iter().map(move |known| Row {
        length: known.length,
        category: known.category,
        array: known.array,
        ..row(known.number, known.name.to_string())
    });
    plain.chain(arrays.map(move |known| Row {
        item: known.number,
        ..row(known.array, format!("_{}", known.name))
    }))
}

/// A type that people have made, and its arrays.
fn made(all: &Tables, name: &str) -> [Row; 2] {
    let (number, array) = (enum_number(name).into(), enum_array_number(name).into());
    let owner = rights::owner(all, name).map_or(OWNER, role_number);
    let own = Row {
        number,
        name: base(name).to_owned(),
        schema: schema_number(schema_of(name)),
        owner,
        length: 4,
        kind: "e",
        category: "E",
        array,
        item: 0,
    };
    let arrays = Row {
        number: array,
        name: format!("_{}", base(name)),
        length: -1,
        kind: "b",
        category: "A",
        array: 0,
        item: number,
        ..own
    };
    [own, arrays]
}

/// `pg_type`.
pub(super) fn by_number(all: &Tables) -> Built {
    let made = all.types().into_iter().flat_map(|name| made(all, name));
    let all: Vec<Row> = of_system().chain(made).collect();
    let rows = all.len();
    let function = |own: &Row, what: &str| match own.kind {
        "e" => format!("enum_{what}"),
        _ => reader(&own.name, what),
    };
    Built::default()
        .numbers("oid", all.iter().map(|own| own.number))
        .names("typname", all.iter().map(|own| own.name.clone()))
        .numbers("typnamespace", all.iter().map(|own| own.schema))
        .numbers("typowner", all.iter().map(|own| own.owner))
        .counts("typlen", all.iter().map(|own| own.length))
        .truths(
            "typbyval",
            all.iter().map(|own| (0..=8).contains(&own.length)),
        )
        .names("typtype", all.iter().map(|own| own.kind))
        .names("typcategory", all.iter().map(|own| own.category))
        .truth("typispreferred", false, rows)
        .truth("typisdefined", true, rows)
        .text("typdelim", ",", rows)
        .number("typrelid", 0, rows)
        .numbers("typelem", all.iter().map(|own| own.item))
        .numbers("typarray", all.iter().map(|own| own.array))
        .names("typinput", all.iter().map(|own| function(own, "in")))
        .names("typoutput", all.iter().map(|own| function(own, "out")))
        .names("typreceive", all.iter().map(|own| function(own, "recv")))
        .names("typsend", all.iter().map(|own| function(own, "send")))
        .truth("typnotnull", false, rows)
        .number("typbasetype", 0, rows)
        .number("typtypmod", -1, rows)
        .number("typndims", 0, rows)
        .number("typcollation", 0, rows)
        .nothing("typdefault", rows)
        .no_lists("typacl", rows)
}

/// `pg_enum`.
pub(super) fn labels(all: &Tables) -> Built {
    let types = all.types().into_iter();
    let types = types.filter_map(|name| all.named_type(name));
    let mut all: Vec<(&EnumType, &Label, i64)> = Vec::new();
    for own in types {
        let labels = own.labels.iter().zip(1..);
        all.extend(labels.map(|(label, place)| (own.as_ref(), label, place)));
    }
    let number = |name: &str, label: u16| table_number(&format!("label {name} {label}"));
    Built::default()
        .numbers(
            "oid",
            all.iter()
                .map(|(own, label, _)| number(&own.name, label.number)),
        )
        .numbers(
            "enumtypid",
            all.iter().map(|(own, _, _)| enum_number(&own.name).into()),
        )
        .numbers("enumsortorder", all.iter().map(|(_, _, place)| *place))
        .names(
            "enumlabel",
            all.iter().map(|(_, label, _)| label.text.as_str()),
        )
}
