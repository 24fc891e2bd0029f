//! How many statements run, and for how long some did.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct State {
    running: usize,
    /// When the first of those that run began, or time was last taken.
    since: Option<Instant>,
    /// Time in which statements ran, up to `since`, and not taken yet.
    active: Duration,
    /// When the last one ended.
    ended: Option<Instant>,
    /// How many have.
    count: u64,
    /// Some ran since somebody last looked.
    news: bool,
    stop: bool,
}

/// Statements that run.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    state: Mutex<State>,
    changed: Condvar,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Statements ran for so long since the last time.
    Decide(Duration),
    /// Statements run, or have ended, since the last look; it is not time to decide.
    Look,
    /// None has run for long.
    Rest,
    /// Nobody needs it any more.
    Stop,
}

/// A statement that runs, until it is dropped.
#[derive(Debug)]
#[must_use = "the statement ends when this is dropped"]
pub struct Running(Arc<Activity>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running = state.running.saturating_sub(1);
        state.count += 1;
        state.news = true;
        if state.running == 0 {
            let now = Instant::now();
            if let Some(since) = state.since.take() {
                state.active += now - since;
            }
            state.ended = Some(now);
        }
    }
}

impl Activity {
    pub(crate) fn begin(this: &Arc<Activity>) -> Running {
        let mut state = this.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running += 1;
        if state.running == 1 {
            state.since = Some(Instant::now());
            drop(state);
            this.changed.notify_all();
        }
        Running(this.clone())
    }

    pub(crate) fn stop(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.stop = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until a statement runs; `false` where there is nothing to wait for any more.
    pub(crate) fn wait_for_work(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // One that began and ended before this thread saw it has left news.
        while state.running == 0 && !state.news && !state.stop {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.active = Duration::ZERO;
        state.news = true;
        !state.stop
    }

    /// Statements that have ended.
    pub(crate) fn ended(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count
    }

    /// Waits until statements have run for `period` since the last time it said so, or none has for `rest`; tells
    /// in between that there is something to be looked at, once in a period.
    pub(crate) fn wait(&self, period: Duration, rest: Duration) -> Next {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        loop {
            let now = Instant::now();
            if state.stop {
                return Next::Stop;
            }
            if let Some(since) = state.since.replace(now) {
                state.active += now - since;
            }
            if state.running == 0 {
                state.since = None;
            }
            if state.active >= period {
                state.news = false;
                return Next::Decide(std::mem::take(&mut state.active));
            }
            if now - begun >= period && (state.news || state.running > 0) {
                state.news = false;
                return Next::Look;
            }
            let idle = state.ended.map_or(Duration::ZERO, |ended| now - ended);
            let left = if state.running > 0 {
                period - state.active
            } else if idle >= rest {
                return Next::Rest;
            } else if state.news {
                // Not at once, as it may be one of many.
                period.saturating_sub(now - begun).min(rest - idle)
            } else {
                rest - idle
            };
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_in_which_statements_run_counts() {
        let activity = Arc::new(Activity::default());
        let (period, rest) = (Duration::from_millis(5), Duration::from_millis(20));
        let statement = Activity::begin(&activity);
        let other = Activity::begin(&activity);
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
