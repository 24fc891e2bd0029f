//! `coalesce`, `nullif`, `greatest` and `least` that take arrays, uuids, enums and JSON beside constants in quotes, and exact
//! numbers beside such as float.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, is_null, nullif};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    Cast, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use crate::arguments::accepted;
use crate::lists::types::{is_special, quoted_beside, special_together};
use crate::{chosen, number_types};

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

/// What `coalesce` chooses from if it is an argument of another: its own arguments. DataFusion writes a call as a `case` in which each
/// argument but the last stands twice, so that one within another within others would be written out exponentially often.
fn alternatives(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::Cast(cast) => match chosen_from(&cast.expr) {
            Some(all) => {
                let one = |own| {
                    let field = Arc::clone(&cast.field);
                    Expr::Cast(Cast::new_from_field(Box::new(own), field))
                };
                all.into_iter().map(one).collect()
            }
            None => vec![Expr::Cast(cast)],
        },
        expr => chosen_from(&expr).unwrap_or_else(|| vec![expr]),
    }
}

/// The values of which an expression is the first that is not NULL, if it is written so.
fn chosen_from(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::ScalarFunction(call) if call.name() == "coalesce" => Some(call.args.clone()),
        Expr::Case(case) if case.expr.is_none() => {
            let mut all = Vec::with_capacity(case.when_then_expr.len() + 1);
            for (when, then) in &case.when_then_expr {
                if !matches!(&**when, Expr::IsNotNull(tested) if tested == then) {
                    return None;
                }
                all.push((**then).clone());
            }
            all.push((**case.else_expr.as_ref()?).clone());
            Some(all)
        }
        _ => None,
    }
}

/// Whether an argument must not be written twice: it has another `coalesce` in it, or another value each time.
fn costs_twice(arg: &Expr) -> bool {
    let nested = arg.exists(|part| Ok(chosen_from(part).is_some()));
    arg.is_volatile() || nested.unwrap_or(true)
}

/// Whether the arguments behind the first may be computed where nobody asks for them: they cannot fail.
fn is_safe(args: &[Expr]) -> bool {
    let mut others = args.iter().skip(1);
    others.all(|arg| matches!(arg, Expr::Column(_) | Expr::Literal(..)))
}

/// The first value of each row that is not NULL.
fn first_known(args: &[ColumnarValue], rows: usize) -> Result<ColumnarValue> {
    let is_constant = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
    let constant = args.iter().all(is_constant);
    let rows = if constant { 1 } else { rows };
    let mut found: Option<ArrayRef> = None;
    for arg in args {
        let own = arg.to_array(rows)?;
        found = Some(match found {
            None => own,
            Some(found) => zip(&is_null(&found)?, &own, &found)?,
        });
    }
    match found {
        Some(found) if constant => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
            &found, 0,
        )?)),
        Some(found) => Ok(ColumnarValue::Array(found)),
        None => plan_err!("coalesce must have at least one argument"),
    }
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
        let types = args.arg_fields.iter().map(|field| field.data_type());
        match special_together(types)? {
            Some(special) => {
                let mut texts = args.scalar_arguments.iter().flatten();
                let is_quoted = texts.any(|value| value.try_as_str().flatten().is_some());
                let special = if is_quoted {
                    quoted_beside(&special)
                } else {
                    special
                };
                let mut fields = args.arg_fields.iter();
                let nullable = self.name() == "nullif" || fields.all(|field| field.is_nullable());
                Ok(Arc::new(Field::new(self.name(), special, nullable)))
            }
            None => self.inner.return_field_from_args(args),
        }
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if self.name() != "coalesce" {
            return self.inner.simplify(args, context);
        }
        let count = args.len();
        let args: Vec<Expr> = args.into_iter().flat_map(alternatives).collect();
        match args.split_last() {
            Some((_, first)) if first.iter().any(costs_twice) && is_safe(&args) => {
                Ok(if args.len() == count {
                    ExprSimplifyResult::Original(args)
                } else {
                    let own = Alike {
                        inner: Arc::clone(&self.inner),
                        signature: self.signature.clone(),
                    };
                    ExprSimplifyResult::Simplified(Arc::new(ScalarUDF::from(own)).call(args))
                })
            }
            _ => self.inner.simplify(args, context),
        }
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
            _ if self.name() == "coalesce" => first_known(&args.args, args.number_rows),
            all if all.iter().any(|arg| chosen::is_one(&arg.data_type())) => {
                match (self.name(), all) {
                    ("nullif", [left, right]) => chosen::nulled([left, right], args.number_rows),
                    ("least", all) => chosen::extreme(all, args.number_rows, Ordering::Less),
                    (_, all) => chosen::extreme(all, args.number_rows, Ordering::Greater),
                }
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
