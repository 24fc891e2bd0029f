//! `pg_type` and `pg_enum`: the types of the system, those that people have made, and the arrays of both.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use messages::numbers::{
    CATALOG_SCHEMA, OWNER, PSEUDO, TYPES, column_modifier, composite_number, enum_array_number,
    enum_number, role_number, schema_number, table_number, type_modifier, type_named, type_number,
    type_of_column, type_title,
};
use syntax::names::{PG_CATALOG, SCHEMA, base, schema_of};
use syntax::{domains, lengths};
use table::{Column, Definition, Domain, EnumType, Label, Tables, is_enum, json_kind};

use crate::pg_catalog::build::Built;
use crate::pg_catalog::system;
use crate::rights;

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
    /// The number of the relation of a composite type.
    relation: i64,
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

impl Row {
    /// The number of the type behind a domain, otherwise its own.
    fn behind(&self) -> i64 {
        match self.of_domain.base {
            0 => self.number,
            base => base,
        }
    }
}

/// The functions of PostgreSQL that read or write values of a type: ADBC's driver knows types by these.
fn routine(own: &Row, what: &str) -> String {
    match (own.kind, own.name.as_str()) {
        ("e", _) => format!("enum_{what}"),
        ("c", _) => format!("record_{what}"),
        ("d", _) => format!("domain_{what}"),
        (_, array) if array.starts_with('_') => format!("array_{what}"),
        (PSEUDO_KIND, "unknown") => format!("unknown{what}"),
        (PSEUDO_KIND, name) => format!("{name}_{what}"),
        (
            _,
            name @ ("date" | "time" | "timetz" | "timestamp" | "timestamptz" | "interval"
            | "numeric" | "uuid" | "json" | "jsonb" | "jsonpath"),
        ) => format!("{name}_{what}"),
        (_, name) => format!("{name}{what}"),
    }
}

/// The kind of types that no column has.
const PSEUDO_KIND: &str = "p";

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
        relation: 0,
        of_domain: OfDomain::default(),
    };
    let arrays = TYPES.iter().filter(|known| known.array != 0);
    let plain = TYPES.iter().map(move |known| Row {
        length: known.length,
        kind: match known.category {
            PSEUDO | "X" => PSEUDO_KIND,
            _ => "b",
        },
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
        relation: 0,
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
        relation: 0,
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
        relation: composite_number(name),
        ..own
    };
    [own, arrays]
}

/// A domain.
fn domain(all: &Tables, own: &Domain) -> Row {
    let name = &own.name;
    let number = match length(own) {
        Some((title, _)) => type_named(title).unwrap_or_default(),
        None => type_number(&own.data_type).into(),
    };
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
        relation: 0,
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

/// The standard's name of the type of texts behind a domain, and how many characters they have at most.
pub(crate) fn length(own: &Domain) -> Option<(&'static str, u64)> {
    let plain = Some(own).filter(|own| own.parent.is_none())?;
    lengths::of_type(&domains::data_type(&plain.text).ok()?)
}

/// What PostgreSQL keeps beside the number of the type behind a domain.
fn modifier(own: &Domain) -> i32 {
    match length(own) {
        Some((_, length)) => i32::try_from(length).map_or(-1, |length| length + 4),
        None => type_modifier(&own.data_type),
    }
}

/// All types.
fn rows(all: &Tables) -> Vec<Row> {
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
    of_system().chain(made).chain(domains).collect()
}

/// `pg_type`.
pub(super) fn by_number(all: &Tables) -> Built {
    let all = rows(all);
    let rows = all.len();
    let routines = system::routines();
    let function = |own: &Row, what: &str| {
        let name = routine(own, what);
        let found = routines.iter().find(|(known, _)| *known == name);
        found.map_or(0, |(_, number)| *number)
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
        .numbers("typrelid", all.iter().map(|own| own.relation))
        .numbers("typelem", all.iter().map(|own| own.item))
        .numbers("typarray", all.iter().map(|own| own.array))
        .numbers("typinput", all.iter().map(|own| function(own, "in")))
        .numbers("typoutput", all.iter().map(|own| function(own, "out")))
        .numbers("typreceive", all.iter().map(|own| function(own, "recv")))
        .numbers("typsend", all.iter().map(|own| function(own, "send")))
        .truths("typnotnull", all.iter().map(|own| own.of_domain.not_null))
        .numbers("typbasetype", all.iter().map(|own| own.of_domain.base))
        .numbers(
            "typtypmod",
            all.iter()
                .map(|own| own.of_domain.modifier.map_or(-1, i64::from)),
        )
        .number("typndims", 0, rows)
        .names(
            "typalign",
            all.iter().map(|own| alignment(own.behind(), own.length)),
        )
        .names(
            "typstorage",
            all.iter().map(|own| storage(own.behind(), own.length)),
        )
        .numbers(
            "typcollation",
            all.iter().map(|own| collation(own.behind())),
        )
        .texts(
            "typdefault",
            all.iter().map(|own| own.of_domain.default.clone()),
        )
        .no_lists("typacl", rows)
}

/// A type, and how far it is from the one that was asked for.
struct Needed<'r> {
    root: i64,
    own: &'r Row,
    depth: i32,
}

fn of_number(types: &[Row], number: i64) -> Option<&Row> {
    types.iter().find(|own| own.number == number)
}

/// The type behind a domain, which may be over another.
fn root_of(types: &[Row], own: &Row) -> Option<i64> {
    let mut base = own.of_domain.base;
    for _ in 0..types.len() {
        match of_number(types, base).map(|own| own.of_domain.base) {
            Some(next) if next != 0 => base = next,
            _ => break,
        }
    }
    (base != 0).then_some(base)
}

/// The types that each type is made of, and itself.
fn needed<'r>(all: &Tables, types: &'r [Row]) -> Vec<Needed<'r>> {
    let mut needed: Vec<Needed<'r>> = Vec::new();
    for root in types {
        let mut left = vec![(root, 0)];
        let mut seen: Vec<i64> = Vec::new();
        while let Some((own, depth)) = left.pop() {
            if seen.contains(&own.number) {
                continue;
            }
            seen.push(own.number);
            needed.push(Needed {
                root: root.number,
                own,
                depth,
            });
            let parts = fields(all, own).into_iter();
            let parts = parts.map(|(_, number)| i64::from(number));
            let parts = parts.chain([own.item]).chain(root_of(types, own));
            let parts = parts.filter_map(|number| of_number(types, number));
            left.extend(parts.map(|own| (own, depth + 1)));
        }
    }
    needed
}

/// The types that each type is made of, itself among them: what asyncpg asks for by a query of its own, which it
/// [becomes](syntax::rewrite).
pub(super) fn trees(all: &Tables) -> Built {
    let types = rows(all);
    let needed = needed(all, &types);
    let base = |own: &Row| {
        let found = root_of(&types, own);
        found.filter(|_| own.kind == "d")
    };
    let schemas: Vec<&str> = [PG_CATALOG, SCHEMA]
        .into_iter()
        .chain(all.schemas())
        .collect();
    let schema = |own: &Row| {
        let mut names = schemas.iter();
        let found = names.find(|name| schema_number(name) == own.schema);
        found.copied().unwrap_or(SCHEMA)
    };
    let title = |number: i64| match (number, type_title(number, -1)) {
        (0, _) => "-".to_owned(),
        (_, Some(title)) => title,
        (_, None) => {
            let found = of_number(&types, number);
            found.map_or_else(|| number.to_string(), |own| own.name.clone())
        }
    };
    let each = || needed.iter().map(|one| one.own);
    let types_of = |own: &Row| {
        let parts = fields(all, own);
        let numbers = parts.into_iter().map(|(_, number)| number as i32);
        (own.kind == "c").then(|| numbers.collect())
    };
    let names_of = |own: &Row| {
        let parts = fields(all, own).into_iter().map(|(name, _)| name);
        (own.kind == "c").then(|| parts.collect())
    };
    let delimiter = |own: &Row| (own.item != 0 && own.length == -1).then_some(",");
    Built::default()
        .numbers("root", needed.iter().map(|one| one.root))
        .numbers("oid", each().map(|own| own.number))
        .names("ns", each().map(schema))
        .names("name", each().map(|own| own.name.as_str()))
        .bytes("kind", each().map(|own| own.kind))
        .some_numbers("basetype", each().map(base))
        .numbers("elemtype", each().map(|own| own.item))
        .texts("elemdelim", each().map(delimiter))
        .some_numbers("range_subtype", each().map(|_| None))
        .type_arrays("attrtypoids", each().map(types_of))
        .text_arrays("attrnames", each().map(names_of))
        .counts("depth", needed.iter().map(|one| one.depth))
        .texts("basetype_name", each().map(|own| base(own).map(title)))
        .names("elemtype_name", each().map(|own| title(own.item)))
        .nothing("range_subtype_name", needed.len())
}

/// The fields of a composite type: their names, and the numbers of their types.
fn fields(all: &Tables, own: &Row) -> Vec<(String, u32)> {
    if own.kind != "c" {
        return Vec::new();
    }
    let mut names = all.domains().into_iter();
    let found = names.find(|name| i64::from(enum_number(name)) == own.number);
    let Some(DataType::Struct(fields)) = found
        .and_then(|name| all.domain(name))
        .map(|own| &own.data_type)
    else {
        return Vec::new();
    };
    let fields = fields.iter();
    fields
        .map(|field| (field.name().clone(), type_number(field.data_type())))
        .collect()
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

/// How PostgreSQL stores values of the type with this number and of so many bytes; -1 if they differ.
pub(super) fn storage(number: i64, length: i32) -> &'static str {
    match number {
        1700 => "m",
        _ if length == -1 => "x",
        _ => "p",
    }
}

/// At how many bytes they begin, as a letter.
pub(super) fn alignment(number: i64, length: i32) -> &'static str {
    match (number, length) {
        // Places in a table, and arrays of what begins at eight bytes.
        (27, _) => "s",
        (1016 | 1022 | 1115 | 1185 | 1183 | 1187 | 1270 | 2287, _) => "d",
        // Names and uuids.
        (19 | 2950, _) | (_, 1 | -2) => "c",
        (_, 2) => "s",
        (_, 8 | 12 | 16) => "d",
        _ => "i",
    }
}

/// The number of the collation of values of the type with this number; 0 of those that have none.
pub(super) fn collation(number: i64) -> i64 {
    match number {
        25 | 1042 | 1043 | 1009 | 1014 | 1015 => 100,
        19 | 1003 => 950,
        _ => 0,
    }
}

/// The same of values of this type: composite ones, and arrays of them, have none.
pub(super) fn collation_of(data_type: &DataType) -> i64 {
    let mut item = data_type;
    while let DataType::List(inner) = item {
        item = inner.data_type();
    }
    match item {
        DataType::Struct(_) => 0,
        _ => collation(type_number(data_type).into()),
    }
}

/// The number of the type of a column of a table or view, and what PostgreSQL keeps beside it.
pub(super) fn typed(all: &Tables, table: &Definition, column: &Column) -> (i64, i64) {
    let length = lengths::of_column(table, &column.name);
    match length {
        // Four bytes more, as PostgreSQL stores texts.
        Some((most, of_char)) if column.domain.is_none() => {
            let modifier = i64::try_from(most).map_or(-1, |most| most + 4);
            (if of_char { 1042 } else { 1043 }, modifier)
        }
        _ => (
            type_of_column(column, all).into(),
            column_modifier(column).into(),
        ),
    }
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
