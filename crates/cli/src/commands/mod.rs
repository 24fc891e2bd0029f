//! The commands, with a file or a folder for each: its arguments, and its action. No command imports another.

pub mod afl;
pub mod array;
pub mod govern;
pub mod graph;
#[cfg(feature = "sql")]
pub mod import;
#[cfg(feature = "lab")]
pub mod lab;
#[cfg(feature = "sql")]
pub mod laq;
pub mod load;
pub mod man;
pub mod pages;
pub mod pin;
#[cfg(feature = "sql")]
pub mod quickstart;
pub mod reference;
pub mod residency;
#[cfg(feature = "sql")]
pub mod set;
#[cfg(feature = "sql")]
pub mod sql;
pub mod top;
pub mod topology;
pub mod tune;
pub mod watch;
