//! `atoll pages` for a store of raw pages.

use std::io::Write;

use store::{Options, PageStore, PoolOptions};

use crate::commands::pages::options::{Asked, Look};
use crate::commands::pages::{check, head};
use crate::failure::Failure;
use crate::store::files;
use crate::terminal::out;
use crate::units;

/// Runs the command.
pub fn run(args: &Asked) -> Result<(), Failure> {
    let mut options = Options::read_only();
    if let Some(bytes) = args.layout.pool {
        options.pool = PoolOptions {
            bytes,
            ..options.pool
        };
    }
    let store = PageStore::open(&args.store, &options)?;
    files::tell_dropped(&store.recovery().dropped);
    match args.what {
        Look::Stat => stat(args, &store),
        Look::Dump => dump(args, &store),
        _ => check::run(args, |progress| Ok(store.check(progress)?)),
    }
}

fn stat(args: &Asked, store: &PageStore) -> Result<(), Failure> {
    let held = store.statistics();
    let file = &held.store;
    let mut out = out::stdout();
    if args.json {
        let json = serde_json::json!({
            "store": args.store.display().to_string(),
            "page_size": file.page_size,
            "version": file.version,
            "size": held.size,
            "allocated": held.allocated,
            "protected": held.protected,
            "file_bytes": file.file_bytes,
            "used_bytes": file.used_bytes,
            "free_bytes": file.free_bytes,
            "log_bytes": file.log_bytes,
        });
        writeln!(out, "{json}")?;
        return Ok(out.flush()?);
    }
    head::write(&mut out, args, file, "raw pages")?;
    writeln!(
        out,
        "{} pages: {} allocated, {} of them protected (allocation table), {} free",
        units::count(held.size),
        units::count(held.allocated),
        units::count(held.protected),
        units::count(held.size - held.allocated)
    )?;
    Ok(out.flush()?)
}

fn dump(args: &Asked, store: &PageStore) -> Result<(), Failure> {
    let view = store.view();
    let mut out = out::stdout();
    if args.json {
        let runs: Vec<_> = view.runs().map(|run| [run.start, run.end - 1]).collect();
        let (store, size) = (args.store.display().to_string(), view.size());
        let json = serde_json::json!({ "store": store, "size": size, "allocated": runs });
        writeln!(out, "{json}")?;
        return Ok(out.flush()?);
    }
    for run in view.runs() {
        let (first, last) = (run.start, run.end - 1);
        let protected = if u32::try_from(first).is_ok_and(|page| view.is_protected(page)) {
            "  begins with a protected page"
        } else {
            ""
        };
        writeln!(out, "{first:>10} ..= {last:<10}{protected}")?;
    }
    writeln!(
        out,
        "{} of {} pages allocated",
        units::count(view.allocated()),
        units::count(view.size())
    )?;
    Ok(out.flush()?)
}
