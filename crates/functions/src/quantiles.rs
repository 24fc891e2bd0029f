//! Discrete quantiles: `quantile_disc(value, fraction)`, `percentile_disc(fraction) within group (order by value)`.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringViewArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType,
};
use datafusion_common::utils::SingleRowListArrayBuilder;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Literal;
use messages::Error;

use crate::aggregates::compared;

pub(super) fn all() -> Vec<Arc<AggregateUDF>> {
    vec![Arc::new(AggregateUDF::from(Quantile {
        signature: Signature::user_defined(Volatility::Immutable),
        aliases: vec!["percentile_disc".to_string()],
    }))]
}

/// The least value that is not exceeded by at least a given fraction of all values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantile {
    signature: Signature,
    aliases: Vec<String>,
}

impl AggregateUDFImpl for Quantile {
    fn name(&self) -> &str {
        "quantile_disc"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value, fraction] if fraction.is_numeric() || fraction.is_null() => {
                Ok(vec![value.clone(), DataType::Float64])
            }
            _ => plan_err!("a discrete quantile takes a value and a fraction from 0 to 1"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, _] => Ok(value.clone()),
            _ => plan_err!("a discrete quantile takes a value and a fraction from 0 to 1"),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = Field::new_list_field(args.return_type().clone(), true);
        Ok(vec![Arc::new(Field::new(
            format_state_name(args.name, "values"),
            DataType::List(Arc::new(value)),
            true,
        ))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let first = args.order_bys.first();
        let pick = Pick {
            fraction: fraction(args.exprs)?,
            descending: first.is_some_and(|order| order.options.descending),
            distinct: args.is_distinct,
        };
        Ok(accumulator(pick, args.return_type()))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// The constant fraction of a call; none if it is NULL.
pub(super) fn fraction(exprs: &[Arc<dyn PhysicalExpr>]) -> Result<Option<f64>> {
    let Some(expr) = exprs.get(1) else {
        return plan_err!("the fraction of a quantile must be a constant");
    };
    let value = match expr.downcast_ref::<Literal>().map(Literal::value) {
        // Each group asks for it: a batch for each of many small ones is spared.
        Some(ScalarValue::Float64(value)) => *value,
        _ => computed(expr)?,
    };
    match value {
        Some(fraction) if !(0.0..=1.0).contains(&fraction) => {
            let message = format!("percentile value {fraction} is not between 0 and 1");
            Err(Error::coded("22003", message).into())
        }
        value => Ok(value),
    }
}

/// The number that an expression without columns is.
fn computed(expr: &Arc<dyn PhysicalExpr>) -> Result<Option<f64>> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    let Ok(value) = expr.evaluate(&row) else {
        return plan_err!("the fraction of a quantile must be a constant");
    };
    match value.into_array(1)?.as_primitive_opt::<Float64Type>() {
        Some(value) => Ok(value.iter().next().flatten()),
        None => plan_err!("the fraction of a quantile must be a number"),
    }
}

/// Which of the values of a group is the quantile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    /// NULL gives NULL.
    pub fraction: Option<f64>,
    pub descending: bool,
    /// Whether equal values count once.
    pub distinct: bool,
}

impl Pick {
    /// The place of the quantile among so many values in ascending order; none if it is NULL.
    pub fn place(self, count: usize) -> Option<usize> {
        let last = count.checked_sub(1)?;
        let rank = (self.fraction? * count as f64).ceil() as usize;
        let place = rank.saturating_sub(1).min(last);
        Some(if self.descending { last - place } else { place })
    }
}

/// An accumulator of values of type `of`.
fn accumulator(pick: Pick, of: &DataType) -> Box<dyn Accumulator> {
    match of {
        DataType::Int16 => Numbers::<Int16Type>::empty(pick, of),
        DataType::Int32 => Numbers::<Int32Type>::empty(pick, of),
        DataType::Int64 => Numbers::<Int64Type>::empty(pick, of),
        DataType::Float32 => Numbers::<Float32Type>::empty(pick, of),
        DataType::Float64 => Numbers::<Float64Type>::empty(pick, of),
        DataType::Decimal128(..) => Numbers::<Decimal128Type>::empty(pick, of),
        DataType::Date32 => Numbers::<Date32Type>::empty(pick, of),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Numbers::<TimestampMicrosecondType>::empty(pick, of)
        }
        DataType::Utf8View => Box::new(Texts {
            pick,
            pieces: Vec::new(),
            rows: Vec::new(),
        }),
        _ => Box::new(Values {
            pick,
            of: of.clone(),
            values: Vec::new(),
            bytes: 0,
        }),
    }
}

/// Values whose order is that of the numbers that they are kept as. The quantile is selected among them, without a sort.
#[derive(Debug)]
struct Numbers<T: ArrowPrimitiveType> {
    pick: Pick,
    of: DataType,
    values: Vec<T::Native>,
}

impl<T: ArrowPrimitiveType + Debug> Numbers<T> {
    fn empty(pick: Pick, of: &DataType) -> Box<dyn Accumulator> {
        Box::new(Numbers::<T> {
            pick,
            of: of.clone(),
            values: Vec::new(),
        })
    }

    fn take(&mut self, values: &ArrayRef) {
        let values = values.as_primitive::<T>();
        if values.null_count() == 0 {
            self.values.extend_from_slice(values.values());
        } else {
            self.values.extend(values.iter().flatten());
        }
    }
}

impl<T: ArrowPrimitiveType + Debug> Accumulator for Numbers<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(&values[0]);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.pick.distinct {
            self.values.sort_unstable_by(|a, b| a.compare(*b));
            self.values.dedup_by(|a, b| a.compare(*b).is_eq());
        }
        let Some(place) = self.pick.place(self.values.len()) else {
            return ScalarValue::try_from(&self.of);
        };
        let order = |a: &T::Native, b: &T::Native| a.compare(*b);
        let (_, found, _) = self.values.select_nth_unstable_by(place, order);
        ScalarValue::new_primitive::<T>(Some(*found), &self.of)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<T::Native>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = PrimitiveArray::<T>::from_iter_values(self.values.iter().copied());
        let values = Arc::new(values.with_data_type(self.of.clone()));
        Ok(vec![
            SingleRowListArrayBuilder::new(values).build_list_scalar(),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.take(&values);
        }
        Ok(())
    }
}

/// Texts, which stay in the arrays that bring them: as values of their own they would take ten times the memory.
#[derive(Debug)]
struct Texts {
    pick: Pick,
    pieces: Vec<StringViewArray>,
    /// The place of each text: its piece, its row there.
    rows: Vec<(u32, u32)>,
}

impl Texts {
    fn take(&mut self, values: &ArrayRef) -> Result<()> {
        let piece = values.as_string_view();
        let number = self.pieces.len() as u32;
        let rows = 0..piece.len() as u32;
        let rows = rows.filter(|row| piece.is_valid(*row as usize));
        self.rows.extend(rows.map(|row| (number, row)));
        self.pieces.push(piece.clone());
        Ok(())
    }

    fn text(pieces: &[StringViewArray], (piece, row): (u32, u32)) -> &str {
        pieces[piece as usize].value(row as usize)
    }
}

impl Accumulator for Texts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(&values[0])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let text = |row: &(u32, u32)| Texts::text(&self.pieces, *row);
        if self.pick.distinct {
            self.rows.sort_unstable_by(|a, b| text(a).cmp(text(b)));
            self.rows.dedup_by(|a, b| text(a) == text(b));
        }
        let Some(place) = self.pick.place(self.rows.len()) else {
            return Ok(ScalarValue::Utf8View(None));
        };
        let order = |a: &(u32, u32), b: &(u32, u32)| text(a).cmp(text(b));
        let (_, found, _) = self.rows.select_nth_unstable_by(place, order);
        Ok(ScalarValue::Utf8View(Some(text(found).into())))
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.rows.capacity() * size_of::<(u32, u32)>()
            + self.pieces.capacity() * size_of::<StringViewArray>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let texts = self.rows.iter().map(|row| Texts::text(&self.pieces, *row));
        let texts = Arc::new(StringViewArray::from_iter_values(texts));
        Ok(vec![
            SingleRowListArrayBuilder::new(texts).build_list_scalar(),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.take(&values)?;
        }
        Ok(())
    }
}

/// Values of any other type.
#[derive(Debug)]
struct Values {
    pick: Pick,
    of: DataType,
    values: Vec<ScalarValue>,
    /// Memory of the values.
    bytes: usize,
}

impl Values {
    fn take(&mut self, values: &ArrayRef) -> Result<()> {
        self.values.reserve(values.len());
        for row in 0..values.len() {
            if !values.is_null(row) {
                let value = ScalarValue::try_from_array(values, row)?;
                self.bytes += value.size();
                self.values.push(value);
            }
        }
        Ok(())
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(&values[0])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.pick.distinct {
            self.values.sort_unstable_by(compared);
            self.values.dedup();
        }
        let Some(place) = self.pick.place(self.values.len()) else {
            return ScalarValue::try_from(&self.of);
        };
        let (_, found, _) = self.values.select_nth_unstable_by(place, compared);
        Ok(found.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = ScalarValue::new_list_nullable(&self.values, &self.of);
        Ok(vec![ScalarValue::List(values)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.take(&values)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int64Array};
    use fastrand::Rng;

    use super::*;

    /// What an accumulator gives of some values, half of which another one has brought.
    fn found(
        mut own: Box<dyn Accumulator>,
        mut other: Box<dyn Accumulator>,
        all: &ArrayRef,
    ) -> ScalarValue {
        let half = all.len() / 2;
        own.update_batch(&[all.slice(0, half)]).unwrap();
        other
            .update_batch(&[all.slice(half, all.len() - half)])
            .unwrap();
        let states = other.state().unwrap();
        let states: Vec<ArrayRef> = states.iter().map(|own| own.to_array().unwrap()).collect();
        own.merge_batch(&states).unwrap();
        own.evaluate().unwrap()
    }

    #[test]
    fn the_number_that_is_selected_is_that_of_a_sort() {
        let mut rng = Rng::with_seed(3);
        for _ in 0..300 {
            let count = rng.usize(0..60);
            let number = |rng: &mut Rng| (rng.u8(0..5) > 0).then(|| rng.i64(-9..=9));
            let numbers: Vec<Option<i64>> = (0..count).map(|_| number(&mut rng)).collect();
            let floats = numbers.iter().map(|number| match number {
                Some(9) => Some(f64::NAN),
                Some(-9) => Some(f64::NEG_INFINITY),
                number => number.map(|number| number as f64 / 4.0),
            });
            let floats: ArrayRef = Arc::new(floats.collect::<Float64Array>());
            let integers: ArrayRef = Arc::new(Int64Array::from(numbers.clone()));
            let pick = Pick {
                fraction: [Some(0.0), Some(1.0), Some(rng.f64()), None][rng.usize(0..4)],
                descending: rng.bool(),
                distinct: rng.bool(),
            };
            let text = |number: i64| {
                format!(
                    "{number:+}{}",
                    "long ".repeat(number.unsigned_abs() as usize)
                )
            };
            let texts = numbers.iter().map(|number| number.map(text));
            let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
            for all in [integers, floats, texts] {
                let of = all.data_type();
                let mut sorted: Vec<ScalarValue> = (0..all.len())
                    .filter(|row| all.is_valid(*row))
                    .map(|row| ScalarValue::try_from_array(&all, row).unwrap())
                    .collect();
                sorted.sort_by(compared);
                if pick.distinct {
                    sorted.dedup();
                }
                if pick.descending {
                    sorted.reverse();
                }
                let rank = pick.fraction.map(|own| (own * sorted.len() as f64).ceil());
                let wanted = rank.and_then(|rank| sorted.get((rank as usize).saturating_sub(1)));
                let wanted = wanted
                    .cloned()
                    .unwrap_or_else(|| ScalarValue::try_from(of).unwrap());
                let any = || -> Box<dyn Accumulator> {
                    Box::new(Values {
                        pick,
                        of: of.clone(),
                        values: Vec::new(),
                        bytes: 0,
                    })
                };
                let own = || accumulator(pick, of);
                assert_eq!(found(own(), own(), &all), wanted, "{pick:?} of {all:?}");
                assert_eq!(found(any(), any(), &all), wanted, "{pick:?} of {all:?}");
            }
        }
    }
}
