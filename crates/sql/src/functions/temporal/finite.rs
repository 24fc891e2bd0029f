//! DataFusion's functions of timestamps that know none that are infinite: they refuse them.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use table::has_infinite;

use crate::error::Error;

/// Their names.
pub(crate) const NAMES: [&str; 8] = [
    "date_format",
    "to_local_time",
    "to_time",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
];

/// DataFusion's function `inner`, which has this name among others.
pub(crate) fn finite(name: &'static str, inner: &Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Finite {
        name,
        inner: Arc::clone(inner),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Finite {
    name: &'static str,
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Finite {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = self.inner.inner().with_updated_config(config)?;
        Some(ScalarUDF::from(Finite {
            name: self.name,
            inner: Arc::new(inner),
        }))
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, context)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        for arg in &args.args {
            let infinite = match arg {
                ColumnarValue::Array(values) => has_infinite(values),
                ColumnarValue::Scalar(value) => has_infinite(&value.to_array()?),
            };
            if infinite {
                return Err(Error::coded(
                    "22008",
                    format!("{}: a timestamp is infinite", self.name),
                )
                .into());
            }
        }
        self.inner.invoke_with_args(args)
    }
}
