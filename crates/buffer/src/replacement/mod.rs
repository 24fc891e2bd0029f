//! Replacement: which page makes room for another (row B3, and what came after the clock).
//!
//! A policy sees the frames of one partition as slots `0..count`, and learns of pins through the
//! usage counts in the words of their pages, so pinning takes no lock whatever the policy.

mod clock;
mod policy;
mod queues;
mod s3fifo;
mod sieve;
mod two;

pub use clock::Clock;
pub use policy::{COLD_LOOKS, LOOKS, Replacement, Slots, Victim};
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;
pub use two::TwoQueues;

/// The policies there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Policy {
    /// A clock hand with usage counts, as in PostgreSQL (row B3).
    Clock,
    /// A small first queue, a main queue that ages, and a memory of pages that left the first. The
    /// default: see decision 65.
    #[default]
    S3Fifo,
    /// One queue whose hand spares what was used since it last passed.
    Sieve,
    /// A first queue for new pages; what comes back soon after it left goes to the main queue.
    TwoQueues,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [
        Policy::Clock,
        Policy::S3Fifo,
        Policy::Sieve,
        Policy::TwoQueues,
    ];

    /// A policy at work on a partition of `slots` frames.
    pub fn start(self, slots: u32) -> Box<dyn Replacement> {
        match self {
            Policy::Clock => Box::new(Clock::new(slots)),
            Policy::S3Fifo => Box::new(S3Fifo::new(slots)),
            Policy::Sieve => Box::new(Sieve::new(slots)),
            Policy::TwoQueues => Box::new(TwoQueues::new(slots)),
        }
    }
}

#[cfg(test)]
mod tests;
