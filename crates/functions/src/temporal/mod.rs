//! Dates, times, timestamps and intervals as PostgreSQL reads and writes them.
//!
//! | file | holds |
//! |---|---|
//! | `calendar` | days and dates, and writing both |
//! | [`zones`], [`abbreviations`] | time zones by name, abbreviation and offset |
//! | `pieces`, `words` | what texts are made of |
//! | `moment`, `parts`, `duration` | what they say: dates and times, and intervals |
//! | `units`, [`fields`] | the units of intervals, and the fields of types of intervals |
//! | `timetz` | times with a zone |
//! | [`read`] | columns of texts as columns of values, and the other way round |
//! | [`instants`] | instants and what clocks of the session show |
//! | [`local`], `styles` | the zone and the styles of a session, and writing in them |
//! | [`settings`] | what these may be set to |
//! | `components` | the fields of values, which `extract` takes |
//! | [`kernels`] | kernels of the engine that do the same as functions |
//! | [`extract`], [`make`], [`shift`], [`sums`], [`moments`] | functions |
//!
//! Values lie as Arrow has them: days, microseconds and nanoseconds from 1970 on, months with days and nanoseconds.

pub mod abbreviations;
pub(crate) mod calendar;
mod components;
pub(crate) mod duration;
pub mod extract;
pub mod fields;
pub mod instants;
pub mod kernels;
pub mod local;
pub mod make;
pub(crate) mod moment;
pub mod moments;
mod parts;
mod pieces;
pub mod read;
pub mod settings;
pub mod shift;
mod styles;
pub mod sums;
pub(crate) mod timetz;
mod units;
mod words;
mod wrong;
pub mod zones;
