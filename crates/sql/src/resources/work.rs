//! What the statements of an engine have done so far, those that run included.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use memory::Traffic;
use parking_lot::Mutex;

/// Statements that run are looked through when so many more have come.
const SWEEP: usize = 64;

/// Tells, in lines for people, what happened since a moment.
type Tell = Box<dyn Fn(Instant) -> Vec<String> + Send + Sync>;

/// Counters of all statements together.
pub(crate) struct Work {
    /// Of those that have ended.
    ended: Traffic,
    running: Mutex<Vec<Arc<Traffic>>>,
    teller: OnceLock<Tell>,
}

impl Work {
    pub(crate) fn new(nodes: usize) -> Work {
        Work {
            ended: Traffic::new(nodes),
            running: Mutex::default(),
            teller: OnceLock::new(),
        }
    }

    /// A statement begins; it has ended when nobody else has its counters any more.
    pub(crate) fn begin(&self, traffic: &Arc<Traffic>) {
        let mut running = self.running.lock();
        if running.len() >= SWEEP && running.len().is_multiple_of(SWEEP) {
            self.sweep(&mut running);
        }
        running.push(Arc::clone(traffic));
    }

    /// Nobody can take the last reference up again, which is this one's.
    fn sweep(&self, running: &mut Vec<Arc<Traffic>>) {
        running.retain(|traffic| {
            let runs = Arc::strong_count(traffic) > 1;
            if !runs {
                self.ended.merge(traffic);
            }
            runs
        });
    }

    /// Bytes that all statements have read, by node of the reader and of the page. Never falls.
    pub(crate) fn bytes(&self) -> Vec<Vec<u64>> {
        let mut running = self.running.lock();
        self.sweep(&mut running);
        let all = Traffic::new(self.ended.nodes());
        all.merge(&self.ended);
        running.iter().for_each(|traffic| all.merge(traffic));
        all.matrix()
    }

    /// Only the first counts.
    pub(crate) fn tell_by(&self, tell: Tell) {
        let _ = self.teller.set(tell);
    }

    /// What `explain analyze` adds of a statement that began then.
    pub(crate) fn told(&self, began: Instant) -> Vec<String> {
        self.teller.get().map_or_else(Vec::new, |tell| tell(began))
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
