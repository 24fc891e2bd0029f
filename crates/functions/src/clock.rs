//! `now()` in microseconds, where DataFusion's returns nanoseconds; and the time as it goes on within a statement.

use std::sync::Arc;

use arrow::array::{StringViewArray, TimestampMicrosecondArray};
use arrow::datatypes::DataType;
use chrono::{DateTime, Utc};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::arguments::{TEXT, UTC};
use crate::dates::zoned;

/// The name of the function that gives the instant at which the statement began; its transaction may have begun long before.
pub const OF_STATEMENT: &str = "statement_timestamp";

/// `now()`, and `current_timestamp`: one instant for the whole transaction, in microseconds.
pub(super) fn now() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Now {
        name: "now",
        began: None,
        signature: Signature::nullary(Volatility::Stable),
        // A statement that no session runs is a transaction of its own.
        aliases: ["current_timestamp", "transaction_timestamp", OF_STATEMENT]
            .map(String::from)
            .to_vec(),
    }))
}

/// The function of this name for a statement that began at this instant, if it is `statement_timestamp()`.
pub fn named(began: DateTime<Utc>, name: &str) -> Option<ScalarUDF> {
    let own = (name == OF_STATEMENT).then(|| Now {
        name: OF_STATEMENT,
        began: Some(began),
        signature: Signature::nullary(Volatility::Stable),
        aliases: Vec::new(),
    });
    own.map(ScalarUDF::from)
}

/// `clock_timestamp()` and, as a text, `timeofday()`: the instant at which each row is computed.
pub(super) fn going_on() -> [Arc<ScalarUDF>; 2] {
    [false, true].map(|is_text| {
        Arc::new(ScalarUDF::from(GoingOn {
            is_text,
            signature: Signature::nullary(Volatility::Volatile),
        }))
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct GoingOn {
    is_text: bool,
    signature: Signature,
}

impl ScalarUDFImpl for GoingOn {
    fn name(&self) -> &str {
        if self.is_text {
            "timeofday"
        } else {
            "clock_timestamp"
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.is_text { TEXT } else { zoned() })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let instants = (0..args.number_rows).map(|_| Utc::now());
        if self.is_text {
            let texts = instants.map(|at| at.format("%a %b %d %H:%M:%S%.6f %Y UTC").to_string());
            let texts: StringViewArray = texts.map(Some).collect();
            return Ok(ColumnarValue::Array(Arc::new(texts)));
        }
        let micros = instants.map(|at| at.timestamp_micros());
        let stamps = TimestampMicrosecondArray::from_iter_values(micros).with_timezone(UTC);
        Ok(ColumnarValue::Array(Arc::new(stamps)))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Now {
    name: &'static str,
    /// The instant, if it is not that of the transaction.
    began: Option<DateTime<Utc>>,
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
        self.name
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
        datafusion_common::internal_err!(
            "{}() is replaced by a constant before rows are read",
            self.name
        )
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match self.began.or(info.query_execution_start_time()) {
            Some(at) => ExprSimplifyResult::Simplified(Expr::Literal(Now::value(at), None)),
            None => ExprSimplifyResult::Original(args),
        })
    }
}
