//! `atoll array`: the arrays of a store. It needs no SQL.

mod describe;
pub mod options;

use std::io::Write;
use std::path::Path;

use ::array::Writer;
use anyhow::anyhow;
use arrayfile::{ExportOptions, ImportOptions, Times};

use crate::commands::array::options::{Array, Work};
use crate::failure::Failure;
use crate::store::plain::{self, Open, Plain};
use crate::terminal::out;
use crate::transfer::{self, Incoming};

/// Runs the command.
pub fn run(args: &Array) -> Result<(), Failure> {
    args.check()?;
    if args.work == Work::Import {
        return import(args);
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
        _ => export(args, &opened),
    };
    if how == Open::Write {
        opened.store.close()?;
    }
    ran
}

/// Makes an array of a file.
fn import(args: &Array) -> Result<(), Failure> {
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    transfer::import(&Incoming {
        store: &args.store,
        name: &name(args, file)?,
        file,
        options: ImportOptions {
            member: args.member.clone(),
            attribute: args.attribute.clone(),
            dimensions: args.dims.clone(),
            chunk: args.chunk.clone().map(|of| of.0),
            compression: args.compress.map_or(::array::Compression::None, Into::into),
            replace: args.replace,
            times: args.times.map_or_else(Times::default, Into::into),
        },
        page_size: args.page_size,
        compute: &args.compute,
        json: args.json,
    })
}

/// The name of the array that is made.
fn name(args: &Array, file: &Path) -> Result<String, Failure> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }
    let member = args.member.as_deref().filter(|of| !of.contains(','));
    let member = member.and_then(|of| of.rsplit('/').next());
    let name = member.or_else(|| file.file_name().and_then(|name| name.to_str()));
    match name.and_then(|name| name.split('.').find(|part| !part.is_empty())) {
        Some(name) => Ok(name.to_owned()),
        None => Err(anyhow!("the array needs a name: give it with --name").into()),
    }
}

/// Writes an array into a file.
fn export(args: &Array, opened: &Plain) -> Result<(), Failure> {
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let snapshot = opened.store.snapshot();
    let name = describe::chosen(args, &snapshot)?.name;
    let options = ExportOptions {
        group: false,
        format: args.format.map(Into::into),
        attribute: args.attribute.clone(),
        null: args.null,
        packing: args.pack.map_or_else(Default::default, Into::into),
    };
    transfer::export(opened, &snapshot, (&name, file), &options, args.json)
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
