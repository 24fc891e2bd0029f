//! SQL over Atoll's tables.
//!
//! DataFusion parses, plans and optimises statements, and Atoll's own engine runs the queries. Beside this crate only
//! `syntax`, `functions` and `messages` know DataFusion. This crate adds:
//!
//! * **One snapshot per statement, or per transaction.** A statement sees the tables as they were when it began, or when
//!   the transaction began that `begin` started in its session, with what that has changed. Transactions that
//!   write take turns; statements that read wait for nobody.
//! * **One set of workers.** Statements run on [`workers::Workers`], on whichever runtime they are awaited. Only the row
//!   of one key is looked up where it is awaited: to wake a worker takes longer.
//! * **One memory limit.** Operators reserve memory from the [`memory::Budget`] that the buffer pool uses too. Sorts
//!   and aggregates share it equally and spill; operators that cannot spill fail with an error that names the limit.
//! * **Errors for people.** [`Error`] displays as one line without the layers it came through.
//!
//! # Layers
//!
//! ```text
//! statements   sessions; each kind of statement
//! run          one statement: its context, executor, answer
//! lower        from logical plans to programs of Atoll's own engine
//! scan         tables, files and views as sources of plans
//! optimize     rules of the analyzer and the optimiser
//! bind         types, operators and windows for the planner; definitions of tables
//! resources    admission, memory, spilling, stack, stopping
//! planner      functions, rules and settings
//! ```
//!
//! A file uses files of its own layer and of those below it, never of one above. Syntax trees are made in the crate [`syntax`],
//! what the database says of itself, rights and settings are in [`catalog`], scalar functions and aggregates are in [`functions`], errors and the words of SQL in [`messages`]: they know no plan and no session.
//!
//! # What is declared and what is enforced
//!
//! NOT NULL is enforced, and a primary key implies it. Primary and foreign keys are declarations that the optimiser and
//! derived columns rely on: neither uniqueness nor the existence of parents is checked row by row. The length of
//! `varchar(n)` and `char(n)` is enforced as a check is. Arithmetic and sums whose result does not fit its type fail.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("example.atoll");
//! let live = topology::Machine::live()?;
//! let workers = workers::Workers::new(workers::Layout::of(&live, &live, 2, false))?;
//! let budget = memory::Budget::new(256 << 20);
//! let store = store::Store::create(&path, &store::Options::default())?;
//! let instance = sql::Instance::new(store, Arc::clone(&workers), budget, sql::Options::default())?;
//!
//! let session = instance.session();
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

mod bind;
mod lower;
mod optimize;
mod planner;
mod resources;
mod run;
mod scan;
mod statements;

pub(crate) use ::functions;
pub(crate) use messages::{self, error};

pub use ::engine::{Allocation, BLOCK_ROWS, Execution, NumaPolicy, TimeLine};
pub use catalog::activity::Activity;
pub use catalog::settings::{Backend, OpenCursor, Peers, SessionOwner, Setting};
pub use functions::temporal::local::Local;
pub use functions::temporal::settings::{date_style, time_zone};
pub use ingest::Columns as FrameColumns;
pub use messages::about::About;
pub use messages::numbers::{column_number, special_type, type_modifier, type_number};
pub use messages::told::Told;
pub use messages::types::{column_type_name, json_type_of, type_name};
pub use messages::{Error, Position, Result};
pub use resources::allowance::UserMemory;
pub use resources::stop::Canceller;
pub use resources::turn::Turn;
pub use run::answer::Answer;
pub use run::checks::Checks;
pub use run::clock::Statistics;
pub use run::frames::Frames;
pub use run::instance::Instance;
pub use run::modifiers::Modifier;
pub use run::options::{Executor, Options, PlanUse};
pub use run::origins::{Origin, Origins};
pub use run::stream::AnswerStream;
pub use run::visible::{as_texts, as_texts_of, refuse_not_finite, uuid_text};
pub use statements::described::PreparedStatement;
pub use statements::session::{Program, Session, TransactionStatus};
pub use syntax::copy_options::{Forced, HeaderLine};
pub use syntax::quoted::quoted_constant;
pub use syntax::script;
pub use syntax::transfer::{Transfer, TransferFormat, transfer};
pub use table::{Infinity, NotFinite, cast_moments, decimal_text, infinity_at};
