//! `atoll pages STORE vacuum`, for stores of tables and of raw pages.

use std::io::Write;

use store::{Error, Options, PageStore, Store, Vacuum};

use crate::commands::pages::options::Asked;
use crate::failure::Failure;
use crate::store::files;
use crate::terminal::out;
use crate::units;

/// Runs the command.
pub fn run(args: &Asked) -> Result<(), Failure> {
    let vacuum = match PageStore::open(&args.store, &Options::default()) {
        Err(Error::NotPages { .. }) => {
            let store = Store::open(&args.store, &Options::default())?;
            files::tell_dropped(&store.recovery().dropped);
            let vacuum = store.vacuum()?;
            store.close()?;
            vacuum
        }
        opened => {
            let store = opened?;
            files::tell_dropped(&store.recovery().dropped);
            let vacuum = store.vacuum()?;
            store.close()?;
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
