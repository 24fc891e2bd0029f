//! What PostgreSQL has as relations beside tables: composite types, and what has columns as tables have.

use arrow::datatypes::DataType;
use messages::numbers::{composite_name, composite_number};
use table::{Column, Definition, OnCommit, Tables};

/// A column of which nothing is known but its name and type.
pub(super) fn plain_column(name: String, data_type: DataType) -> Column {
    Column {
        name,
        data_type,
        nullable: true,
        default: None,
        generated: None,
        sequences: Vec::new(),
        digits: None,
        domain: None,
    }
}

/// Columns as those of a table of this name.
pub(super) fn as_table(name: String, columns: Vec<Column>) -> Definition {
    Definition {
        name,
        columns,
        primary_key: vec![],
        foreign_keys: vec![],
        keys: vec![],
        rules: vec![],
        checks: vec![],
        indexes: vec![],
        on_commit: OnCommit::Preserve,
        order: vec![],
    }
}

/// The names of composite types, in order.
pub(super) fn composites(all: &Tables) -> Vec<&str> {
    let names = all.domains().into_iter();
    let composite = |name: &&str| all.domain(name).is_some_and(|own| own.composite);
    let mut found: Vec<&str> = names.filter(composite).collect();
    found.sort_unstable();
    found
}

/// The fields of a composite type as the columns of a table.
pub(super) fn definition(all: &Tables, name: &str) -> Option<Definition> {
    let own = all.domain(name).filter(|own| own.composite)?;
    let DataType::Struct(fields) = &own.data_type else {
        return None;
    };
    let fields = fields.iter();
    let columns = fields.map(|field| plain_column(field.name().clone(), field.data_type().clone()));
    Some(as_table(composite_name(name), columns.collect()))
}

/// The composite type whose relation has this number.
pub fn of_number(all: &Tables, number: i64) -> Option<&str> {
    let mut names = composites(all).into_iter();
    names.find(|name| composite_number(name) == number)
}
