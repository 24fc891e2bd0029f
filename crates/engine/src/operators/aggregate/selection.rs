//! Selection: quantiles of values that do not fit in memory, by passes over them.
//!
//! A pass counts the values outside of some bounds, and keeps those between them: all, or each so many-th as a sample. The sample
//! says which closer bounds have the place of the quantile between them. Ten million values take three passes, whatever they are:
//! what many of them are equal to becomes a bound, and is counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar, UInt32Array};
use arrow::compute::kernels::cmp::{gt, lt, lt_eq};
use arrow::compute::{and, concat, filter, is_not_null, sort_to_indices, take};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::logical::aggregate_call::{AggregateCall, Quantile};

/// Values that are kept in a pass, and their bytes: with more, each second is dropped.
const MOST: usize = 1 << 18;
const MOST_BYTES: usize = 8 << 20;
/// So many values are kept however long they are: of fewer no place can be told.
const LEAST: usize = 64;

/// The quantiles that some functions want of each group.
#[derive(Debug)]
pub(crate) struct Selection {
    calls: Arc<[Arc<dyn AggregateCall>]>,
    /// The numbers of the functions.
    wanted: Vec<usize>,
    /// By function and group.
    searches: BTreeMap<(usize, u32), Search>,
    /// How many values a search keeps.
    most: usize,
}

impl Selection {
    /// For the functions `wanted` of `calls`; `None` if one is no quantile.
    pub fn new(calls: Arc<[Arc<dyn AggregateCall>]>, wanted: &[usize]) -> Option<Selection> {
        let is_quantile = |call: &usize| {
            let call = calls.get(*call);
            call.is_some_and(|call| call.quantile().is_some())
        };
        (!wanted.is_empty() && wanted.iter().all(is_quantile)).then(|| Selection {
            calls,
            wanted: wanted.to_vec(),
            searches: BTreeMap::new(),
            most: MOST,
        })
    }

    /// Adds values in a pass, the i-th to group `groups[i]`.
    ///
    /// # Errors
    /// Those of the functions and of Arrow.
    pub fn add(&mut self, groups: Option<&[u32]>, values: &ArrayRef) -> Result<()> {
        for call in &self.wanted {
            let ranked = quantile(&self.calls, *call)?.ranked(values);
            let ranked = ranked.map_err(Error::Call)?;
            for (group, rows) in by_group(groups, values.len()) {
                let own = match rows {
                    None => Arc::clone(&ranked),
                    Some(rows) => take(&ranked, &rows, None)?,
                };
                let own = filter(&own, &is_not_null(&own)?)?;
                let search = self.searches.entry((*call, group)).or_default();
                search.add(&own, self.most)?;
            }
        }
        Ok(())
    }

    /// Ends a pass over all values; whether there must be another one.
    ///
    /// # Errors
    /// Those of Arrow.
    pub fn end_pass(&mut self) -> Result<bool> {
        let mut is_open = false;
        for ((call, _), search) in &mut self.searches {
            let quantile = quantile(&self.calls, *call)?;
            is_open |= search.end_pass(|count| quantile.places(count))?;
        }
        Ok(is_open)
    }

    /// The results of the function `call` for `groups`, once no pass is left.
    ///
    /// # Errors
    /// Those of the function and of Arrow; an internal error before.
    pub fn results(&self, call: usize, groups: &[u32], empty: &ArrayRef) -> Result<Vec<ArrayRef>> {
        let quantile = quantile(&self.calls, call)?;
        let result = |group: &u32| {
            let search = self.searches.get(&(call, *group));
            let found = search.and_then(|search| Some((search.places?, search)));
            let result = match found {
                Some(((low, high), search)) => {
                    let (low, high) = (search.at(low)?, search.at(high)?);
                    let both = concat(&[low.as_ref(), high.as_ref()])?;
                    quantile.result(&both, search.count)
                }
                None => self.calls[call].call(empty, std::slice::from_ref(&(0..0))),
            };
            result.map_err(Error::Call)
        };
        groups.iter().map(result).collect()
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        self.searches.values().map(Search::bytes).sum()
    }
}

fn quantile(calls: &[Arc<dyn AggregateCall>], call: usize) -> Result<&dyn Quantile> {
    let call = calls.get(call).and_then(|call| call.quantile());
    call.ok_or_else(|| Error::internal("a selection of what is no quantile"))
}

/// The groups that occur, each with its rows; without rows if there is only one.
fn by_group(groups: Option<&[u32]>, rows: usize) -> Vec<(u32, Option<UInt32Array>)> {
    let Some(groups) = groups else {
        return vec![(0, None)];
    };
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (row, group) in groups[..rows].iter().enumerate() {
        all.entry(*group).or_default().push(row as u32);
    }
    let all = all.into_iter();
    all.map(|(group, rows)| (group, Some(rows.into())))
        .collect()
}

/// The search for the values at one or two places among all values in ascending order.
#[derive(Debug)]
struct Search {
    /// How many values there are, once a pass has ended.
    count: usize,
    places: Option<(usize, usize)>,
    found: BTreeMap<usize, ArrayRef>,
    /// The values that this pass is about lie between these two, of one value each, and equal neither.
    low: Option<ArrayRef>,
    high: Option<ArrayRef>,
    /// The place that is looked for, and bounds that its value is known to lie between.
    sought: usize,
    outer: (Option<ArrayRef>, Option<ArrayRef>),
    /// The values less than `low`, and those not greater; the same of `high`. All are less than a bound that is not there.
    below: usize,
    to_low: usize,
    before_high: usize,
    to_high: usize,
    /// Each `stride`-th of the values between the bounds.
    kept: Vec<ArrayRef>,
    kept_rows: usize,
    stride: usize,
    /// How many values between the bounds came.
    inside: usize,
}

impl Default for Search {
    fn default() -> Search {
        Search {
            count: 0,
            places: None,
            found: BTreeMap::new(),
            low: None,
            high: None,
            sought: 0,
            outer: (None, None),
            below: 0,
            to_low: 0,
            before_high: 0,
            to_high: 0,
            kept: vec![],
            kept_rows: 0,
            stride: 1,
            inside: 0,
        }
    }
}

impl Search {
    fn add(&mut self, values: &ArrayRef, most: usize) -> Result<()> {
        let mut between: Option<BooleanArray> = None;
        if let Some(low) = &self.low {
            let low = Scalar::new(Arc::clone(low));
            self.below += lt(values, &low)?.true_count();
            let greater = gt(values, &low)?;
            self.to_low += values.len() - greater.true_count();
            between = Some(greater);
        }
        if let Some(high) = &self.high {
            let high = Scalar::new(Arc::clone(high));
            let less = lt(values, &high)?;
            self.before_high += less.true_count();
            self.to_high += lt_eq(values, &high)?.true_count();
            between = Some(match between {
                Some(greater) => and(&greater, &less)?,
                None => less,
            });
        } else {
            self.before_high += values.len();
            self.to_high += values.len();
        }
        let inside = match between {
            Some(between) => filter(values, &between)?,
            None => Arc::clone(values),
        };
        let first = self.inside.next_multiple_of(self.stride) - self.inside;
        self.inside += inside.len();
        self.keep(each(&inside, first, self.stride)?);
        while self.kept_rows > most || self.kept_rows > LEAST && self.bytes() > MOST_BYTES {
            let all = self.all_kept()?;
            self.stride *= 2;
            (self.kept, self.kept_rows) = (vec![], 0);
            self.keep(each(&all, 0, 2)?);
        }
        Ok(())
    }

    fn keep(&mut self, values: ArrayRef) {
        self.kept_rows += values.len();
        if !values.is_empty() {
            self.kept.push(values);
        }
    }

    fn bytes(&self) -> usize {
        let kept = self.kept.iter();
        kept.map(|kept| kept.get_array_memory_size()).sum()
    }

    fn all_kept(&self) -> Result<ArrayRef> {
        let parts: Vec<&dyn Array> = self.kept.iter().map(AsRef::as_ref).collect();
        Ok(concat(&parts)?)
    }

    /// Takes the values that are known by now; if one is not, sets closer bounds and returns true.
    fn end_pass(&mut self, places: impl Fn(usize) -> Option<(usize, usize)>) -> Result<bool> {
        if self.count == 0 {
            self.count = self.to_high;
            self.places = places(self.count).filter(|_| self.count > 0);
        }
        let Some((low, high)) = self.places else {
            return Ok(false);
        };
        let mut sorted = None;
        if self.kept_rows > 0 {
            let all = self.all_kept()?;
            sorted = Some(take(&all, &sort_to_indices(&all, None, None)?, None)?);
        }
        (self.kept, self.kept_rows) = (vec![], 0);
        for place in [low, high] {
            if let Some(found) = self.known(place, sorted.as_ref()) {
                self.found.insert(place, compact(found));
            }
        }
        let open = [low, high].into_iter();
        let mut open = open.filter(|place| !self.found.contains_key(place));
        if let Some(place) = open.next() {
            self.narrow(place, sorted);
            return Ok(true);
        }
        Ok(false)
    }

    /// The value at `place` of all, if this pass tells it.
    fn known(&self, place: usize, sorted: Option<&ArrayRef>) -> Option<ArrayRef> {
        if (self.below..self.to_low).contains(&place) {
            return self.low.clone();
        }
        if (self.before_high.max(self.to_low)..self.to_high).contains(&place) {
            return self.high.clone();
        }
        let is_inside = (self.to_low..self.before_high).contains(&place);
        let sorted = sorted.filter(|_| is_inside && self.stride == 1)?;
        Some(sorted.slice(place - self.to_low, 1))
    }

    /// Sets the bounds between which `place` is expected. One of them is a value of the sample, so that fewer values are between them
    /// than before.
    fn narrow(&mut self, place: usize, sorted: Option<ArrayRef>) {
        if self.sought != place {
            (self.sought, self.outer) = (place, (None, None));
        }
        if place < self.below {
            self.high = self.low.take();
            self.low = self.outer.0.clone();
        } else if place >= self.to_high {
            self.low = self.high.take();
            self.high = self.outer.1.clone();
        } else if let Some(sample) = sorted {
            self.outer = (self.low.clone(), self.high.clone());
            // Four times by what the place is wrong (the standard deviation) at most.
            let margin = (2.0 * (sample.len() as f64).sqrt()) as usize;
            let margin = margin.min(sample.len() / 4);
            let at = (place - self.to_low.min(place)) / self.stride;
            if let Some(low) = at.checked_sub(margin).filter(|low| *low < sample.len()) {
                self.low = Some(compact(sample.slice(low, 1)));
            }
            if at + margin < sample.len() {
                self.high = Some(compact(sample.slice(at + margin, 1)));
            }
        }
        (self.below, self.to_low, self.before_high, self.to_high) = (0, 0, 0, 0);
        (self.stride, self.inside) = (1, 0);
    }

    fn at(&self, place: usize) -> Result<&ArrayRef> {
        let found = self.found.get(&place);
        found.ok_or_else(|| Error::internal("a quantile that was not found"))
    }
}

/// Each `stride`-th of some values, from the `first` on, in memory of its own.
fn each(values: &ArrayRef, first: usize, stride: usize) -> Result<ArrayRef> {
    if stride == 1 {
        return Ok(compact(Arc::clone(values)));
    }
    let rows = (first..values.len()).step_by(stride).map(|row| row as u32);
    let rows: UInt32Array = rows.collect::<Vec<u32>>().into();
    Ok(compact(take(values, &rows, None)?))
}

/// The values without the texts of others.
fn compact(values: ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Utf8View => Arc::new(values.as_string_view().gc()),
        _ => values,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use arrow::array::{Float64Array, Int64Array, StringViewArray};

    use super::*;

    /// The values at two neighbouring places, as a text.
    #[derive(Debug)]
    struct Pair(f64);

    type Called<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

    impl AggregateCall for Pair {
        fn call(&self, _: &ArrayRef, groups: &[Range<usize>]) -> Called<ArrayRef> {
            Ok(Arc::new(StringViewArray::from(vec![
                None::<&str>;
                groups.len()
            ])))
        }

        fn ignores_nulls(&self) -> bool {
            false
        }

        fn folds(&self) -> bool {
            false
        }

        fn name(&self) -> String {
            "pair".into()
        }

        fn quantile(&self) -> Option<&dyn Quantile> {
            Some(self)
        }
    }

    impl Quantile for Pair {
        fn ranked(&self, values: &ArrayRef) -> Called<ArrayRef> {
            Ok(Arc::clone(values))
        }

        fn places(&self, count: usize) -> Option<(usize, usize)> {
            let place = self.0 * (count.checked_sub(1)?) as f64;
            Some((place.floor() as usize, place.ceil() as usize))
        }

        fn result(&self, both: &ArrayRef, count: usize) -> Called<ArrayRef> {
            let text = format!("{both:?} of {count}");
            Ok(Arc::new(StringViewArray::from(vec![text])))
        }
    }

    /// What several passes over `values`, some at a time, give for the group 1 and the fraction, keeping few; and the number of passes.
    fn found(values: &ArrayRef, fraction: f64, most: usize) -> (String, usize) {
        let calls: Arc<[Arc<dyn AggregateCall>]> = Arc::new([Arc::new(Pair(fraction)) as _]);
        let mut selection = Selection::new(calls, &[0]).unwrap();
        selection.most = most;
        let mut passes = 0;
        loop {
            for begin in (0..values.len()).step_by(1_000) {
                let some = values.slice(begin, 1_000.min(values.len() - begin));
                let groups = vec![1; some.len()];
                selection.add(Some(&groups), &some).unwrap();
            }
            passes += 1;
            assert!(passes < 30, "{fraction} of {values:?}");
            if !selection.end_pass().unwrap() {
                break;
            }
        }
        let results = selection.results(0, &[1], &values.slice(0, 0)).unwrap();
        let results = results[0].as_string_view();
        (
            results.iter().next().flatten().unwrap_or("none").into(),
            passes,
        )
    }

    fn wanted(values: &ArrayRef, fraction: f64) -> String {
        let values = filter(values, &is_not_null(values).unwrap()).unwrap();
        let Some((low, high)) = Pair(fraction).places(values.len()) else {
            return "none".into();
        };
        let picks = sort_to_indices(&values, None, None).unwrap();
        let picks: Vec<u32> = [low, high].map(|place| picks.value(place)).into();
        let both = take(&values, &UInt32Array::from(picks), None).unwrap();
        format!("{both:?} of {}", values.len())
    }

    #[test]
    fn passes_find_what_a_sort_finds() {
        let numbers = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
            Arc::new((0..20_000).map(of).collect::<Int64Array>())
        };
        let nulls = (0..20_000).map(|row| (row % 3 > 0).then_some(row * 7_919 % 20_011));
        let floats = (0..20_000).map(|row| match row % 5 {
            0 => f64::NAN,
            1 => f64::NEG_INFINITY,
            2 => -0.0,
            _ => f64::from(row * 31 % 1_009) / 8.0,
        });
        let texts =
            (0..20_000).map(|row| format!("a long text of number {}", row * 7_919 % 20_011));
        // Few of which are as many bytes as may be kept.
        let long = (0..900).map(|row| format!("{:<60000}", row * 7_919 % 907));
        let all: Vec<ArrayRef> = vec![
            numbers(&|row| row * 7_919 % 20_011),
            numbers(&|row| row),
            numbers(&|row| -row),
            numbers(&|_| 4),
            numbers(&|row| (row % 2) * 1_000 + row % 3),
            // Where a sample of each second value is wrong.
            numbers(&|row| if row % 2 == 0 { 5 } else { row }),
            numbers(&|row| if row % 64 == 0 { row } else { -row }),
            Arc::new(nulls.collect::<Int64Array>()),
            Arc::new(floats.collect::<Float64Array>()),
            Arc::new(StringViewArray::from_iter_values(texts)),
            Arc::new(StringViewArray::from_iter_values(long)),
            Arc::new(Int64Array::from(vec![None::<i64>; 3_000])),
            Arc::new(Int64Array::from(vec![9])),
        ];
        for values in &all {
            for fraction in [0.0, 0.25, 0.3333, 0.5, 0.99, 1.0] {
                for most in [LEAST, 500, MOST] {
                    let (own, passes) = found(values, fraction, most);
                    assert_eq!(own, wanted(values, fraction), "{fraction} with {most}");
                    let is_long = values.get_array_memory_size() > MOST_BYTES;
                    assert!(most < values.len() || is_long || passes == 1);
                }
            }
        }
    }

    #[test]
    fn groups_are_searched_by_themselves() {
        let calls: Arc<[Arc<dyn AggregateCall>]> =
            Arc::new([Arc::new(Pair(0.0)) as _, Arc::new(Pair(1.0)) as _]);
        let mut selection = Selection::new(Arc::clone(&calls), &[1, 0]).unwrap();
        let values: ArrayRef = Arc::new(Int64Array::from(vec![5, 6, 7, 8]));
        selection.add(Some(&[0, 2, 0, 2]), &values).unwrap();
        assert!(!selection.end_pass().unwrap());
        assert!(selection.memory() > 0 || selection.searches.len() == 4);
        let results = |call| {
            let empty = values.slice(0, 0);
            let results = selection.results(call, &[2, 1, 0], &empty).unwrap();
            let texts = results.iter().map(|own| own.as_string_view());
            let texts = texts.map(|own| own.iter().next().flatten().map(str::len));
            texts.collect::<Vec<_>>()
        };
        assert!(results(0)[0].is_some() && results(0)[1].is_none());
        assert!(results(1)[2].is_some());
        assert!(Selection::new(calls, &[2]).is_none());
    }
}
