//! The one reader of CSV, JSON, Parquet and Arrow files, for imports and for queries over files.
//!
//! * [`Options`] say how files are laid out; what they do not say is found out from names and beginnings.
//! * A [`Dataset`] is what a path, a pattern or several of them stand for: its files, and its columns with types. Batches
//!   in memory are one, too ([`Dataset::of_batches`]), what hands over batches once ([`Dataset::of_reader`]), and
//!   columns that become batches as they are read ([`Dataset::of_columns`]).
//! * [`Dataset::pieces`] reads it as [`Piece`]s, which are decoded by themselves, by as many threads as there are.
//! * An [`Error`] names the file, the line where there is one, and what to do. Damaged files fail; they do not panic.
//!
//! What is read of a text file and what a value means does not depend on who asks: types are inferred once, from the
//! first 100,000 records, and a later value that does not fit them fails with its line.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("fish.csv");
//! std::fs::write(&path, "name;zip\nblenny;01234\n")?;
//! let fish = std::sync::Arc::new(ingest::Dataset::open(&[path], &ingest::Options::default())?);
//! assert_eq!(fish.schema().field(1).data_type(), &arrow::datatypes::DataType::Utf8View);
//! let mut rows = 0;
//! for piece in fish.pieces(&ingest::Request::all(&fish))? {
//!     for batch in (piece?.read)()? {
//!         rows += batch?.num_rows();
//!     }
//! }
//! assert_eq!(rows, 1);
//! # Ok(())
//! # }
//! ```

mod ahead;
mod batches;
mod columns;
mod compress;
mod csv;
mod dataset;
mod dates;
mod error;
mod ipc;
mod json;
mod options;
mod parquet;
mod piece;
mod stream;
mod texts;

pub use ahead::ahead;
pub use batches::Reader;
pub use columns::Columns;
pub use compress::Compressing;
pub use dataset::find::is_pattern;
pub use dataset::places::{FILE_NAME, FILE_ROW};
pub use dataset::{Dataset, Request, Wanted};
pub use dates::DateForm;
pub use error::{Error, Result};
pub use options::{Compression, Format, NullRule, Options};
pub use parquet::RowGroups;
pub use piece::{Batches, Piece, Pieces};
