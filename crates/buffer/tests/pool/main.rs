//! What a pool promises, one by one.

mod frames;
mod guards;
mod load;
mod pins;
mod prefetch;
mod replacement;
mod shape;
#[path = "../source/mod.rs"]
mod source;

use std::sync::Arc;

use buffer::{Config, Error, Pool};
use source::Patterns;

fn config(bytes: u64, page_size: usize, nodes: usize) -> Config {
    Config {
        bytes,
        page_size,
        partitions_per_node: 4,
        nodes: vec![None; nodes],
        placement: buffer::Placement::default(),
        replacement: buffer::Policy::default(),
        prefetch: buffer::Prefetching::default(),
    }
}

fn make(config: &Config, budget: u64) -> Result<Arc<Pool>, Error> {
    let source = Arc::new(Patterns::default());
    Pool::new(config, source, memory::Budget::new(budget))
}
