//! A store opened without the tables in it: for graphs and arrays, also in a program that has no SQL.

use std::path::Path;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use memory::Budget;
use store::{Access, Options, PoolOptions, Store};
use topology::Machine;
use workers::{Layout, Workers};

use crate::allocator;
use crate::failure::Failure;
use crate::options::resources::{Affinity, Compute};
use crate::store::files;

/// The least memory limit: below it not even the pool of a small store fits.
const LEAST_LIMIT: u64 = 16 << 20;

/// A store, and what may be used to compute over it.
pub struct Plain {
    pub store: Arc<Store>,
    pub workers: Arc<Workers>,
    pub budget: Arc<Budget>,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// For reading.
    Read,
    /// For reading, and for writing while a statement writes.
    OnDemand,
    /// For writing.
    Write,
    /// For writing; made with pages of this size if there is none.
    Create(Option<u64>),
}

/// Opens a store, or makes it, as `how` says. New pages are compressed if `compress` says so.
///
/// # Errors
/// If it does not exist or cannot be opened; if what the options ask for does not fit into the memory that there is.
pub fn open(path: &Path, compute: &Compute, how: Open, compress: bool) -> Result<Plain, Failure> {
    let absent = files::absent(path);
    if absent && !matches!(how, Open::Create(_)) {
        return Err(files::missing(path).into());
    }
    let layout = &compute.layout;
    let (pool, limit) = sizes(compute, memory::available()?)?;
    if let Some(bytes) = compute.memory_limit {
        allocator::limit(bytes);
    }
    let (machine, live) = compute.machines()?;
    let affinity = layout.affinity == Affinity::On;
    let threads = compute.threads.map(|threads| threads as usize);
    let threads = threads.unwrap_or_else(|| live.cpus().max(machine.nodes().len()));
    // Before the store: where the system limits addresses, the pool takes half of what is left of them for its words, and
    // stacks would not fit.
    let workers = Workers::new(Layout::of(&machine, &live, threads, affinity))?;
    let budget = Budget::new(limit);
    let mut options = Options {
        pool: PoolOptions {
            bytes: pool,
            placement: layout.pool_memory.into(),
            nodes: homes(
                &machine,
                machine == live && affinity,
                compute.nodes.is_some(),
            ),
            budget: Some(Arc::clone(&budget)),
            ..PoolOptions::default()
        },
        mapped: layout.mapped,
        compress,
        access: match how {
            Open::Read => Access::Read,
            Open::OnDemand => Access::OnDemand,
            Open::Write | Open::Create(_) => Access::Write,
        },
        ..Options::default()
    };
    let store = if let (true, Open::Create(page_size)) = (absent, how) {
        if let Some(bytes) = page_size {
            // What does not fit is refused as every size that is not possible.
            options.page_size = u32::try_from(bytes).unwrap_or(u32::MAX);
        }
        Store::create(path, &options)?
    } else {
        Store::open(path, &options)?
    };
    if store.is_raw() {
        let path = path.to_path_buf();
        return Err(store::Error::RawPages { path }.into());
    }
    files::tell_dropped(&store.recovery().dropped);
    Ok(Plain {
        store,
        workers,
        budget,
    })
}

/// The nodes of the pool: those of the system if the machine is the one at hand and has several, or some were chosen.
fn homes(machine: &Machine, bind: bool, chosen: bool) -> Vec<Option<u32>> {
    let nodes = machine.nodes();
    let bind = bind && (chosen || nodes.len() > 1);
    nodes
        .iter()
        .map(|node| bind.then_some(node.os_index))
        .collect()
}

/// Bytes of the pool and of the limit, where `available` bytes are there to use.
fn sizes(compute: &Compute, available: u64) -> anyhow::Result<(u64, u64)> {
    let limit = compute.memory_limit.unwrap_or(available / 4 * 3);
    if limit < LEAST_LIMIT {
        bail!(
            "a memory limit of {limit} bytes is too small; raise --memory-limit to {LEAST_LIMIT} at least"
        );
    }
    let pool = compute
        .layout
        .pool
        .unwrap_or((available / 4).min(limit / 3));
    if pool > available {
        bail!(
            "a pool of {pool} bytes is larger than the {available} bytes of memory this process may use; lower --pool"
        );
    }
    if pool >= limit {
        return Err(anyhow!(
            "a pool of {pool} bytes leaves nothing of the memory limit of {limit} bytes; lower --pool or raise --memory-limit"
        ));
    }
    Ok((pool, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(pool: Option<u64>, memory_limit: Option<u64>) -> Compute {
        Compute {
            threads: None,
            memory_limit,
            nodes: None,
            layout: crate::options::resources::Layout {
                pool,
                machine: None,
                affinity: Affinity::On,
                pool_memory: crate::options::resources::PoolMemory::Prefer,
                mapped: false,
            },
        }
    }

    #[test]
    fn a_pool_takes_a_third_of_the_limit_and_never_all() {
        let sizes = |pool, limit| sizes(&compute(pool, limit), 1 << 30);
        assert_eq!(sizes(None, None).unwrap(), (256 << 20, 768 << 20));
        assert_eq!(sizes(None, Some(96 << 20)).unwrap(), (32 << 20, 96 << 20));
        let refused = |pool, limit| sizes(pool, limit).unwrap_err().to_string();
        assert!(refused(None, Some(1)).contains("raise --memory-limit"));
        assert!(refused(Some(2 << 30), None).contains("lower --pool"));
        assert!(refused(Some(64 << 20), Some(64 << 20)).contains("leaves nothing"));
    }
}
