//! Conditions, with the mark that [the rewrite of a statement](syntax::rewrite) has given them.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::{Cast, Expr, ExprSchemable};

use crate::error::Error;
use crate::functions::unknown::quoted;
use crate::messages::types::standard_name;

/// The condition of a clause, of which a constant in quotes is read as a truth value. One whose type is not known yet stays as it
/// is.
///
/// # Errors
/// If it is of another type than boolean: 42804.
pub(crate) fn planned(clause: &str, condition: Expr, schema: &DFSchema) -> Result<Expr> {
    match condition.get_type(schema) {
        Ok(DataType::Boolean | DataType::Null) | Err(_) => Ok(condition),
        Ok(_) if quoted(&condition).is_some() => Ok(Expr::Cast(Cast::new(
            Box::new(condition),
            DataType::Boolean,
        ))),
        Ok(other) => {
            let message = format!(
                "argument of {clause} must be type boolean, not type {}",
                standard_name(&other)
            );
            Err(Error::coded("42804", message).into())
        }
    }
}
