//! PostgreSQL's protocol, version 3: messages as bytes, without knowing what they are for.
//!
//! [`frontend`] takes apart what clients send, [`backend`] writes what they get, [`channel`] moves both over a socket, with
//! TLS or without.

pub(crate) mod backend;
pub(crate) mod channel;
pub(crate) mod frontend;
pub(crate) mod socket;
