//! `atoll pages` for a store of tables.

use std::io::Write;

use atoll::{Codec, Database, PartPages, Place, Statistics, StoreStatistics};

use crate::commands::pages::head;
use crate::commands::pages::options::Asked;
use crate::failure::Failure;
use crate::terminal::out;
use crate::units;

/// Prints pages by kind and encoding, sizes, pool, nodes, log.
pub fn stat(args: &Asked, database: &Database) -> Result<(), Failure> {
    let statistics = database.statistics();
    let placement = database.placement()?;
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", json(args, &statistics, &placement))?;
    } else {
        print(&mut out, args, &statistics, &placement)?;
    }
    Ok(out.flush()?)
}

fn json(args: &Asked, statistics: &Statistics, placement: &[u64]) -> serde_json::Value {
    let (store, pool) = (&statistics.store, &statistics.pool);
    let share = |share: &atoll::Share| serde_json::json!({ "pages": share.pages, "raw_bytes": share.raw_bytes, "stored_bytes": share.stored_bytes });
    let kinds = atoll::Kind::ALL.iter().zip(&store.kinds);
    let kinds: serde_json::Map<_, _> = kinds
        .map(|(kind, of)| (kind.name().to_owned(), share(of)))
        .collect();
    serde_json::json!({
        "store": args.store.display().to_string(),
        "page_size": store.page_size,
        "version": store.version,
        "file_bytes": store.file_bytes,
        "used_bytes": store.used_bytes,
        "free_bytes": store.free_bytes,
        "log_bytes": store.log_bytes,
        "pages": share(&store.pages),
        "codecs": { "raw": share(&store.raw), "zstd": share(&store.zstd) },
        "kinds": kinds,
        "blocks_by_node": placement,
        "pool": {
            "frames": pool.frames,
            "resident": pool.resident,
            "nodes": pool.nodes.iter().map(|node| node.frames).collect::<Vec<_>>(),
        },
        "memory_limit": statistics.memory_limit,
    })
}

fn print(
    out: &mut impl Write,
    args: &Asked,
    statistics: &Statistics,
    placement: &[u64],
) -> Result<(), Failure> {
    let (store, pool) = (&statistics.store, &statistics.pool);
    let size = units::bytes;
    head::write(out, args, store, "pages")?;
    writeln!(
        out,
        "\n{:<12} {:>10} {:>11} {:>11} {:>7}",
        "pages", "number", "raw", "stored", "ratio"
    )?;
    let mut line = |name: &str, share: &atoll::Share| {
        let ratio = units::share(share.stored_bytes, share.raw_bytes);
        let (raw, stored) = (size(share.raw_bytes), size(share.stored_bytes));
        writeln!(
            out,
            "{name:<12} {:>10} {raw:>11} {stored:>11} {ratio:>7}",
            units::count(share.pages)
        )
    };
    for (kind, share) in atoll::Kind::ALL
        .iter()
        .zip(&store.kinds)
        .filter(|(_, share)| share.pages > 0)
    {
        line(kind.name(), share)?;
    }
    line("as they are", &store.raw)?;
    line("zstd", &store.zstd)?;
    line("all", &store.pages)?;
    let total: u64 = placement.iter().sum();
    writeln!(
        out,
        "\n{} blocks of 65,536 rows at most",
        units::count(total)
    )?;
    for ((node, blocks), frames) in placement.iter().enumerate().zip(&pool.nodes) {
        let home = size(frames.frames as u64 * pool.page_size as u64);
        writeln!(
            out,
            "node {node}: {} blocks, {home} of the pool",
            units::count(*blocks)
        )?;
    }
    Ok(())
}

/// A page, with what it holds.
struct Line<'a> {
    place: Place,
    part: &'a PartPages,
}

/// Prints the layout of the file.
pub fn dump(args: &Asked, database: &Database) -> Result<(), Failure> {
    let parts = database.pages()?;
    let of = |part| {
        move |place: &Place| Line {
            place: *place,
            part,
        }
    };
    let mut lines: Vec<Line> = parts
        .iter()
        .flat_map(|part| part.places.iter().map(of(part)))
        .collect();
    lines.sort_by_key(|line| line.place.offset);
    let statistics = database.statistics().store;
    let mut out = out::stdout();
    if args.json {
        dump_json(&mut out, args, &statistics, &lines)?;
    } else {
        dump_text(&mut out, args, &statistics, &lines)?;
    }
    Ok(out.flush()?)
}

fn dump_json(
    out: &mut impl Write,
    args: &Asked,
    statistics: &StoreStatistics,
    lines: &[Line],
) -> Result<(), Failure> {
    let head = serde_json::json!({
        "store": args.store.display().to_string(),
        "page_size": statistics.page_size,
        "file_bytes": statistics.file_bytes,
        "free_bytes": statistics.free_bytes,
    });
    // The members so far, then the list, which is written piece by piece as it may be long.
    write!(
        out,
        "{},\"pages\":[",
        head.to_string().trim_end_matches('}')
    )?;
    for (at, Line { place, part }) in lines.iter().enumerate() {
        let page = serde_json::json!({
            "page": place.page,
            "offset": place.offset,
            "stored_bytes": place.stored_bytes,
            "raw_bytes": place.raw_bytes,
            "kind": place.kind.name(),
            "codec": match place.codec { Codec::Raw => "raw", Codec::Zstd => "zstd" },
            "table": part.table,
            "holds": part.holds.name(&part.table),
        });
        write!(out, "{}{page}", if at > 0 { "," } else { "" })?;
    }
    Ok(writeln!(out, "]}}")?)
}

/// Writes a line for each run of adjacent pages that hold the same.
fn dump_text(
    out: &mut impl Write,
    args: &Asked,
    statistics: &StoreStatistics,
    lines: &[Line],
) -> Result<(), Failure> {
    head::write(out, args, statistics, "pages")?;
    writeln!(
        out,
        "\n{:>14} {:>8} {:>11} {:>11}  {:<10} of",
        "offset", "pages", "raw", "stored", "kind"
    )?;
    let same = |a: &Line, b: &Line| std::ptr::eq(a.part, b.part) && a.place.kind == b.place.kind;
    for run in lines.chunk_by(same) {
        let sum = |of: fn(&Place) -> u32| -> u64 {
            run.iter().map(|line| u64::from(of(&line.place))).sum()
        };
        writeln!(
            out,
            "{:>14} {:>8} {:>11} {:>11}  {:<10} {}",
            units::count(run[0].place.offset),
            units::count(run.len() as u64),
            units::bytes(sum(|place| place.raw_bytes)),
            units::bytes(sum(|place| place.stored_bytes)),
            run[0].place.kind.name(),
            run[0].part.holds.name(&run[0].part.table)
        )?;
    }
    if lines.is_empty() {
        writeln!(
            out,
            "no pages: rows that do not fill a block yet are in the catalog"
        )?;
    }
    Ok(())
}
