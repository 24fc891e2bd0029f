//! Last-level caches of the model of array queries.

use placement::CpuSet;
use topology::{CacheKind, Machine};

/// Bytes that are read, written and cached together.
pub(super) const BLOCK: u64 = 64 << 10;
/// Blocks of a set of a cache.
const WAYS: usize = 16;
/// What a last-level cache holds where the machine's description does not say.
const CACHE: u64 = 16 << 20;

/// A last-level cache: the blocks of each set, the most recent first.
pub(super) struct Cache {
    sets: Vec<[u64; WAYS]>,
}

impl Cache {
    pub(super) fn new(bytes: u64) -> Cache {
        let sets = (bytes / BLOCK) as usize / WAYS;
        Cache {
            sets: vec![[u64::MAX; WAYS]; sets.max(1)],
        }
    }

    /// Whether it holds the block, which then is its most recent.
    pub(super) fn access(&mut self, block: u64) -> bool {
        let count = self.sets.len() as u64;
        let set = &mut self.sets[(block % count) as usize];
        let found = set.iter().position(|held| *held == block);
        set[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        set[0] = block;
        found.is_some()
    }
}

/// The capacity of the last-level cache of these cpus.
pub(super) fn capacity(machine: &Machine, set: &CpuSet) -> u64 {
    let Some(first) = set.iter().next() else {
        return CACHE;
    };
    let caches = machine.nodes().iter().flat_map(|node| &node.caches);
    let own = caches.filter(|cache| {
        cache.kind != CacheKind::Instruction && cache.cpus.contains(&first) && cache.bytes > 0
    });
    let last = own.max_by_key(|cache| (cache.level, cache.cpus.len()));
    last.map_or(CACHE, |cache| cache.bytes)
}
