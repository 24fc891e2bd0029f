//! `is null` and `is not null` of structs: about their fields, as in PostgreSQL.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};

use crate::lists::types::{fields, plain};
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    let boolean = |_: &[DataType]| Ok(DataType::Boolean);
    vec![
        Own::new("row is null", of_struct, boolean, |args, _| {
            Ok(tested(&args[0], true))
        }),
        Own::new("row is not null", of_struct, boolean, |args, _| {
            Ok(tested(&args[0], false))
        }),
        // Of any type: whether a value is NULL itself.
        Own::new(
            "no value",
            |types| Ok(types.to_vec()),
            boolean,
            |args, _| {
                let nulls = args[0].logical_nulls();
                let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                let rows = (0..args[0].len()).map(|row| Some(is_null(row)));
                Ok(Arc::new(BooleanArray::from_iter(rows)))
            },
        ),
    ]
}

fn of_struct(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if fields(ty).is_some() => Ok(vec![plain(ty)]),
        _ => plan_err!("fields are tested of structs"),
    }
}

/// Whether each struct is NULL or has fields that all are NULL; or that it is not NULL, and none of its fields is.
fn tested(structs: &ArrayRef, null: bool) -> ArrayRef {
    let own = structs.as_struct();
    let fields: Vec<_> = own
        .columns()
        .iter()
        .map(|field| field.logical_nulls())
        .collect();
    let of = |row: usize| {
        let mut same = fields.iter().map(|nulls| {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            is_null == null
        });
        if own.is_null(row) {
            null
        } else {
            same.all(|same| same)
        }
    };
    Arc::new(BooleanArray::from_iter(
        (0..own.len()).map(|row| Some(of(row))),
    ))
}
