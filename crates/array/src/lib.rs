//! Arrays with named dimensions in the pages of a store, and the operators of array databases over them (rows T1 to T4).
//!
//! * A [`Schema`] has dimensions, whose coordinates are whole numbers, steps or a list and compare as they were written
//!   ([`Decimal`]), and attributes of a type each. Dimensions are cut into chunks; a chunk that was never written takes
//!   no room. A dense array has every cell, a sparse one those that were written.
//! * A [`Writer`] creates, writes, appends to, updates and deletes arrays, in one transaction of the store, and keeps
//!   versions of them under names.
//! * An [`Array`] is one as a snapshot has it. [`Array::read`] touches the chunks that overlap a region, and no other.
//! * A [`Plan`] is an array to be computed: [`subarray`](Plan::subarray), [`filter`](Plan::filter),
//!   [`aggregate`](Plan::aggregate) and more in one another. A [`Run`] says by which [`Model`], and on which workers.
//!   Both models have the same results, to the last bit of a sum of floats.
//!
//! ```
//! # futures::executor::block_on(async {
//! use array::expr::{name, value};
//! use array::{Aggregate, Array, Attribute, Block, Buffer, Column, DataType, Dimension, Function, Plan, Region, Run};
//! use array::{Schema, Writer};
//! use store::{Options, Store};
//!
//! let directory = tempfile::tempdir()?;
//! let store = Store::create(directory.path().join("weather.atoll"), &Options::default())?;
//! let latitude = Dimension::regular("latitude", "-25.420".parse()?, "-0.001".parse()?, 10);
//! let year = Dimension::integer("year", 2000, 3).growing();
//! let schema = Schema::new(vec![latitude, year], vec![Attribute::new("celsius", DataType::F64)])?;
//!
//! let celsius: Vec<f64> = (0..30).map(f64::from).collect();
//! let column = Column::new(Buffer::of(DataType::F64, &celsius));
//! let block = Block::new(Region::of_shape(&[10, 3]), vec![Some(column)])?;
//! let mut writer = Writer::begin(&store)?;
//! writer.create("temperature", &schema)?;
//! writer.write("temperature", &block).await?;
//! writer.commit()?;
//!
//! let temperature = Array::open(&store.snapshot(), "temperature")?;
//! let bounds = [("-25.423".parse::<array::Decimal>()?.into(), "-25.426".parse::<array::Decimal>()?.into()), (2001.into(), 2002.into())];
//! let warmest = Plan::scan(&temperature)
//!     .subarray(&bounds)
//!     .filter(name("celsius").lt(value(20)))
//!     .aggregate(&[Aggregate::new(Function::Max, "celsius")], &[]);
//! let result = warmest.run(&Run::new()).await?.to_block()?;
//! assert_eq!(result.column(0).unwrap().get(0), 19.0.into());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Rules
//!
//! Types go together as NumPy's do, and shapes are broadcast as there. What a whole number's type does not hold is an error,
//! not another number. A null makes null what is computed from it, aggregates leave it out, and a filter keeps what is
//! true. NaN is a value: it makes sums and extremes NaN, compares with nothing, and is no null. `docs/explanations/arrays.md`
//! has all of it.

mod data;
mod error;
pub mod expr;
mod model;
mod operators;
mod plan;
mod storage;

pub use data::block::{Block, Column};
pub use data::buffer::Buffer;
pub use data::grid::{Boxes, Grid};
pub use data::region::Region;
pub use error::{Error, Result};
pub use model::chunking::{CHUNK_BYTES, chunk_bytes, chunk_lengths};
pub use model::decimal::Decimal;
pub use model::dimension::{Bound, Coordinates, Dimension};
pub use model::metadata::{Entries, Metadata, MetadataValue};
pub use model::schema::{Attribute, Compression, Layout, MAX_DIMENSIONS, Schema};
pub use model::time::Time;
pub use model::types::{DataType, Element, Scalar};
pub use operators::functions::{Aggregate, Function};
pub use operators::memory::ArrayData;
pub use operators::reshape::Chunking;
pub use operators::sort::SortKey;
pub use plan::builder::Plan;
pub use plan::reads::Read;
pub use plan::run::{Chunks, Model, Run};
pub use storage::array::{Array, Reads, Summary, list, names, versions};
pub use storage::keys::differs;
pub use storage::record::Statistics;
pub use storage::write::Writer;
