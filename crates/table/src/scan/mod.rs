//! Reading tables: a block at a time, filters first on encoded values, other columns only for the
//! rows that are left.
//!
//! | file | holds |
//! |---|---|
//! | `open` | what to read, and opening one piece of it |
//! | `read` | whole rows, without a filter |
//! | `sample` | some rows of a table, for planners |
//! | `ahead` | pages of the blocks that are opened next |
//! | `filter` | what rows are wanted |
//! | `mask`, `rows` | rows of a block, as bits and as positions |
//! | `chunk` | a column of a block with its pages pinned |
//! | `decode` | stored values back into Arrow arrays |
//! | `parts` | parts of documents, from where they are kept apart |
//! | `cursor`, `vectors` | the rows that are left, as batches and column by column |

mod ahead;
mod chunk;
mod cursor;
mod decode;
mod filter;
mod integers;
mod mask;
mod open;
mod parts;
mod read;
mod rows;
mod sample;
mod vectors;

pub use cursor::Cursor;
pub use filter::{Filter, Form, Gauge, LabelHits, Test};
pub use integers::{ints_of, wides_of};
pub use mask::Mask;
pub use open::{Morsel, Scan};
pub use parts::{DocumentPart, PartValues};
pub use rows::{BATCH_ROWS, Rows};
