//! `atoll pages STORE vacuum`, for stores of tables and of raw pages.

use std::io::Write;

use atoll::{Access, Database, PageOptions, PageStore, Vacuum};

use crate::commands::pages::options::Asked;
use crate::failure::Failure;
use crate::options::resources;
use crate::store::files;
use crate::terminal::out;
use crate::units;

/// Runs the command.
pub fn run(args: &Asked) -> Result<(), Failure> {
    let mut options = resources::reading(&args.layout);
    options.access = Access::Write;
    let vacuum = match Database::open(&args.store, &options) {
        Err(error) if error.is_raw_pages() => {
            let store = PageStore::open(&args.store, &PageOptions::default())?;
            let vacuum = store.vacuum()?;
            store.close()?;
            vacuum
        }
        opened => {
            let database = opened?;
            files::tell_dropped(&database.recovery().dropped);
            let vacuum = database.vacuum()?;
            database.close()?;
            vacuum
        }
    };
    tell(args, &vacuum)
}

fn tell(args: &Asked, vacuum: &Vacuum) -> Result<(), Failure> {
    let store = args.store.display().to_string();
    let mut out = out::stdout();
    if args.json {
        let json = serde_json::json!({
            "store": store,
            "before_bytes": vacuum.before_bytes,
            "after_bytes": vacuum.after_bytes,
            "moved_pages": vacuum.moved_pages,
        });
        writeln!(out, "{json}")?;
    } else {
        writeln!(
            out,
            "{store}: {} before, {} now; {} pages moved",
            units::bytes(vacuum.before_bytes),
            units::bytes(vacuum.after_bytes),
            units::count(vacuum.moved_pages)
        )?;
    }
    Ok(out.flush()?)
}
