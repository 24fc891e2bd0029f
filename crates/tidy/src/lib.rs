//! Checks of this workspace's own source: circles of imports between files, walls between crates and
//! between the layers of a crate, and sizes of files.
//!
//! `cargo run -p tidy` prints what it finds; `cargo test -p tidy` fails where `crates/tidy/walls.toml` does not
//! allow it. The name is that of the same thing in the repositories of rustc and rust-analyzer.
//!
//! ```
//! # fn main() -> Result<(), tidy::Error> {
//! let workspace = tidy::Workspace::read(&tidy::root())?;
//! assert!(workspace.members.iter().any(|member| member.name == "tidy"));
//! # Ok(())
//! # }
//! ```

mod circles;
mod code;
mod error;
mod module;
mod unused;
mod walls;
mod words;
mod workspace;

use std::path::{Path, PathBuf};

pub use circles::circles;
pub use error::Error;
pub use walls::{Wall, Walls};
pub use workspace::{Member, SourceFile, Workspace};

/// The root of the workspace that this program was built in.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
