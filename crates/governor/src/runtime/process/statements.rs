//! Counts statements, which begin and end on any thread, and wakes the thread that waits for them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::runtime::activity::{Activity, Next};

/// Statements that run.
#[derive(Debug, Default)]
pub(super) struct Statements {
    activity: Mutex<Activity>,
    changed: Condvar,
}

/// A statement that runs, until it is dropped.
#[derive(Debug)]
#[must_use = "the statement ends when this is dropped"]
pub struct Running(Arc<Statements>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut activity = self.0.lock();
        activity.end(Instant::now());
    }
}

impl Statements {
    fn lock(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(this: &Arc<Statements>) -> Running {
        let mut activity = this.lock();
        let first = activity.begin(Instant::now());
        drop(activity);
        if first {
            this.changed.notify_all();
        }
        Running(this.clone())
    }

    pub(super) fn stop(&self) {
        self.lock().stop();
        self.changed.notify_all();
    }

    /// Waits until a statement runs; `false` if waiting is over for good.
    pub(super) fn wait_for_work(&self) -> bool {
        let mut activity = self.lock();
        while activity.rests() {
            let woken = self.changed.wait(activity);
            activity = woken.unwrap_or_else(PoisonError::into_inner);
        }
        activity.resume()
    }

    /// Statements that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.lock().ended()
    }

    /// Waits until statements have run for `period` since the last decision, or until none has run for `rest`. In
    /// between it returns once per period so that the caller can look.
    pub(super) fn wait(&self, period: Duration, rest: Duration) -> Next {
        let mut activity = self.lock();
        let begun = Instant::now();
        loop {
            match activity.next(begun, Instant::now(), period, rest) {
                Ok(next) => return next,
                Err(left) => {
                    let woken = self.changed.wait_timeout(activity, left);
                    activity = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_in_which_statements_run_counts() {
        let activity = Arc::new(Statements::default());
        let (period, rest) = (Duration::from_millis(5), Duration::from_millis(20));
        let statement = Statements::begin(&activity);
        let other = Statements::begin(&activity);
        assert!(activity.wait_for_work());
        drop(other);
        let Next::Decide(active) = activity.wait(period, rest) else {
            panic!("a statement runs");
        };
        assert!(active >= period);
        drop(statement);
        // The little that the statement ran since is less than a period, or it is told first.
        let next = activity.wait(period, rest);
        assert_eq!(activity.ended(), 2);
        let next = match next {
            Next::Decide(_) | Next::Look => activity.wait(period, rest),
            next => next,
        };
        assert_eq!(next, Next::Rest);
        activity.stop();
        assert_eq!(activity.wait(period, rest), Next::Stop);
        assert!(!activity.wait_for_work());
    }
}
