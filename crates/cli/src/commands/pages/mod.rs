//! `atoll pages`: the contents of a store, and whether they are intact; stores of raw pages, and operators over them.

mod check;
mod head;
mod numbers;
mod operate;
pub mod options;
#[cfg(not(feature = "sql"))]
mod plain;
mod raw;
#[cfg(feature = "sql")]
mod tables;
mod vacuum;

use store::Options;

use crate::commands::pages::options::{Asked, Look, Pages};
use crate::failure::Failure;
use crate::store::files;

/// Runs the command.
pub fn run(args: &Pages) -> Result<(), Failure> {
    let args = &args.asked()?;
    if args.what != Look::Create && files::absent(&args.store) {
        return Err(files::missing(&args.store).into());
    }
    match args.what {
        Look::Create => operate::create(args),
        Look::Vacuum => vacuum::run(args),
        Look::Alloc => operate::alloc(args),
        Look::Scan | Look::Groupby | Look::Hashjoin => operate::operate(args),
        Look::Stat | Look::Check | Look::Dump | Look::Repair => look(args),
    }
}

/// Looks into a store of whatever kind.
fn look(args: &Asked) -> Result<(), Failure> {
    if args.what == Look::Repair {
        repair(args)?;
    }
    contents(args)
}

/// What is in a store of whatever kind.
#[cfg(feature = "sql")]
fn contents(args: &Asked) -> Result<(), Failure> {
    let options = crate::options::resources::reading(&args.layout);
    let database = match atoll::Database::open(&args.store, &options) {
        Err(error) if error.is_raw_pages() => return raw::run(args),
        database => database?,
    };
    files::tell_dropped(&database.recovery().dropped);
    match args.what {
        Look::Stat => tables::stat(args, &database),
        Look::Dump => tables::dump(args, &database),
        _ => check::run(args, |progress| Ok(database.check(progress)?)),
    }
}

/// What is in a store of whatever kind; of tables no more than that pages can tell.
#[cfg(not(feature = "sql"))]
fn contents(args: &Asked) -> Result<(), Failure> {
    match raw::run(args) {
        Err(Failure::Error(error)) if plain::is_meant(&error) => plain::run(args),
        ran => ran,
    }
}

/// Drops the damaged end of the log, and checks what is left.
fn repair(args: &Asked) -> Result<(), Failure> {
    let done = store::repair(&args.store, &Options::default())?;
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
