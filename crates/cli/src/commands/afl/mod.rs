//! `atoll afl`: statements of the array functional language over the arrays of a store. It needs no SQL.

mod cells;
pub mod options;
mod perform;
mod schedule;
#[cfg(feature = "sql")]
mod shell;
mod statements;
mod stop;

use anyhow::anyhow;

use crate::commands::afl::options::Afl;
use crate::commands::afl::perform::{Show, perform, tell};
use crate::failure::Failure;
use crate::store::plain::{self, Open};
use crate::text;

/// Runs the command.
pub fn run(args: &Afl) -> Result<(), Failure> {
    let all = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => text::of(path)?,
        #[cfg(feature = "sql")]
        (None, None) if shell::is_wanted(args) => return shell::run(args),
        (None, None) => text::of_standard_input()?,
    };
    let all = statements::split(&all);
    if all.is_empty() {
        return Err(anyhow!("nothing was asked: give a statement, such as \"list()\"").into());
    }
    let mut writes = false;
    for statement in &all {
        let changes = afl::writes(statement.text).or_else(|error| tell(args, statement, error))?;
        writes |= changes && !args.explain;
    }
    let how = match (args.create, writes) {
        (true, _) => Open::Create(None),
        (_, true) => Open::Write,
        _ => Open::Read,
    };
    let opened = plain::open(&args.store, &args.compute, how, false)?;
    let mut ran = Ok(());
    for statement in &all {
        let one = perform(args, &opened, statement, Show::of(args));
        let failed = one.is_err();
        ran = ran.and(one);
        // What is only explained does nothing that the next one would need.
        if failed && !args.explain {
            break;
        }
    }
    if how != Open::Read {
        opened.store.close()?;
    }
    ran
}
