//! Why the source could not be read.

use std::io;
use std::path::PathBuf;

/// Why the source could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This file or folder cannot be read.
    #[error("cannot read {path}: {1}", path = .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// This file is not Rust.
    #[error("{path} is not Rust: {1}", path = .0.display())]
    Parse(PathBuf, #[source] syn::Error),
    /// This file is not the TOML that is expected.
    #[error("{path}: {1}", path = .0.display())]
    Toml(PathBuf, #[source] toml::de::Error),
}
