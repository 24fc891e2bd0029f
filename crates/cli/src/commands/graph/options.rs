//! The arguments of `atoll graph`.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};

use crate::options::resources::Compute;

/// `atoll graph`
#[derive(Args, Debug)]
pub struct Graph {
    /// The store
    pub store: PathBuf,
    /// What to do
    #[arg(value_enum)]
    pub work: Work,
    /// Which graph [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub graph: Option<String>,
    /// Bfs: the vertex to search from, by its id in the file
    #[arg(
        long,
        value_name = "ID",
        conflicts_with = "sources",
        allow_negative_numbers = true
    )]
    pub source: Option<i64>,
    /// Bfs: search from so many vertices, drawn at random of those that have edges [default: 1]; reorder: also count the
    /// pages that so many searches read before and after
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub sources: Option<u32>,
    /// Which random vertices [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Bfs, pagerank, components, triangles: begin with an empty pool (bfs: before each search)
    #[arg(long)]
    pub cold: bool,
    /// Pagerank, components, triangles: run it so many times; the time is the median. Without --cold the first run reads
    /// what the others find in the pool [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Pagerank: how many of the vertices with the highest ranks to show [default: 10]
    #[arg(long, value_name = "N")]
    pub top: Option<u32>,
    /// Pagerank: how likely a walker follows an edge, 0 to 1 [default: 0.85]
    #[arg(long, value_name = "SHARE")]
    pub damping: Option<f64>,
    /// Pagerank: the end, when all ranks together change by less in a round [default: 1e-4]
    #[arg(long, value_name = "CHANGE")]
    pub tolerance: Option<f64>,
    /// Pagerank: the most rounds [default: 20]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
    /// Reorder: how to number the vertices [default: gorder]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub order: Option<NewOrder>,
    /// Reorder: keep the graph as it is, and give the new one this name
    #[arg(long, value_name = "NAME")]
    pub into: Option<String>,
    /// Reorder: replace another graph that has the name of --into
    #[arg(long, requires = "into")]
    pub replace: bool,
    /// Reorder: compress the pages of the new graph: about half the file, and several times the time to read a page
    #[arg(long)]
    pub compress: bool,
    #[command(flatten)]
    pub compute: Compute,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// What `atoll graph` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Work {
    /// The graphs of the store
    List,
    /// Breadth-first search: how far each vertex is from a source
    Bfs,
    /// The rank of each vertex, by the edges that lead to it
    Pagerank,
    /// Which vertices are connected, whatever the direction of edges
    Components,
    /// Count three vertices that all have edges with each other
    Triangles,
    /// Number the vertices anew, so that fewer pages are read
    Reorder,
}

impl Work {
    /// As it is typed.
    fn name(self) -> &'static str {
        match self {
            Work::List => "list",
            Work::Bfs => "bfs",
            Work::Pagerank => "pagerank",
            Work::Components => "components",
            Work::Triangles => "triangles",
            Work::Reorder => "reorder",
        }
    }
}

/// How vertices are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NewOrder {
    /// By rising id of the file
    Ids,
    /// By falling number of edges
    Degree,
    /// In groups of like numbers of edges, by id within each (Faldu, Diamond, Grot 2019)
    Dbg,
    /// Reverse Cuthill-McKee: neighbours close together
    Rcm,
    /// Gorder: what has many neighbours in common together (Wei, Yu, Lu, Lin 2016); slow to find, best to read
    Gorder,
}

impl From<NewOrder> for graph::Order {
    fn from(order: NewOrder) -> graph::Order {
        match order {
            NewOrder::Ids => graph::Order::Ids,
            NewOrder::Degree => graph::Order::Degree,
            NewOrder::Dbg => graph::Order::Dbg,
            NewOrder::Rcm => graph::Order::Rcm,
            NewOrder::Gorder => graph::Order::Gorder,
        }
    }
}

impl Graph {
    /// Whether only options are given that the work has.
    ///
    /// # Errors
    /// One that names the first that it does not have.
    pub fn check(&self) -> anyhow::Result<()> {
        use Work::{Bfs, Components, Pagerank, Reorder, Triangles};
        let kernels = &[Bfs, Pagerank, Components, Triangles][..];
        let given: [(bool, &str, &[Work]); 14] = [
            (self.source.is_some(), "--source", &[Bfs]),
            (self.sources.is_some(), "--sources", &[Bfs, Reorder]),
            (self.seed.is_some(), "--seed", &[Bfs, Reorder]),
            (self.cold, "--cold", kernels),
            (
                self.repeat.is_some(),
                "--repeat",
                &[Pagerank, Components, Triangles],
            ),
            (self.top.is_some(), "--top", &[Pagerank]),
            (self.damping.is_some(), "--damping", &[Pagerank]),
            (self.tolerance.is_some(), "--tolerance", &[Pagerank]),
            (self.rounds.is_some(), "--rounds", &[Pagerank]),
            (self.order.is_some(), "--order", &[Reorder]),
            (self.into.is_some(), "--into", &[Reorder]),
            (self.replace, "--replace", &[Reorder]),
            (self.compress, "--compress", &[Reorder]),
            (
                self.graph.is_some() && self.work == Work::List,
                "--graph",
                kernels,
            ),
        ];
        for (given, name, works) in given {
            if given && !works.contains(&self.work) {
                let works: Vec<_> = works.iter().map(|work| work.name()).collect();
                bail!(
                    "{name} is for {}, not for {}",
                    works.join(", "),
                    self.work.name()
                );
            }
        }
        if self
            .tolerance
            .is_some_and(|tolerance| tolerance.is_nan() || tolerance < 0.0)
        {
            return Err(anyhow!("--tolerance: take a number from 0 on"));
        }
        Ok(())
    }
}
