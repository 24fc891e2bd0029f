//! A function that returns its first argument. Its second says what tells it from others by
//! name.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, internal_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// The name of the function that returns its first argument. Statements cannot write it.
pub const SAME: &str = "same value";

/// The function.
pub(super) fn same() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Same {
        signature: Signature::any(2, Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Same {
    signature: Signature,
}

impl ScalarUDFImpl for Same {
    fn name(&self) -> &str {
        SAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [own, _] => Ok(own.clone()),
            _ => internal_err!("{SAME} takes a value and what tells it from others"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields {
            [own, _] => Ok(Arc::clone(own)),
            _ => internal_err!("{SAME} takes a value and what tells it from others"),
        }
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match args.into_iter().next() {
            Some(own) => Ok(ExprSimplifyResult::Simplified(own)),
            None => internal_err!("{SAME} takes a value and what tells it from others"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(own) => Ok(own),
            None => internal_err!("{SAME} takes a value and what tells it from others"),
        }
    }
}
