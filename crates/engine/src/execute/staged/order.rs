//! The order of filters, and how it follows what they let through.

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

/// Pieces and blocks after which the order is looked at again.
const EVERY: u64 = 4;

/// Filters and steps in the order in which blocks go through them.
pub(crate) struct Order {
    /// Of the scan.
    pub filters: Arc<[Filter]>,
    pub steps: Vec<Operator>,
    /// As [`Pipeline::live`] tells of the steps.
    pub live: Vec<Vec<Var>>,
    /// Which filter, and which step, of the plan stands where.
    filter_numbers: Vec<usize>,
    step_numbers: Vec<usize>,
}

/// How many rows came to a step, how many it left, and how long it took.
#[derive(Debug, Default)]
struct Seen {
    tested: AtomicU64,
    passed: AtomicU64,
    nanoseconds: AtomicU64,
}

/// The order of one pipeline.
pub(crate) struct Orders {
    now: RwLock<Arc<Order>>,
    /// Those of the plan, each with a gauge of its own.
    filters: Vec<Filter>,
    pipe: Pipeline,
    need: Required,
    steps: Vec<Seen>,
    blocks: AtomicU64,
    pub changes: AtomicU64,
}

/// What follows one another and may be exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// Steps that only drop rows, in any order.
    Free(Range<usize>),
    Fixed(Range<usize>),
}

/// `steps` as segments. An exchange of steps never moves one to another segment.
pub(crate) fn segments(steps: &[Operator]) -> Vec<Segment> {
    let mut all: Vec<Segment> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let next = number + 1;
        match (all.last_mut(), drops(step)) {
            (Some(Segment::Free(range)), true) | (Some(Segment::Fixed(range)), false) => {
                range.end = next;
            }
            (_, true) => all.push(Segment::Free(number..next)),
            (_, false) => all.push(Segment::Fixed(number..next)),
        }
    }
    all
}

/// Whether a step does nothing but drop rows, and cannot fail: in another order of such steps the same rows are
/// left, and no error comes that did not come before.
fn drops(step: &Operator) -> bool {
    match step {
        Operator::Filter(e) => !is_fallible(e),
        Operator::Probe(p) => {
            matches!(p.kind, JoinKind::Semi | JoinKind::Anti)
                && p.residual.is_empty()
                && p.build_outputs.is_empty()
                && p.row.is_none()
        }
        Operator::Map(..) | Operator::Nulls(_) | Operator::Alias(_) => false,
    }
}

/// Runs of `filters` that may be exchanged.
fn free(filters: &[Filter]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (number, filter) in filters.iter().enumerate() {
        if !matches!(filter.form, Form::Ranges(_) | Form::Labels(_)) {
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
    /// That of the plan.
    pub fn new(task: &PipelineTask) -> Orders {
        let filters: Vec<Filter> = match &task.source {
            OpenSource::Scan { filters, .. } => filters.iter().cloned().map(counted).collect(),
            _ => vec![],
        };
        let steps = &task.pipe.steps;
        let order = Order {
            filters: filters.clone().into(),
            steps: steps.clone(),
            live: task.live.clone(),
            filter_numbers: (0..filters.len()).collect(),
            step_numbers: (0..steps.len()).collect(),
        };
        Orders {
            now: RwLock::new(Arc::new(order)),
            filters,
            pipe: task.pipe.clone(),
            need: task.live.last().into_iter().flatten().copied().collect(),
            steps: steps.iter().map(|_| Seen::default()).collect(),
            blocks: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        }
    }

    /// The present order.
    pub fn now(&self) -> Arc<Order> {
        self.now.read().clone()
    }

    /// Notes what the step at `place` of `order` did to `tested` rows.
    pub fn saw(&self, order: &Order, place: usize, tested: usize, passed: usize, begun: Instant) {
        let seen = &self.steps[order.step_numbers[place]];
        seen.tested.fetch_add(tested as u64, Ordering::Relaxed);
        seen.passed.fetch_add(passed as u64, Ordering::Relaxed);
        let time = begun.elapsed().as_nanos() as u64;
        seen.nanoseconds.fetch_add(time, Ordering::Relaxed);
    }

    /// One more piece was opened, or block processed: now and then the order is changed to what was seen.
    pub fn seen(&self) {
        let blocks = self.blocks.fetch_add(1, Ordering::Relaxed) + 1;
        if !blocks.is_multiple_of(EVERY) {
            return;
        }
        let now = self.now();
        let filter_numbers = self.best_filters(&now);
        let step_numbers = self.best_steps(&now);
        if filter_numbers == now.filter_numbers && step_numbers == now.step_numbers {
            return;
        }
        let steps: Vec<Operator> = step_numbers
            .iter()
            .map(|n| self.pipe.steps[*n].clone())
            .collect();
        let pipe = Pipeline {
            source: self.pipe.source.clone(),
            steps,
        };
        let order = Order {
            filters: filter_numbers
                .iter()
                .map(|n| self.filters[*n].clone())
                .collect(),
            live: pipe.live(self.need.clone()),
            steps: pipe.steps,
            filter_numbers,
            step_numbers,
        };
        *self.now.write() = Arc::new(order);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// What lets the fewest rows through comes first.
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

    /// What costs least for each row that it drops comes first.
    fn best_steps(&self, now: &Order) -> Vec<usize> {
        let rank = |n: usize| {
            let seen = &self.steps[n];
            let tested = seen.tested.load(Ordering::Relaxed);
            let dropped = tested.saturating_sub(seen.passed.load(Ordering::Relaxed));
            let time = seen.nanoseconds.load(Ordering::Relaxed) as f64;
            // Whoever drops none is as if it dropped half a row.
            (tested > 0).then(|| time / (dropped as f64).max(0.5))
        };
        let mut numbers = now.step_numbers.clone();
        for segment in segments(&now.steps) {
            if let Segment::Free(run) = segment {
                rearrange(&mut numbers[run], rank);
            }
        }
        numbers
    }

    /// `order changed 2 times: quantity < 24 (46.1 % of 6001215 rows pass), ...`
    pub fn line(&self, names: &[String]) -> Option<String> {
        let now = self.now();
        let mut parts = Vec::new();
        for n in &now.filter_numbers {
            let gauge = self.filters[*n].gauge.as_ref()?;
            let name = names.get(*n).map_or("filter", String::as_str);
            parts.push(share(name, gauge.counts()));
        }
        for segment in segments(&now.steps) {
            let Segment::Free(run) = segment else {
                continue;
            };
            for n in &now.step_numbers[run] {
                let seen = &self.steps[*n];
                let counts = (
                    seen.tested.load(Ordering::Relaxed),
                    seen.passed.load(Ordering::Relaxed),
                );
                parts.push(share(&format!("step {n}"), counts));
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

/// `name (12.5 % of 800 rows pass)`
fn share(name: &str, (tested, passed): (u64, u64)) -> String {
    let share = 100.0 * passed as f64 / (tested as f64).max(1.0);
    format!("{name} ({share:.1} % of {tested} rows pass)")
}

/// The same filter, which tells how many rows pass, unless it may be skipped for that.
fn counted(mut filter: Filter) -> Filter {
    let own = || Arc::new(Gauge::counting());
    filter.gauge = Some(filter.gauge.take().unwrap_or_else(own));
    filter
}

/// Sorts `numbers` by `rank`, if that is known of all of them; those whose ranks are within a twentieth of each
/// other keep their places, so that noise changes nothing.
fn rearrange(numbers: &mut [usize], rank: impl Fn(usize) -> Option<f64>) {
    if numbers.len() < 2 || numbers.iter().any(|n| rank(*n).is_none()) {
        return;
    }
    let rank = |n: usize| rank(n).unwrap_or(f64::MAX);
    // Few enough for the simplest way, which needs no total order.
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
