//! The arguments of `atoll pages`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::options::resources::Layout;

/// `atoll pages`
#[derive(Args, Debug)]
pub struct Pages {
    /// The store
    pub store: PathBuf,
    /// What to look at
    #[arg(value_enum)]
    pub what: Look,
    #[command(flatten)]
    pub layout: Layout,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// What `atoll pages` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Look {
    /// Pages by kind and encoding, sizes, pool, nodes, log
    Stat,
    /// Read and verify every page
    Check,
    /// What lies where in the file, in its order: pages with their tables and columns, or, of a store of raw pages, the
    /// ranges that are allocated
    Dump,
    /// Give up commits at the damaged end of the log, which is copied first; then check
    Repair,
}
