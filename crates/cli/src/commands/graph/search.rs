//! `atoll graph STORE bfs`

use std::io::Write;
use std::sync::Arc;

use graph::{Crew, Graph, Search, bfs};

use crate::commands::graph::options::Graph as Asked;
use crate::commands::graph::{named, stopping};
use crate::failure::Failure;
use crate::store::plain::Plain;
use crate::terminal::out;
use crate::units;

/// Searches from one vertex, or from some.
pub fn run(args: &Asked, opened: &Plain) -> Result<(), Failure> {
    let crew = Crew::new(opened.workers.clone(), opened.budget.clone());
    let _guard = stopping::set(crew.stop());
    let graph = workers::block_on(named::open(&opened.store, args.graph.as_deref()))?;
    let found = workers::block_on(search(args, &graph, &crew));
    let found = found.map_err(stopping::failure)?;
    let mut out = out::stdout();
    match (args.source, found.as_slice()) {
        (Some(_), [(source, one)]) => tell_one(&mut out, args, &graph, *source, one)?,
        _ => tell_all(&mut out, args, &graph, &found)?,
    }
    Ok(out.flush()?)
}

/// The searches, each with the id of its source.
async fn search(args: &Asked, graph: &Arc<Graph>, crew: &Crew) -> graph::Result<Vec<(u64, Search)>> {
    let sources = match args.source {
        Some(id) => vec![graph.find(id).await?],
        None => {
            let count = args.sources.unwrap_or(1) as usize;
            graph.sources(count, args.seed.unwrap_or(0)).await?
        }
    };
    let mut found = Vec::with_capacity(sources.len());
    for source in sources {
        if args.cold {
            graph.pool().clear();
        }
        let mut one = bfs(graph, source, crew).await?;
        one.forget_levels();
        found.push((graph.id(source).await?, one));
    }
    Ok(found)
}

fn json(source: u64, found: &Search) -> serde_json::Value {
    serde_json::json!({
        "source": source,
        "reached": found.reached(),
        "levels": found.sizes,
        "page_reads": found.reads.misses,
        "pins": found.reads.pins,
        "seconds": found.time.as_secs_f64(),
    })
}

fn tell_one(
    out: &mut impl Write,
    args: &Asked,
    graph: &Graph,
    source: u64,
    found: &Search,
) -> Result<(), Failure> {
    if args.json {
        return Ok(writeln!(out, "{}", json(source, found))?);
    }
    writeln!(
        out,
        "{}: from {source} {} of {} vertices in {}; {} of {} pages read\n",
        graph.name(),
        units::count(found.reached()),
        units::count(graph.vertices().into()),
        units::seconds(found.time.as_secs_f64()),
        units::count(found.reads.misses),
        units::count(graph.summary().pages),
    )?;
    writeln!(out, "{:>7} {:>14}", "level", "vertices")?;
    for (level, size) in found.sizes.iter().enumerate() {
        writeln!(out, "{level:>7} {:>14}", units::count(*size))?;
    }
    Ok(())
}

fn tell_all(
    out: &mut impl Write,
    args: &Asked,
    graph: &Graph,
    found: &[(u64, Search)],
) -> Result<(), Failure> {
    let sum = |of: fn(&Search) -> f64| found.iter().map(|(_, one)| of(one)).sum::<f64>();
    let (seconds, reads) = (
        sum(|one| one.time.as_secs_f64()),
        sum(|one| one.reads.misses as f64),
    );
    if args.json {
        let searches: Vec<_> = found.iter().map(|(source, one)| json(*source, one)).collect();
        let json = serde_json::json!({
            "graph": graph.name(),
            "searches": searches,
            "page_reads": reads as u64,
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
        units::count((reads / found.len().max(1) as f64).round() as u64),
        units::count(graph.summary().pages),
    )?;
    writeln!(
        out,
        "{:>20} {:>14} {:>7} {:>11} {:>10}",
        "source", "reached", "levels", "pages read", "time"
    )?;
    for (source, one) in found {
        writeln!(
            out,
            "{source:>20} {:>14} {:>7} {:>11} {:>10}",
            units::count(one.reached()),
            one.sizes.len(),
            units::count(one.reads.misses),
            units::seconds(one.time.as_secs_f64()),
        )?;
    }
    Ok(())
}
