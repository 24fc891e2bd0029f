//! All values of each group, for the functions that the engine has no accumulator for ([`AggregateCall`]).

use std::sync::Arc;

use arrow::array::{ArrayRef, new_empty_array};
use arrow::compute::concat;

use crate::error::{Error, Result};
use crate::logical::aggregate_call::AggregateCall;
use crate::operators::aggregate::accumulator::{AccumulatedValues, Accumulator, same};
use crate::operators::aggregate::by_group::{ByGroup, Part, joined};
use crate::operators::aggregate::selection::Selection;
use crate::vector::value::{Kind, Type, Values, Vector};

/// Values that a function gets at a time, about.
const AT_ONCE: usize = 1 << 16;

/// The values of each group, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Collected {
    /// The functions of the query that the engine has no accumulator for.
    calls: Arc<[Arc<dyn AggregateCall>]>,
    /// Which of them the values are kept for. Others may be [called](Accumulator::called), too, if they want the same values and
    /// neither folds them.
    call: usize,
    ty: Type,
    /// The values, and the group of each.
    parts: Vec<Part>,
    /// Bytes of the parts.
    bytes: usize,
    /// How many values there are.
    rows: usize,
    /// With more values than this, they are replaced by one result for each group, if the function can merge results.
    most: usize,
    groups: usize,
    /// What is looked for by passes over the values. These are not kept then.
    selection: Option<Selection>,
}

impl Collected {
    /// No values, of type `ty`, for the function `call` of these.
    ///
    /// # Errors
    /// An internal error if there is no such function.
    pub fn new(calls: Arc<[Arc<dyn AggregateCall>]>, call: usize, ty: Type) -> Result<Collected> {
        if call >= calls.len() {
            return Err(no_call());
        }
        Ok(Collected {
            calls,
            call,
            ty,
            parts: vec![],
            bytes: 0,
            rows: 0,
            most: AT_ONCE,
            groups: 0,
            selection: None,
        })
    }

    /// The function that the values are kept for.
    fn own(&self) -> &dyn AggregateCall {
        self.calls[self.call].as_ref()
    }

    fn push(&mut self, groups: Vec<u32>, values: Vector) {
        let texts = match &values.values {
            Values::Text(texts) => texts.memory(),
            _ => values.len() * self.ty.width(),
        };
        self.bytes += texts + 5 * groups.len();
        self.rows += groups.len();
        self.parts.push((groups, values));
    }

    /// Folds the values of each group to one, if the function does that and there are many.
    fn fold(&mut self) -> Result<()> {
        if self.rows <= self.most || !self.own().folds() {
            return Ok(());
        }
        let mut groups: Vec<u32> = self
            .parts
            .iter()
            .flat_map(|(own, _)| own)
            .copied()
            .collect();
        groups.sort_unstable();
        groups.dedup();
        let values = self.called(self.call, &groups, &self.ty)?;
        self.parts.clear();
        (self.bytes, self.rows) = (0, 0);
        self.most = AT_ONCE.max(2 * groups.len());
        self.push(groups, values);
        Ok(())
    }
}

impl Accumulator for Collected {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        let calls = Arc::clone(&self.calls);
        let made = Collected::new(calls, self.call, self.ty.clone())?;
        Ok(Box::new(made))
    }

    fn resize(&mut self, groups: usize) {
        self.groups = groups;
    }

    fn add(&mut self, groups: Option<&[u32]>, _rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(|| Error::internal("a call without argument"))?;
        if let Some(selection) = &mut self.selection {
            return selection.add(groups, &vector.decoded(&self.ty)?);
        }
        let rows = match &vector.valid {
            Some(valid) if self.own().ignores_nulls() && valid.contains(&false) => {
                let all = 0..vector.len() as u32;
                Some(all.filter(|row| valid[*row as usize]).collect::<Vec<u32>>())
            }
            _ => None,
        };
        let count = rows.as_ref().map_or(vector.len(), Vec::len);
        if count == 0 {
            return Ok(());
        }
        let own = match (groups, &rows) {
            (None, _) => vec![0; count],
            (Some(groups), None) => groups[..count].to_vec(),
            (Some(groups), Some(rows)) => rows.iter().map(|row| groups[*row as usize]).collect(),
        };
        // Copied, so that a few values do not keep the buffers of all.
        let values = match &rows {
            None => vector.copied()?,
            Some(rows) => vector.at(rows)?.copied()?,
        };
        self.push(own, values);
        self.fold()
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &Collected = same(other)?;
        let mut places = vec![0; from.iter().max().map_or(0, |most| *most as usize + 1)];
        for (from, to) in from.iter().zip(to) {
            places[*from as usize] = *to;
        }
        for (groups, values) in &other.parts {
            let groups = groups.iter().map(|group| places[*group as usize]);
            self.push(groups.collect(), values.clone());
        }
        self.fold()
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![]
    }

    fn state(&self, _: &[u32]) -> Result<Vec<Vector>> {
        Ok(vec![])
    }

    fn of_state(&self, _: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        self.fresh()
    }

    fn memory(&self) -> usize {
        self.bytes + self.selection.as_ref().map_or(0, Selection::memory)
    }

    fn select(&mut self, calls: &[usize]) -> bool {
        self.selection = Selection::new(Arc::clone(&self.calls), calls);
        self.selection.is_some()
    }

    fn end_pass(&mut self) -> Result<bool> {
        self.selection
            .as_mut()
            .map_or(Ok(false), Selection::end_pass)
    }

    fn memory_of_values(&self) -> usize {
        self.bytes
    }

    fn memory_to_finish(&self) -> usize {
        // They are sorted by group, and the function keeps them once more.
        2 * self.bytes
    }

    fn each_value(&self, take: &mut dyn FnMut(&[u32], &Vector) -> Result<()>) -> Result<()> {
        // Few parts at a time are copied: all of them would take the memory twice.
        let mut rest = &self.parts[..];
        while !rest.is_empty() {
            let mut rows = 0;
            let is_next = |(groups, _): &Part| {
                let fits = rows < AT_ONCE;
                rows += groups.len();
                !fits
            };
            let (some, later) = rest.split_at(rest.iter().position(is_next).unwrap_or(rest.len()));
            let (groups, values) = joined(some, self.ty.kind)?;
            take(&groups, &values)?;
            rest = later;
        }
        Ok(())
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::Counts
    }

    fn called(&self, call: usize, groups: &[u32], ty: &Type) -> Result<Vector> {
        if let Some(selection) = &self.selection {
            let empty = new_empty_array(&self.ty.data);
            return together(&selection.results(call, groups, &empty)?, ty);
        }
        let call = self.calls.get(call).ok_or_else(no_call)?;
        let all = ByGroup::new(&self.parts, self.ty.kind, self.groups)?;
        let mut results: Vec<ArrayRef> = Vec::new();
        let mut rest = groups;
        while !rest.is_empty() {
            let (mut ranges, mut count) = (Vec::new(), 0);
            for group in rest {
                let more = all.count(*group);
                if count > 0 && count + more > AT_ONCE {
                    break;
                }
                ranges.push(count..count + more);
                count += more;
            }
            let (some, later) = rest.split_at(ranges.len());
            rest = later;
            let own = all.values(some)?.decoded(&self.ty)?;
            results.push(call.call(&own, &ranges).map_err(Error::Call)?);
        }
        together(&results, ty)
    }
}

/// The results, some at a time, as one vector.
fn together(results: &[ArrayRef], ty: &Type) -> Result<Vector> {
    let parts: Vec<&dyn arrow::array::Array> = results.iter().map(AsRef::as_ref).collect();
    let all = match &parts[..] {
        [] => new_empty_array(&ty.data),
        parts => concat(parts)?,
    };
    Vector::from_arrow(&all, ty)
}

fn no_call() -> Error {
    Error::internal("a call of nothing")
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{DataType, Int64Type};

    /// The first value times the number of values, NULL without any; or their sum, which folds.
    #[derive(Debug)]
    struct First {
        folds: bool,
    }

    impl AggregateCall for First {
        fn call(
            &self,
            values: &ArrayRef,
            groups: &[Range<usize>],
        ) -> std::result::Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
            let values = values.as_primitive::<Int64Type>();
            let results = groups.iter().map(|group| {
                let first = group.clone().next()?;
                Some(if self.folds {
                    group.clone().map(|row| values.value(row)).sum()
                } else {
                    values.value(first) * group.len() as i64
                })
            });
            Ok(Arc::new(results.collect::<Int64Array>()))
        }

        fn ignores_nulls(&self) -> bool {
            true
        }

        fn folds(&self) -> bool {
            self.folds
        }

        fn name(&self) -> String {
            "first".into()
        }
    }

    fn calls(folds: &[bool]) -> Arc<[Arc<dyn AggregateCall>]> {
        let all = folds.iter();
        all.map(|folds| Arc::new(First { folds: *folds }) as Arc<dyn AggregateCall>)
            .collect()
    }

    #[test]
    fn values_stay_in_order_through_merges_and_spills() {
        let ty = Type::of(&DataType::Int64, true).unwrap();
        let empty = || {
            let mut made = Collected::new(calls(&[false]), 0, ty.clone()).unwrap();
            made.resize(4);
            made
        };
        let vector = |values: &[i64], valid: &[bool]| Vector {
            values: Values::Int(values.to_vec()),
            valid: Some(valid.to_vec()),
        };
        let mut one = empty();
        let some = vector(&[9, 5, 6, 7], &[false, true, true, true]);
        one.add(Some(&[1, 1, 0, 1]), 4, Some(&some)).unwrap();
        let mut two = empty();
        let some = vector(&[8], &[true]);
        two.add(Some(&[0]), 1, Some(&some)).unwrap();
        one.merge(&two, &[0, 1], &[3, 0]).unwrap();
        let mut all = empty();
        one.each_value(&mut |groups, values| all.add(Some(groups), values.len(), Some(values)))
            .unwrap();
        assert!(all.memory() >= 4 * 8);
        let found = all.called(0, &[3, 1, 2, 0], &ty).unwrap();
        let Values::Int(values) = &found.values else {
            panic!("another kind")
        };
        assert_eq!(found.valid, Some(vec![true, true, false, true]));
        assert_eq!([values[0], values[1], values[3]], [8, 10, 6]);
    }

    #[test]
    fn what_folds_keeps_few_values() {
        let ty = Type::of(&DataType::Int64, true).unwrap();
        let mut sums = Collected::new(calls(&[false, true]), 1, ty.clone()).unwrap();
        sums.resize(2);
        let values = Vector::new(Values::Int(vec![1; 2_048]));
        let groups: Vec<u32> = (0..2_048).map(|row| row % 2).collect();
        for _ in 0..100 {
            sums.add(Some(&groups), 2_048, Some(&values)).unwrap();
            assert!(sums.rows <= AT_ONCE);
        }
        let found = sums.called(1, &[0, 1], &ty).unwrap();
        let Values::Int(found) = &found.values else {
            panic!("another kind")
        };
        assert_eq!(found, &[102_400, 102_400]);
    }

    /// The least value times this, NULL without any.
    #[derive(Debug)]
    struct Least(i64);

    impl AggregateCall for Least {
        fn call(
            &self,
            values: &ArrayRef,
            groups: &[Range<usize>],
        ) -> std::result::Result<ArrayRef, Box<dyn std::error::Error + Send + Sync>> {
            let values = values.as_primitive::<Int64Type>();
            let least = |group: &Range<usize>| group.clone().map(|row| values.value(row)).min();
            let results = groups.iter().map(|group| Some(least(group)? * self.0));
            Ok(Arc::new(results.collect::<Int64Array>()))
        }

        fn ignores_nulls(&self) -> bool {
            true
        }

        fn folds(&self) -> bool {
            false
        }

        fn name(&self) -> String {
            "least".into()
        }
    }

    #[test]
    fn several_functions_read_the_same_values() {
        let ty = Type::of(&DataType::Int64, true).unwrap();
        let all = [1, 10].map(|times| Arc::new(Least(times)) as Arc<dyn AggregateCall>);
        let mut values = Collected::new(Arc::new(all), 0, ty.clone()).unwrap();
        values.resize(3);
        let some = Vector::new(Values::Int(vec![7, 3, 5]));
        values.add(Some(&[0, 0, 2]), 3, Some(&some)).unwrap();
        let found = |values: &Collected, call| {
            let found = values.called(call, &[2, 1, 0], &ty).unwrap();
            assert_eq!(found.valid, Some(vec![true, false, true]));
            let Values::Int(values) = found.values else {
                panic!("another kind")
            };
            [values[0], values[2]]
        };
        assert_eq!([found(&values, 0), found(&values, 1)], [[5, 3], [50, 30]]);
        // What comes later is seen, too.
        let some = Vector::new(Values::Int(vec![2, 4]));
        values.add(Some(&[0, 2]), 2, Some(&some)).unwrap();
        assert_eq!([found(&values, 1), found(&values, 0)], [[40, 20], [4, 2]]);
        assert!(values.called(2, &[0], &ty).is_err());
    }
}
