//! Arrow Flight SQL: statements by gRPC, and their rows as Arrow has them.
//!
//! [`serve`] takes connections of [HTTP/2](crate::http2) and has each [`call`] answered by one of its [`threads`]; [`login`]
//! says whose it is, and [`service`] what it does: [`queries`] are planned and then fetched, [`updates`] are put, with their
//! [`parameters`] or with rows to [`ingest`], [`actions`] prepare statements and begin [`transactions`], and the [`catalog`]
//! tells what there is. A call has a session of its own unless it names a transaction. [`data`] is Arrow's messages,
//! [`messages`] are Flight's.

mod actions;
mod call;
mod caller;
mod capabilities;
mod catalog;
mod data;
mod ingest;
mod login;
mod messages;
mod parameters;
mod prepared;
mod queries;
mod running;
pub(crate) mod serve;
mod service;
mod shelf;
mod status;
mod threads;
mod transactions;
mod types;
mod updates;
