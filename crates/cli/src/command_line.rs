//! The command line as it is typed: the program, its version, its commands.

use clap::{Parser, Subcommand};

use crate::commands::afl::options::Afl;
use crate::commands::array::options::Array;
use crate::commands::export::Export;
use crate::commands::govern::options::Govern;
use crate::commands::graph::options::Graph;
#[cfg(feature = "sql")]
use crate::commands::import::Import;
#[cfg(feature = "lab")]
use crate::commands::lab::Lab;
#[cfg(feature = "sql")]
use crate::commands::laq::Laq;
use crate::commands::load::Load;
use crate::commands::man::Man;
use crate::commands::pages::options::Pages;
use crate::commands::pin::Pin;
#[cfg(feature = "sql")]
use crate::commands::quickstart::Quickstart;
use crate::commands::residency::options::Where;
#[cfg(feature = "sql")]
use crate::commands::serve::Serve;
#[cfg(feature = "sql")]
use crate::commands::set::Set;
#[cfg(feature = "sql")]
use crate::commands::sql::Sql;
use crate::commands::top::Top;
use crate::commands::topology::Topology;
use crate::commands::tune::Tune;
use crate::commands::watch::options::Watch;
use crate::version::VERSION;

/// An analytical database that knows where its memory is.
#[derive(Debug, Parser)]
#[command(name = "atoll", version = VERSION, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a TPC-H store, run the 22 queries, show where their bytes came from
    #[cfg(feature = "sql")]
    Quickstart(Quickstart),
    /// Load files (Parquet, CSV, JSON, TPC-H tbl, Arrow IPC) into a table, or a file (NPY, NPZ, Zarr, HDF5, NetCDF) into an array
    #[cfg(feature = "sql")]
    Import(Box<Import>),
    /// Write an array into a file (NPY, Zarr, HDF5, NetCDF)
    Export(Export),
    /// Load what is no table: a graph, a synthetic array
    Load(Load),
    /// Run SQL; without a query, open a shell
    #[cfg(feature = "sql")]
    Sql(Sql),
    /// Serve a store to psql and to any driver of PostgreSQL
    #[cfg(feature = "sql")]
    Serve(Box<Serve>),
    /// Run a program of linear algebra over the tables
    #[cfg(feature = "sql")]
    Laq(Laq),
    /// Run statements of the array functional language over the arrays of a store
    Afl(Box<Afl>),
    /// Draw the machine: nodes, caches, cores, distances, free memory
    Topology(Topology),
    /// Search, rank and reorder the graphs of a store
    Graph(Box<Graph>),
    /// Arrays of a store: list, describe, import, export, delete
    Array(Box<Array>),
    /// Look into a store
    Pages(Pages),
    /// Show or change what a store keeps for those who open it
    #[cfg(feature = "sql")]
    Set(Set),
    /// Experiments, on an emulated NUMA machine where none is at hand
    #[cfg(feature = "lab")]
    Lab(Lab),
    /// Show where memory lies: of a process by mapping and thread, of a store by table and column
    Where(Where),
    /// Follow a process: load, migrations, page faults and memory by node
    Watch(Watch),
    /// Run a command, or hold a process, with its threads on the cpus that a strategy gives them
    Pin(Pin),
    /// Find the placement of a command's threads that is best, in few runs
    Tune(Tune),
    /// Give a database just the cores that it needs, on just the nodes, and say why
    Govern(Box<Govern>),
    /// Show nodes, cores, load, and what governors decide
    Top(Top),
    /// Write the manual pages of all commands
    Man(Man),
    /// Write the reference of the command line as Markdown
    #[command(hide = true)]
    Reference,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The commands of `lab figures`, long and short, are commands that there are.
    #[cfg(feature = "lab")]
    #[test]
    fn the_commands_of_figures_can_be_typed() {
        let commands = lab::experiment::Figures::commands().unwrap();
        assert!(commands.len() > 100);
        for command in commands {
            let words = std::iter::once("atoll").chain(command.split_whitespace());
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{command}: {error}");
            }
        }
    }
}
