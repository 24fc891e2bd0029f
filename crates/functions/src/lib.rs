//! SQL's functions beside DataFusion's, and instead of some of them: scalar functions, aggregates and functions of windows.
//!
//! All are functions of DataFusion, which Atoll's own engine calls as any other, so that all executors give the same
//! answers. A scalar function is a name, types, and a plain function over arrays (`own`). [`Registry`] has all of them,
//! by their names; those that stand for operators are found by [`special`].
//!
//! A function gets arrays and no context. It knows no plan, no catalog and no session: what it asks of these it asks of a
//! trait, which whoever plans a statement implements: [`sequences::Numbers`], [`descriptions::Descriptions`],
//! [`privileges::Privileged`], [`settings::KnownSession`], [`advisory::AdvisoryCalls`]. What it has to know of the
//! statement that runs, the thread has: its [time zone and styles](temporal::local::Local), its [memory](present::Memory),
//! and whether it was [cancelled](present::check).
//!
//! | modules | hold |
//! |---|---|
//! | [`lists`], [`structs`], `maps`, [`json`], [`enums`], [`uuid`], [`bytes`] | values of these types |
//! | [`temporal`], [`intervals`], `dates`, `truncate`, `patterns` | dates and times |
//! | [`decimals`], `numeric`, [`domains`], `number_pattern` | numbers |
//! | `texts`, `format`, [`like`], [`regular`], [`regexps`] | texts and patterns |
//! | `aggregates`, [`sum`], `mean`, `deviations`, `quantiles`, [`ranked`], [`windows`] | what is computed over rows |
//! | [`convert`], [`casts`], [`unknown`], [`operands`], [`number_types`] | casts, and the types that values have together |
//! | [`catalog`], [`objects`], [`descriptions`], [`privileges`], [`settings`], [`sequences`], [`advisory`] | what clients ask of a database |
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringArray};
//! use arrow::datatypes::{DataType, Int64Type};
//! use functions::convert::convert;
//!
//! # fn main() -> datafusion_common::Result<()> {
//! // Numbers that float are rounded half to even, as in PostgreSQL.
//! let halves: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5]));
//! let whole = convert(&halves, &DataType::Int64)?;
//! assert_eq!(whole.as_primitive::<Int64Type>().values().to_vec(), [0, 2, 2]);
//!
//! let texts: ArrayRef = Arc::new(StringArray::from(vec!["{1,2,NULL}"]));
//! let arrays = convert(&texts, &DataType::new_list(DataType::Int64, true))?;
//! assert_eq!(arrays.as_list::<i32>().value(0).len(), 3);
//! # Ok(())
//! # }
//! ```

pub mod acl;
pub mod advisory;
pub mod aggregates;
mod angles;
pub mod arguments;
mod as_of;
mod between_values;
mod binary;
pub mod bytes;
pub mod casts;
pub mod catalog;
mod chosen;
pub mod clock;
mod coalesce;
mod concat;
pub mod convert;
pub mod cut;
mod dates;
pub mod decimals;
pub mod descriptions;
mod deviations;
pub mod domains;
pub mod enums;
mod float_sums;
mod format;
pub mod intervals;
mod items;
pub mod json;
mod lengthened;
mod letters;
pub mod like;
pub mod like_parts;
pub mod lists;
mod maps;
mod mean;
mod measured;
mod number_pattern;
mod number_reading;
mod number_texts;
pub mod number_types;
mod number_writing;
mod numeric;
pub mod object_kinds;
pub mod objects;
pub mod one_zero;
pub mod operands;
mod own;
mod pattern_parts;
mod patterns;
mod places;
pub mod present;
pub mod privileges;
mod quantiles;
pub mod ranked;
mod read_dates;
mod read_pattern;
pub mod regexps;
mod register;
mod registry;
pub mod regular;
pub mod rounding;
pub mod same;
pub mod sequences;
pub mod settings;
pub mod single;
mod sizes;
mod span_patterns;
pub mod structs;
pub mod sum;
pub mod system;
pub mod temporal;
mod texts;
mod truncate;
pub mod unknown;
pub mod user;
pub mod uuid;
pub mod widened;
pub mod windows;
mod wrapped;

pub use register::{json_key, special};
pub use registry::Registry;
