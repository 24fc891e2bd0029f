//! A sample of a process, and why watching ends.

use counters::{Sample, Summary};

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Ended,
    Time,
    Interrupted,
}

/// A sample, with what had happened up to it since watching began.
#[derive(Clone)]
pub struct Moment {
    pub sample: Sample,
    pub migrations: Option<u64>,
    pub switches: Option<u64>,
    pub minor_faults: u64,
    pub major_faults: u64,
}

impl Moment {
    /// What was known when `sample` was taken.
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
