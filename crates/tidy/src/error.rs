//! Why the source could not be read.

use std::io;
use std::path::PathBuf;

/// Why the source could not be read.
#[derive(Debug)]
pub enum Error {
    /// This file or folder cannot be read.
    Read(PathBuf, io::Error),
    /// This file is not Rust.
    Parse(PathBuf, syn::Error),
    /// This file is not the TOML that is expected.
    Toml(PathBuf, toml::de::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::Parse(path, error) => write!(f, "{} is not Rust: {error}", path.display()),
            Self::Toml(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Error {}
