//! `avg` of decimals: the exact sum over the count, rounded half away from zero, with at least the 16 digits behind the point that
//! PostgreSQL's averages from 1 to 9999 have. That of other numbers is DataFusion's.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Decimal256Array, Int64Array,
};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type,
    Field, FieldRef, Int64Type, i256,
};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use datafusion_functions_aggregate::average::Avg;
use datafusion_functions_aggregate::count::count_udaf;
use messages::Error;

use crate::decimals::operators::{by_digits, has_digits, quick};
use crate::sum::{sum, wide};

/// The aggregate function.
pub(super) fn mean() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Mean(Avg::new())))
}

/// Digits behind the point that an average has at least.
const PLACES: u8 = 16;

/// Digits before the point beyond which an average takes more than 128 bits: `numeric` without any has as many.
const WHOLE: u8 = 28;

/// The type of the average of decimals; `None` of other numbers.
fn average_type(number: &DataType) -> Option<DataType> {
    let (precision, scale, is_wide) = match number {
        DataType::Decimal128(precision, scale) => (*precision, *scale, false),
        DataType::Decimal256(precision, scale) => (*precision, *scale, true),
        _ => return None,
    };
    let own = u8::try_from(scale).unwrap_or(0);
    let places = own.max(PLACES);
    let whole = precision.saturating_sub(own);
    let narrow = !is_wide && whole <= WHOLE && places <= PLACES
        || !is_wide && whole + places <= DECIMAL128_MAX_PRECISION;
    let scale = i8::try_from(places).unwrap_or(i8::MAX);
    Some(if narrow {
        DataType::Decimal128((whole + places).min(DECIMAL128_MAX_PRECISION), scale)
    } else {
        DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale)
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mean(Avg);

/// The types of an average.
#[derive(Clone, Debug)]
struct Types {
    /// That of the sum.
    sum: DataType,
    average: DataType,
}

fn types(number: Option<&FieldRef>) -> Option<Types> {
    let number = number?.data_type();
    let average = average_type(number)?;
    Some(Types {
        sum: wide(number)?,
        average,
    })
}

/// The arguments of an average as those of another function of this type.
fn returning<'a>(arguments: &AccumulatorArgs<'a>, ty: &DataType) -> AccumulatorArgs<'a> {
    let field = arguments.return_field.as_ref().clone();
    AccumulatorArgs {
        return_field: Arc::new(field.with_data_type(ty.clone())),
        ..arguments.clone()
    }
}

impl AggregateUDFImpl for Mean {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments.first().and_then(average_type) {
            Some(average) => Ok(average),
            None => self.0.return_type(arguments),
        }
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let Some(types) = types(arguments.expr_fields.first()) else {
            return self.0.accumulator(arguments);
        };
        let sums = sum().accumulator(returning(&arguments, &types.sum))?;
        let counts = count_udaf().accumulator(returning(&arguments, &DataType::Int64))?;
        Ok(Box::new(Parts::new(sums, counts, types)?))
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let Some(types) = types(arguments.expr_fields.first()) else {
            return self.0.create_sliding_accumulator(arguments);
        };
        let (sum, count) = (sum(), count_udaf());
        let sums = sum.create_sliding_accumulator(returning(&arguments, &types.sum))?;
        let counts = returning(&arguments, &DataType::Int64);
        let counts = count.create_sliding_accumulator(counts)?;
        Ok(Box::new(Parts::of_window(sums, counts, types)))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let Some(types) = types(arguments.input_fields.first()) else {
            return self.0.state_fields(arguments);
        };
        let of = |part: &str, ty: &DataType| {
            let name = format!("{}[{part}]", arguments.name);
            (Arc::new(Field::new(name.clone(), ty.clone(), true)), name)
        };
        let ((sum_field, sum_name), (count_field, count_name)) =
            (of("sum", &types.sum), of("count", &DataType::Int64));
        let part = |name, return_field| StateFieldsArgs {
            name,
            return_field,
            input_fields: arguments.input_fields,
            ordering_fields: arguments.ordering_fields,
            is_distinct: arguments.is_distinct,
        };
        let mut fields = sum().state_fields(part(&sum_name, sum_field))?;
        fields.extend(count_udaf().state_fields(part(&count_name, count_field))?);
        Ok(fields)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        match types(arguments.expr_fields.first()) {
            Some(_) => !arguments.is_distinct,
            None => self.0.groups_accumulator_supported(arguments),
        }
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let Some(types) = types(arguments.expr_fields.first()) else {
            return self.0.create_groups_accumulator(arguments);
        };
        let sums = sum().create_groups_accumulator(returning(&arguments, &types.sum))?;
        let counts = returning(&arguments, &DataType::Int64);
        let counts = count_udaf().create_groups_accumulator(counts)?;
        Ok(Box::new(Groups {
            sums,
            counts,
            types,
        }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The averages of sums and counts.
fn averages(sums: &ArrayRef, counts: &ArrayRef, types: &Types) -> Result<ArrayRef> {
    let Some(counts) = counts.as_primitive_opt::<Int64Type>() else {
        return internal_err!("a count is {}", counts.data_type());
    };
    let (DataType::Decimal128(_, own) | DataType::Decimal256(_, own)) = types.sum else {
        return internal_err!("a sum of decimals is {}", types.sum);
    };
    let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) =
        types.average
    else {
        return internal_err!("an average of decimals is {}", types.average);
    };
    let sum = |row: usize| -> Option<i256> {
        if sums.is_null(row) {
            return None;
        }
        match sums.as_primitive_opt::<Decimal128Type>() {
            Some(narrow) => Some(i256::from_i128(narrow.value(row))),
            None => Some(sums.as_primitive_opt::<Decimal256Type>()?.value(row)),
        }
    };
    let shift = i32::from(scale) - i32::from(own);
    let one = |row: usize| -> Result<Option<i256>> {
        let (Some(sum), Some(count)) = (sum(row), count_of(counts, row)) else {
            return Ok(None);
        };
        let found = divided(sum, count.into(), shift);
        match found.filter(|own| has_digits(*own, precision)) {
            Some(found) => Ok(Some(found)),
            None => Err(Error::coded("22003", "value overflows numeric format").into()),
        }
    };
    let found = (0..sums.len()).map(one).collect::<Result<Vec<_>>>()?;
    Ok(match types.average {
        DataType::Decimal128(..) => {
            let narrow = found.into_iter().map(|own| own.and_then(i256::to_i128));
            let narrow: Decimal128Array = narrow.collect();
            Arc::new(narrow.with_data_type(types.average.clone()))
        }
        _ => {
            let wide: Decimal256Array = found.into_iter().collect();
            Arc::new(wide.with_data_type(types.average.clone()))
        }
    })
}

/// A sum, moved by so many digits, over a count; `None` if it has too many.
fn divided(sum: i256, count: i128, shift: i32) -> Option<i256> {
    let narrow = sum.to_i128().and_then(|sum| quick(sum, count, shift));
    match narrow {
        Some(found) => Some(i256::from_i128(found)),
        None => by_digits(sum, i256::from_i128(count), shift),
    }
}

/// How many values were added; none if there were none.
fn count_of(counts: &Int64Array, row: usize) -> Option<i64> {
    let count = counts.is_valid(row).then(|| counts.value(row));
    count.filter(|count| *count > 0)
}

/// The parts of one average.
#[derive(Debug)]
struct Parts {
    sums: Box<dyn Accumulator>,
    counts: Box<dyn Accumulator>,
    types: Types,
    /// How many values the state of the sum has.
    split: usize,
}

impl Parts {
    fn new(
        mut sums: Box<dyn Accumulator>,
        counts: Box<dyn Accumulator>,
        types: Types,
    ) -> Result<Parts> {
        let split = sums.state()?.len();
        Ok(Parts {
            sums,
            counts,
            types,
            split,
        })
    }

    /// Those of a frame of a window, which have no states.
    fn of_window(sums: Box<dyn Accumulator>, counts: Box<dyn Accumulator>, types: Types) -> Parts {
        Parts {
            sums,
            counts,
            types,
            split: 0,
        }
    }
}

impl Accumulator for Parts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sums.update_batch(values)?;
        self.counts.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sums.retract_batch(values)?;
        self.counts.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.sums.supports_retract_batch() && self.counts.supports_retract_batch()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.sums.evaluate()?.to_array()?;
        let count = self.counts.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&averages(&sum, &count, &self.types)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.size() + self.counts.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut state = self.sums.state()?;
        state.extend(self.counts.state()?);
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some((sums, counts)) = states.split_at_checked(self.split) else {
            return internal_err!("a state of an average has parts");
        };
        self.sums.merge_batch(sums)?;
        self.counts.merge_batch(counts)
    }
}

/// The parts of averages of groups.
struct Groups {
    sums: Box<dyn GroupsAccumulator>,
    counts: Box<dyn GroupsAccumulator>,
    types: Types,
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.sums.update_batch(values, groups, filter, total)?;
        self.counts.update_batch(values, groups, filter, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let sums = self.sums.evaluate(emit)?;
        let counts = self.counts.evaluate(emit)?;
        averages(&sums, &counts, &self.types)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let mut state = self.sums.state(emit)?;
        state.extend(self.counts.state(emit)?);
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        // That of a count is one number.
        let Some((counts, sums)) = states.split_last() else {
            return internal_err!("a state of an average has parts");
        };
        self.sums.merge_batch(sums, groups, total)?;
        self.counts
            .merge_batch(std::slice::from_ref(counts), groups, total)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut state = self.sums.convert_to_state(values, filter)?;
        state.extend(self.counts.convert_to_state(values, filter)?);
        Ok(state)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.size() + self.counts.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_have_digits() {
        use DataType::{Decimal128, Decimal256, Int64};
        for (own, wanted) in [
            (Decimal128(10, 2), Some(Decimal128(24, 16))),
            (Decimal128(20, 18), Some(Decimal128(20, 18))),
            (Decimal128(38, 10), Some(Decimal128(38, 16))),
            (Decimal128(38, 0), Some(Decimal256(76, 16))),
            (Decimal128(38, 30), Some(Decimal128(38, 30))),
            (Decimal256(76, 20), Some(Decimal256(76, 20))),
            (Int64, None),
        ] {
            assert_eq!(average_type(&own), wanted, "{own}");
        }
    }

    #[test]
    fn averages_are_rounded() {
        let of = |sums: Vec<Option<i128>>, counts: Vec<i64>| {
            let sum = DataType::Decimal128(38, 1);
            let sums = Decimal128Array::from(sums).with_data_type(sum.clone());
            let counts: ArrayRef = Arc::new(Int64Array::from(counts));
            let types = Types {
                sum,
                average: DataType::Decimal128(18, 16),
            };
            averages(&(Arc::new(sums) as ArrayRef), &counts, &types)
        };
        let found = of(vec![Some(50), Some(-50), None, Some(0)], vec![3, 3, 0, 0]);
        let found = found.unwrap();
        let found: Vec<_> = found.as_primitive::<Decimal128Type>().iter().collect();
        let third = 16_666_666_666_666_667;
        assert_eq!(found, [Some(third), Some(-third), None, None]);
        assert!(of(vec![Some(1_000)], vec![1]).is_err());
    }
}
