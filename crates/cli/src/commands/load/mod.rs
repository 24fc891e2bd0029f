//! `atoll load`: what is no table.

pub mod graph;
pub mod seismic;

use clap::{Args, Subcommand};

use crate::commands::load::graph::LoadGraph;
use crate::commands::load::seismic::LoadSeismic;
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
    /// A synthetic seismic array: a layered velocity model with the pulse of a shot
    Seismic(LoadSeismic),
}

/// Runs the command.
pub fn run(args: &Load) -> Result<(), Failure> {
    match &args.what {
        What::Graph(args) => args.run(),
        What::Seismic(args) => args.run(),
    }
}
