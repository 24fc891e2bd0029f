//! `atoll pages`: the contents of a store, and whether they are intact.

mod check;
mod head;
pub mod options;
mod raw;
mod tables;

use atoll::{Database, PageOptions};

use crate::commands::pages::options::{Look, Pages};
use crate::failure::Failure;
use crate::options::resources;
use crate::store::files;

/// Runs the command.
pub fn run(args: &Pages) -> Result<(), Failure> {
    if files::absent(&args.store) {
        return Err(files::missing(&args.store).into());
    }
    if args.what == Look::Repair {
        repair(args)?;
    }
    let database = match Database::open(&args.store, &resources::reading(&args.layout)) {
        Err(error) if error.is_raw_pages() => return raw::run(args),
        database => database?,
    };
    files::tell_dropped(&database.recovery().dropped);
    match args.what {
        Look::Stat => tables::stat(args, &database),
        Look::Check | Look::Repair => check::run(args, |progress| Ok(database.check(progress)?)),
        Look::Dump => tables::dump(args, &database),
    }
}

/// Drops the damaged end of the log, and checks what is left.
fn repair(args: &Pages) -> Result<(), Failure> {
    let done = atoll::repair(&args.store, &PageOptions::default())?;
    let store = args.store.display();
    match (&done.recovery.dropped, &done.copy) {
        (Some(dropped), Some(copy)) => {
            eprintln!(
                "{store}: {dropped}; the log as it was is kept in {}",
                copy.display()
            );
        }
        _ => eprintln!("{store}: the log is not damaged, nothing was given up"),
    }
    Ok(())
}
