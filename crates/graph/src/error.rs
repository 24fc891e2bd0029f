//! The errors of this crate. Each message names the graph, file or line that it is about.

use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about graphs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store below failed; its message already names path and page.
    #[error("{0}")]
    Store(#[from] store::Error),
    /// The buffer pool failed; its message already names the page.
    #[error("{0}")]
    Buffer(#[from] buffer::Error),
    /// A temporary file of the sort failed; its message already names the folder.
    #[error("{0}")]
    Spill(#[from] io::Error),
    /// A worker failed.
    #[error("{0}")]
    Workers(#[from] workers::Error),
    /// No graph of that name in this snapshot.
    #[error("there is no graph '{name}'; `atoll graph STORE list` shows those there are")]
    NoGraph {
        /// The name asked for.
        name: String,
    },
    /// A graph of that name exists already.
    #[error("graph '{name}' exists already; replace it (--replace) or choose another name")]
    Exists {
        /// The name asked for.
        name: String,
    },
    /// Not a name for a graph.
    #[error(
        "'{name}' cannot be the name of a graph: take 1 to 255 bytes without control characters"
    )]
    Name {
        /// The name asked for.
        name: String,
    },
    /// Another process or thread has changed the graph meanwhile.
    #[error("graph '{name}' was changed while it was worked on; try again")]
    Changed {
        /// The graph.
        name: String,
    },
    /// No vertex has this id.
    #[error("graph '{graph}' has no vertex {vertex}")]
    NoVertex {
        /// The graph.
        graph: String,
        /// The id asked for, as it stood in the file.
        vertex: i64,
    },
    /// An option that makes no sense.
    #[error("{what}: give {range}")]
    Option {
        /// The option and what it was.
        what: String,
        /// What it may be.
        range: String,
    },
    /// More distinct vertex ids than can be numbered.
    #[error("{what} has more than {limit} vertices, which is the most that a graph can have")]
    TooManyVertices {
        /// The file or graph.
        what: String,
        /// The most.
        limit: u64,
    },
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of the file is no edge.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The file has no edges.
    #[error("{} has no edges: an edge is a line with two vertex ids", path.display())]
    NoEdges {
        /// The file.
        path: PathBuf,
    },
    /// Bytes of a temporary file are not those that were written.
    #[error(
        "{} has changed what was spilled to it; the disk or its memory is faulty, spill to \
         another one",
        place.display()
    )]
    SpillDamaged {
        /// The folder of the temporary file.
        place: PathBuf,
    },
    /// What is kept for each vertex does not fit into memory.
    #[error("{what} needs {bytes} bytes of memory: {source}; raise --memory-limit or lower --pool")]
    Memory {
        /// What needs it.
        what: String,
        /// How much.
        bytes: u64,
        /// What the budget says.
        source: memory::Error,
    },
    /// A record or page passed its checksum but does not decode.
    #[error(
        "graph '{graph}': {what} does not decode although its checksum is right; the store was \
         written by a faulty program"
    )]
    Damaged {
        /// The graph.
        graph: String,
        /// What does not decode.
        what: String,
    },
    /// The caller asked to stop; nothing was changed.
    #[error("interrupted")]
    Interrupted,
}
