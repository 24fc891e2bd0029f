//! The catalog: keys and values in numbered spaces, in a tree of which versions share what did not
//! change; and the changes that lead from one version to the next.

pub(crate) mod changes;
#[cfg(test)]
pub(crate) mod fuzzed;
pub(crate) mod spaces;
mod tree;
