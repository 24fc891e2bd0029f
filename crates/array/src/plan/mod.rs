//! Plans: operators in one another, and how they are run.

pub(crate) mod builder;
pub(crate) mod node;
pub(crate) mod reads;
pub(crate) mod run;
