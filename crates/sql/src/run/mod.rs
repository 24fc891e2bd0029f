//! Running a statement's plan: the engine with its sessions' environment, the context of one statement, queries and
//! their answers, and errors of other layers in words for people.

pub(crate) mod answer;
pub(crate) mod context;
pub(crate) mod definition;
pub(crate) mod engine;
pub(crate) mod environment;
pub(crate) mod file_calls;
pub(crate) mod fused;
pub(crate) mod information;
pub(crate) mod query;
pub(crate) mod translate;
