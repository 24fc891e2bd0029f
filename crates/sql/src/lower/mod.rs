//! From DataFusion's optimised logical plans to programs of Atoll's own engine.
//!
//! The engine runs all that is planned; a plan that has no counterpart is refused with [`engine::Error::Unsupported`]. Functions
//! without a kernel are called on Arrow arrays, once per label where they read a single coded text.
//!
//! [`plan`] is the entry; [`lowering`] holds the state, and [`rel`], [`join`], [`aggregate`], [`aggregate_call`], [`extremes`], [`grouping_sets`],
//! [`first_rows`], [`window`] (with [`frames`]), [`shared`], [`expr`], [`kernels`], [`floats`] and [`documents`] its methods. [`subplans`] tells what a plan has
//! more than once; [`source`], [`series`], [`recursion`] and [`outside`] are what scans read. [`unnest`],
//! [`each_time`] and [`each_pair`] make functions of rows.
//!
//! Uses `scan`, `optimize`, `resources` and the layers below them.

mod aggregate;
mod aggregate_call;
mod as_of;
mod call;
mod documents;
mod each_pair;
mod each_time;
mod expr;
mod extremes;
mod first_rows;
mod floats;
mod frames;
mod grouping_sets;
mod join;
mod kernels;
mod lowering;
mod outside;
pub(crate) mod plan;
mod recursion;
mod rel;
mod series;
mod shared;
mod source;
mod subplans;
mod unnest;
mod window;
