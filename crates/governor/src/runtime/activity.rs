//! How many statements run, and for how long some did. Times are arguments.

use std::time::{Duration, Instant};

/// Statements that run.
#[derive(Debug, Default)]
pub(super) struct Activity {
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

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Statements ran for so long since the last time.
    Decide(Duration),
    /// Statements run, or have ended, since the last look; it is not time to decide.
    Look,
    /// None has run for long.
    Rest,
    /// Nobody needs it any more.
    Stop,
}

impl Activity {
    /// A statement begins; whether it is the only one that runs.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        self.running += 1;
        let first = self.running == 1;
        if first {
            self.since = Some(now);
        }
        first
    }

    /// A statement ends.
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

    /// Nobody needs to know any more.
    pub(super) fn stop(&mut self) {
        self.stop = true;
    }

    /// Whether there is nothing to look at. One that began and ended before anybody saw it has left news.
    pub(super) fn rests(&self) -> bool {
        self.running == 0 && !self.news && !self.stop
    }

    /// Time counts from here on; `false` where there is nothing to wait for any more.
    pub(super) fn resume(&mut self) -> bool {
        self.active = Duration::ZERO;
        self.news = true;
        !self.stop
    }

    /// Statements that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.count
    }

    /// What is to be done for who has waited since `begun`: a decision once statements have run for `period` since the
    /// last one, rest once none has for `rest`, in between a look once in a period.
    ///
    /// # Errors
    ///
    /// How long to wait, where it is nothing yet.
    pub(super) fn next(
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
