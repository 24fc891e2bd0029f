//! Running programs: the driver of the stages, the three executors, and the sinks.
//!
//! From the top down: the driver runs each stage by an executor ([`fused`], [`stream`], [`staged`]) and finishes it
//! ([`finish`]); executors take the pieces of a source ([`pieces`]) through the operators of a pipeline ([`task`])
//! into sinks ([`sink`]); all of them read the state of the query ([`query_state`]).

mod claim_order;
mod driver;
mod finish;
mod fused;
mod grace;
mod key_filter;
mod open;
mod partitioned;
mod per_node;
mod pieces;
mod probe_rows;
mod query_state;
mod reduction;
mod result_stream;
pub(crate) mod rounds;
mod share;
pub(crate) mod sink;
mod staged;
mod stream;
mod task;
mod text_keys;

pub(crate) use driver::run;
