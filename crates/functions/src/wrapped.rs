//! DataFusion's functions, each with one thing about it that is otherwise.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use messages::Error;
use table::has_infinite;

use crate::registry::Registry;

/// What is otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    /// It promises no order, as none of these does.
    Unordered,
    /// It knows no infinite timestamps, and refuses them.
    Finite,
}

/// Which functions are wrapped. DataFusion's `abs` asks for the bounds of its argument to tell an order, and fails where that is
/// a function whose bounds nobody knows: `rank() over (order by abs(i + 1))`.
const ALL: [(&str, Change); 9] = [
    ("abs", Change::Unordered),
    ("date_format", Change::Finite),
    ("to_local_time", Change::Finite),
    ("to_time", Change::Finite),
    ("to_timestamp_micros", Change::Finite),
    ("to_timestamp_millis", Change::Finite),
    ("to_timestamp_nanos", Change::Finite),
    ("to_timestamp_seconds", Change::Finite),
    ("to_unixtime", Change::Finite),
];

/// All of them.
pub(super) fn all(registry: &Registry) -> impl Iterator<Item = Arc<ScalarUDF>> {
    let all = ALL.map(|(name, change)| {
        let inner = Arc::clone(registry.scalar(name)?);
        let wrapped = Wrapped {
            name,
            change,
            inner,
        };
        Some(Arc::new(ScalarUDF::from(wrapped)))
    });
    all.into_iter().flatten()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Wrapped {
    /// One of its names.
    name: &'static str,
    change: Change,
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Wrapped {
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
        Some(ScalarUDF::from(Wrapped {
            name: self.name,
            change: self.change,
            inner: Arc::new(inner),
        }))
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, context)
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.change == Change::Finite {
            for arg in &args.args {
                let infinite = match arg {
                    ColumnarValue::Array(values) => has_infinite(values),
                    ColumnarValue::Scalar(value) => has_infinite(&value.to_array()?),
                };
                if infinite {
                    let message = format!("{}: a timestamp is infinite", self.name);
                    return Err(Error::coded("22008", message).into());
                }
            }
        }
        self.inner.invoke_with_args(args)
    }
}
