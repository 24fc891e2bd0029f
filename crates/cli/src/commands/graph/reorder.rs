//! `atoll graph STORE reorder`

use std::io::Write;
use std::sync::Arc;

use futures::executor::block_on;
use graph::{Crew, Graph, Job, ReorderOptions, Reordered, Spill, bfs, reorder};

use crate::commands::graph::named;
use crate::commands::graph::options::{Graph as Asked, NewOrder};
use crate::failure::Failure;
use crate::store::files;
use crate::store::plain::Plain;
use crate::terminal::phases::Phases;
use crate::terminal::{interrupt, out};
use crate::units;

/// Numbers the vertices of a graph anew.
pub fn run(args: &Asked, opened: &Plain) -> Result<(), Failure> {
    let order = graph::Order::from(args.order.unwrap_or(NewOrder::Gorder));
    let graph = block_on(named::open(&opened.store, args.graph.as_deref()))?;
    let name = graph.name().to_owned();
    let crew = Crew::new(opened.workers.clone(), opened.budget.clone());
    let guard = interrupt::setting(crew.stop());
    let before = block_on(searched(args, &graph, &crew))?;
    drop((graph, guard));
    let options = ReorderOptions {
        into: args.into.clone(),
        replace: args.replace,
        spill: Spill::directory(files::folder(&args.store)),
        ..ReorderOptions::default()
    };
    let mut phases = Phases::new();
    let (stop, guard) = interrupt::flag();
    let job = Job::new(opened.budget.clone())
        .stopped_by(stop)
        .telling(|at| phases.show(at.phase.name(), at.done, at.total));
    let done = block_on(reorder(&opened.store, &name, order, &options, job));
    phases.finish();
    drop(guard);
    let done = done?;
    let target = args.into.as_deref().unwrap_or(&name);
    let graph = block_on(named::open(&opened.store, Some(target)))?;
    let _guard = interrupt::setting(crew.stop());
    let after = block_on(searched(args, &graph, &crew))?;
    tell(args, target, order, &done, before.zip(after))
}

/// The pages that searches read, each from an empty pool: from the same vertices whatever the order.
async fn searched(args: &Asked, graph: &Arc<Graph>, crew: &Crew) -> graph::Result<Option<u64>> {
    let Some(count) = args.sources else {
        return Ok(None);
    };
    let mut reads = 0;
    // The same vertices, whatever the order.
    for source in graph
        .sources(count as usize, args.seed.unwrap_or(0))
        .await?
    {
        graph.pool().clear();
        let before = graph.pool().statistics().loads;
        bfs(graph, source, crew).await?;
        reads += graph.pool().statistics().loads - before;
    }
    Ok(Some(reads))
}

fn tell(
    args: &Asked,
    name: &str,
    order: graph::Order,
    done: &Reordered,
    reads: Option<(u64, u64)>,
) -> Result<(), Failure> {
    let mut out = out::stdout();
    let locality = |of: &graph::Locality| serde_json::json!({ "gap": of.gap, "pages": of.pages });
    if args.json {
        let mut json = serde_json::json!({
            "graph": name,
            "order": order.name(),
            "vertices": done.vertices,
            "edges": done.edges,
            "pages": done.pages,
            "before": locality(&done.before),
            "after": locality(&done.after),
            "ordering_seconds": done.ordering.as_secs_f64(),
            "seconds": done.time.as_secs_f64(),
        });
        if let Some((before, after)) = reads {
            json["before"]["page_reads"] = before.into();
            json["after"]["page_reads"] = after.into();
        }
        writeln!(out, "{json}")?;
        return Ok(out.flush()?);
    }
    writeln!(
        out,
        "{name}: {} vertices by {} in {}, of which {} to find the order\n",
        units::count(done.vertices),
        order.name(),
        units::seconds(done.time.as_secs_f64()),
        units::seconds(done.ordering.as_secs_f64()),
    )?;
    writeln!(out, "{:<40} {:>14} {:>14}", "", "before", "after")?;
    let mut line = |what: &str, before: String, after: String| {
        writeln!(out, "{what:<40} {before:>14} {after:>14}")
    };
    let fixed = |value: f64| format!("{value:.1}");
    line(
        "distance of the ends of an edge, mean",
        fixed(done.before.gap),
        fixed(done.after.gap),
    )?;
    line(
        "pages next to a vertex, mean",
        format!("{:.2}", done.before.pages),
        format!("{:.2}", done.after.pages),
    )?;
    if let Some((before, after)) = reads {
        let searches = format!("pages read by {} searches", args.sources.unwrap_or(0));
        line(&searches, units::count(before), units::count(after))?;
    }
    Ok(out.flush()?)
}
