//! `atoll graph STORE pagerank|components|triangles`

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use graph::{Crew, Graph, RankOptions, Reads, components, pagerank, triangles};
use serde_json::json;

use crate::commands::graph::named;
use crate::commands::graph::options::{Graph as Asked, Work};
use crate::failure::Failure;
use crate::store::plain::Plain;
use crate::terminal::{interrupt, out};
use crate::units;

/// What is to be found.
struct Kernel {
    work: Work,
    options: RankOptions,
    /// How many of the highest ranks.
    top: usize,
    /// How many runs, at least one.
    runs: u32,
    /// Whether each begins with an empty pool.
    cold: bool,
}

/// The last of some runs, and what all of them took.
struct Runs {
    last: Found,
    times: Vec<Duration>,
    /// Pages that the last run read from the file.
    page_reads: u64,
}

impl Runs {
    /// The time in the middle; of an even number of runs the later of the two.
    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    }
}

/// What a kernel has found.
struct Found {
    json: serde_json::Value,
    /// What it has found, in one line.
    line: String,
    /// The vertices with the highest ranks.
    top: Vec<(i64, f64)>,
    reads: Reads,
    time: Duration,
}

/// Runs a kernel over all of a graph.
pub fn run(args: &Asked, opened: &Plain) -> Result<(), Failure> {
    let crew = Crew::new(opened.workers.clone(), opened.budget.clone());
    let _guard = interrupt::setting(crew.stop());
    let graph = block_on(named::open(&opened.store, args.graph.as_deref()))?;
    let asked = Kernel {
        work: args.work,
        options: rank_options(args),
        top: args.top.unwrap_or(10) as usize,
        runs: args.repeat.unwrap_or(1),
        cold: args.cold,
    };
    let runs = opened
        .workers
        .block_on(repeat(asked, graph.clone(), crew))?;
    let (seconds, reads) = (runs.median(), runs.page_reads);
    let times: Vec<f64> = runs.times.iter().map(Duration::as_secs_f64).collect();
    let found = runs.last;
    let mut out = out::stdout();
    if args.json {
        let mut json = found.json;
        json["graph"] = graph.name().into();
        json["page_reads"] = reads.into();
        json["pins"] = found.reads.pins.into();
        json["seconds"] = seconds.into();
        if args.repeat.is_some() {
            json["runs"] = times.into();
        }
        writeln!(out, "{json}")?;
        return Ok(out.flush()?);
    }
    writeln!(
        out,
        "{}: {} in {}; {} pages read, the graph has {}",
        graph.name(),
        found.line,
        units::seconds(seconds),
        units::count(reads),
        units::count(graph.summary().pages),
    )?;
    if !found.top.is_empty() {
        writeln!(out, "\n{:>20} {:>12}", "vertex", "rank")?;
    }
    for (vertex, rank) in found.top {
        writeln!(out, "{vertex:>20} {rank:>12.9}")?;
    }
    Ok(out.flush()?)
}

async fn repeat(asked: Kernel, graph: Arc<Graph>, crew: Crew) -> graph::Result<Runs> {
    let mut times = Vec::new();
    loop {
        if asked.cold {
            graph.pool().clear();
        }
        let before = graph.pool().statistics().loads;
        let last = compute(&asked, &graph, &crew).await?;
        times.push(last.time);
        if times.len() == asked.runs as usize {
            let page_reads = graph.pool().statistics().loads - before;
            return Ok(Runs {
                last,
                times,
                page_reads,
            });
        }
    }
}

async fn compute(asked: &Kernel, graph: &Arc<Graph>, crew: &Crew) -> graph::Result<Found> {
    match asked.work {
        Work::Pagerank => ranks(asked, graph, crew).await,
        Work::Components => {
            let found = components(graph, crew).await?;
            let (count, largest) = (units::count(found.count), units::count(found.largest));
            Ok(Found {
                json: json!({ "components": found.count, "largest": found.largest }),
                line: format!("{count} components, the largest of {largest} vertices,"),
                top: Vec::new(),
                reads: found.reads,
                time: found.time,
            })
        }
        _ => {
            let found = triangles(graph, crew).await?;
            Ok(Found {
                json: json!({ "triangles": found.triangles, "turns": found.turns }),
                line: format!("{} triangles", units::count(found.triangles)),
                top: Vec::new(),
                reads: found.reads,
                time: found.time,
            })
        }
    }
}

fn rank_options(args: &Asked) -> RankOptions {
    let usual = RankOptions::default();
    RankOptions {
        damping: args.damping.unwrap_or(usual.damping),
        tolerance: args.tolerance.unwrap_or(usual.tolerance),
        rounds: args.rounds.unwrap_or(usual.rounds),
    }
}

async fn ranks(asked: &Kernel, graph: &Arc<Graph>, crew: &Crew) -> graph::Result<Found> {
    let found = pagerank(graph, asked.options, crew).await?;
    let mut order: Vec<u32> = (0..graph.vertices()).collect();
    let most = order.len().min(asked.top);
    let rank = |vertex: u32| found.ranks[vertex as usize];
    // Of vertices with the same rank, the lower number first.
    let before = |one: &u32, other: &u32| rank(*other).total_cmp(&rank(*one)).then(one.cmp(other));
    if most > 0 && most < order.len() {
        order.select_nth_unstable_by(most - 1, before);
    }
    order.truncate(most);
    order.sort_unstable_by(before);
    let ids = graph.ids_of(&order).await?;
    let ranks = order.iter().map(|&vertex| rank(vertex));
    let top: Vec<(i64, f64)> = ids.into_iter().zip(ranks).collect();
    let of = |(vertex, rank): &(i64, f64)| json!({ "vertex": named::id(*vertex), "rank": rank });
    Ok(Found {
        json: json!({
            "rounds": found.rounds,
            "change": found.change,
            "ranks": top.iter().map(of).collect::<Vec<_>>(),
        }),
        line: format!("ranks after {} rounds", found.rounds),
        top,
        reads: found.reads,
        time: found.time,
    })
}
