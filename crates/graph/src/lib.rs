//! Graphs in the pages of a store: loaded from edge lists, reordered for locality, read through the buffer pool
//! (row B9).
//!
//! * A graph is compressed sparse rows: where the list of each vertex begins, and the lists of neighbours one after
//!   the other; of a directed graph also those of the edges the other way round. Each is an array in pages, and a
//!   metadata page, named in the catalog, says where they lie.
//! * [`load`] reads an edge list as the Stanford collection has them, of any length, in bounded memory, and writes the
//!   graph in one transaction.
//! * [`reorder`] numbers the vertices anew, in an [`Order`] that brings together what is read together.
//! * A [`Job`] is what both are given: memory, a flag that stops them, and whom to tell how far they are.
//! * [`bfs`], [`pagerank`], [`components`] and [`triangles`] run on the workers of a [`Crew`].
//! * A [`Graph`] is one as a snapshot has it. Outside, vertices have the ids of the file, whatever the order.
//!
//! ```
//! use graph::{Graph, Job, LoadOptions, Order, ReorderOptions};
//! use store::{Options, Store};
//!
//! # futures::executor::block_on(async {
//! let directory = tempfile::tempdir()?;
//! let file = directory.path().join("ferries.txt");
//! std::fs::write(&file, "# from to\n70 3\n3 12\n70 12\n3 3\n")?;
//! let store = Store::create(directory.path().join("islands.atoll"), &Options::default())?;
//! let budget = memory::Budget::new(64 << 20);
//!
//! let loaded = graph::load(&store, "ferries", &file, &LoadOptions::default(), Job::new(budget.clone())).await?;
//! assert_eq!((loaded.vertices, loaded.edges, loaded.loops_dropped), (3, 3, 1));
//!
//! let options = ReorderOptions::default();
//! graph::reorder(&store, "ferries", Order::Degree, &options, Job::new(budget)).await?;
//! let graph = Graph::open(&store.snapshot(), "ferries").await?;
//! let vertex = graph.find(70).await?;
//! assert_eq!(graph.id(vertex).await?, 70);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod error;
mod format;
mod job;
mod kernel;
mod load;
mod read;
mod reorder;
mod run;
mod sort;

pub use error::{Error, Result};
pub use format::meta::Order;
pub use job::{Job, Phase, Progress};
pub use kernel::{
    Components, RankOptions, Ranks, Search, Triangles, bfs, components, pagerank, triangles,
};
pub use load::{LoadOptions, Loaded, load};
pub use read::graph::{Graph, Summary, list};
pub use read::reader::Reads;
pub use read::rows::{EdgeRows, Edges};
pub use reorder::{Locality, ReorderOptions, Reordered, reorder};
pub use run::crew::Crew;
pub use sort::spool::Spill;
