//! `atoll load`: what is no table.

pub mod graph;

use clap::{Args, Subcommand};

use crate::commands::load::graph::LoadGraph;
use crate::failure::Failure;

/// `atoll load`
#[derive(Args, Debug)]
pub struct Load {
    /// What to load
    #[command(subcommand)]
    pub what: What,
}

/// What can be loaded.
#[derive(Debug, Subcommand)]
pub enum What {
    /// A graph from an edge list, as the Stanford collection (SNAP) has them: text or gzip
    Graph(LoadGraph),
}

/// Runs the command.
pub fn run(args: &Load) -> Result<(), Failure> {
    match &args.what {
        What::Graph(args) => args.run(),
    }
}
