//! The arguments of `atoll afl`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::commands::afl::cells::Format;
use crate::options::resources::Compute;

/// `atoll afl`
#[derive(Args, Debug)]
pub struct Afl {
    /// The store
    pub store: PathBuf,
    /// The statements, with a semicolon between two [default: from standard input; on a terminal, a shell]
    pub text: Option<String>,
    /// Read the statements from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// Make the store if there is none
    #[arg(long)]
    pub create: bool,
    /// How operators hand on what they make
    #[arg(long, value_enum, default_value_t = How::Pipeline)]
    pub model: How,
    /// Chunks that are worked on at a time, each by an equal part of the threads [default: as many as a query reads, up
    /// to the threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub groups: Option<u32>,
    /// Divide the threads into so many instances, which own the chunks in turn, as SciDB's do
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "groups")]
    pub instances: Option<u32>,
    /// Show the operators of each statement instead of running it, and which threads would best read which chunks on
    /// which nodes, and why
    #[arg(long)]
    pub explain: bool,
    /// Run each query and show, after what --explain does, its cells, chunks, pages and time instead of its rows
    #[arg(long, conflicts_with = "explain")]
    pub analyze: bool,
    /// How cells are written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// One JSON object a statement, as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    #[command(flatten)]
    pub compute: Compute,
}

/// The model by which a query is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Each operator makes the whole of its array before the next begins, as SAVIME does
    Materialise,
    /// Chunk by chunk on demand, as SciDB does
    Pipeline,
}
