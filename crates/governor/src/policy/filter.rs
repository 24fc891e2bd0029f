//! Smoothing, hysteresis and rate limits: all off in the plain net.

use std::collections::VecDeque;

use crate::policy::settings::Policy;

/// State of the filters between checks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    smooth: Option<f64>,
    /// Checks in a row in which the net wanted more cores, or fewer.
    up: u32,
    down: u32,
    /// The highest `u` among the checks in a row that wanted fewer cores.
    highest: Option<f64>,
    /// The same, if this check used it.
    peak: Option<f64>,
    /// When the number of cores changed, within the period of the rate limit.
    changes: VecDeque<f64>,
}

impl Filter {
    /// The moving average of `u`.
    pub(crate) fn smooth(&mut self, u: f64, weight: f64) -> f64 {
        let smooth = match self.smooth {
            Some(old) => old + (u - old) * weight,
            None => u,
        };
        self.smooth = Some(smooth);
        smooth
    }

    /// Forgets what was seen: the cpus have changed.
    pub(crate) fn reset(&mut self) {
        (self.smooth, self.up, self.down) = (None, 0, 0);
    }

    /// Begins a check.
    pub(crate) fn checks(&mut self) {
        self.peak = None;
    }

    /// The highest `u` among the checks that agree on fewer cores; `None` if something else decides.
    pub(crate) fn peak(&self) -> Option<f64> {
        self.peak
    }

    /// Checks in a row that wanted fewer cores.
    pub(crate) fn down(&self) -> u32 {
        self.down
    }

    /// Why the net may not have its way; `None` if it may.
    pub(crate) fn hold_back(
        &mut self,
        policy: &Policy,
        time: f64,
        (now, u): (usize, f64),
        wanted: usize,
    ) -> Option<String> {
        self.up = if wanted > now { self.up + 1 } else { 0 };
        self.down = if wanted < now { self.down + 1 } else { 0 };
        let before = self.highest.filter(|_| self.down > 1);
        self.highest = (self.down > 0).then(|| before.map_or(u, |highest| highest.max(u)));
        self.peak = self.highest;
        let (seen, needed) = if wanted > now {
            (self.up, policy.confirm_up)
        } else {
            (self.down, policy.confirm_down)
        };
        if wanted == now {
            return None;
        }
        if seen < needed {
            return Some(format!(
                "held back: check {seen} of {needed} that must agree"
            ));
        }
        // A clock that jumps empties the list, it does not fill it.
        let fresh = |at: f64| (0.0..policy.rate_seconds).contains(&(time - at));
        self.changes.retain(|at| fresh(*at));
        if policy.rate_changes > 0 && self.changes.len() >= policy.rate_changes as usize {
            return Some(format!(
                "held back: {} changes within {} s are the limit",
                policy.rate_changes, policy.rate_seconds
            ));
        }
        None
    }

    /// Takes what was decided.
    pub(crate) fn decided(&mut self, time: f64, before: usize, after: usize) {
        if before == after {
            return;
        }
        (self.up, self.down) = (0, 0);
        self.changes.push_back(time);
        if self.changes.len() > 1000 {
            self.changes.pop_front();
        }
        // The load is over another number of cores now: an average over both says nothing.
        self.smooth = self
            .smooth
            .map(|smooth| (smooth * before as f64 / after.max(1) as f64).min(100.0));
    }
}
