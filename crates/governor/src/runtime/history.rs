//! The decisions of the recent past.

use std::collections::VecDeque;
use std::time::Instant;

use crate::policy::decision::Decision;

/// How many decisions are kept.
const MOST: usize = 600;

/// Changes that are shown for one statement; if there are more, the first and the last of them.
const TOLD: usize = 24;

/// A decision and when it took effect.
#[derive(Debug)]
struct Past {
    at: Instant,
    /// When it took effect.
    cores: usize,
    decision: Decision,
}

/// The last decisions.
#[derive(Debug)]
pub(super) struct History {
    all: VecDeque<Past>,
    /// The number of cores before the first decision that is kept.
    cores: usize,
    /// The present number of cores.
    now: usize,
}

impl History {
    pub(super) fn new(cores: usize) -> History {
        History {
            all: VecDeque::new(),
            cores,
            now: cores,
        }
    }

    pub(super) fn add(&mut self, at: Instant, decision: Decision, cores: usize) {
        self.now = cores;
        if self.all.len() == MOST
            && let Some(gone) = self.all.pop_front()
        {
            self.cores = gone.cores;
        }
        self.all.push_back(Past {
            at,
            cores,
            decision,
        });
    }

    /// Starts anew: the workers have this many cores.
    pub(super) fn reset(&mut self, cores: usize) {
        self.all.clear();
        (self.cores, self.now) = (cores, cores);
    }

    pub(super) fn decisions(&self) -> Vec<Decision> {
        self.all.iter().map(|past| past.decision.clone()).collect()
    }

    /// What happened between two moments, as text.
    pub(super) fn since(&self, began: Instant, now: Instant) -> Vec<String> {
        let before = self.all.iter().rfind(|past| past.at < began);
        let first = before.map_or(self.cores, |past| past.cores);
        let within: Vec<&Past> = self.all.iter().filter(|past| past.at >= began).collect();
        let (mut at, mut cores, mut area) = (began, first, 0.0);
        let mut lines = Vec::new();
        for past in &within {
            area += cores as f64 * (past.at - at).as_secs_f64();
            (at, cores) = (past.at, past.cores);
            let decision = &past.decision;
            if !decision.allocated.is_empty() || !decision.released.is_empty() {
                let told = decision.to_string();
                // Its own time is that of the governor.
                let told = told.split_once(" s  ").map_or(&*told, |(_, rest)| rest);
                lines.push(format!("  {:.3} s  {told}", (at - began).as_secs_f64()));
            }
        }
        area += cores as f64 * now.saturating_duration_since(at).as_secs_f64();
        let whole = now.saturating_duration_since(began).as_secs_f64();
        let mean = if whole > 0.0 {
            area / whole
        } else {
            first as f64
        };
        let (many, changes) = (within.len(), lines.len());
        if changes > TOLD {
            let left = changes - TOLD;
            let between = format!("  ... {left} more changes ...");
            lines.splice(TOLD / 2..changes - TOLD / 2, [between]);
        }
        let mut all = vec![format!(
            "governed: it began with {first} cores and had {mean:.2} on average; {many} decisions, {changes} changes"
        )];
        if let Some(last) = within.last() {
            let busy = &last.decision.readings[crate::policy::readings::BUSY];
            if let Some(cpus) = busy.value {
                all.push(format!(
                    "  at last {cpus:.2} cpus were busy ({})",
                    busy.source
                ));
            }
        }
        all.append(&mut lines);
        all
    }
}
