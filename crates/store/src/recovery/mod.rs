//! Making a new store, and bringing one to its last commit.

pub(crate) mod creation;
#[cfg(test)]
pub(crate) mod forge;
#[cfg(test)]
pub(crate) mod fuzzed;
mod loader;
pub(crate) mod recover;
pub(crate) mod roots;
#[cfg(test)]
mod tests;
