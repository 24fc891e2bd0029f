//! `--threads`, `--memory-limit`, `--pool` and the other options about the machine's resources.

#[cfg(feature = "sql")]
use atoll::{Access, Options};
use clap::{Args, ValueEnum};
use topology::Machine;

#[cfg(feature = "sql")]
use crate::allocator;
use crate::units::parse_bytes;

/// Where pages and workers lie.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Memory and machine")]
pub struct Layout {
    /// Size of the buffer pool, such as 512MiB [default: a share of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub pool: Option<u64>,
    /// Lay pages and threads out as on this machine: a shipped name, FILE.xml, 4x4, or an hwloc
    /// synthetic description [default: the machine at hand]
    #[arg(long, value_name = "SPEC")]
    pub machine: Option<String>,
    /// Pin the workers and bind the pool's memory to its nodes, or leave both to the system
    #[arg(long, value_enum, default_value_t = Affinity::On)]
    pub affinity: Affinity,
    /// From which nodes the pool's memory comes, on a machine with several
    #[arg(long, value_enum, default_value_t = PoolMemory::Prefer, value_name = "POLICY")]
    pub pool_memory: PoolMemory,
    /// Read pages that are not compressed where the operating system maps the store's file, in place of the buffer
    /// pool
    #[arg(long)]
    pub mapped: bool,
}

/// What a command that computes over a store may use.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Memory and machine")]
pub struct Compute {
    /// Compute threads [default: the cpus this process may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// Most memory for pool and queries together, such as 2GiB [default: three quarters of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory_limit: Option<u64>,
    /// Have workers only on the cpus of these nodes, and pages in their memory while any of it is free; such as 0,1 or 0-2 [default:
    /// all]
    #[arg(long, value_name = "N,...", value_parser = parse_nodes)]
    pub nodes: Option<Nodes>,
    #[command(flatten)]
    pub layout: Layout,
}

/// Numbers of nodes, as `atoll topology` shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(pub Vec<usize>);

/// Reads `0,2` or `0-2`.
fn parse_nodes(text: &str) -> Result<Nodes, String> {
    let wrong = || format!("{text:?} are no nodes; take 0, 0,2 or 0-2");
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= topology::MAX_NODES {
            return Err(wrong());
        }
        all.extend(first..=last);
    }
    Ok(Nodes(all))
}

impl Compute {
    /// The machine that pages and threads are laid out for, and the one at hand, both without the nodes that are not to be used.
    ///
    /// # Errors
    /// If there is no such machine, it has not these nodes, or workers are not pinned to them.
    pub fn machines(&self) -> anyhow::Result<(Machine, Machine)> {
        if self.nodes.is_some() && self.layout.affinity == Affinity::Off {
            anyhow::bail!(
                "workers are kept to some nodes by pinning them: leave --nodes out, or turn --affinity on"
            );
        }
        let live = Machine::live()?;
        let nodes = self.nodes.as_ref().map(|nodes| nodes.0.as_slice());
        let machine = match (&self.layout.machine, nodes) {
            (Some(description), None) => Machine::parse(description)?,
            (Some(description), Some(nodes)) => Machine::parse(description)?.only(nodes)?,
            (None, None) => live.clone(),
            (None, Some(nodes)) => {
                let live = live.only(nodes)?;
                return Ok((live.clone(), live));
            }
        };
        Ok((machine, live))
    }
}

/// What a command that runs statements may use.
#[cfg(feature = "sql")]
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Memory and machine")]
pub struct Resources {
    #[command(flatten)]
    pub compute: Compute,
    /// Take workers that a statement does not use out of service, away from its pages first; auto: where there is
    /// more than one node; `explain analyze` tells
    #[arg(long, value_enum, default_value_t = Governing::Auto)]
    pub govern: Governing,
}

/// From which nodes the pool's memory comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PoolMemory {
    /// Frames of a node lie on it while it has free memory; a page may take a frame of another node
    #[default]
    Prefer,
    /// On their node and nowhere else; a page waits for a frame of its own node
    Bind,
    /// On all nodes in turn
    Interleave,
    /// On the node of the thread that first fills them
    FirstUse,
}

impl From<PoolMemory> for store::Placement {
    fn from(policy: PoolMemory) -> store::Placement {
        match policy {
            PoolMemory::Prefer => store::Placement::Prefer,
            PoolMemory::Bind => store::Placement::Bind,
            PoolMemory::Interleave => store::Placement::Interleave,
            PoolMemory::FirstUse => store::Placement::FirstUse,
        }
    }
}

/// Who places threads and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Affinity {
    /// Atoll
    #[default]
    On,
    /// The operating system
    Off,
}

/// Whether workers are governed.
#[cfg(feature = "sql")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Governing {
    /// On machines with more than one node
    #[default]
    Auto,
    /// Always
    On,
    /// Always, and with fewer workers where these read as much
    Throughput,
    /// Never
    Off,
}

/// The library's options for those of a command that only reads a store.
#[cfg(feature = "sql")]
pub fn reading(layout: &Layout) -> Options {
    let mut options = Options::read_only();
    options.pool_bytes = layout.pool;
    options.machine = layout.machine.clone();
    options.affinity = layout.affinity == Affinity::On;
    options.pool_memory = layout.pool_memory.into();
    options.mapped = layout.mapped;
    options
}

/// The library's options for those of a command that works on a store.
#[cfg(feature = "sql")]
pub fn options(resources: &Resources, read_only: bool) -> Options {
    let mut options = reading(&resources.compute.layout);
    options.threads = resources.compute.threads.map(|threads| threads as usize);
    let nodes = resources.compute.nodes.as_ref();
    options.nodes = nodes.map(|nodes| nodes.0.clone());
    options.memory_limit = resources.compute.memory_limit;
    if let Some(bytes) = resources.compute.memory_limit {
        allocator::limit(bytes);
    }
    options.reclaim = Some(allocator::give_back);
    options.govern = match resources.govern {
        Governing::Auto => atoll::Govern::Auto,
        Governing::On => atoll::Govern::On,
        Governing::Throughput => atoll::Govern::Throughput,
        Governing::Off => atoll::Govern::Off,
    };
    options.access = if read_only {
        Access::Read
    } else {
        Access::Write
    };
    options
}
