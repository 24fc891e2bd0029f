//! `atoll array import` and `export`.

use std::io::Write;
use std::path::Path;

use anyhow::anyhow;
use arrayfile::{ExportOptions, Format, ImportOptions, Job};
use futures::executor::block_on;
use serde_json::json;

use crate::commands::array::describe;
use crate::commands::array::options::Array;
use crate::failure::Failure;
use crate::store::files;
use crate::store::plain::{self, Open, Plain};
use crate::terminal::phases::Phases;
use crate::terminal::{interrupt, out};
use crate::units;

/// Makes an array of a file.
pub fn import(args: &Array) -> Result<(), Failure> {
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let name = name(args, file)?;
    // Before a store is made.
    Format::of_content(file)?;
    let existed = !files::absent(&args.store);
    if existed && args.page_size.is_some() {
        let store = args.store.display();
        return Err(
            anyhow!("{store} exists: its pages have their size; leave out --page-size").into(),
        );
    }
    let options = ImportOptions {
        member: args.member.clone(),
        attribute: args.attribute.clone(),
        dimensions: args.dims.clone(),
        chunk: args.chunk.clone(),
        compression: args.compress.map_or(array::Compression::None, Into::into),
        replace: args.replace,
    };
    let opened = plain::open(
        &args.store,
        &args.compute,
        Open::Create(args.page_size),
        false,
    )?;
    let mut phases = Phases::new();
    let (stop, _guard) = interrupt::flag();
    let job = Job::new(opened.budget.clone())
        .stopped_by(stop)
        .telling(|at| phases.show("import", at.done, at.total));
    let made = block_on(arrayfile::import(&opened.store, &name, file, &options, job));
    phases.finish();
    let closed = opened.store.close();
    if made.is_err() && !existed {
        // A store that was made for an import that failed is empty.
        files::remove(&args.store);
    }
    let made = made?;
    closed?;
    let seconds = made.time.as_secs_f64();
    let mut out = out::stdout();
    if args.json {
        let object = json!({
            "store": args.store.display().to_string(),
            "array": name,
            "format": made.format.name(),
            "shape": made.schema.shape(),
            "type": made.schema.attributes()[0].data_type().name(),
            "chunk": made.schema.dimensions().iter().map(|of| of.chunk_length()).collect::<Vec<_>>(),
            "chunks": made.chunks,
            "bytes": made.bytes,
            "seconds": seconds,
        });
        writeln!(out, "{object}")?;
    } else {
        let shape: Vec<_> = made.schema.shape().iter().map(u64::to_string).collect();
        writeln!(
            out,
            "{name}: {} of {}, {} in {} chunks, in {}",
            shape.join(" x "),
            made.schema.attributes()[0].data_type(),
            units::bytes(made.bytes),
            units::count(made.chunks),
            units::seconds(seconds)
        )?;
    }
    Ok(out.flush()?)
}

/// The name of the array that is made.
fn name(args: &Array, file: &Path) -> Result<String, Failure> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }
    let name = args
        .member
        .as_deref()
        .or_else(|| file.file_name().and_then(|name| name.to_str()));
    match name.and_then(|name| name.split('.').find(|part| !part.is_empty())) {
        Some(name) => Ok(name.to_owned()),
        None => Err(anyhow!("the array needs a name: give it with --name").into()),
    }
}

/// Writes an array into a file.
pub fn export(args: &Array, opened: &Plain) -> Result<(), Failure> {
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let snapshot = opened.store.snapshot();
    let name = describe::chosen(args, &snapshot)?.name;
    let options = ExportOptions {
        format: args.format.map(Into::into),
        attribute: args.attribute.clone(),
        null: args.null,
        packing: args.pack.map_or_else(Default::default, Into::into),
    };
    let mut phases = Phases::new();
    let (stop, _guard) = interrupt::flag();
    let job = Job::new(opened.budget.clone())
        .stopped_by(stop)
        .telling(|at| phases.show("export", at.done, at.total));
    let written = block_on(arrayfile::export(&snapshot, &name, file, &options, job));
    phases.finish();
    let written = written?;
    let seconds = written.time.as_secs_f64();
    let mut out = out::stdout();
    if args.json {
        let object = json!({
            "array": name,
            "file": file.display().to_string(),
            "format": written.format.name(),
            "bytes": written.bytes,
            "written_bytes": written.written,
            "seconds": seconds,
        });
        writeln!(out, "{object}")?;
    } else {
        writeln!(
            out,
            "{name}: {} as {} of {} in {}, in {}",
            units::bytes(written.bytes),
            units::bytes(written.written),
            written.format,
            file.display(),
            units::seconds(seconds)
        )?;
    }
    Ok(out.flush()?)
}
