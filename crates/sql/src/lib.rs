//! SQL over Atoll's tables.
//!
//! DataFusion parses, plans, optimises and, in this version, runs the queries; this crate and nothing below
//! it knows that. What is ours:
//!
//! * **One snapshot per statement.** A statement sees the tables as they were when it began. Statements that
//!   write take turns; statements that read wait for nobody.
//! * **One compute width.** Statements run on [`fiber::Workers`], whoever awaits them.
//! * **One memory limit.** Operators reserve from the [`memory::Budget`] that the buffer pool uses too; sorts
//!   and aggregates share it fairly and spill, what cannot spill fails with an error that names the limit.
//! * **Errors for people.** [`Error`] displays as one line without the layers it came through.
//!
//! # What is declared and what is enforced
//!
//! NOT NULL is enforced, and implied by a primary key. Primary keys and foreign keys are declarations that the
//! optimiser and derived columns use: uniqueness and the existence of parents are not checked row by row. The length of
//! `varchar(n)` and `char(n)` is not enforced either. Arithmetic and sums whose result does not fit its type fail.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("example.atoll");
//! let live = topology::Machine::live()?;
//! let workers = fiber::Workers::new(fiber::Layout::of(&live, &live, 2, false))?;
//! let budget = memory::Budget::new(256 << 20);
//! let store = store::Store::create(&path, &store::Options::default())?;
//! let engine = sql::Engine::new(store, Arc::clone(&workers), budget, sql::Options::default())?;
//!
//! let session = engine.session();
//! let answers = workers.handle().block_on(session.execute(
//!     "create table t (a int primary key, b varchar);
//!      insert into t values (1, 'one'), (2, 'two');
//!      select b from t where a = 2",
//! ))?;
//! assert_eq!(answers[1].changed, Some(2));
//! assert_eq!(answers[2].rows(), 1);
//! # Ok(())
//! # }
//! ```

mod error;
mod frontend;
mod functions;
mod lower;
mod optimize;
mod resources;
mod run;
mod scan;
mod statements;
mod types;

pub use ::engine::{BLOCK_ROWS, Execution, Plan};
pub use error::{Error, Position, Result};
pub use run::answer::{Answer, AnswerStream, Statistics};
pub use run::engine::{Engine, Executor, Options};
pub use statements::session::{Program, Session};
pub use types::type_name;
