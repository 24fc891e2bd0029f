//! `sum`, which is exact or fails.
//!
//! DataFusion adds numbers in the type of the result and wraps around when they leave it. [`sum`] returns the same
//! types but adds in a wider one, which has room for more rows than any table has. Whether the sum fits its type is
//! checked once, at the end, so whether it fails does not depend on the order of rows.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type,
    Field, FieldRef, i256,
};
use arrow::error::ArrowError;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, ReversedUDAF,
    Signature,
};
use datafusion_functions_aggregate::sum::Sum;

use crate::float_sums::{FloatSum, FloatSums};

/// The aggregate `sum`.
pub fn sum() -> Arc<AggregateUDF> {
    static SUM: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(ExactSum(Sum::new()))));
    Arc::clone(&SUM)
}

/// The sum of `expr`.
pub fn sum_of(expr: Expr) -> Expr {
    let call = AggregateFunction::new_udf(sum(), vec![expr], false, None, vec![], None);
    Expr::AggregateFunction(call)
}

/// Digits that a sum may have more than the numbers it adds: no table has more than 10 to the power of this rows.
const ROWS: u8 = 10;

/// The type in which numbers of type `number` are added; `None` for types that do not wrap around.
pub(super) fn wide(number: &DataType) -> Option<DataType> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256, Duration};
    let room = |precision: &u8, scale: &i8| {
        if precision + ROWS <= DECIMAL128_MAX_PRECISION {
            Decimal128(DECIMAL128_MAX_PRECISION, *scale)
        } else {
            Decimal256(DECIMAL256_MAX_PRECISION, *scale)
        }
    };
    match number {
        DataType::Int64 | DataType::UInt64 | Duration(_) => {
            Some(Decimal128(DECIMAL128_MAX_PRECISION, 0))
        }
        Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) | Decimal256(p, s) => Some(room(p, s)),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactSum(Sum);

/// The types of a sum that is added in a wider type than it returns.
#[derive(Debug)]
struct Types {
    /// What numbers are added in.
    wide: DataType,
    /// What the sum is returned as.
    narrow: DataType,
}

/// The arguments of a function that adds in the wide type, and the types; `None` where the function's own type will do.
fn widened<'a>(arguments: AccumulatorArgs<'a>) -> (AccumulatorArgs<'a>, Option<Types>) {
    let number = arguments.expr_fields.first().map(|f| f.data_type());
    let Some(wide) = number.and_then(wide) else {
        return (arguments, None);
    };
    let narrow = arguments.return_field.data_type().clone();
    let field = arguments.return_field.as_ref().clone();
    let return_field = Arc::new(field.with_data_type(wide.clone()));
    let arguments = AccumulatorArgs {
        return_field,
        ..arguments
    };
    (arguments, Some(Types { wide, narrow }))
}

/// Whether it is the sum of all floats, as they are.
fn adds_floats(arguments: &AccumulatorArgs<'_>) -> bool {
    *arguments.return_field.data_type() == DataType::Float64 && !arguments.is_distinct
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.0.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if adds_floats(&arguments) {
            return Ok(Box::new(FloatSum::default()));
        }
        let (arguments, types) = widened(arguments);
        let inner = self.0.accumulator(arguments)?;
        Ok(match types {
            Some(types) => Box::new(Narrowing { inner, types }),
            None => inner,
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let number = arguments.input_fields.first().map(|f| f.data_type());
        let Some(wide) = number.and_then(wide) else {
            return self.0.state_fields(arguments);
        };
        self.0.state_fields(StateFieldsArgs {
            return_field: Arc::new(Field::new(arguments.name, wide, true)),
            ..arguments
        })
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        if adds_floats(&arguments) {
            return Ok(Box::new(FloatSums::default()));
        }
        let (arguments, types) = widened(arguments);
        let inner = self.0.create_groups_accumulator(arguments)?;
        Ok(match types {
            Some(types) => Box::new(Narrowing { inner, types }),
            None => inner,
        })
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let (arguments, types) = widened(arguments);
        let Some(types) = types else {
            return self.0.create_sliding_accumulator(arguments);
        };
        let inner: Box<dyn Accumulator> = if arguments.is_distinct {
            Box::new(SlidingDistinct::new(&types.wide))
        } else {
            self.0.create_sliding_accumulator(arguments)?
        };
        Ok(Box::new(Narrowing { inner, types }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Adds numbers in the wide type, and returns sums of the narrow one.
#[derive(Debug)]
struct Narrowing<A> {
    inner: A,
    types: Types,
}

impl<A> Narrowing<A> {
    fn numbers(&self, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let wide = |array: &ArrayRef| {
            // Durations are counted in their unit.
            let number = match array.data_type() {
                DataType::Duration(_) => cast(array, &DataType::Int64)?,
                _ => Arc::clone(array),
            };
            Ok(cast(&number, &self.types.wide)?)
        };
        values.iter().map(wide).collect()
    }

    fn sums(&self, sums: &ArrayRef) -> Result<ArrayRef> {
        Ok(narrowed(sums, &self.types.narrow)?)
    }
}

/// `sums` as type `narrow`, which has the same scale.
fn narrowed(sums: &ArrayRef, narrow: &DataType) -> Result<ArrayRef, ArrowError> {
    let number = match narrow {
        DataType::Duration(_) => &DataType::Int64,
        other => other,
    };
    let sums = exactly(sums, number)?;
    cast(&sums, narrow)
}

fn exactly(sums: &ArrayRef, number: &DataType) -> Result<ArrayRef, ArrowError> {
    let fits = match number {
        DataType::Int64 => within(sums, i64::MIN.into(), i64::MAX.into()),
        DataType::UInt64 => within(sums, 0, u64::MAX.into()),
        DataType::Decimal32(p, _) | DataType::Decimal64(p, _) | DataType::Decimal128(p, _) => {
            let most = 10i128.pow(u32::from(*p)) - 1;
            within(sums, -most, most)
        }
        DataType::Decimal256(p, s) => sums
            .as_primitive_opt::<Decimal256Type>()
            .is_none_or(|sums| sums.validate_decimal_precision(*p).is_ok() && *s == sums.scale()),
        _ => true,
    };
    if fits {
        cast(sums, number)
    } else {
        Err(ArrowError::ArithmeticOverflow(
            "a sum has too many digits for its type".into(),
        ))
    }
}

/// Whether the unscaled values of decimals lie within the bounds.
fn within(sums: &ArrayRef, low: i128, high: i128) -> bool {
    if let Some(sums) = sums.as_primitive_opt::<Decimal128Type>() {
        return sums.iter().flatten().all(|v| (low..=high).contains(&v));
    }
    let (low, high) = (i256::from_i128(low), i256::from_i128(high));
    match sums.as_primitive_opt::<Decimal256Type>() {
        Some(sums) => sums.iter().flatten().all(|v| (low..=high).contains(&v)),
        None => true,
    }
}

impl Accumulator for Narrowing<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let numbers = self.numbers(values)?;
        self.inner.update_batch(&numbers)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.inner.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&self.sums(&sum)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let numbers = self.numbers(values)?;
        self.inner.retract_batch(&numbers)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl GroupsAccumulator for Narrowing<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let numbers = self.numbers(values)?;
        self.inner.update_batch(&numbers, groups, filter, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let sums = self.inner.evaluate(emit)?;
        self.sums(&sums)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(states, groups, total)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&self.numbers(values)?, filter)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}

/// The sum of the distinct numbers in a moving window frame, with a count of how often each occurs.
#[derive(Debug)]
struct SlidingDistinct {
    times: HashMap<i256, usize>,
    sum: i256,
    wide: DataType,
}

impl SlidingDistinct {
    fn new(wide: &DataType) -> SlidingDistinct {
        SlidingDistinct {
            times: HashMap::new(),
            sum: i256::ZERO,
            wide: wide.clone(),
        }
    }
}

/// The unscaled values of decimals.
fn stored(array: &ArrayRef) -> Vec<i256> {
    if let Some(array) = array.as_primitive_opt::<Decimal128Type>() {
        return array.iter().flatten().map(i256::from_i128).collect();
    }
    let array = array.as_primitive_opt::<Decimal256Type>();
    array.map_or(vec![], |array| array.iter().flatten().collect())
}

impl Accumulator for SlidingDistinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for number in values.iter().flat_map(stored) {
            let times = self.times.entry(number).or_default();
            *times += 1;
            if *times == 1 {
                self.sum = self.sum.wrapping_add(number);
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for number in values.iter().flat_map(stored) {
            let Some(times) = self.times.get_mut(&number) else {
                continue;
            };
            *times -= 1;
            if *times == 0 {
                self.times.remove(&number);
                self.sum = self.sum.wrapping_sub(number);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (!self.times.is_empty()).then_some(self.sum);
        Ok(match self.wide {
            DataType::Decimal128(p, s) => {
                // The wide type has room for it.
                let sum = sum.map(|sum| sum.to_i128().unwrap_or(i128::MAX));
                ScalarValue::Decimal128(sum, p, s)
            }
            DataType::Decimal256(p, s) => ScalarValue::Decimal256(sum, p, s),
            ref other => ScalarValue::try_new_null(other)?,
        })
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.times.capacity() * size_of::<(i256, usize)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        datafusion_common::internal_err!("moving window frames have no partial states")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        datafusion_common::internal_err!("moving window frames have no partial states")
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}
