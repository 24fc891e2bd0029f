//! The time line of runs: which operator each worker was at, and when.
//!
//! An [`Execution`](crate::Execution) with a [`TimeLine`] notes a *span* for each piece of work: of the streaming and the
//! staged executor whenever a task of an operator had a worker, of the fused executor whenever an operator worked on a vector
//! (which costs a few per cent, as a profile does), and of all of them when a stage is finished. Between its spans a worker
//! was without work, or waited for a device.
//!
//! It is the picture that the elastic paper has from Tomograph, and the LAQ text from a profiler.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Instant;

use parking_lot::Mutex;

/// Most spans that are kept: 48 MB of them.
const MOST: usize = 1 << 20;

/// Notes what workers do while queries run. Clones of an `Arc` of it may be given to any number of queries, also at the same time.
#[derive(Debug)]
pub struct TimeLine {
    begun: Instant,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    operators: Vec<Operator>,
    workers: Vec<Worker>,
    /// The place in `workers` of each thread.
    threads: HashMap<ThreadId, usize>,
    spans: Vec<Span>,
    lost: u64,
}

/// What was noted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noted {
    /// The operators, in the order in which they began.
    pub operators: Vec<Operator>,
    /// The workers that did any of it.
    pub workers: Vec<Worker>,
    /// What they did; those of a worker ascend and do not overlap.
    pub spans: Vec<Span>,
    /// How many more spans there were, which were not kept.
    pub lost: u64,
}

/// An operator of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The stage of its query.
    pub stage: usize,
    /// Its name in `explain analyze`.
    pub name: String,
}

/// A thread that did some of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worker {
    /// The node it was on when it was first seen; none of a thread that is no worker.
    pub node: Option<usize>,
    /// Its number among the workers of its set.
    pub number: Option<usize>,
}

/// A worker was at an operator from one moment to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The place of the worker in [`Noted::workers`].
    pub worker: usize,
    /// The place of the operator in [`Noted::operators`].
    pub operator: usize,
    /// Nanoseconds from the beginning of the time line.
    pub from: u64,
    /// The end, likewise.
    pub to: u64,
}

impl Default for TimeLine {
    /// Begins now.
    fn default() -> TimeLine {
        TimeLine {
            begun: Instant::now(),
            notes: Mutex::default(),
        }
    }
}

/// A thread, as what it did is noted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    thread: ThreadId,
    worker: Worker,
}

impl Seat {
    /// The calling thread.
    pub fn present() -> Seat {
        let here = workers::here();
        Seat {
            thread: std::thread::current().id(),
            worker: Worker {
                node: here.map(|here| here.node),
                number: here.map(|here| here.worker),
            },
        }
    }
}

impl TimeLine {
    /// Adds an operator; its spans have the number that this returns.
    pub(crate) fn operator(&self, stage: usize, name: &str) -> usize {
        let name = name.to_owned();
        let operators = &mut self.notes.lock().operators;
        operators.push(Operator { stage, name });
        operators.len() - 1
    }

    /// Notes that this thread was at these operators, and from when to when.
    pub(crate) fn add(
        &self,
        seat: Seat,
        spans: impl IntoIterator<Item = (usize, Instant, Instant)>,
    ) {
        let notes = &mut *self.notes.lock();
        let next = notes.workers.len();
        let worker = *notes.threads.entry(seat.thread).or_insert(next);
        if worker == next {
            notes.workers.push(seat.worker);
        }
        let nanoseconds = |at: Instant| at.saturating_duration_since(self.begun).as_nanos() as u64;
        for (operator, from, to) in spans {
            if notes.spans.len() == MOST {
                notes.lost += 1;
                continue;
            }
            notes.spans.push(Span {
                worker,
                operator,
                from: nanoseconds(from),
                to: nanoseconds(to),
            });
        }
    }

    /// Replaces the numbers of vectors in operator names, such as `#7`, by what `named` gives for them.
    pub(crate) fn name(&self, named: impl Fn(&str) -> String) {
        for operator in &mut self.notes.lock().operators {
            operator.name = named(&operator.name);
        }
    }

    /// Takes what was noted since the last call. No query may be running.
    pub fn take(&self) -> Noted {
        let mut notes = std::mem::take(&mut *self.notes.lock());
        notes.spans.sort_by_key(|span| (span.worker, span.from));
        // What waited in the middle of a span left its worker to others.
        for at in 1..notes.spans.len() {
            let (earlier, later) = notes.spans.split_at_mut(at);
            if let (Some(earlier), Some(later)) = (earlier.last_mut(), later.first())
                && earlier.worker == later.worker
            {
                earlier.to = earlier.to.min(later.from);
            }
        }
        Noted {
            operators: notes.operators,
            workers: notes.workers,
            spans: notes.spans,
            lost: notes.lost,
        }
    }
}

/// An operator whose spans are noted, or nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timed(Option<(Arc<TimeLine>, usize)>);

impl Timed {
    /// The operator of that name, if there is a time line.
    pub fn new(line: Option<&Arc<TimeLine>>, stage: usize, name: &str) -> Timed {
        Timed(line.map(|line| (line.clone(), line.operator(stage, name))))
    }

    /// `task`, of which a span is noted whenever it has a worker.
    pub async fn over<T>(self, task: impl Future<Output = T>) -> T {
        let Some((line, operator)) = self.0 else {
            return task.await;
        };
        let mut task = std::pin::pin!(task);
        poll_fn(|context| {
            let begun = Instant::now();
            let done = task.as_mut().poll(context);
            line.add(Seat::present(), [(operator, begun, Instant::now())]);
            done
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_noted_whenever_it_runs_and_not_while_it_waits() {
        let line = Arc::new(TimeLine::default());
        let timed = Timed::new(Some(&line), 3, "fold (#1)");
        let wait = std::time::Duration::from_millis(20);
        let task = async {
            tokio::task::yield_now().await;
            7
        };
        let mut task = std::pin::pin!(timed.over(task));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(task.as_mut().poll(&mut context).is_pending());
        std::thread::sleep(wait);
        assert!(task.as_mut().poll(&mut context).is_ready());
        line.name(|name| name.replace("#1", "price"));
        let noted = line.take();
        let operator = Operator {
            stage: 3,
            name: "fold (price)".into(),
        };
        assert_eq!((noted.operators, noted.lost), (vec![operator], 0));
        let [first, second] = noted.spans[..] else {
            panic!("{:?}", noted.spans);
        };
        assert!(second.from - first.to >= wait.as_nanos() as u64);
        assert_eq!(noted.workers.len(), 1, "one thread polled it");
        assert_eq!(noted.workers[0].number, None, "which is no worker");
        assert_eq!(line.take(), Noted::default());
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let line = TimeLine::default();
        let operator = line.operator(0, "sink");
        let now = Instant::now();
        line.add(
            Seat::present(),
            std::iter::repeat_n((operator, now, now), MOST + 5),
        );
        assert_eq!(line.take().lost, 5);
    }
}
