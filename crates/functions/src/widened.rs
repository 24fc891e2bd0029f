//! `smallint` where a function takes `integer`: PostgreSQL casts it, and not all functions of DataFusion do.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion_functions::unicode;
use messages::Error;
use messages::types::type_name;

use crate::arguments::accepted;

static SUBSTR: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| widened(unicode::substr()));

/// `substr(text, from [, count])`, which `substring(text from n for m)` is, too.
pub fn substr() -> Arc<ScalarUDF> {
    Arc::clone(&SUBSTR)
}

/// The functions of DataFusion that take no `smallint` of their own.
pub(super) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    [substr()].into_iter()
}

/// The function `inner`, for whole numbers of fewer bytes than it takes, too.
fn widened(inner: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Widened {
        inner,
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

/// The type to which values of a type are cast where a function does not take them.
fn wider(ty: &DataType) -> DataType {
    match ty {
        DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        ty => ty.clone(),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Widened {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Widened {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let wide: Vec<DataType> = types.iter().map(wider).collect();
        accepted(&self.inner, &wide).map_err(|_| {
            let names: Vec<String> = types.iter().map(type_name).collect();
            let message = format!(
                "function {}({}) does not exist",
                self.name(),
                names.join(", ")
            );
            Error::coded("42883", message).into()
        })
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, context)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_widened() {
        let types = |ty: DataType| substr().coerce_types(&[DataType::Utf8, ty]);
        for ty in [DataType::Int16, DataType::Int32, DataType::Int64] {
            assert_eq!(types(ty).unwrap()[1], DataType::Int64);
        }
        assert!(types(DataType::Float64).is_err());
    }
}
