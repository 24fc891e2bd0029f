//! Atoll: an analytical database that knows where its memory is.
//!
//! A database is one crash-safe file (and its log). SQL in, Arrow out; every answer comes with the number of bytes that
//! were read for it, by the node of the reading worker and the node of the page.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("reef.atoll");
//! use atoll::{Database, Options};
//!
//! let database = Database::open_or_create(&path, &Options::default())?;
//! let session = database.session();
//! session.sql("create table reef (name varchar, area double)")?;
//! session.sql("insert into reef values ('north', 12.5), ('south', 7.25)")?;
//! for answer in session.sql("select sum(area) from reef")? {
//!     println!("{:?}", answer.batches);
//! }
//! database.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! * A [`Database`] is opened, checked and closed, lists its tables and takes rows; a [`Session`] runs SQL; [`Options`]
//!   set the number of threads and the memory, among other things.
//! * [`import()`] loads files into a table; [`tpch`] generates the TPC-H tables and has the 22 queries; both report to
//!   a [`Progress`], which may stop them.
//! * [`PageStore`] is a store of bare pages, for layouts of your own.
//! * [`Error`] is the one error type; each error displays as one line for users.
//! * Nothing is read from the environment.

mod database;
mod error;
mod import;
mod owned;
mod progress;
mod rows;
mod served;
mod session;
mod sqlstate;
pub mod tpch;
mod waiting;

pub use database::logins::Logins;
pub use database::options::{
    Access, Allocation, BASE_BYTES, Execution, Executor, Govern, NumaPolicy, Options, PlanUse,
    PoolMemory, TimeLine,
};
pub use database::pages::PartPages;
pub use database::residency::{Holds, PartResidency, Residency, Tail};
pub use database::summary::{ColumnSummary, KeySummary, TableSummary};
pub use database::{Database, Statistics};
pub use error::{Error, Result};
pub use governor::Decision;
pub use import::options::{
    Compression, DateForm, Existing, FileFormat, FileOptions, ImportOptions, Reference,
};
pub use import::{ImportReport, import};
pub use laq;
pub use memory::{Account, drop_system_caches};
pub use owned::{owned_batch, owned_schema};
pub use progress::{Position, Progress};
pub use rows::Rows;
pub use session::Session;
pub use sql::{
    Activity, Answer, Forced, FrameColumns, Frames, HeaderLine, PreparedStatement, Setting,
    Statistics as QueryStatistics, TransactionStatus, Transfer, TransferFormat, UserMemory,
    as_texts, column_type_name, decimal_text, infinity_at, quoted_constant, refuse_not_finite,
    script, transfer, type_name, uuid_text,
};
pub use store::{
    Codec, Damage, Dropped, Kind, PageBatch, PagePin, PageStatistics, PageStore, PageView, Place,
    Problem, Recovery, Repair, Share, Vacuum, is_part, is_store, repair,
};
pub use store::{Options as PageOptions, PoolOptions, Statistics as StoreStatistics};
pub use topology::Machine;
pub use waiting::Interrupter;
