//! `coalesce`, `nullif`, `greatest` and `least` that take arrays, uuids, enums and JSON beside constants in quotes, and exact
//! numbers beside such as float.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::{cast, nullif};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::arguments::accepted;
use crate::functions::lists::types::is_special;
use crate::functions::number_types;

/// DataFusion's function of that kind, `inner`, for these types, too.
pub(super) fn alike(inner: &Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Alike {
        inner: Arc::clone(inner),
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

/// `nullif` of numbers that float: Arrow tells -0.0 from 0.0.
fn nulled(left: &ColumnarValue, right: &ColumnarValue, rows: usize) -> Result<ColumnarValue> {
    let is_constant = |side: &ColumnarValue| matches!(side, ColumnarValue::Scalar(_));
    let constant = is_constant(left) && is_constant(right);
    let rows = if constant { 1 } else { rows };
    let values = left.to_array(rows)?;
    let double = |side: &ArrayRef| cast(side, &DataType::Float64);
    let (own, other) = (double(&values)?, double(&right.to_array(rows)?)?);
    let (own, other) = (
        own.as_primitive::<Float64Type>(),
        other.as_primitive::<Float64Type>(),
    );
    let is_equal = |row: usize| {
        let (l, r) = (own.value(row), other.value(row));
        let both = own.is_valid(row) && other.is_valid(row);
        Some(both && (l == r || l.is_nan() && r.is_nan()))
    };
    let equal: BooleanArray = (0..rows).map(is_equal).collect();
    let found = nullif(&values, &equal)?;
    Ok(if constant {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
    } else {
        ColumnarValue::Array(found)
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Alike {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl Alike {
    /// The type of arguments of which some float and others are exact numbers. `nullif` compares.
    fn numbers(&self, types: &[DataType]) -> Option<DataType> {
        match types {
            [left, right] if self.name() == "nullif" => number_types::beside(left, right),
            types => number_types::united(types),
        }
    }
}

impl ScalarUDFImpl for Alike {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        // Whether the others go with it is looked at where there are expressions, and not only types.
        match types.iter().find(|ty| is_special(ty)) {
            Some(_) => Ok(types.to_vec()),
            None => match self.numbers(types) {
                Some(own) => Ok(vec![own; types.len()]),
                None => accepted(&self.inner, types),
            },
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let mut types = args.arg_fields.iter().map(|field| field.data_type());
        match types.find(|ty| is_special(ty)) {
            Some(special) => {
                let mut fields = args.arg_fields.iter();
                let nullable = self.name() == "nullif" || fields.all(|field| field.is_nullable());
                Ok(Arc::new(Field::new(self.name(), special.clone(), nullable)))
            }
            None => self.inner.return_field_from_args(args),
        }
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, context)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [left, right]
                if self.name() == "nullif"
                    && left.data_type().is_floating()
                    && right.data_type().is_floating() =>
            {
                nulled(left, right, args.number_rows)
            }
            _ => self.inner.invoke_with_args(args),
        }
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }
}
