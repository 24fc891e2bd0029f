//! Arithmetic that fails on overflow instead of wrapping around or leaving its type.
//!
//! DataFusion adds 1 to the largest `bigint` and gets the smallest, and adds 1 to the largest decimal of 38 digits and
//! gets a number of 39 that no other place expects. [`CheckedArithmetic`] replaces `+`, `-`, `*` and the sign of
//! integers, and the operators of decimals whose result may need more than 38 digits or have more already, by functions that report the
//! overflow; and the division of doubles, by one that fails where the divisor is zero. Decimals of more than 38 digits may be
//! [NaN or infinite](crate::functions::decimals). [Sums](crate::functions::sum) check on their own. DataFusion's arithmetic of dates reports overflow
//! already.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, PrimitiveArray};
use arrow::compute::kernels::numeric::{add, div, mul, rem, sub};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, DecimalType, Float32Type,
    Float64Type,
};
use arrow::error::ArrowError;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion_optimizer::AnalyzerRule;
use datafusion_physical_expr_common::datum::apply;

use crate::functions::decimals::arithmetic::{Operation, computed, negated};
use crate::optimize::expressions::rewritten;
use crate::optimize::filtered::guarded;
use crate::optimize::stoppable;

/// The analyzer rule; it must come after type coercion, which makes both operands of one type.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewritten(plan, |expr, schema| Ok(check(expr, schema)))
    }
}

fn check(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(binary) => match function(&binary, schema) {
            Some(function) => {
                let operands = vec![*binary.left, *binary.right];
                Transformed::yes(function.call(operands))
            }
            None => Transformed::no(Expr::BinaryExpr(binary)),
        },
        Expr::Negative(inner) if is_decimal256(&inner, schema) => Transformed::yes(negated(*inner)),
        Expr::Negative(inner) => {
            let data = type_of(&inner, schema).ok().filter(DataType::is_integer);
            match data.and_then(|data| ScalarValue::new_zero(&data).ok()) {
                Some(zero) => Transformed::yes(MINUS.call(vec![lit(zero), *inner])),
                None => Transformed::no(Expr::Negative(inner)),
            }
        }
        // Which of its arguments can fail is known once they are checked themselves.
        other => guarded(other, schema),
    }
}

fn is_decimal256(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(type_of(expr, schema), Ok(DataType::Decimal256(..)))
}

/// The checked operator that must replace `binary`, if any.
fn function(binary: &BinaryExpr, schema: &DFSchema) -> Option<&'static Arc<ScalarUDF>> {
    let (function, of_integers) = match binary.op {
        Operator::Plus => (&PLUS, true),
        Operator::Minus => (&MINUS, true),
        Operator::Multiply => (&TIMES, true),
        // For integers these fail on their own.
        Operator::Divide => (&BY, false),
        Operator::Modulo => (&REST, false),
        _ => return None,
    };
    let left = type_of(&binary.left, schema).ok()?;
    let right = type_of(&binary.right, schema).ok()?;
    let needed = match (&left, &right) {
        (DataType::Decimal128(..), DataType::Decimal128(..)) => {
            let result = BinaryTypeCoercer::new(&left, &binary.op, &right).get_result_type();
            // All results fit any narrower type.
            matches!(
                result,
                Ok(DataType::Decimal128(DECIMAL128_MAX_PRECISION, _))
            )
        }
        (DataType::Decimal256(..), DataType::Decimal256(..)) => true,
        _ if binary.op == Operator::Divide => left == right && left.is_floating(),
        _ => of_integers && left == right && left.is_integer(),
    };
    needed.then_some(&**function)
}

/// The type of `expr`. Looks through checked operators itself because DataFusion, to find the type of a function, first
/// writes out its name with all that is in it.
///
/// # Errors
/// If a column is not in `schema`, or an operator is for other types.
pub(crate) fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    match operands(expr) {
        Some((operator, left, right)) => {
            let (left, right) = (type_of(left, schema)?, type_of(right, schema)?);
            result_of(operator, &left, &right)
        }
        None => expr.get_type(schema),
    }
}

fn result_of(operator: &str, left: &DataType, right: &DataType) -> Result<DataType> {
    if left == right && left.is_integer() {
        return Ok(left.clone());
    }
    let operator = match operator {
        "+" => Operator::Plus,
        "-" => Operator::Minus,
        "*" => Operator::Multiply,
        "/" => Operator::Divide,
        _ => Operator::Modulo,
    };
    BinaryTypeCoercer::new(left, &operator, right).get_result_type()
}

/// The operator and operands of `expr`, if it is a checked operator.
pub(crate) fn operands(expr: &Expr) -> Option<(&'static str, &Expr, &Expr)> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let checked = call.func.inner().downcast_ref::<Checked>()?;
    match &call.args[..] {
        [a, b] => Some((checked.operator, a, b)),
        _ => None,
    }
}

/// How many operators within each other have a name that is spelt out. Where there are more, a hash stands for them: DataFusion
/// writes the name of each anew to find the type of one, which took the fourth power of their number in time.
const SPELT_OUT: usize = 5;

/// Whether an expression has more than so many checked operators within each other, the first of which it is.
fn is_deep(expr: &Expr, most: usize) -> bool {
    match operands(expr) {
        Some((_, left, right)) => most == 0 || is_deep(left, most - 1) || is_deep(right, most - 1),
        None => false,
    }
}

static PLUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Checked::new("+").into()));
static MINUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Checked::new("-").into()));
static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Checked::new("*").into()));
static BY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Checked::new("/").into()));
static REST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Checked::new("%").into()));

/// A checked operator: a function of two integers of the same type, or of two decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operator: &'static str,
    signature: Signature,
}

impl Checked {
    fn new(operator: &'static str) -> Checked {
        Checked {
            operator,
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.operator
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        if args.iter().any(|arg| is_deep(arg, SPELT_OUT)) {
            let mut hasher = DefaultHasher::new();
            args.hash(&mut hasher);
            return Ok(format!("{}#{:016x}", self.operator, hasher.finish()));
        }
        let args: Vec<String> = args
            .iter()
            .map(|arg| arg.schema_name().to_string())
            .collect();
        Ok(format!("{}({})", self.operator, args.join(",")))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        // The planner asks for the types of long sums so often that it takes seconds.
        stoppable::check()?;
        let [left, right] = arguments else {
            return datafusion_common::internal_err!("{} takes two operands", self.operator);
        };
        result_of(self.operator, left, right)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = arguments.args.as_slice() else {
            return datafusion_common::internal_err!("{} takes two operands", self.operator);
        };
        apply(left, right, |l, r| match self.operator {
            "+" => computed(Operation::Plus, l, r, |l, r| fitting(add(l, r)?, "+")),
            "-" => computed(Operation::Minus, l, r, |l, r| fitting(sub(l, r)?, "-")),
            "*" => computed(Operation::Times, l, r, |l, r| fitting(mul(l, r)?, "*")),
            "/" => computed(Operation::By, l, r, quotient),
            _ => computed(Operation::Rest, l, r, |l, r| fitting(rem(l, r)?, "%")),
        })
    }
}

fn quotient(left: &dyn Datum, right: &dyn Datum) -> std::result::Result<ArrayRef, ArrowError> {
    let found = fitting(div(left, right)?, "/")?;
    match found.data_type() {
        DataType::Float32 => divided::<Float32Type>(left, right)?,
        DataType::Float64 => divided::<Float64Type>(left, right)?,
        _ => {}
    }
    Ok(found)
}

/// That no number is divided by zero. What is not a number may be, as in PostgreSQL.
fn divided<T: ArrowPrimitiveType>(
    left: &dyn Datum,
    right: &dyn Datum,
) -> std::result::Result<(), ArrowError>
where
    T::Native: Into<f64>,
{
    let ((left, left_is_one), (right, right_is_one)) = (left.get(), right.get());
    let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
    if !right.iter().any(|divisor| divisor.is_some_and(is_zero)) {
        return Ok(());
    }
    let value = |values: &PrimitiveArray<T>, is_one: bool, row: usize| {
        let at = if is_one { 0 } else { row };
        values.is_valid(at).then(|| values.value(at).into())
    };
    let rows = if left_is_one { right.len() } else { left.len() };
    for row in 0..rows {
        let dividend: Option<f64> = value(left, left_is_one, row);
        let divisor = value(right, right_is_one, row);
        if divisor == Some(0.0) && dividend.is_some_and(|dividend| !dividend.is_nan()) {
            return Err(ArrowError::DivideByZero);
        }
    }
    Ok(())
}

fn is_zero(divisor: impl Into<f64>) -> bool {
    divisor.into() == 0.0
}

/// `result`, or an error if a decimal in it has more digits than its type.
fn fitting(result: ArrayRef, operator: &str) -> std::result::Result<ArrayRef, ArrowError> {
    fn fits<T: DecimalType>(result: &ArrayRef, digits: u8) -> bool {
        let decimals = result.as_primitive_opt::<T>();
        decimals.is_none_or(|own| own.validate_decimal_precision(digits).is_ok())
    }
    match *result.data_type() {
        DataType::Decimal128(digits, _) if !fits::<Decimal128Type>(&result, digits) => {
            Err(too_long(operator, digits))
        }
        DataType::Decimal256(digits, _) if !fits::<Decimal256Type>(&result, digits) => {
            Err(too_long(operator, digits))
        }
        _ => Ok(result),
    }
}

fn too_long(operator: &str, digits: u8) -> ArrowError {
    ArrowError::ArithmeticOverflow(format!(
        "the result of {operator} has more than {digits} digits"
    ))
}
