//! AFL: the array functional language of SciDB, over the arrays of a store (row T3).
//!
//! A statement is one expression of operators in one another, or one that creates, stores, writes or removes an array.
//! `docs/reference/afl.md` has the grammar and all operators.
//!
//! ```
//! # futures::executor::block_on(async {
//! use afl::Outcome;
//! use array::Run;
//! use store::{Options, Store};
//!
//! let directory = tempfile::tempdir()?;
//! let store = Store::create(directory.path().join("weather.atoll"), &Options::default())?;
//! let run = Run::new();
//! let schema = "<celsius:double> [latitude=-25.420:-25.429:-0.001; longitude=-49.269:-49.260:0.001; year=2000:2024]";
//! afl::execute(&format!("store(build({schema}, latitude + year), temperature)"), &store, &run).await?;
//!
//! let part = "subarray(temperature, -25.423, -49.267, 2000, -25.426, -49.265, 2020)";
//! let Outcome::Array(data) = afl::execute(part, &store, &run).await? else {
//!     unreachable!("a query gives an array");
//! };
//! assert_eq!(data.schema().shape(), [4, 3, 21]);
//!
//! let wrong = "subarray(temperature, 1, 2)";
//! let error = afl::execute(wrong, &store, &run).await.unwrap_err().to_string();
//! assert!(error.starts_with("line 1, column 1: subarray: 3 dimensions need 6 bounds"), "{error}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod error;
mod lex;
mod lower;
mod parse;
mod run;
mod syntax;

pub use error::{Error, Fault, Result};
pub use lower::Arrays;
pub use run::{Outcome, compile, execute, explain, is_query, writes};
pub use syntax::OPERATORS;
