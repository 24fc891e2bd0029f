//! The priority queue of nodes: where the pages of the database's processes are (E6).

use std::collections::BTreeMap;

/// The most processes that are remembered; the one looked at longest ago is forgotten first.
pub const MAX_PROCESSES: usize = 10_000;

/// Bytes per node of each process that was looked at. A look counts less the older it is.
#[derive(Debug, Clone)]
pub struct Residency {
    half_life: f64,
    looks: BTreeMap<u32, Look>,
}

#[derive(Debug, Clone)]
struct Look {
    at: f64,
    bytes: Vec<(u32, f64)>,
}

impl Residency {
    /// No process yet; a look counts half after `half_life` seconds.
    pub fn new(half_life: f64) -> Residency {
        Residency {
            half_life: half_life.max(f64::MIN_POSITIVE),
            looks: BTreeMap::new(),
        }
    }

    /// Takes a look: bytes of a process on each node, by the operating system's numbers.
    pub fn looked(&mut self, process: u32, at: f64, bytes: Vec<(u32, f64)>) {
        self.looks.insert(process, Look { at, bytes });
        if self.looks.len() > MAX_PROCESSES {
            let oldest = self.looks.iter().min_by(|a, b| a.1.at.total_cmp(&b.1.at));
            if let Some(oldest) = oldest.map(|(process, _)| *process) {
                self.looks.remove(&oldest);
            }
        }
    }

    /// Forgets a process that has ended.
    pub fn ended(&mut self, process: u32) {
        self.looks.remove(&process);
    }

    /// How many processes are known.
    pub fn processes(&self) -> usize {
        self.looks.len()
    }

    /// The age of the newest look, in seconds; `None` where there is none.
    pub fn age(&self, now: f64) -> Option<f64> {
        let newest = self.looks.values().map(|look| look.at);
        let newest = newest.max_by(f64::total_cmp)?;
        Some((now - newest).max(0.0))
    }

    /// Bytes per node, each look weighted by its age.
    pub fn bytes(&self, now: f64) -> BTreeMap<u32, f64> {
        let mut nodes: BTreeMap<u32, f64> = BTreeMap::new();
        for look in self.looks.values() {
            let age = (now - look.at).max(0.0);
            let weight = (-age / self.half_life).exp2();
            for (node, bytes) in &look.bytes {
                *nodes.entry(*node).or_default() += bytes * weight;
            }
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_fade_and_processes_end() {
        let mut residency = Residency::new(10.0);
        assert_eq!(residency.age(0.0), None);
        residency.looked(7, 0.0, vec![(0, 100.0), (1, 20.0)]);
        residency.looked(8, 10.0, vec![(1, 40.0)]);
        let at = residency.bytes(10.0);
        assert_eq!((at[&0], at[&1]), (50.0, 50.0));
        let later = residency.bytes(20.0);
        assert_eq!((later[&0], later[&1]), (25.0, 25.0));
        residency.looked(8, 20.0, vec![(1, 40.0)]);
        assert_eq!(residency.bytes(20.0)[&1], 45.0);
        assert_eq!(residency.age(23.0), Some(3.0));
        residency.ended(8);
        assert_eq!(residency.bytes(20.0)[&1], 5.0);
        assert_eq!(residency.bytes(5.0)[&0], 100.0 * 0.5f64.powf(0.5));
        assert_eq!(residency.bytes(-5.0)[&0], 100.0, "a clock that goes back");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut residency = Residency::new(1.0);
        for process in 0..MAX_PROCESSES as u32 + 10 {
            residency.looked(process, f64::from(process), vec![(0, 1.0)]);
        }
        assert_eq!(residency.processes(), MAX_PROCESSES);
    }
}
