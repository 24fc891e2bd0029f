//! Looks where the memory of a process lies.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::nodes::Nodes;
use crate::process::Process;
use crate::residency::found::{Found, Holds, Look, Part, Region, Residency};
use crate::residency::{maps, sample, stacks, walk};
use crate::system::System;

/// How much work a look at a process may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Depth {
    /// Every page: the kernel walks the page tables, which takes time in proportion to the
    /// memory and holds up the process's own changes of its mappings for as long.
    Walk,
    /// About so many addresses, and at least one per mapping; more, up to 65,536, where what these find is more than a
    /// quarter off what the kernel counts: in a mapping that is nearly empty a few addresses meet nothing.
    Sample(u64),
    /// [`Depth::Walk`] up to so many bytes in memory, beyond that [`Depth::Sample`].
    UpTo {
        /// Bytes.
        walked: u64,
        /// Of the sample.
        addresses: u64,
    },
    /// [`Depth::UpTo`] 4 GiB, beyond that 65,536 addresses.
    Auto,
}

/// Up to where every page is looked at.
const WALK_UP_TO: u64 = 4 << 30;

/// Addresses of a sample where nobody says, and the most where few of them meet anything.
const ADDRESSES: u64 = 1 << 16;

/// So many times as many addresses are next.
const MORE: u64 = 4;

/// How to look at a process.
#[derive(Debug, Clone)]
pub struct Looker {
    system: System,
    nodes: Nodes,
    depth: Depth,
    stacks: bool,
    huge: bool,
}

impl Looker {
    /// Looks with [`Depth::Auto`], at bytes per node and mapping only.
    pub fn new(system: &System, nodes: &Nodes) -> Looker {
        Looker {
            system: system.clone(),
            nodes: nodes.clone(),
            depth: Depth::Auto,
            stacks: false,
            huge: false,
        }
    }

    /// How much work a look may be.
    #[must_use]
    pub fn depth(mut self, depth: Depth) -> Looker {
        self.depth = depth;
        self
    }

    /// Also find out whose stack a mapping is: a call or two per thread.
    #[must_use]
    pub fn stacks(mut self) -> Looker {
        self.stacks = true;
        self
    }

    /// Also find out what lies in huge pages: another walk through the page tables.
    #[must_use]
    pub fn huge(mut self) -> Looker {
        self.huge = true;
        self
    }

    /// Where the memory of this process lies now.
    ///
    /// # Errors
    ///
    /// [`Error::NoMemory`] where it has none, [`Error::Denied`], [`Error::Ended`], or what its
    /// files make of it.
    pub fn look(&self, process: &Process) -> Result<Residency> {
        let stat = process.with_memory()?;
        let page = page_bytes();
        let counted = stat.resident_pages.saturating_mul(page);
        let budget = match self.depth {
            Depth::Walk => None,
            Depth::Sample(addresses) => Some(addresses),
            Depth::UpTo { walked, addresses } => (counted > walked).then_some(addresses),
            Depth::Auto => (counted > WALK_UP_TO).then_some(ADDRESSES),
        };
        let mut found = match budget {
            Some(budget) if self.system.is_real() => enough(process, budget, page, counted),
            _ => walk::walk(process, self.huge),
        }?;
        // What was read of one that gave its memory back meanwhile is a part of it, or nothing.
        process.with_memory()?;
        if found.maps.is_empty() {
            return Err(Error::Ended { pid: process.pid() });
        }
        let stacks = if self.stacks {
            self.find_stacks(process, &mut found)?
        } else {
            BTreeMap::new()
        };
        Ok(self.assembled(process.pid(), counted, found, &stacks))
    }

    /// Threads by the start of the mapping that is their stack.
    fn find_stacks(&self, process: &Process, found: &mut Found) -> Result<BTreeMap<u64, Vec<u32>>> {
        let mut stacks: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let mut unknown = 0;
        for thread in process.threads()? {
            if thread == process.pid() {
                continue;
            }
            let address = stacks::address(&self.system, process, thread);
            let map = address.and_then(|address| {
                let after = found.maps.partition_point(|map| map.start <= address);
                let map = found.maps.get(after.checked_sub(1)?)?;
                let own = map.private && (map.name.is_empty() || map.name.starts_with("[anon"));
                (address < map.end && own).then_some(map.start)
            });
            match map {
                Some(start) => stacks.entry(start).or_default().push(thread),
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            found.notes.push(format!(
                "the stacks of {unknown} threads could not be told from other memory"
            ));
        }
        Ok(stacks)
    }

    fn assembled(
        &self,
        process: u32,
        counted: u64,
        found: Found,
        stacks: &BTreeMap<u64, Vec<u32>>,
    ) -> Residency {
        let mut nodes = self.nodes.numbers().to_vec();
        let seen = found.parts.iter().flat_map(|part| &part.bytes);
        nodes.extend(seen.map(|(node, _)| *node));
        nodes.sort_unstable();
        nodes.dedup();
        let spread = |bytes: &[(u32, u64)]| -> Vec<u64> {
            let of = |node| bytes.iter().filter(move |(n, _)| n == node);
            nodes
                .iter()
                .map(|node| of(node).map(|(_, b)| b).sum())
                .collect()
        };
        let by_start: BTreeMap<u64, &maps::Map> =
            found.maps.iter().map(|map| (map.start, map)).collect();
        let executable = found.maps.iter().filter(|map| map.executable);
        let programs: BTreeSet<&str> = executable.map(|map| map.name.as_str()).collect();
        let region = |part: &Part| {
            let map = by_start.get(&part.start).copied();
            let holds = holds(map, &part.name, stacks.get(&part.start));
            Region {
                start: part.start,
                end: map.map(|map| map.end),
                program: matches!(&holds, Holds::File(name) if programs.contains(name.as_str())),
                holds,
                policy: part.policy.clone(),
                bytes: spread(&part.bytes),
                huge: part.huge,
            }
        };
        let mut regions: Vec<Region> = found.parts.iter().map(region).collect();
        regions.retain(|region| region.total() > 0);
        Residency {
            process,
            regions,
            look: found.look,
            error: spread(&found.error),
            counted,
            notes: found.notes,
            nodes,
        }
    }
}

/// A sample that has found what there is, `counted` bytes, but for a quarter.
fn enough(process: &Process, mut budget: u64, page: u64, counted: u64) -> Result<Found> {
    loop {
        let found = sampled(process, budget, page)?;
        let bytes = found.parts.iter().flat_map(|part| &part.bytes);
        let sum: u64 = bytes.map(|(_, bytes)| *bytes).sum();
        if sum.abs_diff(counted) <= counted / 4 || budget >= ADDRESSES {
            return Ok(found);
        }
        budget = budget.saturating_mul(MORE).clamp(1, ADDRESSES);
    }
}

fn sampled(process: &Process, budget: u64, page: u64) -> Result<Found> {
    let maps = maps::parse(
        &process.text("maps")?,
        &format!("/proc/{}/maps", process.pid()),
    )?;
    // Another sample each time: what one look misses the next may see.
    let mut plan = sample::Plan::new(crate::clock::nanoseconds(), page);
    let look = |addresses: &[u64]| {
        let addresses: Vec<usize> = addresses.iter().map(|address| *address as usize).collect();
        memory::residency_of(process.pid(), &addresses).map_err(|error| of_memory(process, error))
    };
    let (estimates, addresses) = sample::sample(&maps, budget, &mut plan, look)?;
    let mut variance: BTreeMap<u32, f64> = BTreeMap::new();
    for (node, of) in estimates.iter().flat_map(|estimate| &estimate.variance) {
        *variance.entry(*node).or_default() += of;
    }
    let part = |estimate: &sample::Estimate| Part {
        start: maps[estimate.map].start,
        name: None,
        policy: None,
        bytes: estimate
            .bytes
            .iter()
            .map(|(node, bytes)| (*node, *bytes as u64))
            .collect(),
        huge: None,
    };
    Ok(Found {
        parts: estimates.iter().map(part).collect(),
        look: Look::Sampled { addresses },
        error: variance
            .into_iter()
            .map(|(node, variance)| (node, variance.sqrt() as u64))
            .collect(),
        notes: Vec::new(),
        maps,
    })
}

/// The error of a call for this process.
fn of_memory(process: &Process, error: memory::Error) -> Error {
    match error {
        // What the kernel says of a process that has given its memory back.
        memory::Error::Residency { source } if source.raw_os_error() == Some(libc::EINVAL) => {
            Error::Ended { pid: process.pid() }
        }
        memory::Error::Residency { source } => {
            Error::of_process(process.pid(), "pages (move_pages)", source)
        }
        other => Error::parse(format!("process {}", process.pid()), 0, other.to_string()),
    }
}

/// What a mapping holds, by its name in `maps` or, where it has come since, in `numa_maps`.
fn holds(map: Option<&maps::Map>, name: &Option<String>, stack: Option<&Vec<u32>>) -> Holds {
    if let Some(threads) = stack {
        return Holds::Stack(threads.clone());
    }
    let name = map.map_or(name.as_deref().unwrap_or_default(), |map| &map.name);
    match name {
        "[heap]" => Holds::Heap,
        "[stack]" => Holds::MainStack,
        _ if name.starts_with("[anon") => Holds::Anonymous(inner(name).to_owned()),
        _ if name.starts_with('[') => Holds::Kernel(name.to_owned()),
        "" if map.is_some_and(|map| !map.private) => Holds::Shared(String::new()),
        "" => Holds::Anonymous(String::new()),
        _ if [
            "/memfd:",
            "/dev/shm/",
            "/dev/zero",
            "/SYSV",
            "/anon_hugepage",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix)) =>
        {
            Holds::Shared(name.to_owned())
        }
        _ => Holds::File(name.to_owned()),
    }
}

/// `NAME` of `[anon:NAME]` and `[anon_shmem:NAME]`.
fn inner(name: &str) -> &str {
    let name = name.strip_suffix(']').unwrap_or(name);
    name.split_once(':').map_or("", |(_, name)| name)
}

/// Bytes of an ordinary page.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}
