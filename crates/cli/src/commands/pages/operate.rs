//! `atoll pages` for what only stores of raw pages have: to make them, fill them, and run
//! operators over them. It needs no SQL.

use std::io::Write;
use std::time::Instant;

use anyhow::anyhow;
use pages::{Access, Fill, Operator, Options, PageFile, Sweep, Swept, Timed};

use crate::commands::pages::numbers::Numbers;
use crate::commands::pages::options::{Asked, Look, Switch};
use crate::failure::Failure;
use crate::terminal::{interrupt, out};
use crate::units;

/// Bytes of the pool where pages are only written, and the least elsewhere.
const LEAST_POOL: u64 = 8 << 20;

/// Makes a store.
pub fn create(args: &Asked) -> Result<(), Failure> {
    let page_size = args.raw.page_size.unwrap_or(64 << 10);
    // What does not fit is refused as every size that is not possible.
    let page_size = u32::try_from(page_size).unwrap_or(u32::MAX);
    let file = PageFile::create(
        &args.store,
        page_size,
        args.raw.pages.unwrap_or(0),
        &options(args, LEAST_POOL, Access::Write),
    )?;
    let held = file.store().statistics();
    file.close()?;
    let (store, room) = (args.store.display().to_string(), held.size - held.allocated);
    let mut out = out::stdout();
    if args.json {
        let json = serde_json::json!({ "store": store, "page_size": page_size, "room": room });
        writeln!(out, "{json}")?;
    } else {
        writeln!(
            out,
            "{store}: room for {} pages of {}",
            units::count(room),
            units::bytes(page_size.into())
        )?;
    }
    Ok(out.flush()?)
}

/// Fills all pages with random bytes, for each number of threads in turn.
pub fn alloc(args: &Asked) -> Result<(), Failure> {
    let file = PageFile::open(&args.store, &options(args, LEAST_POOL, Access::Write))?;
    let fill = Fill {
        pages: args.raw.pages,
        seed: args.raw.seed.unwrap_or(0),
    };
    let mut times: Vec<Timed> = listed(&args.raw.threads, 1)
        .into_iter()
        .map(|threads| Timed {
            threads,
            partitions: 0,
            prefetch: 0,
            numa: false,
            seconds: vec![],
        })
        .collect();
    let (mut allocated, mut written) = (0, 0);
    for _ in 0..args.raw.repeat.unwrap_or(1) {
        for timed in &mut times {
            let begin = Instant::now();
            let filled = pages::alloc(&file, timed.threads, &fill, &interrupt::asked);
            let filled = filled.map_err(failure)?;
            timed.seconds.push(begin.elapsed().as_secs_f64());
            allocated += filled.allocated;
            written = filled.written;
        }
    }
    let bytes = written * file.store().page_size() as u64;
    let page_size = file.store().page_size();
    file.close()?;
    let mut out = out::stdout();
    if args.json {
        let of = |timed: &Timed| serde_json::json!({ "threads": timed.threads, "seconds": timed.seconds, "median": timed.median() });
        let json = serde_json::json!({
            "store": args.store.display().to_string(),
            "operator": "alloc",
            "page_size": page_size,
            "allocated": allocated,
            "written": written,
            "times": times.iter().map(of).collect::<Vec<_>>(),
        });
        writeln!(out, "{json}")?;
        return Ok(out.flush()?);
    }
    writeln!(
        out,
        "{}: {} pages allocated, {} of {} filled\n",
        args.store.display(),
        units::count(allocated),
        units::count(written),
        units::bytes(page_size as u64)
    )?;
    writeln!(out, "{:>7} {:>10} {:>10}", "threads", "median", "a second")?;
    for timed in &times {
        let (median, speed) = shown(timed, bytes);
        writeln!(out, "{:>7} {median:>10} {speed:>10}", timed.threads)?;
    }
    Ok(out.flush()?)
}

/// Runs an operator in all combinations of the options.
pub fn operate(args: &Asked) -> Result<(), Failure> {
    let operator = match args.what {
        Look::Groupby => Operator::Groupby,
        Look::Hashjoin => Operator::Hashjoin,
        _ => Operator::Scan(args.raw.threshold.unwrap_or(0)),
    };
    let numa: Vec<bool> = match args.raw.numa.as_slice() {
        [] => vec![false],
        modes => modes.iter().map(|mode| *mode == Switch::On).collect(),
    };
    let sweep = Sweep {
        threads: listed(&args.raw.threads, 1),
        partitions: listed(&args.raw.partitions, 16),
        prefetch: listed(&args.raw.prefetch, 0),
        numa,
        rounds: args.raw.repeat.unwrap_or(5).into(),
        iterations: 1,
        cold: args.raw.cold,
    };
    let options = options(args, whole(args)?, Access::Read);
    let swept = pages::sweep(&args.store, &options, operator, &sweep, &interrupt::asked);
    let swept = swept.map_err(failure)?;
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", json(args, &swept))?;
    } else {
        print(&mut out, args, &swept)?;
    }
    Ok(out.flush()?)
}

/// Bytes of a pool that holds all pages, if a quarter of the free memory is enough for that.
fn whole(args: &Asked) -> Result<u64, Failure> {
    let file = std::fs::metadata(&args.store);
    let file = file.map_err(|error| anyhow!("{}: {error}", args.store.display()))?;
    let wanted = file.len().saturating_add(file.len() / 8);
    Ok(wanted.min(memory::available()? / 4).max(LEAST_POOL))
}

fn options(args: &Asked, pool: u64, access: Access) -> Options {
    Options {
        pool_bytes: args.layout.pool.unwrap_or(pool),
        machine: args.layout.machine.clone(),
        placement: args.layout.pool_memory.into(),
        mapped: args.layout.mapped,
        prefetcher: args.raw.prefetcher.unwrap_or_default(),
        access,
        ..Options::default()
    }
}

fn listed(numbers: &Option<Numbers>, usual: usize) -> Vec<usize> {
    let given = numbers.as_ref().map(|numbers| numbers.0.clone());
    given.unwrap_or_else(|| vec![usual])
}

fn failure(error: pages::Error) -> Failure {
    match error {
        pages::Error::Interrupted => Failure::Interrupted,
        error => error.into(),
    }
}

/// The median time, and the bytes in a second.
fn shown(timed: &Timed, bytes: u64) -> (String, String) {
    let speed = (bytes as f64 / timed.median()) as u64;
    (units::seconds(timed.median()), units::bytes(speed))
}

/// A share in percent, if there is one.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

fn print(out: &mut impl Write, args: &Asked, swept: &Swept) -> Result<(), Failure> {
    writeln!(
        out,
        "{}: {} of {} pages of {}: {}\n",
        args.store.display(),
        args.what.name(),
        units::count(swept.pages),
        units::bytes(swept.page_size as u64),
        swept.answer
    )?;
    writeln!(
        out,
        "{:>4} {:>10} {:>8} {:>7} {:>10} {:>10} {:>10} {:>10}",
        "numa", "partitions", "prefetch", "threads", "median", "least", "most", "a second"
    )?;
    let mode = |numa: bool| if numa { "on" } else { "off" };
    for timed in &swept.times {
        let (median, speed) = shown(timed, swept.bytes);
        let of = |least: fn(f64, f64) -> f64| timed.seconds.iter().copied().reduce(least);
        let of = |least| units::seconds(of(least).unwrap_or(f64::NAN));
        writeln!(
            out,
            "{:>4} {:>10} {:>8} {:>7} {median:>10} {:>10} {:>10} {speed:>10}",
            mode(timed.numa),
            units::count(timed.partitions as u64),
            timed.prefetch,
            timed.threads,
            of(f64::min),
            of(f64::max),
        )?;
    }
    writeln!(
        out,
        "\npool in the last round\n{:>4} {:>10} {:>9} {:>9} {:>12} {:>11} {:>11} {:>9} {:>9} {:>11} {:>9}",
        "numa",
        "partitions",
        "frames",
        "resident",
        "hits",
        "misses",
        "prefetched",
        "accuracy",
        "coverage",
        "evictions",
        "waits"
    )?;
    for (partitions, numa, pool) in &swept.pools {
        writeln!(
            out,
            "{:>4} {:>10} {:>9} {:>9} {:>12} {:>11} {:>11} {:>9} {:>9} {:>11} {:>9}",
            mode(*numa),
            units::count(*partitions as u64),
            units::count(pool.frames as u64),
            units::count(pool.resident as u64),
            units::count(pool.hits),
            units::count(pool.misses),
            units::count(pool.prefetched),
            percent(pool.accuracy()),
            percent(pool.coverage()),
            units::count(pool.evictions),
            units::count(pool.waits),
        )?;
    }
    Ok(())
}

fn json(args: &Asked, swept: &Swept) -> serde_json::Value {
    let time = |timed: &Timed| {
        serde_json::json!({
            "numa": timed.numa,
            "partitions": timed.partitions,
            "prefetch": timed.prefetch,
            "threads": timed.threads,
            "seconds": timed.seconds,
            "median": timed.median(),
        })
    };
    let pools = swept.pools.iter().map(|(partitions, numa, pool)| {
        serde_json::json!({
            "numa": numa,
            "partitions": partitions,
            "frames": pool.frames,
            "resident": pool.resident,
            "hits": pool.hits,
            "misses": pool.misses,
            "prefetched": pool.prefetched,
            "prefetch_used": pool.prefetch_used,
            "prefetch_late": pool.prefetch_late,
            "prefetch_wasted": pool.prefetch_wasted,
            "prefetch_dropped": pool.prefetch_dropped,
            "accuracy": pool.accuracy(),
            "coverage": pool.coverage(),
            "evictions": pool.evictions,
            "waits": pool.waits,
        })
    });
    serde_json::json!({
        "store": args.store.display().to_string(),
        "operator": args.what.name(),
        "page_size": swept.page_size,
        "pages": swept.pages,
        "bytes": swept.bytes,
        "answer": swept.answer.to_string(),
        "times": swept.times.iter().map(time).collect::<Vec<_>>(),
        "pools": pools.collect::<Vec<_>>(),
    })
}
