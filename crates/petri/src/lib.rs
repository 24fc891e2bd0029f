//! Predicate/transition nets: tokens that carry values, transitions with guards.
//!
//! A [`Net`] is data: [`Net::parse`] reads it from TOML, [`Net::with`] sets its parameters. A
//! [`Marking`] is a state: the tokens of each place. [`Net::enabled`] and [`Net::fire`] make a single
//! step; [`Net::check`] puts in the current readings, fires until the net is at rest again, and
//! returns the trace. [`Net::explore`] builds the reachability graph, [`Net::incidence`] the matrices
//! `Pre`, `Post` and `A^T`, [`Net::place_invariants`] the place invariants; [`Net::dot`] and
//! [`Net::pnml`] export the net.
//!
//! [`ELASTIC`] is the net that decides how many cores a database gets.
//!
//! Nothing here reads a file or a clock, or starts a thread.
//!
//! ```
//! use petri::{ELASTIC, Net};
//!
//! let net = Net::parse(ELASTIC)?.with("n_total", 16)?;
//! let mut marking = net.start()?;
//! for load in [99.0, 99.0, 40.0, 8.0] {
//!     net.check(&mut marking, &[("u", load)])?;
//! }
//! assert_eq!(marking.number(&net, "Provision")?, 2.0);
//! assert_eq!(marking.told(&net), "Checks 8, Provision 2");
//! # Ok::<(), petri::Error>(())
//! ```

mod check;
mod draw;
mod error;
mod explore;
mod expression;
mod file;
mod fire;
mod incidence;
mod invariants;
mod marking;
mod net;
mod parse;
mod term;
mod types;
mod value;

pub use check::{Check, Firing, MAX_FIRED};
pub use error::{Error, Result};
pub use explore::{Edge, Graph, Readings};
pub use expression::Expression;
pub use file::MAX_TEXT;
pub use fire::{Binding, MAX_BINDINGS};
pub use incidence::Incidence;
pub use invariants::MAX_ROWS;
pub use marking::{MAX_TOKENS, Marking};
pub use net::{Flow, MAX_INSCRIPTIONS, MAX_NODES, Net, Place, Transition};
pub use types::{Kind, Type};
pub use value::{Number, Value};

/// The net that decides how many cores a database gets: places Checks, Stable, Idle, Overload and
/// Provision, transitions t0 to t7. The text explains itself and the format.
pub const ELASTIC: &str = include_str!("../nets/elastic.toml");
