//! `atoll array`: the arrays of a store. It needs no SQL.

mod describe;
pub mod options;
mod transfer;

use std::io::Write;

use ::array::Writer;

use crate::commands::array::options::{Array, Work};
use crate::failure::Failure;
use crate::store::plain::{self, Open, Plain};
use crate::terminal::out;

/// Runs the command.
pub fn run(args: &Array) -> Result<(), Failure> {
    args.check()?;
    if args.work == Work::Import {
        return transfer::import(args);
    }
    let how = match args.work {
        Work::Delete => Open::Write,
        _ => Open::Read,
    };
    let opened = plain::open(&args.store, &args.compute, how, false)?;
    let ran = match args.work {
        Work::List => describe::list(args, &opened.store.snapshot()),
        Work::Describe => describe::describe(args, &opened.store.snapshot()),
        Work::Delete => delete(args, &opened),
        _ => transfer::export(args, &opened),
    };
    if how == Open::Write {
        opened.store.close()?;
    }
    ran
}

/// Deletes an array.
fn delete(args: &Array, opened: &Plain) -> Result<(), Failure> {
    let name = args.name.as_deref().unwrap_or_default();
    let mut writer = Writer::begin(&opened.store)?;
    writer.delete(name)?;
    writer.commit()?;
    let mut out = out::stdout();
    if args.json {
        writeln!(
            out,
            "{}",
            serde_json::json!({ "array": name, "deleted": true })
        )?;
    } else {
        writeln!(out, "{name}: deleted")?;
    }
    Ok(out.flush()?)
}
