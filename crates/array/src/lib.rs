//! Arrays with named dimensions in the pages of a store (rows T1 to T4).

mod data;
mod error;
mod model;
mod storage;

pub use data::block::{Block, Column};
pub use data::buffer::Buffer;
pub use data::grid::{Boxes, Grid};
pub use data::region::Region;
pub use error::{Error, Result};
pub use model::chunking::{CHUNK_BYTES, chunk_bytes, chunk_lengths};
pub use model::decimal::Decimal;
pub use model::dimension::{Bound, Coordinates, Dimension};
pub use model::schema::{Attribute, Compression, Layout, MAX_DIMENSIONS, Schema};
pub use model::types::{DataType, Element, Scalar};
pub use storage::array::{Array, Reads, Summary, list};
pub use storage::record::Statistics;
pub use storage::write::Writer;
