//! Where the memory of a process was found to lie.

use crate::residency::maps::Map;

/// What a mapping holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Holds {
    /// The heap that `brk` moves.
    Heap,
    /// The stack of the main thread.
    MainStack,
    /// The stack of these threads: one, but where the kernel has merged neighbours.
    Stack(Vec<u32>),
    /// A file.
    File(String),
    /// Memory that other processes may share: System V, `memfd`, `/dev/shm`, `MAP_SHARED`.
    Shared(String),
    /// The process's own, with the name it gave it, often none.
    Anonymous(String),
    /// What the kernel put there, such as `[vdso]`.
    Kernel(String),
}

impl Holds {
    /// What it is in a word, for JSON and for tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Holds::Heap => "heap",
            Holds::MainStack | Holds::Stack(_) => "stack",
            Holds::File(_) => "file",
            Holds::Shared(_) => "shared",
            Holds::Anonymous(_) => "anonymous",
            Holds::Kernel(_) => "kernel",
        }
    }
}

/// A mapping with what of it is in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Where it starts.
    pub start: u64,
    /// The first address that is not in it; `None` where it came while we looked.
    pub end: Option<u64>,
    /// What it holds.
    pub holds: Holds,
    /// It is of a file of which a part may be executed: a program, a library.
    pub program: bool,
    /// Its memory policy, such as `default` or `bind:1`; a sample does not know it.
    pub policy: Option<String>,
    /// Bytes in memory, one per node of [`Residency::nodes`].
    pub bytes: Vec<u64>,
    /// Of these, bytes in huge pages; `None` where that was not asked for or is not known.
    pub huge: Option<u64>,
}

impl Region {
    /// Bytes in memory.
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

/// How a [`Residency`] came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Every page was looked at.
    Walked,
    /// So many addresses were, and the figures are estimates.
    Sampled {
        /// How many.
        addresses: usize,
    },
}

/// Where the memory of a process lies. Only pages it maps count: what the kernel caches of its
/// files, and page tables, do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Residency {
    /// The process.
    pub process: u32,
    /// The nodes of the machine, and others its memory is on: the operating system's numbers,
    /// ascending.
    pub nodes: Vec<u32>,
    /// Mappings that have something in memory, by address.
    pub regions: Vec<Region>,
    /// How it came about.
    pub look: Look,
    /// One standard error of the bytes of each node; all zero where every page was looked at.
    pub error: Vec<u64>,
    /// What the kernel's own (approximate) count says is in memory, hugetlbfs apart, in bytes.
    pub counted: u64,
    /// What could not be found out; usually empty.
    pub notes: Vec<String>,
}

impl Residency {
    /// Bytes per node, over all mappings.
    pub fn bytes(&self) -> Vec<u64> {
        let mut sum = vec![0u64; self.nodes.len()];
        for region in &self.regions {
            for (sum, bytes) in sum.iter_mut().zip(&region.bytes) {
                *sum += bytes;
            }
        }
        sum
    }

    /// Bytes per node without programs and libraries, which caches hold where they are used.
    pub fn data(&self) -> Vec<u64> {
        let mut sum = vec![0u64; self.nodes.len()];
        for region in self.regions.iter().filter(|region| !region.program) {
            for (sum, bytes) in sum.iter_mut().zip(&region.bytes) {
                *sum += bytes;
            }
        }
        sum
    }

    /// All bytes in memory.
    pub fn total(&self) -> u64 {
        self.bytes().iter().sum()
    }

    /// Bytes in huge pages; `None` where that was not asked for or is not known.
    pub fn huge(&self) -> Option<u64> {
        self.regions.iter().map(|region| region.huge).sum()
    }
}

/// What a walk or a sample found, before nodes are lined up.
pub(crate) struct Found {
    /// By address.
    pub maps: Vec<Map>,
    pub parts: Vec<Part>,
    pub look: Look,
    pub error: Vec<(u32, u64)>,
    pub notes: Vec<String>,
}

/// One mapping.
pub(crate) struct Part {
    pub start: u64,
    /// As far as it is known without `maps`.
    pub name: Option<String>,
    pub policy: Option<String>,
    pub bytes: Vec<(u32, u64)>,
    pub huge: Option<u64>,
}
