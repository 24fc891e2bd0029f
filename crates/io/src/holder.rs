//! Who holds a lock.

use std::fmt;

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub process: u32,
    /// What it was started with, the program without its folder, words separated by blanks; its
    /// short name where that is hidden.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)?;
        match self.command.as_str() {
            "" => Ok(()),
            command => write!(f, " ({command})"),
        }
    }
}
