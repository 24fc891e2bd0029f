//! `atoll pages` for a store of tables, in a program that is built without them.

use std::io::Write;

use anyhow::anyhow;
use store::{Options, Store};

use crate::commands::pages::options::{Asked, Look};
use crate::commands::pages::{check, head};
use crate::failure::Failure;
use crate::store::files;
use crate::terminal::out;

/// Whether the error of opening a store says that it holds no raw pages.
pub fn is_meant(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(store::Error::NotPages { .. }))
}

/// Runs the command.
pub fn run(args: &Asked) -> Result<(), Failure> {
    let store = Store::open(&args.store, &Options::read_only())?;
    files::tell_dropped(&store.recovery().dropped);
    match args.what {
        Look::Stat => stat(args, &store),
        Look::Dump => Err(anyhow!(
            "{}: which page belongs to which table is only known to a program with tables",
            args.store.display()
        )
        .into()),
        _ => check::run(args, |progress| Ok(store.check(progress)?)),
    }
}

fn stat(args: &Asked, store: &Store) -> Result<(), Failure> {
    let held = store.statistics();
    let mut out = out::stdout();
    if args.json {
        let json = serde_json::json!({
            "store": args.store.display().to_string(),
            "page_size": held.page_size,
            "version": held.version,
            "pages": held.pages.pages,
            "file_bytes": held.file_bytes,
            "used_bytes": held.used_bytes,
            "free_bytes": held.free_bytes,
            "log_bytes": held.log_bytes,
        });
        writeln!(out, "{json}")?;
    } else {
        head::write(&mut out, args, &held, "pages")?;
    }
    Ok(out.flush()?)
}
