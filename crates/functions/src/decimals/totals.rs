//! `sum` and `avg` of decimals of more than 38 digits, among which NaN and the infinities may be.
//!
//! The function beneath gets the numbers; what else was seen is kept beside what it keeps. Both are NaN if that was seen, or
//! both infinities, and else the infinity that was.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal256Array, UInt8Array};
use arrow::datatypes::{DataType, Decimal256Type, Field, FieldRef, UInt8Type};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use table::{NotFinite, only_numbers};

use crate::decimals::decimals;

/// The function `inner`, `sum` or `avg` of such decimals, for what is no number, too; `None` if it is another.
pub fn total(inner: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    matches!(inner.name(), "sum" | "avg").then(|| {
        Arc::new(AggregateUDF::from(Total {
            inner: Arc::clone(inner),
        }))
    })
}

/// What was seen that is no number: a bit for each kind.
fn bit(own: NotFinite) -> u8 {
    match own {
        NotFinite::NaN => 1,
        NotFinite::Infinity => 2,
        NotFinite::NegativeInfinity => 4,
    }
}

const ALL: [NotFinite; 3] = [
    NotFinite::NaN,
    NotFinite::Infinity,
    NotFinite::NegativeInfinity,
];

/// What a sum is of which these were seen.
fn result(bits: u8) -> Option<NotFinite> {
    match bits {
        0 => None,
        2 => Some(NotFinite::Infinity),
        4 => Some(NotFinite::NegativeInfinity),
        _ => Some(NotFinite::NaN),
    }
}

/// The decimals of an argument with NULL for what is no number, which goes to `seen` with its row.
fn split(values: &[ArrayRef], mut seen: impl FnMut(usize, NotFinite)) -> Result<Vec<ArrayRef>> {
    let [own] = values else {
        return internal_err!("sums have one argument");
    };
    let Some(own) = decimals(own) else {
        return Ok(values.to_vec());
    };
    for row in 0..own.len() {
        if own.is_valid(row)
            && let Some(odd) = NotFinite::of(own.value(row))
        {
            seen(row, odd);
        }
    }
    Ok(vec![Arc::new(only_numbers(own))])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Total {
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Total {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let of = args.return_field.data_type().clone();
        let inner = self.inner.accumulator(args)?;
        Ok(Box::new(Watched::new(inner, of)))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let of = args.return_field.data_type().clone();
        let inner = self.inner.create_sliding_accumulator(args)?;
        Ok(Box::new(Watched::new(inner, of)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format_state_name(args.name, "not finite");
        let mut fields = self.inner.state_fields(args)?;
        fields.push(Arc::new(Field::new(name, DataType::UInt8, true)));
        Ok(fields)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let inner = self.inner.create_groups_accumulator(args)?;
        Ok(Box::new(WatchedGroups {
            inner,
            seen: Vec::new(),
        }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// A sum, and how often each kind of what is no number was seen.
#[derive(Debug)]
struct Watched {
    inner: Box<dyn Accumulator>,
    of: DataType,
    seen: [u64; 3],
}

impl Watched {
    fn new(inner: Box<dyn Accumulator>, of: DataType) -> Watched {
        Watched {
            inner,
            of,
            seen: [0; 3],
        }
    }

    fn bits(&self) -> u8 {
        let seen = ALL.iter().zip(self.seen).filter(|(_, times)| *times > 0);
        seen.fold(0, |bits, (own, _)| bits | bit(*own))
    }
}

fn place(own: NotFinite) -> usize {
    bit(own).trailing_zeros() as usize
}

impl Accumulator for Watched {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let seen = &mut self.seen;
        let numbers = split(values, |_, own| seen[place(own)] += 1)?;
        self.inner.update_batch(&numbers)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let seen = &mut self.seen;
        let numbers = split(values, |_, own| {
            let times = &mut seen[place(own)];
            *times = times.saturating_sub(1);
        })?;
        self.inner.retract_batch(&numbers)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match (result(self.bits()), &self.of) {
            (Some(own), DataType::Decimal256(precision, scale)) => Ok(ScalarValue::Decimal256(
                Some(own.value()),
                *precision,
                *scale,
            )),
            (Some(_), other) => internal_err!("a sum of decimals is {other}"),
            (None, _) => self.inner.evaluate(),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let bits = self.bits();
        let mut state = self.inner.state()?;
        state.push(ScalarValue::UInt8(Some(bits)));
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (own, inner) = last(states)?;
        for bits in own.iter().flatten() {
            for odd in ALL.into_iter().filter(|odd| bits & bit(*odd) > 0) {
                self.seen[place(odd)] += 1;
            }
        }
        self.inner.merge_batch(inner)
    }
}

/// The last array of a state, which is kept here, and those before it.
fn last(states: &[ArrayRef]) -> Result<(&UInt8Array, &[ArrayRef])> {
    match states {
        [inner @ .., own] => Ok((own.as_primitive::<UInt8Type>(), inner)),
        [] => internal_err!("a state of a sum has parts"),
    }
}

/// Sums of groups, and what each has that is no number.
struct WatchedGroups {
    inner: Box<dyn GroupsAccumulator>,
    seen: Vec<u8>,
}

fn counts(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for WatchedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.seen.resize(total.max(self.seen.len()), 0);
        let seen = &mut self.seen;
        let numbers = split(values, |row, own| {
            if counts(filter, row) {
                seen[groups[row]] |= bit(own);
            }
        })?;
        self.inner.update_batch(&numbers, groups, filter, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let found = self.inner.evaluate(emit)?;
        let bits = emit.take_needed(&mut self.seen);
        if bits.iter().all(|bits| *bits == 0) {
            return Ok(found);
        }
        let Some(own) = found.as_primitive_opt::<Decimal256Type>() else {
            return internal_err!("a sum of decimals is {}", found.data_type());
        };
        let of = |row: usize| match bits.get(row).and_then(|bits| result(*bits)) {
            Some(odd) => Some(odd.value()),
            None => own.is_valid(row).then(|| own.value(row)),
        };
        let made: Decimal256Array = (0..own.len()).map(of).collect();
        Ok(Arc::new(made.with_data_type(own.data_type().clone())))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let mut state = self.inner.state(emit)?;
        let bits = emit.take_needed(&mut self.seen);
        state.push(Arc::new(UInt8Array::from(bits)));
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.seen.resize(total.max(self.seen.len()), 0);
        let (own, inner) = last(states)?;
        for (bits, group) in own.iter().zip(groups) {
            self.seen[*group] |= bits.unwrap_or(0);
        }
        self.inner.merge_batch(inner, groups, total)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut seen = vec![0; values.first().map_or(0, |values| values.len())];
        let numbers = split(values, |row, own| {
            if counts(filter, row) {
                seen[row] = bit(own);
            }
        })?;
        let mut state = self.inner.convert_to_state(&numbers, filter)?;
        state.push(Arc::new(UInt8Array::from(seen)));
        Ok(state)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size() + self.seen.capacity()
    }
}
