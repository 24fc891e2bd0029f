//! Who may connect: [`users`] and their verifiers in a file, [`scram`] by which they show that they know their passwords,
//! [`tls`].

pub(crate) mod basic;
pub(crate) mod scram;
pub(crate) mod tls;
pub(crate) mod users;
