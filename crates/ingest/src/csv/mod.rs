//! Text with a delimiter between fields: CSV, TSV, TPC-H `.tbl`, and what PostgreSQL's `copy` writes.
//!
//! [`sniff`] finds out from the beginning how a file is laid out, [`cutter`] cuts it into chunks of whole records, and
//! [`parse`] reads a chunk, with the fields that [`record`] finds.
//!
//! Cutting and reading are written by hand, not over the crate `csv-core`, whose `Reader` the tests compare them with.
//! It copies every field on its way to the end of a record, where the one thread that cuts only looks for quotes; it takes
//! text after a closing quote for a part of the field, where we refuse the line; and it does not tell where a field
//! stands. Of 100 MB in records of seven fields, on one core, medians of seven runs, with a quoted field in none, a tenth
//! and all of the records: cutting 9.1, 3.6 and 0.91 GB/s, with csv-core 0.40, 0.37 and 0.20; reading the fields 0.37,
//! 0.44 and 0.17 GB/s, with csv-core 0.25, 0.29 and 0.17.

mod backslash;
mod cutter;
pub(crate) mod infer;
pub(crate) mod layout;
mod parse;
mod record;
mod sniff;

use std::sync::Arc;

use crate::csv::cutter::{Chunks, Uncut};
use crate::csv::layout::Layout;
use crate::csv::parse::Parsing;
use crate::error::{Error, Result};
use crate::options::{Format, Options};
use crate::piece::{Batches, Column, Piece, Pieces};
use crate::stream::{Source, Stream};

/// A text file whose layout is known.
#[derive(Debug)]
pub(crate) struct Text {
    pub layout: Layout,
}

impl Text {
    /// Looks at the beginning of a file.
    pub fn open(
        source: &Source,
        mut stream: Stream,
        options: &Options,
        format: Format,
        rows: usize,
    ) -> Result<Text> {
        let layout = sniff::sniff(source.path(), &mut stream, options, format, rows)?;
        source.keep(stream);
        Ok(Text { layout })
    }

    /// Its records in chunks of about `size` bytes. The chunks are read when pieces are drawn.
    pub fn pieces(
        &self,
        source: &Arc<Source>,
        columns: &Arc<[Column]>,
        size: usize,
    ) -> Result<Pieces> {
        let chunks = Chunks::new(source.read()?, self.layout.dialect, size);
        let shared = Arc::new(parse::Shared {
            source: Arc::clone(source),
            layout: self.layout.clone(),
            columns: Arc::clone(columns),
        });
        let source = Arc::clone(source);
        let mut header = self.layout.header;
        Ok(Box::new(chunks.map(move |chunk| {
            let chunk = chunk.map_err(|uncut| match uncut {
                Uncut::Io(error) => Error::io(source.path(), &error),
                Uncut::Unclosed { line } => Error::line(source.path(), line, record::unclosed()),
            })?;
            let (shared, skip) = (Arc::clone(&shared), std::mem::take(&mut header));
            Ok(Piece {
                number: 0,
                rows: None,
                bytes: chunk.text.len() as u64,
                read: Box::new(move || Ok(Box::new(Parsing::new(shared, chunk, skip)?) as Batches)),
            })
        })))
    }
}
