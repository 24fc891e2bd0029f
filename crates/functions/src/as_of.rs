//! The mark of an `asof join`, which the planner takes away.

use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};
use messages::Error;

use crate::lists::names::AS_OF;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        AS_OF,
        condition,
        |_| Ok(DataType::Boolean),
        |_, _| {
            Err(Error::unsupported(
                "not supported: an `asof join` in this place, such as with a `lateral` subquery",
            )
            .into())
        },
    )]
}

fn condition(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::Boolean | DataType::Null] => Ok(vec![DataType::Boolean]),
        _ => plan_err!("argument of ON must be type boolean"),
    }
}
