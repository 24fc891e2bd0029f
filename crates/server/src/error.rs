//! The one error type of this crate.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Result of the functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server does not start, or a file for it cannot be read. What goes wrong for one client is told to that client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be listened on.
    #[error("{address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says, or what to do.
        reason: String,
    },
    /// A file of users, a certificate or a key cannot be used.
    #[error("{}{}: {reason}", .path.display(), .line.map_or_else(String::new, |line| format!(":{line}")))]
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1, if one is at fault.
        line: Option<usize>,
        /// What is wrong with it.
        reason: String,
    },
    /// Options that contradict each other.
    #[error("{0}")]
    Options(String),
    /// The system refuses a thread or a random number.
    #[error("{0}")]
    System(String),
}
