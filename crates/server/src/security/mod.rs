//! Who may connect: [`users`] in a file and in the database, whose passwords are checked by [`scram`]; [`tls`].

pub(crate) mod basic;
pub(crate) mod identity;
pub(crate) mod tls;
pub(crate) mod users;
