//! `atoll graph`: the graphs of a store. It needs no SQL.

mod compute;
mod named;
pub mod options;
mod reorder;
mod search;

use std::io::Write;
use std::sync::Arc;

use futures::executor::block_on;
use store::Store;

use crate::commands::graph::options::{Graph, Work};
use crate::failure::Failure;
use crate::store::plain::{self, Open};
use crate::terminal::out;
use crate::units;

/// Runs the command.
pub fn run(args: &Graph) -> Result<(), Failure> {
    args.check()?;
    let how = match args.work {
        Work::Reorder => Open::Write,
        _ => Open::Read,
    };
    let opened = plain::open(&args.store, &args.compute, how, args.compress)?;
    let ran = match args.work {
        Work::List => list(args, &opened.store),
        Work::Bfs => search::run(args, &opened),
        Work::Reorder => reorder::run(args, &opened),
        Work::Pagerank | Work::Components | Work::Triangles => compute::run(args, &opened),
    };
    if how == Open::Write {
        opened.store.close()?;
    }
    ran
}

/// Lists the graphs of a store.
fn list(args: &Graph, store: &Arc<Store>) -> Result<(), Failure> {
    let graphs = block_on(graph::list(&store.snapshot()))?;
    let mut out = out::stdout();
    if args.json {
        let of = |graph: &graph::Summary| {
            serde_json::json!({
                "name": graph.name,
                "vertices": graph.vertices,
                "edges": graph.edges,
                "directed": graph.directed,
                "weighted": graph.weighted,
                "order": graph.order.name(),
                "pages": graph.pages,
            })
        };
        let graphs: Vec<_> = graphs.iter().map(of).collect();
        writeln!(out, "{}", serde_json::json!({ "graphs": graphs }))?;
        return Ok(out.flush()?);
    }
    if graphs.is_empty() {
        let store = args.store.display();
        writeln!(
            out,
            "{store} has no graphs; `atoll load graph {store} FILE` loads one"
        )?;
        return Ok(out.flush()?);
    }
    writeln!(
        out,
        "{:<24} {:>14} {:>14} {:>10} {:>8} {:>7} {:>10}",
        "graph", "vertices", "edges", "direction", "weights", "order", "pages"
    )?;
    for graph in graphs {
        writeln!(
            out,
            "{:<24} {:>14} {:>14} {:>10} {:>8} {:>7} {:>10}",
            graph.name,
            units::count(graph.vertices),
            units::count(graph.edges),
            if graph.directed { "directed" } else { "both" },
            if graph.weighted { "yes" } else { "no" },
            graph.order.name(),
            units::count(graph.pages),
        )?;
    }
    Ok(out.flush()?)
}
