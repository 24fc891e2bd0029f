//! HTTP: statements as JSON, and a page for a browser.
//!
//! [`serve`] takes connections, each of which has a thread, as clients of PostgreSQL's protocol have; [`request`] reads
//! what comes, [`gate`] says who may ask, [`answer`] writes what goes. [`statements`] runs statements and sends their rows
//! as [`json`] while they come; [`catalog`] and [`machine`] tell what there is and what happens, [`page`] shows it.

mod answer;
mod catalog;
mod gate;
mod json;
mod machine;
mod page;
mod refusal;
mod request;
pub(crate) mod serve;
mod statements;
