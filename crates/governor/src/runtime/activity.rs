//! How many statements run, and for how long at least one did. Times are arguments.

use std::time::{Duration, Instant};

/// Statements that run.
#[derive(Debug, Default)]
pub(super) struct Activity {
    running: usize,
    /// Since when statements have been running without a pause, or when their time was last taken.
    since: Option<Instant>,
    /// Time in which statements ran, up to `since`, and not taken yet.
    active: Duration,
    /// When the last statement ended.
    ended: Option<Instant>,
    /// How many statements have ended.
    count: u64,
    /// Whether statements ran since the last look.
    news: bool,
    /// Whether the governing thread looks again within a period, or is about to.
    looks: bool,
    stop: bool,
}

/// What the governing thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Decide: statements ran for this long since the last decision.
    Decide(Duration),
    /// Look: statements ran since the last look, but it is not yet time to decide.
    Look,
    /// Rest: no statement has run for long.
    Rest,
    /// End: governing is over.
    Stop,
}

impl Activity {
    /// Counts a statement that begins; `true` if the governing thread is to be woken: it is the only one that runs, and the
    /// thread does not look within a period by itself. Short statements one after the other do not wake it each.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        self.running += 1;
        let first = self.running == 1;
        if first {
            self.since = Some(now);
        }
        first && !self.looks
    }

    /// Counts a statement that ends.
    pub(super) fn end(&mut self, now: Instant) {
        self.running = self.running.saturating_sub(1);
        self.count += 1;
        self.news = true;
        if self.running == 0 {
            if let Some(since) = self.since.take() {
                self.active += now - since;
            }
            self.ended = Some(now);
        }
    }

    /// Ends the waiting for good.
    pub(super) fn stop(&mut self) {
        self.stop = true;
    }

    /// Whether there is nothing to look at. A statement that began and ended unseen is something to look at.
    pub(super) fn rests(&self) -> bool {
        self.running == 0 && !self.news && !self.stop
    }

    /// Counts time from here on; `false` if governing is over.
    pub(super) fn resume(&mut self) -> bool {
        self.active = Duration::ZERO;
        self.news = true;
        !self.stop
    }

    /// Statements that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.count
    }

    /// What a thread that has waited since `begun` does next: it decides once statements have run for `period` since
    /// the last decision, rests once none has run for `rest`, and in between looks once per period.
    ///
    /// # Errors
    ///
    /// How long to wait, if there is nothing to do yet.
    pub(super) fn next(
        &mut self,
        begun: Instant,
        now: Instant,
        period: Duration,
        rest: Duration,
    ) -> Result<Next, Duration> {
        let next = self.what_is_next(begun, now, period, rest);
        self.looks = match next {
            Ok(next) => next != Next::Rest,
            Err(left) => left <= period,
        };
        next
    }

    fn what_is_next(
        &mut self,
        begun: Instant,
        now: Instant,
        period: Duration,
        rest: Duration,
    ) -> Result<Next, Duration> {
        if self.stop {
            return Ok(Next::Stop);
        }
        if let Some(since) = self.since.replace(now) {
            self.active += now - since;
        }
        if self.running == 0 {
            self.since = None;
        }
        if self.active >= period {
            self.news = false;
            return Ok(Next::Decide(std::mem::take(&mut self.active)));
        }
        if now - begun >= period && (self.news || self.running > 0) {
            self.news = false;
            return Ok(Next::Look);
        }
        let idle = self.ended.map_or(Duration::ZERO, |ended| now - ended);
        if self.running > 0 {
            Err(period - self.active)
        } else if idle >= rest {
            Ok(Next::Rest)
        } else if self.news {
            // Not at once, as it may be one of many.
            Err(period.saturating_sub(now - begun).min(rest - idle))
        } else {
            Err(rest - idle)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(50);
    const REST: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_next_follows_from_the_times_alone() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let ms = Duration::from_millis;
        let mut activity = Activity::default();
        assert!(activity.rests());
        assert!(activity.begin(at(0)) && !activity.begin(at(5)));
        assert!(!activity.rests() && activity.resume());
        assert_eq!(activity.next(at(5), at(10), PERIOD, REST), Err(ms(40)));
        activity.end(at(20));
        assert_eq!(
            activity.next(at(5), at(50), PERIOD, REST),
            Ok(Next::Decide(ms(50)))
        );
        // The other one ends after 10 ms more, and is told at the end of the period.
        activity.end(at(60));
        assert_eq!(activity.next(at(50), at(70), PERIOD, REST), Err(ms(30)));
        assert_eq!(activity.next(at(50), at(100), PERIOD, REST), Ok(Next::Look));
        assert_eq!(activity.next(at(100), at(110), PERIOD, REST), Err(ms(950)));
        assert!(activity.begin(at(110)), "it would look too late");
        assert_eq!(activity.next(at(100), at(110), PERIOD, REST), Err(ms(40)));
        activity.end(at(115));
        assert!(!activity.begin(at(120)), "it looks by itself");
        activity.end(at(125));
        // Nothing of the last wait is left.
        activity.active = Duration::ZERO;
        activity.news = false;
        activity.count -= 2;
        activity.ended = Some(at(60));
        assert_eq!(
            activity.next(at(100), at(1060), PERIOD, REST),
            Ok(Next::Rest)
        );
        assert_eq!(activity.ended(), 2);
        activity.stop();
        assert_eq!(
            activity.next(at(1060), at(1060), PERIOD, REST),
            Ok(Next::Stop)
        );
        assert!(!activity.rests() && !activity.resume());
    }
}
