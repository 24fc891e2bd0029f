//! `now()` in microseconds; DataFusion's returns nanoseconds.

use std::sync::Arc;

use arrow::datatypes::DataType;
use chrono::{DateTime, Utc};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::arguments::UTC;
use crate::functions::dates::zoned;

/// `now()`, and `current_timestamp`: one instant for the whole statement, in microseconds.
pub(super) fn now() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Now {
        signature: Signature::nullary(Volatility::Stable),
        aliases: ["current_timestamp", "transaction_timestamp"]
            .map(String::from)
            .to_vec(),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Now {
    signature: Signature,
    aliases: Vec<String>,
}

impl Now {
    fn value(at: DateTime<Utc>) -> ScalarValue {
        ScalarValue::TimestampMicrosecond(Some(at.timestamp_micros()), Some(UTC.into()))
    }
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        "now"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(zoned())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        datafusion::common::internal_err!("now() is replaced by a constant before rows are read")
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match info.query_execution_start_time() {
            Some(at) => ExprSimplifyResult::Simplified(Expr::Literal(Now::value(at), None)),
            None => ExprSimplifyResult::Original(args),
        })
    }
}
