//! Running one statement: what it sees, which executor runs it, and what it returns.
//!
//! An [`instance`] is shared by all statements on a store. Each statement gets a [`context`] with a snapshot;
//! [`views`] are planned with it. [`query`] runs them on Atoll's own engine ([`native`]); what they are planned with is set up in [`environment`].
//!
//! Uses all layers but `statements`.

pub(crate) mod answer;
pub(crate) mod arrays;
mod blanks;
pub(crate) mod checks;
pub(crate) mod clock;
pub(crate) mod context;
mod ctes;
pub(crate) mod defaults;
pub(crate) mod deferrals;
mod dependent_columns;
pub(crate) mod depth;
mod descriptions;
pub(crate) mod domains;
mod environment;
mod file_columns;
pub(crate) mod frames;
mod from_sources;
mod functions;
pub(crate) mod generated;
pub(crate) mod generic_plans;
mod given;
mod inserted;
pub(crate) mod instance;
pub(crate) mod kept_plans;
mod kept_values;
mod known_arguments;
mod limit_counts;
mod merged;
pub(crate) mod modifiers;
pub(crate) mod native;
pub(crate) mod options;
pub(crate) mod origins;
pub(crate) mod output;
mod privileges;
pub(crate) mod query;
mod reads;
mod resolver;
pub(crate) mod row_form;
pub(crate) mod row_values;
pub(crate) mod sequences;
mod shared_columns;
pub(crate) mod shared_plans;
pub(crate) mod stream;
pub(crate) mod system_columns;
pub(crate) mod text_form;
mod traced;
mod united;
mod values;
pub(crate) mod views;
pub(crate) mod visible;
pub(crate) mod watch;
mod wide_joins;
