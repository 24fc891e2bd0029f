//! How many cores a database has and which: functions of readings, without clock, file or thread.
//!
//! A [`Governor`](crate::Governor) filters its readings, has a net decide how many cores there are (`net`, asked
//! by `ask`) within bounds that the throughput sensor finds (`lonc`), and chooses which (`sites`, `nodes`,
//! `follow`). `settings` is the policy's parameters, `decision` its result, and `trace` its results in files. Several
//! databases [`share`](crate::share()) a machine.

mod ask;
pub(crate) mod decision;
pub(crate) mod energy;
mod filter;
mod follow;
pub(crate) mod governor;
pub(crate) mod lonc;
pub(crate) mod net;
mod nodes;
pub(crate) mod readings;
pub(crate) mod residency;
pub(crate) mod settings;
pub(crate) mod share;
pub(crate) mod sites;
pub(crate) mod trace;
