//! Functions over the labels of enums, `enum_first`, `enum_last` and `enum_range`, and what plans have in the place of
//! values that are compared: the places of their labels.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ListArray, UInt16Array, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::{Expr, ScalarUDF};
use messages::Error;
use messages::types::type_name;
use table::{EnumType, enum_type, is_enum, places};

use crate::lists::types::list_of;
use crate::own::Own;

/// The function that makes places of values. Statements cannot name it.
const PLACE: &str = "enum place";

pub(super) fn all() -> Vec<Own> {
    let same = |types: &[DataType]| Ok(known(types)?.data_type());
    let many = |types: &[DataType]| Ok(list_of(known(types)?.data_type()));
    vec![
        Own::new("enum_first", one, same, |args, rows| ends(args, rows, true)),
        Own::new("enum_last", one, same, |args, rows| ends(args, rows, false)),
        Own::new("enum_range", bounds, many, ranges),
    ]
}

/// The place of the label of a value: values are compared as their places are.
pub fn place(value: Expr) -> Expr {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let takes = |types: &[DataType]| Ok(types.to_vec());
        let own = Own::new(
            PLACE,
            takes,
            |_| Ok(DataType::UInt16),
            |args, _| match args[0].data_type() {
                DataType::Null => Ok(new_null_array(&DataType::UInt16, args[0].len())),
                own if is_enum(own) => Ok(Arc::new(places(&args[0]))),
                own => exec_err!("a place of {}", type_name(own)),
            },
        );
        Arc::new(ScalarUDF::from(own))
    });
    FUNCTION.call(vec![value])
}

/// The enum that arguments are of.
fn known(types: &[DataType]) -> Result<EnumType> {
    match types.iter().find_map(enum_type) {
        Some(own) => Ok(own),
        None => plan_err!("could not determine actual enum type: cast the argument, null::name"),
    }
}

fn one(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [_] => Ok(vec![known(types)?.data_type()]),
        _ => plan_err!("the function takes a value of an enum"),
    }
}

fn bounds(types: &[DataType]) -> Result<Vec<DataType>> {
    if !(1..=2).contains(&types.len()) {
        return plan_err!("enum_range takes one or two values of an enum");
    }
    let own = known(types)?.data_type();
    if let Some(other) = types.iter().find(|ty| is_enum(ty) && **ty != own) {
        return plan_err!(
            "function enum_range({}, {}) does not exist: both bounds are of one enum",
            type_name(&own),
            type_name(other)
        );
    }
    Ok(vec![own; types.len()])
}

fn own_type(args: &[ArrayRef]) -> Result<EnumType> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
    known(&types)
}

fn ends(args: &[ArrayRef], rows: usize, first: bool) -> Result<ArrayRef> {
    let own = own_type(args)?;
    let place = match own.labels.len().checked_sub(1) {
        None => {
            let name = table::titled(&own.name).into_owned();
            let message = format!("enum {name} contains no values");
            return Err(Error::coded("55000", message).into());
        }
        Some(_) if first => Some(0),
        Some(last) => u16::try_from(last).ok(),
    };
    Ok(own.values(UInt16Array::from(vec![place; rows])))
}

/// The values between two, both with them; NULL is no bound.
fn ranges(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = own_type(args)?;
    let count = u16::try_from(own.labels.len()).unwrap_or(u16::MAX);
    let bounds: Vec<UInt16Array> = args.iter().map(places).collect();
    let bound = |at: usize, row: usize| {
        let own: &UInt16Array = bounds.get(at)?;
        own.is_valid(row).then(|| own.value(row))
    };
    let (mut all, mut lengths) = (Vec::new(), Vec::with_capacity(rows));
    for row in 0..rows {
        // One argument only says which type is meant.
        let least = bound(0, row).filter(|_| bounds.len() == 2).unwrap_or(0);
        let most = bound(1, row).map_or(count, |most| most + 1);
        let before = all.len();
        all.extend(least..most.max(least));
        lengths.push(all.len() - before);
    }
    let items = own.values(UInt16Array::from(all));
    let field = Arc::new(Field::new_list_field(own.data_type(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        items,
        None::<NullBuffer>,
    )?))
}
