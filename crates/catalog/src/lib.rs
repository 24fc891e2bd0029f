//! What a database says of itself, and who may do what in it.
//!
//! Clients of PostgreSQL ask [`pg_catalog`] and the [information schema](information), which are made anew for each
//! statement that reads them, of the tables of its snapshot. Beside them stand what statements are resolved and allowed by:
//! the [path](search_path) in which names are looked up, the [rights] and [limits] of roles, the [settings] of sessions, the
//! [locks] that they hold, and what they [do](activity).
//!
//! Nothing here knows a plan, or runs a statement.
//!
//! # Example
//!
//! ```
//! use catalog::rights::Rights;
//! // Whoever runs the program without a server may do all.
//! assert!(Rights::all().is_all());
//! ```

pub mod activity;
pub mod information;
pub mod limits;
pub mod locks;
pub mod pg_catalog;
pub mod rights;
pub mod search_path;
pub mod settings;
