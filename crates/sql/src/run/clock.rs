//! What a statement costs: time, and bytes by node.

use std::sync::Arc;
use std::time::Instant;

use memory::Traffic;

/// What one statement cost.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Seconds from the text to the physical plan.
    pub planning_seconds: f64,
    /// Seconds from the text to the last row, planning included.
    pub seconds: f64,
    /// Bytes that the statement read: a row for each node that read, a column for each node that held the page.
    pub bytes: Vec<Vec<u64>>,
    /// What ran it: `"algebra"` for Atoll's own engine, `"datafusion"`, or `"index"` for the row of a key.
    pub ran_on: &'static str,
}

impl Statistics {
    /// All bytes read.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.iter().flatten().sum()
    }

    /// Bytes read by workers of the node that held them.
    pub fn local_bytes(&self) -> u64 {
        self.bytes
            .iter()
            .enumerate()
            .map(|(i, row)| row.get(i).copied().unwrap_or(0))
            .sum()
    }
}

/// Times one statement and holds its traffic counters.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    started: Instant,
    planned: Option<Instant>,
    traffic: Arc<Traffic>,
    pub ran_on: &'static str,
}

impl Clock {
    pub(crate) fn new(started: Instant, traffic: Arc<Traffic>) -> Clock {
        Clock {
            started,
            planned: None,
            traffic,
            ran_on: "algebra",
        }
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// When the statement began.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The plan is ready: what follows is execution. The last call counts.
    pub(crate) fn planned(&mut self) {
        self.planned = Some(Instant::now());
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let seconds = self.started.elapsed().as_secs_f64();
        Statistics {
            planning_seconds: self
                .planned
                .map_or(seconds, |at| (at - self.started).as_secs_f64()),
            seconds,
            bytes: self.traffic.matrix(),
            ran_on: self.ran_on,
        }
    }
}
