//! Results that several experiments have in common: tables of [counted] accesses, and these accesses [compared] with what
//! the engine itself counts.

pub(crate) mod compared;
pub(crate) mod counted;
