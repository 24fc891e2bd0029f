//! The commands, with a file or a folder for each: its arguments, and its action. No command imports another.

pub mod govern;
pub mod import;
pub mod lab;
pub mod laq;
pub mod man;
pub mod pages;
pub mod pin;
pub mod quickstart;
pub mod reference;
pub mod residency;
pub mod set;
pub mod sql;
pub mod top;
pub mod topology;
pub mod tune;
pub mod watch;
