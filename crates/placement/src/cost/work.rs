//! What threads have to do.

/// Threads that begin together, each with its work, and wait for each other at the end.
pub type Step = Vec<Work>;

/// What a thread does on its core, or on several if it moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Bytes from memory by the node that reads and the node where they lie.
    pub(super) memory: Vec<((usize, usize), f64)>,
    /// Bytes out of the last-level cache.
    pub(super) cached: f64,
    pub(super) cycles: f64,
    /// How many threads share its core.
    pub(super) sharing: f64,
    node: usize,
}

impl Default for Work {
    /// As [`Work::new`] of node 0.
    fn default() -> Work {
        Work::new(0)
    }
}

impl Work {
    /// Nothing, by a core of `node` that no other thread is on.
    pub fn new(node: usize) -> Work {
        Work {
            memory: Vec::new(),
            cached: 0.0,
            cycles: 0.0,
            sharing: 1.0,
            node,
        }
    }

    /// So many threads, this one among them, share its core: each has a part of its time.
    #[must_use]
    pub fn shared_by(mut self, threads: f64) -> Work {
        self.sharing = threads.max(1.0);
        self
    }

    /// Adds bytes from the memory of node `home`.
    #[must_use]
    pub fn memory(self, home: usize, bytes: f64) -> Work {
        let node = self.node;
        self.moved(node, home, bytes)
    }

    /// Adds bytes from the memory of node `home` that are read on node `reader`, where a thread has moved to.
    #[must_use]
    pub fn moved(mut self, reader: usize, home: usize, bytes: f64) -> Work {
        let pair = (reader, home);
        match self.memory.iter_mut().find(|(own, _)| *own == pair) {
            Some((_, all)) => *all += bytes,
            None => self.memory.push((pair, bytes)),
        }
        self
    }

    /// Adds bytes out of the last-level cache.
    #[must_use]
    pub fn cached(mut self, bytes: f64) -> Work {
        self.cached += bytes;
        self
    }

    /// Adds cycles of computing.
    #[must_use]
    pub fn cycles(mut self, cycles: f64) -> Work {
        self.cycles += cycles;
        self
    }
}
