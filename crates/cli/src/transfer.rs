//! Arrays from files and into files: what `atoll import`, `atoll export` and `atoll array` do.

use std::io::Write;
use std::path::Path;

use anyhow::anyhow;
use arrayfile::{ExportOptions, Format, ImportOptions, Imported, Job};
use futures::executor::block_on;
use serde_json::json;
use store::Snapshot;

use crate::failure::Failure;
use crate::options::resources::Compute;
use crate::store::files;
use crate::store::plain::{self, Open, Plain};
use crate::terminal::phases::Phases;
use crate::terminal::{interrupt, out};
use crate::units;

/// A file of which an array is made.
pub struct Incoming<'a> {
    pub store: &'a Path,
    /// The array.
    pub name: &'a str,
    pub file: &'a Path,
    pub options: ImportOptions,
    /// Bytes of a page of a store that is made.
    pub page_size: Option<u64>,
    pub compute: &'a Compute,
    /// Whether to report as JSON.
    pub json: bool,
}

/// Makes an array of a file.
pub fn import(incoming: &Incoming<'_>) -> Result<(), Failure> {
    let (name, file) = (incoming.name, incoming.file);
    // Before a store is made.
    Format::of_content(file)?;
    let existed = !files::absent(incoming.store);
    if existed && incoming.page_size.is_some() {
        let store = incoming.store.display();
        return Err(
            anyhow!("{store} exists: its pages have their size; leave out --page-size").into(),
        );
    }
    let opened = plain::open(
        incoming.store,
        incoming.compute,
        Open::Create(incoming.page_size),
        false,
    )?;
    let mut phases = Phases::new();
    let (stop, _guard) = interrupt::flag();
    let job = Job::new(opened.budget.clone())
        .threads(opened.workers.width())
        .stopped_by(stop)
        .telling(|at| phases.show("import", at.done, at.total));
    let options = &incoming.options;
    let made = block_on(arrayfile::import(&opened.store, name, file, options, job));
    phases.finish();
    let closed = opened.store.close();
    if made.is_err() && !existed {
        // A store that was made for an import that failed is empty.
        files::remove(incoming.store);
    }
    let made = made?;
    closed?;
    tell(incoming, &made)
}

/// Says what an import made.
fn tell(incoming: &Incoming<'_>, made: &Imported) -> Result<(), Failure> {
    let (name, file) = (incoming.name, incoming.file);
    let seconds = made.time.as_secs_f64();
    let attributes = made.schema.attributes();
    let mut out = out::stdout();
    if incoming.json {
        let types = attributes
            .iter()
            .map(|of| json!({ "name": of.name(), "type": of.data_type().name() }));
        let object = json!({
            "store": incoming.store.display().to_string(),
            "array": name,
            "format": made.format.name(),
            "shape": made.schema.shape(),
            "type": attributes[0].data_type().name(),
            "attributes": types.collect::<Vec<_>>(),
            "chunk": made.schema.dimensions().iter().map(|of| of.chunk_length()).collect::<Vec<_>>(),
            "chunks": made.chunks,
            "bytes": made.bytes,
            "notes": made.notes,
            "seconds": seconds,
        });
        writeln!(out, "{object}")?;
    } else {
        for note in &made.notes {
            eprintln!("{}: {note}", file.display());
        }
        let types: Vec<_> = match attributes {
            [one] => vec![one.data_type().to_string()],
            all => all
                .iter()
                .map(|of| format!("{} {}", of.name(), of.data_type()))
                .collect(),
        };
        let shape: Vec<_> = made.schema.shape().iter().map(u64::to_string).collect();
        writeln!(
            out,
            "{name}: {} of {}, {} in {} chunks, in {}",
            shape.join(" x "),
            types.join(", "),
            units::bytes(made.bytes),
            units::count(made.chunks),
            units::seconds(seconds)
        )?;
    }
    Ok(out.flush()?)
}

/// Writes an array into a file.
pub fn export(
    opened: &Plain,
    snapshot: &Snapshot,
    (name, file): (&str, &Path),
    options: &ExportOptions,
    as_json: bool,
) -> Result<(), Failure> {
    let mut phases = Phases::new();
    let (stop, _guard) = interrupt::flag();
    let job = Job::new(opened.budget.clone())
        .stopped_by(stop)
        .telling(|at| phases.show("export", at.done, at.total));
    let written = block_on(arrayfile::export(snapshot, name, file, options, job));
    phases.finish();
    let written = written?;
    let seconds = written.time.as_secs_f64();
    let mut out = out::stdout();
    if as_json {
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
