//! One look at a process, and how watching it ends.

use counters::{Sample, Summary};

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Ended,
    Time,
    Interrupted,
}

/// A look, and what had happened up to it since watching began.
#[derive(Clone)]
pub struct Moment {
    pub sample: Sample,
    pub migrations: Option<u64>,
    pub switches: Option<u64>,
    pub minor_faults: u64,
    pub major_faults: u64,
}

impl Moment {
    /// The state at the time of `sample`.
    pub fn new(sample: Sample, summary: &Summary) -> Moment {
        Moment {
            sample,
            migrations: summary.migrations,
            switches: summary.switches,
            minor_faults: summary.minor_faults,
            major_faults: summary.major_faults,
        }
    }
}
