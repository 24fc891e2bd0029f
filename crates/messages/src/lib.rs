//! What people and programs are told: the error of a statement, and types, columns and plans in the words of SQL.
//!
//! * [`Error`] is why a statement failed. It displays as one line, has PostgreSQL's code ([`Error::sqlstate`]) and a place in
//!   the text, and comes in the [parts](told::Told) that PostgreSQL's protocol has. The errors of the crates below become
//!   such errors, and so do [DataFusion's](translate), without the layers that they came through.
//! * [`types`] and [`numbers`] have the names of types, and the OIDs by which PostgreSQL's clients know types and tables.
//! * [`keywords`] and [`names`] say how a name is written; [`near`] and [`nearest`] find names that a person may have meant.
//! * [`plain`], [`tags`] and [`hidden`] take out of plans and messages what statements do not have.
//!
//! Nothing here knows a plan, a session or a function.
//!
//! ```
//! use messages::Error;
//!
//! let error = Error::coded("42P07", "relation \"t\" already exists");
//! assert_eq!(error.sqlstate(), "42P07");
//! assert_eq!(error.to_string(), "relation \"t\" already exists");
//! assert_eq!(messages::keywords::identifier("select"), "\"select\"");
//! ```

pub mod about;
mod calls;
mod codes;
mod convert;
pub mod error;
pub mod hidden;
pub mod keywords;
pub mod names;
pub mod near;
pub mod nearest;
pub mod numbers;
mod overflow;
pub mod plain;
mod planner_words;
mod sqlstate;
pub mod tags;
pub mod told;
pub mod translate;
pub mod types;

pub use error::{Error, Position, Result};
