//! `pg_type` and `pg_enum`: the types of the system, those that people have made, and the arrays of both.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use table::{Domain, EnumType, Label, Tables, is_enum, json_kind};

use crate::frontend::{domains, lengths};
use crate::messages::numbers::{
    CATALOG_SCHEMA, OWNER, TYPES, enum_array_number, enum_number, role_number, schema_number,
    table_number, type_modifier, type_number,
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
    /// Of a domain: the type behind it, its modifier, whether NULL is refused, and the default.
    of_domain: OfDomain,
}

#[derive(Clone, Default)]
struct OfDomain {
    base: i64,
    modifier: Option<i32>,
    not_null: bool,
    default: Option<String>,
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
        of_domain: OfDomain::default(),
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
        of_domain: OfDomain::default(),
    };
    let arrays = Row {
        number: array,
        name: format!("_{}", base(name)),
        length: -1,
        kind: "b",
        category: "A",
        array: 0,
        item: number,
        of_domain: OfDomain::default(),
        ..own
    };
    [own, arrays]
}

/// A composite type, and its arrays.
fn composite(all: &Tables, name: &str) -> [Row; 2] {
    let [own, arrays] = made(all, name);
    let own = Row {
        length: -1,
        kind: "c",
        category: "C",
        ..own
    };
    [own, arrays]
}

/// A domain.
fn domain(all: &Tables, own: &Domain) -> Row {
    let name = &own.name;
    let number = i64::from(type_number(&own.data_type));
    let known = TYPES.iter().find(|known| known.number == number);
    let is_enum = is_enum(&own.data_type);
    Row {
        number: enum_number(name).into(),
        name: base(name).to_owned(),
        schema: schema_number(schema_of(name)),
        owner: rights::owner(all, name).map_or(OWNER, role_number),
        length: match known {
            Some(known) => known.length,
            None if is_enum => 4,
            None => -1,
        },
        kind: "d",
        category: match known {
            _ if is_row(&own.data_type) => "C",
            Some(known) => known.category,
            None if is_enum => "E",
            None => "A",
        },
        array: 0,
        item: 0,
        of_domain: OfDomain {
            base: match &own.parent {
                Some(parent) => enum_number(parent).into(),
                None => number,
            },
            modifier: own.parent.is_none().then(|| modifier(own)),
            not_null: own.not_null,
            default: own.default.clone(),
        },
    }
}

/// Whether values are structs: JSON and enums are none.
fn is_row(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(_))
        && json_kind(data_type).is_none()
        && !is_enum(data_type)
}

/// What PostgreSQL keeps beside the number of the type behind a domain.
fn modifier(own: &Domain) -> i32 {
    match domains::data_type(&own.text) {
        Ok(sql_type) => match lengths::of_type(&sql_type) {
            Some((_, length)) => i32::try_from(length).map_or(-1, |length| length + 4),
            None => type_modifier(&own.data_type),
        },
        Err(_) => -1,
    }
}

/// `pg_type`.
pub(super) fn by_number(all: &Tables) -> Built {
    let made = all.types().into_iter().flat_map(|name| made(all, name));
    let domains = all.domains().into_iter();
    let domains = domains.filter_map(|name| all.domain(name));
    let domains = domains.flat_map(|own| {
        if own.composite {
            composite(all, &own.name).into()
        } else {
            vec![domain(all, own)]
        }
    });
    let all: Vec<Row> = of_system().chain(made).chain(domains).collect();
    let rows = all.len();
    let function = |own: &Row, what: &str| match own.kind {
        "e" => format!("enum_{what}"),
        "c" => format!("record_{what}"),
        "d" => format!("domain_{what}"),
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
        .truths("typnotnull", all.iter().map(|own| own.of_domain.not_null))
        .numbers("typbasetype", all.iter().map(|own| own.of_domain.base))
        .numbers(
            "typtypmod",
            all.iter()
                .map(|own| own.of_domain.modifier.map_or(-1, i64::from)),
        )
        .number("typndims", 0, rows)
        .number("typcollation", 0, rows)
        .texts(
            "typdefault",
            all.iter().map(|own| own.of_domain.default.clone()),
        )
        .no_lists("typacl", rows)
}

/// What PostgreSQL orders the labels of an enum by: the place of each when it was made, between those that were there. They have
/// been made in the order of their numbers.
fn orders(own: &EnumType) -> Vec<f32> {
    let mut labels: Vec<(usize, &Label)> = own.labels.iter().enumerate().collect();
    labels.sort_by_key(|(_, label)| label.number);
    let mut made: BTreeMap<usize, f32> = BTreeMap::new();
    for (place, _) in labels {
        let before = made.range(..place).next_back().map(|(_, order)| *order);
        let after = made.range(place..).next().map(|(_, order)| *order);
        let order = match (before, after) {
            (None, None) => 1.0,
            (Some(before), None) => before + 1.0,
            (None, Some(after)) => after - 1.0,
            (Some(before), Some(after)) => f32::midpoint(before, after),
        };
        made.insert(place, order);
    }
    made.into_values().collect()
}

/// `pg_enum`.
pub(super) fn labels(all: &Tables) -> Built {
    let types = all.types().into_iter();
    let types = types.filter_map(|name| all.named_type(name));
    let mut all: Vec<(&EnumType, &Label, f32)> = Vec::new();
    for own in types {
        let labels = own.labels.iter().zip(orders(own));
        all.extend(labels.map(|(label, order)| (own.as_ref(), label, order)));
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
        .reals("enumsortorder", all.iter().map(|(_, _, order)| *order))
        .names(
            "enumlabel",
            all.iter().map(|(_, label, _)| label.text.as_str()),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_the_orders_that_postgresql_gives_them() {
        // Made as mercury, venus, jupiter; then saturn at the end, sun before all, earth and mars behind venus.
        let label = |number, text: &str| Label {
            number,
            text: text.to_owned(),
        };
        let own = EnumType {
            name: "planets".to_owned(),
            labels: vec![
                label(4, "sun"),
                label(0, "mercury"),
                label(1, "venus"),
                label(5, "earth"),
                label(6, "mars"),
                label(2, "jupiter"),
                label(3, "saturn"),
            ],
        };
        assert_eq!(orders(&own), [0.0, 1.0, 2.0, 2.5, 2.75, 3.0, 4.0]);
    }
}
