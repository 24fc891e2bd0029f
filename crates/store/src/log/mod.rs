//! The write-ahead log: two header slots, then records.
//!
//! A record holds the changes that lead to one version. Its place says nothing: the version does.
//! Records up to the root's version are history that the next ones overwrite; the ones after it
//! must follow without a gap.
//!
//! Several records may be written before the device is synced once for all of them, so after a
//! loss of power any of their sectors may be missing. Each says which versions were durable when
//! it was written: only that proves that an earlier record which is not valid was acknowledged.
//!
//! Invariant: behind the last record that is durable there is nothing but what the writes of the
//! next records have left, each in its place, whole or in part. So before a record is written over
//! anything else, that is cut off, durably ([`Log::tidy`]).

mod file;
mod frame;
#[cfg(test)]
mod fuzzed;
mod header;
mod old;
pub(crate) mod report;
mod scan;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use file::{Found, Log};
pub(crate) use frame::MAX_BODY;
pub(crate) use header::{FIRST_RECORD, Header};
