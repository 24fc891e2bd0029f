//! `now()`, and `date_trunc` for dates: both would be of nanoseconds.

use std::sync::Arc;

use arrow::datatypes::DataType;
use chrono::{DateTime, Utc};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::dates::{is_stamp, zoned};
use super::{UTC, is_text};
use crate::meaning::MICROS;

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
        datafusion::common::internal_err!("now() is a constant by the time that rows are read")
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match info.query_execution_start_time() {
            Some(at) => ExprSimplifyResult::Simplified(Expr::Literal(Now::value(at), None)),
            None => ExprSimplifyResult::Original(args),
        })
    }
}

/// `date_trunc` for dates, too, which DataFusion takes to nanoseconds.
pub(super) fn truncated(inner: &Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Truncated {
        inner: Arc::clone(inner),
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Truncated {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Truncated {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [part, at @ DataType::Timestamp(_, _)] if is_text(part) => {
                Ok(vec![DataType::Utf8, at.clone()])
            }
            [part, at] if is_text(part) && is_stamp(at) => Ok(vec![DataType::Utf8, MICROS]),
            _ => plan_err!("date_trunc takes a part such as 'month', and a date or timestamp"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.get(1).cloned().unwrap_or(MICROS))
    }

    fn return_field_from_args(
        &self,
        args: ReturnFieldArgs<'_>,
    ) -> Result<arrow::datatypes::FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}
