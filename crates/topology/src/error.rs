//! The one error type of this crate.

use std::path::PathBuf;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why no [`Machine`](crate::Machine) could be made. Each message names the input and says
/// what would be accepted instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is neither a shipped name, nor a path to XML, nor a synthetic description.
    #[error(
        "unknown machine '{}': give live, one of {}, a path ending in .xml, NODESxCORES such as \
         4x4, or an hwloc synthetic description such as 'node:4 core:4 pu:2'",
        shorten(.spec),
        crate::SHIPPED.join(", ")
    )]
    Unknown {
        /// What was given.
        spec: String,
    },
    /// An XML file could not be read.
    #[error("cannot read the machine description {path}: {why}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// An XML file was read, and hwloc does not accept it.
    #[error("{path} is not an hwloc XML topology ({why}); write one with 'lstopo machine.xml'")]
    Xml {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A synthetic description that cannot be understood.
    #[error(
        "synthetic machine '{}': {why}; write NODESxCORES such as 4x4, or levels from the outside \
         in such as 'node:4 l3:1 core:4 pu:2'",
        shorten(.spec)
    )]
    Synthetic {
        /// What was given.
        spec: String,
        /// What is wrong with it.
        why: String,
    },
    /// More cpus than [`MAX_CPUS`](crate::MAX_CPUS) or more nodes than
    /// [`MAX_NODES`](crate::MAX_NODES).
    #[error("machine '{}' is too large: {why}", shorten(.spec))]
    TooLarge {
        /// What was given.
        spec: String,
        /// The part that is over its limit, with both numbers.
        why: String,
    },
    /// The description has no processor at all.
    #[error("machine '{}' has no processor", shorten(.spec))]
    NoCpu {
        /// What was given.
        spec: String,
    },
    /// A node that the machine has not.
    #[error("machine '{}' has no node {node}: its nodes are 0 to {}", shorten(.machine), .nodes - 1)]
    Nodes {
        /// The machine's name.
        machine: String,
        /// The node that was asked for.
        node: usize,
        /// How many it has.
        nodes: usize,
    },
    /// The running system could not be examined at all.
    #[error("cannot tell which processors this process may use: {why}")]
    Live {
        /// What the system said.
        why: String,
    },
}

/// The first part of an input, so that a message stays one readable line.
fn shorten(text: &str) -> String {
    const MOST: usize = 80;
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() <= MOST {
        return line;
    }
    let mut short: String = line.chars().take(MOST).collect();
    short.push_str("...");
    short
}
