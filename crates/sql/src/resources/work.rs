//! Bytes that the statements of an instance have read so far.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use memory::Traffic;
use parking_lot::Mutex;

/// The list of running statements is swept each time it has grown by so many.
const SWEEP: usize = 64;

/// Reports what happened since a moment, a line each.
type Report = Box<dyn Fn(Instant) -> Vec<String> + Send + Sync>;

/// Counters of all statements together.
pub(crate) struct Work {
    /// Of the statements that have ended.
    ended: Traffic,
    running: Mutex<Vec<Arc<Traffic>>>,
    reporter: OnceLock<Report>,
}

impl Work {
    pub(crate) fn new(nodes: usize) -> Work {
        Work {
            ended: Traffic::new(nodes),
            running: Mutex::default(),
            reporter: OnceLock::new(),
        }
    }

    /// Registers the counters of a statement that begins. It has ended once no one else holds them.
    pub(crate) fn begin(&self, traffic: &Arc<Traffic>) {
        let mut running = self.running.lock();
        if running.len() >= SWEEP && running.len().is_multiple_of(SWEEP) {
            self.sweep(&mut running);
        }
        running.push(Arc::clone(traffic));
    }

    /// Moves the counters of ended statements from `running` to `ended`. Where this is the last reference, no other can
    /// come to be.
    fn sweep(&self, running: &mut Vec<Arc<Traffic>>) {
        running.retain(|traffic| {
            let runs = Arc::strong_count(traffic) > 1;
            if !runs {
                self.ended.merge(traffic);
            }
            runs
        });
    }

    /// Bytes that all statements have read, by node of the reader (row) and of the page (column). The numbers never
    /// fall.
    pub(crate) fn bytes(&self) -> Vec<Vec<u64>> {
        let mut running = self.running.lock();
        self.sweep(&mut running);
        let all = Traffic::new(self.ended.nodes());
        all.merge(&self.ended);
        running.iter().for_each(|traffic| all.merge(traffic));
        all.matrix()
    }

    /// Sets what [`report`](Work::report) reports. Only the first call has an effect.
    pub(crate) fn report_with(&self, report: Report) {
        let _ = self.reporter.set(report);
    }

    /// The lines that `explain analyze` adds for a statement that began then.
    pub(crate) fn report(&self, began: Instant) -> Vec<String> {
        self.reporter
            .get()
            .map_or_else(Vec::new, |report| report(began))
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_statements_stay_when_they_end() {
        let work = Work::new(2);
        for statement in 1..=200 {
            let traffic = Arc::new(Traffic::new(2));
            work.begin(&traffic);
            traffic.add(1, 0, 10);
            assert_eq!(work.bytes()[1][0], statement * 10);
        }
        assert!(work.running.lock().is_empty() || work.bytes()[1][0] == 2000);
        for _ in 0..1000 {
            work.begin(&Arc::new(Traffic::new(2)));
        }
        assert!(
            work.running.lock().len() <= 2 * SWEEP,
            "bounded by those that run"
        );
    }
}
