//! Text with a delimiter between fields: CSV, TSV, TPC-H `.tbl`.
//!
//! [`sniff`] finds out from the beginning how a file is laid out, [`cutter`] cuts it into chunks of whole records, and
//! [`parse`] reads a chunk, with the fields that [`record`] finds.

mod cutter;
mod infer;
mod parse;
mod record;
mod sniff;

use std::sync::Arc;

use arrow::datatypes::DataType;

use self::cutter::{Chunks, Uncut};
pub(crate) use self::infer::Kinds;
use self::parse::Parsing;
use crate::piece::{Batches, Column, Piece, Pieces};
use crate::stream::{Source, Stream};
use crate::{Error, Options, Result};

/// How a text file separates its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Between two fields.
    pub delimiter: u8,
    /// Around a field that contains delimiters or line ends.
    pub quote: Option<u8>,
    /// Within quotes, what follows it is nothing but itself.
    pub escape: Option<u8>,
    /// A record may end with a delimiter, as in `.tbl` files.
    pub trailing: bool,
}

/// How a text file is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub dialect: Dialect,
    /// Whether the first record holds names.
    pub header: bool,
    /// The columns' names, each only once in any case.
    pub names: Vec<String>,
    /// Whether the names are those of the file, or of the options, and not `column_1`, ...
    pub named: bool,
    /// The kinds of the values of the sample; narrower than all values of a file that goes on after it.
    pub kinds: Vec<Kinds>,
    /// The texts that stand for NULL.
    pub nulls: Arc<[String]>,
    /// Records of the sample.
    pub sampled: usize,
}

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
        tbl: bool,
        rows: usize,
    ) -> Result<Text> {
        let layout = sniff::sniff(source.path(), &mut stream, options, tbl, rows)?;
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

/// The type of a column for people.
fn spoken(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Timestamp(..) => "timestamp".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time".into(),
        DataType::Decimal128(digits, scale) | DataType::Decimal256(digits, scale) => {
            format!("decimal({digits},{scale})")
        }
        number if number.is_integer() => match number.primitive_width() {
            Some(1) => "8-bit integer".into(),
            Some(2) => "16-bit integer".into(),
            Some(4) => "integer".into(),
            _ => "bigint".into(),
        },
        number if number.is_floating() => "number".into(),
        other => other.to_string(),
    }
}
