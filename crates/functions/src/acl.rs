//! `acldefault`, and the columns of `aclexplode`: rights as `relacl` has them, `role=arw*/owner`, as rows.

use std::sync::Arc;

use arrow::array::builder::{BooleanBuilder, Int64Builder, ListBuilder, StringViewBuilder};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, plan_err};
use messages::Error;
use messages::names::CATALOG;
use messages::numbers::role_number;
use table::Privileges;

use crate::lists::types::{list_of, lists, range};
use crate::own::Own;

/// The names of the functions for the columns of `aclexplode`, which statements cannot write, and what the columns are
/// called.
pub const COLUMNS: [(&str, &str); 4] = [
    ("acl grantors", "grantor"),
    ("acl grantees", "grantee"),
    ("acl privileges", "privilege_type"),
    ("acl options", "is_grantable"),
];

pub(super) fn all() -> Vec<Own> {
    let numbers = |_: &[DataType]| Ok(list_of(DataType::Int64));
    let items = |_: &[DataType]| Ok(list_of(DataType::Utf8View));
    let [grantors, grantees, privileges, options] = COLUMNS.map(|(name, _)| name);
    vec![
        Own::new("acldefault", of_kind, items, |args, _| defaults(args)),
        Own::new(grantors, taken, numbers, |args, rows| {
            columns(&args[0], rows).map(|[grantors, ..]| grantors)
        }),
        Own::new(grantees, taken, numbers, |args, rows| {
            columns(&args[0], rows).map(|[_, grantees, ..]| grantees)
        }),
        Own::new(
            privileges,
            taken,
            |_| Ok(list_of(DataType::Utf8View)),
            |args, rows| columns(&args[0], rows).map(|[_, _, privileges, _]| privileges),
        ),
        Own::new(
            options,
            taken,
            |_| Ok(list_of(DataType::Boolean)),
            |args, rows| columns(&args[0], rows).map(|[.., options]| options),
        ),
    ]
}

fn of_kind(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [_, _] => Ok(vec![DataType::Utf8View, DataType::Int64]),
        _ => plan_err!("acldefault takes a kind of thing and the number of its owner"),
    }
}

/// The letters of what everybody and the owner may do with a new thing of a kind, as PostgreSQL's catalog has these kinds; none
/// of what is no kind.
fn letters(kind: &str) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        "c" => ("", ""),
        "r" => ("", "arwdDxt"),
        "s" => ("", "rwU"),
        "d" => ("Tc", "CTc"),
        "f" => ("X", "X"),
        "l" | "T" => ("U", "U"),
        "L" => ("", "rw"),
        "n" => ("", "UC"),
        "p" => ("", "sA"),
        "t" => ("", "C"),
        "F" | "S" => ("", "U"),
        _ => return None,
    })
}

/// The rights that are there before any is given.
fn defaults(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (kinds, owners) = (
        args[0].as_string_view(),
        args[1].as_primitive::<Int64Type>(),
    );
    let mut made = ListBuilder::new(StringViewBuilder::new());
    for (kind, owner) in kinds.iter().zip(owners) {
        let (Some(kind), Some(_)) = (kind, owner) else {
            made.append_null();
            continue;
        };
        let Some((all, own)) = letters(kind) else {
            let message = format!("unrecognized object type abbreviation: {kind}");
            return Err(Error::coded("22023", message).into());
        };
        // As `pg_get_userbyid` says it.
        for (role, letters) in [("", all), (CATALOG, own)] {
            if !letters.is_empty() {
                made.values()
                    .append_value(format!("{role}={letters}/{CATALOG}"));
            }
        }
        made.append(true);
    }
    Ok(Arc::new(made.finish()))
}

fn taken(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [_] => Ok(vec![list_of(DataType::Utf8View)]),
        _ => plan_err!("aclexplode takes an array of rights, such as relacl"),
    }
}

/// Rights that nobody is given here, and that [there are](letters) by default.
const OTHERS: [(char, &str); 6] = [
    ('t', "TRIGGER"),
    ('X', "EXECUTE"),
    ('T', "TEMPORARY"),
    ('c', "CONNECT"),
    ('s', "SET"),
    ('A', "ALTER SYSTEM"),
];

/// A right, and whether it may be granted further.
struct Right<'a> {
    grantor: &'a str,
    grantee: &'a str,
    name: &'static str,
    option: bool,
}

/// The rights of an item.
///
/// # Errors
/// If it says none.
fn rights(item: &str) -> Result<Vec<Right<'_>>> {
    let wrong = || {
        Error::coded(
            "22P02",
            format!("invalid input syntax for type aclitem: \"{item}\""),
        )
    };
    let (rest, grantor) = item.rsplit_once('/').ok_or_else(wrong)?;
    let (grantee, letters) = rest.rsplit_once('=').ok_or_else(wrong)?;
    let mut found: Vec<Right<'_>> = Vec::new();
    for letter in letters.chars() {
        if letter == '*' {
            found.last_mut().ok_or_else(wrong)?.option = true;
            continue;
        }
        let known = Privileges::ALL.into_iter().find(|(.., own)| *own == letter);
        let known = known.map(|(_, name, _)| name);
        let others = || OTHERS.into_iter().find(|(own, _)| *own == letter);
        let name = known.or_else(|| others().map(|(_, name)| name));
        let name = name.ok_or_else(wrong)?;
        found.push(Right {
            grantor,
            grantee,
            name,
            option: false,
        });
    }
    Ok(found)
}

/// The number of a role; that of everybody is 0.
fn number(role: &str) -> i64 {
    if role.is_empty() {
        0
    } else {
        role_number(role)
    }
}

/// All columns, each an array for a row of arrays; none for NULL.
fn columns(acls: &ArrayRef, rows: usize) -> Result<[ArrayRef; 4]> {
    let acls = lists(acls);
    let items = cast(acls.values(), &DataType::Utf8View)?;
    let items = items.as_string_view();
    let mut grantors = ListBuilder::new(Int64Builder::new());
    let mut grantees = ListBuilder::new(Int64Builder::new());
    let mut names = ListBuilder::new(StringViewBuilder::new());
    let mut options = ListBuilder::new(BooleanBuilder::new());
    for row in 0..rows {
        for at in range(acls, row).filter(|at| items.is_valid(*at)) {
            for right in rights(items.value(at))? {
                grantors.values().append_value(number(right.grantor));
                grantees.values().append_value(number(right.grantee));
                names.values().append_value(right.name);
                options.values().append_value(right.option);
            }
        }
        let there = acls.is_valid(row);
        grantors.append(there);
        grantees.append(there);
        names.append(there);
        options.append(there);
    }
    Ok([
        Arc::new(grantors.finish()),
        Arc::new(grantees.finish()),
        Arc::new(names.finish()),
        Arc::new(options.finish()),
    ])
}
