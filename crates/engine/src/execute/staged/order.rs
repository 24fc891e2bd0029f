//! Adaptive filter order: reorders filters by the selectivity that is observed while blocks pass.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::RwLock;
use table::{Filter, Form, Gauge};

use crate::execute::open::OpenSource;
use crate::execute::task::PipelineTask;
use crate::expr::is_fallible;
use crate::physical::program::{JoinKind, Operator, Pipeline, Required};
use crate::vector::value::Var;

/// Pieces and blocks after which the order is reconsidered.
const EVERY: u64 = 4;

/// Filters and operators in the order in which blocks go through them.
pub(crate) struct Order {
    /// The filters of the scan.
    pub filters: Arc<[Filter]>,
    pub operators: Vec<Operator>,
    /// As [`Pipeline::live`] of these operators.
    pub live: Vec<Vec<Var>>,
    /// The plan's number of each filter, and of each operator.
    filter_numbers: Vec<usize>,
    operator_numbers: Vec<usize>,
}

/// What was observed of an operator: rows in, rows out and time.
#[derive(Debug, Default)]
struct OperatorCounts {
    tested: AtomicU64,
    passed: AtomicU64,
    nanoseconds: AtomicU64,
}

/// The current order of one pipeline, and what was observed.
pub(crate) struct Orders {
    now: RwLock<Arc<Order>>,
    /// The filters of the plan, each with a gauge of its own.
    filters: Vec<Filter>,
    pipeline: Pipeline,
    required: Required,
    operators: Vec<OperatorCounts>,
    blocks: AtomicU64,
    pub changes: AtomicU64,
}

/// Consecutive operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// Operators that only drop rows and may run in any order.
    Free(Range<usize>),
    Fixed(Range<usize>),
}

/// Splits `operators` into segments. Reordering never moves an operator to another segment.
pub(crate) fn segments(operators: &[Operator]) -> Vec<Segment> {
    let mut all: Vec<Segment> = Vec::new();
    for (number, operator) in operators.iter().enumerate() {
        let next = number + 1;
        match (all.last_mut(), drops(operator)) {
            (Some(Segment::Free(range)), true) | (Some(Segment::Fixed(range)), false) => {
                range.end = next;
            }
            (_, true) => all.push(Segment::Free(number..next)),
            (_, false) => all.push(Segment::Fixed(number..next)),
        }
    }
    all
}

/// Whether an operator only drops rows and cannot fail. Such operators may be reordered: the same rows are left,
/// and no new error can occur.
fn drops(operator: &Operator) -> bool {
    match operator {
        Operator::Filter(e) => !is_fallible(e),
        Operator::Probe(p) => {
            matches!(p.kind, JoinKind::Semi | JoinKind::Anti)
                && p.residual.is_empty()
                && p.build_outputs.is_empty()
                && p.row.is_none()
        }
        Operator::Map(..)
        | Operator::Together(_)
        | Operator::Expand(_)
        | Operator::Nulls(_)
        | Operator::Alias(_) => false,
    }
}

/// Runs of `filters` that may be reordered.
fn free(filters: &[Filter]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (number, filter) in filters.iter().enumerate() {
        if !matches!(
            filter.form,
            Form::Ranges(_) | Form::Labels(_) | Form::Keys(_)
        ) {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

impl Orders {
    /// Starts with the order of the plan.
    pub fn new(task: &PipelineTask) -> Orders {
        let filters: Vec<Filter> = match &task.source {
            OpenSource::Scan { filters, .. } => filters.iter().cloned().map(counted).collect(),
            _ => vec![],
        };
        let operators = &task.pipeline.operators;
        let order = Order {
            filters: filters.clone().into(),
            operators: operators.clone(),
            live: task.live.clone(),
            filter_numbers: (0..filters.len()).collect(),
            operator_numbers: (0..operators.len()).collect(),
        };
        Orders {
            now: RwLock::new(Arc::new(order)),
            filters,
            pipeline: task.pipeline.clone(),
            required: task.live.last().into_iter().flatten().copied().collect(),
            operators: operators
                .iter()
                .map(|_| OperatorCounts::default())
                .collect(),
            blocks: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        }
    }

    /// The current order.
    pub fn now(&self) -> Arc<Order> {
        self.now.read().clone()
    }

    /// Records what the operator at `place` of `order` did to `tested` rows.
    pub fn record(
        &self,
        order: &Order,
        place: usize,
        tested: usize,
        passed: usize,
        begun: Instant,
    ) {
        let seen = &self.operators[order.operator_numbers[place]];
        seen.tested.fetch_add(tested as u64, Ordering::Relaxed);
        seen.passed.fetch_add(passed as u64, Ordering::Relaxed);
        let time = begun.elapsed().as_nanos() as u64;
        seen.nanoseconds.fetch_add(time, Ordering::Relaxed);
    }

    /// Counts a piece opened or a block processed, and reconsiders the order from time to time.
    pub fn reconsider(&self) {
        let blocks = self.blocks.fetch_add(1, Ordering::Relaxed) + 1;
        if !blocks.is_multiple_of(EVERY) {
            return;
        }
        let now = self.now();
        let filter_numbers = self.best_filters(&now);
        let operator_numbers = self.best_operators(&now);
        if filter_numbers == now.filter_numbers && operator_numbers == now.operator_numbers {
            return;
        }
        let operators: Vec<Operator> = operator_numbers
            .iter()
            .map(|n| self.pipeline.operators[*n].clone())
            .collect();
        let pipeline = Pipeline {
            source: self.pipeline.source.clone(),
            operators,
            transfers: self.pipeline.transfers.clone(),
        };
        let order = Order {
            filters: filter_numbers
                .iter()
                .map(|n| self.filters[*n].clone())
                .collect(),
            live: pipeline.live(self.required.clone()),
            operators: pipeline.operators,
            filter_numbers,
            operator_numbers,
        };
        *self.now.write() = Arc::new(order);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Filters by selectivity: the one that lets the smallest share of rows through comes first.
    fn best_filters(&self, now: &Order) -> Vec<usize> {
        let rank = |n: usize| {
            let counts = self.filters[n].gauge.as_ref().map(|gauge| gauge.counts());
            let (tested, passed) = counts.unwrap_or_default();
            (tested > 0).then(|| passed as f64 / tested as f64)
        };
        let mut numbers = now.filter_numbers.clone();
        for run in free(&now.filters) {
            rearrange(&mut numbers[run], rank);
        }
        numbers
    }

    /// Operators by cost: the one with the least time for each row that it drops comes first.
    fn best_operators(&self, now: &Order) -> Vec<usize> {
        let rank = |n: usize| {
            let seen = &self.operators[n];
            let tested = seen.tested.load(Ordering::Relaxed);
            let dropped = tested.saturating_sub(seen.passed.load(Ordering::Relaxed));
            let time = seen.nanoseconds.load(Ordering::Relaxed) as f64;
            // One that drops no row counts as if it had dropped half a row.
            (tested > 0).then(|| time / (dropped as f64).max(0.5))
        };
        let mut numbers = now.operator_numbers.clone();
        for segment in segments(&now.operators) {
            if let Segment::Free(run) = segment {
                rearrange(&mut numbers[run], rank);
            }
        }
        numbers
    }

    /// A line such as `order of filters, changed 2 times: quantity < 24 (46.1 % of 6001215 rows pass), ...`; `None`
    /// for fewer than two.
    pub fn line(&self, names: &[String]) -> Option<String> {
        let now = self.now();
        let mut parts = Vec::new();
        for n in &now.filter_numbers {
            let gauge = self.filters[*n].gauge.as_ref()?;
            let name = names.get(*n).map_or("filter", String::as_str);
            parts.push(share(name, gauge.counts()));
        }
        for segment in segments(&now.operators) {
            let Segment::Free(run) = segment else {
                continue;
            };
            for n in &now.operator_numbers[run] {
                let seen = &self.operators[*n];
                let counts = (
                    seen.tested.load(Ordering::Relaxed),
                    seen.passed.load(Ordering::Relaxed),
                );
                parts.push(share(&format!("operator {n}"), counts));
            }
        }
        if parts.len() < 2 {
            return None;
        }
        let mut line = String::new();
        let changes = self.changes.load(Ordering::Relaxed);
        let _ = write!(line, "    order of filters, changed {changes} times: ");
        line += &parts.join(", ");
        Some(line)
    }
}

/// A part of that line, such as `name (12.5 % of 800 rows pass)`.
fn share(name: &str, (tested, passed): (u64, u64)) -> String {
    let share = 100.0 * passed as f64 / (tested as f64).max(1.0);
    format!("{name} ({share:.1} % of {tested} rows pass)")
}

/// The filter with a gauge that counts how many rows pass, unless it has a gauge already.
fn counted(mut filter: Filter) -> Filter {
    let own = || Arc::new(Gauge::counting());
    filter.gauge = Some(filter.gauge.take().unwrap_or_else(own));
    filter
}

/// Sorts `numbers` by `rank`, if it is known for all of them. Neighbours whose ranks are within a twentieth of each
/// other keep their order, so that noise changes nothing.
fn rearrange(numbers: &mut [usize], rank: impl Fn(usize) -> Option<f64>) {
    if numbers.len() < 2 || numbers.iter().any(|n| rank(*n).is_none()) {
        return;
    }
    let rank = |n: usize| rank(n).unwrap_or(f64::MAX);
    // A bubble sort: there are few of them, and ranks with a tolerance are no total order.
    for end in (1..numbers.len()).rev() {
        for at in 0..end {
            if rank(numbers[at]) > rank(numbers[at + 1]) * 1.05 {
                numbers.swap(at, at + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_selective_comes_first_and_noise_changes_nothing() {
        let ranks = [0.9, 0.1, 0.5, 0.51];
        let mut numbers = [0, 3, 2, 1];
        rearrange(&mut numbers, |n| Some(ranks[n]));
        assert_eq!(numbers, [1, 3, 2, 0]);
        let mut unknown = [0, 1];
        rearrange(&mut unknown, |n| (n == 0).then_some(1.0));
        assert_eq!(unknown, [0, 1]);
    }
}
