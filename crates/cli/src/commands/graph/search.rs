//! `atoll graph STORE bfs`

use std::io::Write;
use std::sync::Arc;

use futures::executor::block_on;
use graph::{Crew, Graph, Search, bfs};

use crate::commands::graph::named;
use crate::commands::graph::options::Graph as Asked;
use crate::failure::Failure;
use crate::store::plain::Plain;
use crate::terminal::{interrupt, out};
use crate::units;

/// Searches from one vertex, or from some.
pub fn run(args: &Asked, opened: &Plain) -> Result<(), Failure> {
    let crew = Crew::new(opened.workers.clone(), opened.budget.clone());
    let _guard = interrupt::setting(crew.stop());
    let graph = block_on(named::open(&opened.store, args.graph.as_deref()))?;
    let from = From {
        source: args.source,
        count: args.sources.unwrap_or(1) as usize,
        seed: args.seed.unwrap_or(0),
        cold: args.cold,
    };
    let found = opened.workers.block_on(search(from, graph.clone(), crew))?;
    let mut out = out::stdout();
    match (args.source, found.as_slice()) {
        (Some(_), [one]) => tell_one(&mut out, args, &graph, one)?,
        _ => tell_all(&mut out, args, &graph, &found)?,
    }
    Ok(out.flush()?)
}

/// Where searches begin.
struct From {
    /// The id of the source; otherwise it is drawn at random.
    source: Option<i64>,
    count: usize,
    seed: u64,
    /// Whether each begins with an empty pool.
    cold: bool,
}

/// A search, its levels counted and forgotten.
struct Found {
    /// The id of the source.
    source: i64,
    search: Search,
    /// Pages that were read from the file. Misses of the search are more where two tasks missed the same page.
    page_reads: u64,
}

/// The searches, one after the other.
async fn search(from: From, graph: Arc<Graph>, crew: Crew) -> graph::Result<Vec<Found>> {
    let sources = match from.source {
        Some(id) => vec![graph.find(id).await?],
        None => graph.sources(from.count, from.seed).await?,
    };
    let mut found = Vec::with_capacity(sources.len());
    for source in sources {
        if from.cold {
            graph.pool().clear();
        }
        let loads = || graph.pool().statistics().loads;
        let before = loads();
        let mut search = bfs(&graph, source, &crew).await?;
        search.forget_levels();
        found.push(Found {
            page_reads: loads() - before,
            source: graph.id(source).await?,
            search,
        });
    }
    Ok(found)
}

fn json(found: &Found) -> serde_json::Value {
    serde_json::json!({
        "source": named::id(found.source),
        "reached": found.search.reached(),
        "levels": found.search.sizes,
        "page_reads": found.page_reads,
        "pins": found.search.reads.pins,
        "seconds": found.search.time.as_secs_f64(),
    })
}

fn tell_one(
    out: &mut impl Write,
    args: &Asked,
    graph: &Graph,
    found: &Found,
) -> Result<(), Failure> {
    if args.json {
        return Ok(writeln!(out, "{}", json(found))?);
    }
    writeln!(
        out,
        "{}: from {} {} of {} vertices in {}; {} of {} pages read\n",
        graph.name(),
        found.source,
        units::count(found.search.reached()),
        units::count(graph.vertices().into()),
        units::seconds(found.search.time.as_secs_f64()),
        units::count(found.page_reads),
        units::count(graph.summary().pages),
    )?;
    writeln!(out, "{:>7} {:>14}", "level", "vertices")?;
    for (level, size) in found.search.sizes.iter().enumerate() {
        writeln!(out, "{level:>7} {:>14}", units::count(*size))?;
    }
    Ok(())
}

fn tell_all(
    out: &mut impl Write,
    args: &Asked,
    graph: &Graph,
    found: &[Found],
) -> Result<(), Failure> {
    let seconds: f64 = found.iter().map(|one| one.search.time.as_secs_f64()).sum();
    let reads: u64 = found.iter().map(|one| one.page_reads).sum();
    if args.json {
        let searches: Vec<_> = found.iter().map(json).collect();
        let json = serde_json::json!({
            "graph": graph.name(),
            "searches": searches,
            "page_reads": reads,
            "seconds": seconds,
        });
        return Ok(writeln!(out, "{json}")?);
    }
    writeln!(
        out,
        "{}: {} in {}; {} of {} pages read in the mean\n",
        graph.name(),
        match found.len() {
            1 => "1 search".to_owned(),
            many => format!("{} searches", units::count(many as u64)),
        },
        units::seconds(seconds),
        units::count(reads / found.len().max(1) as u64),
        units::count(graph.summary().pages),
    )?;
    writeln!(
        out,
        "{:>20} {:>14} {:>7} {:>11} {:>10}",
        "source", "reached", "levels", "pages read", "time"
    )?;
    for one in found {
        writeln!(
            out,
            "{:>20} {:>14} {:>7} {:>11} {:>10}",
            one.source,
            units::count(one.search.reached()),
            one.search.sizes.len(),
            units::count(one.page_reads),
            units::seconds(one.search.time.as_secs_f64()),
        )?;
    }
    Ok(())
}
