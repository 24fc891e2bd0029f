//! Atoll as an ADBC driver: a shared library that programs in C, C++, Go, R, Python and others load, and that hands rows
//! over as Arrow streams, in the process that asks.
//!
//! The library has two entry points, which do the same: [`AdbcAtollInit`](entry::AdbcAtollInit), whose name follows from
//! `libatoll.so`, and `AdbcDriverInit`, which every driver has. `include/atoll.h` describes them and all options for
//! programs in C, and `docs/guides/adbc.md` how programs in other languages load the library. In Rust the traits of
//! `adbc_core` are used directly:
//!
//! ```
//! use adbc_core::{Connection, Database, Driver, Statement};
//!
//! # fn main() -> Result<(), adbc_core::error::Error> {
//! let database = adbc::Driver::default().new_database()?;
//! let mut connection = database.new_connection()?;
//! let mut statement = connection.new_statement()?;
//! statement.set_sql_query("select 6 * 7 as n")?;
//! for batch in statement.execute()? {
//!     assert_eq!(batch.expect("a batch").num_rows(), 1);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! * A panic is the error of the call in which it happened ([`guard`]), and the next call works.
//! * No result is collected: a reader takes a batch of the database when it is asked for one ([`rows`]).
//! * What there is not is `NotImplemented`, with a message that says so.
//! * A connection is a session of the database, and a statement a handle of it that can be cancelled alone.

mod bound;
mod cancel;
mod catalog;
mod connection;
mod database;
mod driver;
pub mod entry;
mod error;
mod guard;
mod info;
mod ingest;
mod insert;
mod numbered;
mod option;
mod parameter;
mod rows;
mod statement;
mod statistics;
mod store;
mod stream;
mod transaction;

pub use connection::Connection;
pub use database::Database;
pub use driver::Driver;
pub use statement::Statement;
