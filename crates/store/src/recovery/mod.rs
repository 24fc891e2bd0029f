//! Making a new store, and bringing one to its last commit.

pub(crate) mod creation;
mod loader;
pub(crate) mod recover;
pub(crate) mod roots;
#[cfg(test)]
mod tests;
