//! The terminal: Ctrl-C, standard output, the pager, progress.

pub mod interrupt;
pub mod out;
pub mod pager;
pub mod progress;
