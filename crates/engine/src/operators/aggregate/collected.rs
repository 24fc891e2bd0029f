//! All values of each group, for the functions that the engine has no accumulator for ([`AggregateCall`]).

use std::sync::Arc;

use arrow::array::{ArrayRef, new_empty_array};
use arrow::compute::concat;

use crate::error::{Error, Result};
use crate::logical::aggregate_call::AggregateCall;
use crate::operators::aggregate::accumulator::{AccumulatedValues, Accumulator, same};
use crate::operators::aggregate::by_group::{ByGroup, Part, joined};
use crate::vector::value::{Kind, Type, Values, Vector};

/// Values that a function gets at a time, about.
const AT_ONCE: usize = 1 << 16;

/// The values of each group, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Collected {
    call: Arc<dyn AggregateCall>,
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
}

impl Collected {
    /// No values, of type `ty`, for `call`.
    pub fn new(call: Arc<dyn AggregateCall>, ty: Type) -> Collected {
        Collected {
            call,
            ty,
            parts: vec![],
            bytes: 0,
            rows: 0,
            most: AT_ONCE,
            groups: 0,
        }
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
        if self.rows <= self.most || !self.call.folds() {
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
        let values = self.called(&groups, &self.ty)?;
        self.parts.clear();
        (self.bytes, self.rows) = (0, 0);
        self.most = AT_ONCE.max(2 * groups.len());
        self.push(groups, values);
        Ok(())
    }
}

impl Accumulator for Collected {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        let call = Arc::clone(&self.call);
        Ok(Box::new(Collected::new(call, self.ty.clone())))
    }

    fn resize(&mut self, groups: usize) {
        self.groups = groups;
    }

    fn add(&mut self, groups: Option<&[u32]>, _rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(|| Error::internal("a call without argument"))?;
        let rows = match &vector.valid {
            Some(valid) if self.call.ignores_nulls() && valid.contains(&false) => {
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
        self.bytes
    }

    fn memory_of_values(&self) -> usize {
        self.bytes
    }

    fn distinct_values(&self) -> Result<Option<(Vec<u32>, Vector)>> {
        joined(&self.parts, self.ty.kind).map(Some)
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::Counts
    }

    fn called(&self, groups: &[u32], ty: &Type) -> Result<Vector> {
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
            results.push(self.call.call(&own, &ranges).map_err(Error::Call)?);
        }
        let parts: Vec<&dyn arrow::array::Array> = results.iter().map(AsRef::as_ref).collect();
        let all = match &parts[..] {
            [] => new_empty_array(&ty.data),
            parts => concat(parts)?,
        };
        Vector::from_arrow(&all, ty)
    }
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

    #[test]
    fn values_stay_in_order_through_merges_and_spills() {
        let ty = Type::of(&DataType::Int64, true).unwrap();
        let empty = || {
            let mut made = Collected::new(Arc::new(First { folds: false }), ty.clone());
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
        let (groups, values) = one.distinct_values().unwrap().unwrap();
        all.add(Some(&groups), values.len(), Some(&values)).unwrap();
        assert!(all.memory() >= 4 * 8);
        let found = all.called(&[3, 1, 2, 0], &ty).unwrap();
        let Values::Int(values) = &found.values else {
            panic!("another kind")
        };
        assert_eq!(found.valid, Some(vec![true, true, false, true]));
        assert_eq!([values[0], values[1], values[3]], [8, 10, 6]);
    }

    #[test]
    fn what_folds_keeps_few_values() {
        let ty = Type::of(&DataType::Int64, true).unwrap();
        let mut sums = Collected::new(Arc::new(First { folds: true }), ty.clone());
        sums.resize(2);
        let values = Vector::new(Values::Int(vec![1; 2_048]));
        let groups: Vec<u32> = (0..2_048).map(|row| row % 2).collect();
        for _ in 0..100 {
            sums.add(Some(&groups), 2_048, Some(&values)).unwrap();
            assert!(sums.rows <= AT_ONCE);
        }
        let found = sums.called(&[0, 1], &ty).unwrap();
        let Values::Int(found) = &found.values else {
            panic!("another kind")
        };
        assert_eq!(found, &[102_400, 102_400]);
    }
}
