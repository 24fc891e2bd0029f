//! `abs`, which promises no order. DataFusion's asks for the bounds of its argument to tell an order, and fails where that is
//! a function whose bounds nobody knows: `rank() over (order by abs(i + 1))`.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// DataFusion's `abs` without what it says of orders.
pub(super) fn all(state: &SessionState) -> Option<Arc<ScalarUDF>> {
    let inner = Arc::clone(state.scalar_functions().get("abs")?);
    Some(Arc::new(ScalarUDF::from(Unordered { inner })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Unordered {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Unordered {
    fn name(&self) -> &str {
        self.inner.name()
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

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}
