//! What a placement reads locally and remotely.

use super::division::{Chunk, Division, check};
use crate::error::{Error, Result};
use crate::placement::Placement;
use crate::site::Site;

/// The bytes that threads read from their own node and from others, and the share of the busiest core.
///
/// A thread that may run on several cpus is taken to run on each of them for the same time, as one that the system
/// moves about does.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Bytes read by threads on the node of the chunk.
    pub local: f64,
    /// Bytes read by threads on other nodes.
    pub remote: f64,
    /// All bytes, those from other nodes weighted with their distance: 1 for a local one.
    pub weighted: f64,
    /// The weighted bytes of the core that has most of them, or of the thread, if that has more because it moves among
    /// cores.
    pub busiest: f64,
}

impl Load {
    /// Counts the bytes of a division under a placement.
    ///
    /// # Errors
    /// [`Error::Home`] for a chunk on a node that the machine has not, [`Error::Threads`] for a placement of another
    /// number of threads than the division has.
    pub fn of(
        site: &Site,
        placement: &Placement,
        division: &Division,
        chunks: &[Chunk],
    ) -> Result<Load> {
        check(site, chunks)?;
        let threads = division.threads.len();
        if placement.threads() != threads {
            return Err(Error::Threads { threads });
        }
        let mut load = Load {
            local: 0.0,
            remote: 0.0,
            weighted: 0.0,
            busiest: 0.0,
        };
        let weights = Weights::of(site);
        let mut cores = vec![0.0; site.cores()];
        for (pieces, set) in division.threads.iter().zip(placement.sets()) {
            let mut bytes = vec![0.0; site.nodes().len()];
            for piece in pieces {
                bytes[chunks[piece.chunk].home] += piece.bytes() as f64;
            }
            let share = 1.0 / set.len() as f64;
            let before = load.weighted;
            for core in set.iter().filter_map(|cpu| site.core_of(cpu)) {
                let node = site.slots()[core].node;
                for (home, bytes) in bytes.iter().enumerate() {
                    let bytes = bytes * share;
                    let weighted = bytes * weights.get(node, home);
                    if node == home {
                        load.local += bytes;
                    } else {
                        load.remote += bytes;
                    }
                    load.weighted += weighted;
                    // Hardware threads of a core share it.
                    cores[core] += weighted;
                }
            }
            load.busiest = load.busiest.max(load.weighted - before);
        }
        load.busiest = cores.into_iter().fold(load.busiest, f64::max);
        Ok(load)
    }

    /// Remote bytes as a share of all; 0 where there are none.
    pub fn remote_share(&self) -> f64 {
        match self.local + self.remote {
            0.0 => 0.0,
            all => self.remote / all,
        }
    }
}

/// How much a byte weighs by where it is read and where it lies: 1 for a local one.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    rows: Vec<Vec<f64>>,
}

impl Weights {
    pub(super) fn of(site: &Site) -> Weights {
        let machine = site.machine();
        let nodes = site.nodes().len();
        let weight = |from: usize, to: usize| {
            let local = f64::from(machine.distance(from, from).max(1));
            (f64::from(machine.distance(from, to)) / local).max(1.0)
        };
        let row = |from: usize| (0..nodes).map(|to| weight(from, to)).collect();
        Weights {
            rows: (0..nodes).map(row).collect(),
        }
    }

    /// Of a byte that lies on `home` and is read on `node`.
    pub(super) fn get(&self, node: usize, home: usize) -> f64 {
        self.rows[node][home]
    }
}

#[cfg(test)]
mod tests {
    use topology::Machine;

    use super::*;
    use crate::arrays::Sharing;
    use crate::{CpuSet, Strategy, Threads};

    fn site() -> Site {
        Site::new(&Machine::parse("xeon-2630").unwrap())
    }

    #[test]
    fn bytes_are_local_where_thread_and_chunk_are_on_one_node() {
        let site = site();
        let chunk = |home| Chunk {
            home,
            bytes: 100,
            slabs: 100,
        };
        let chunks = [chunk(0), chunk(1)];
        let division = Sharing::Whole.divide(2, &chunks).unwrap();
        let on = |cpus: [u32; 2]| {
            let sets = cpus.map(|cpu| CpuSet::from(vec![cpu])).to_vec();
            let placement = Placement::explicit(&site, sets).unwrap();
            Load::of(&site, &placement, &division, &chunks).unwrap()
        };
        let home = on([0, 6]);
        assert_eq!((home.local, home.remote, home.busiest), (200.0, 0.0, 100.0));
        let away = on([6, 0]);
        assert_eq!((away.local, away.remote), (0.0, 200.0));
        assert!((away.busiest - 130.0).abs() < 1e-9 && (away.weighted - 260.0).abs() < 1e-9);
        let crowded = on([0, 0]);
        assert_eq!((crowded.remote_share(), crowded.local), (0.5, 100.0));
        assert!((crowded.busiest - 230.0).abs() < 1e-9);
    }

    #[test]
    fn who_may_run_anywhere_is_everywhere_in_turn() {
        let site = site();
        let chunks = [Chunk {
            home: 1,
            bytes: 1200,
            slabs: 12,
        }];
        let division = Sharing::Groups { of: 12 }.divide(12, &chunks).unwrap();
        let threads = Threads::in_groups(12, 1).unwrap();
        let os = Strategy::Os.place(&site, &threads).unwrap();
        let load = Load::of(&site, &os, &division, &chunks).unwrap();
        assert!((load.remote_share() - 0.5).abs() < 1e-9 && (load.local - 600.0).abs() < 1e-9);
        // Cores of node 0 read all of their 100 bytes from afar.
        assert!((load.busiest - 130.0).abs() < 1e-9, "{load:?}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let site = site();
        let far = [Chunk {
            home: 2,
            bytes: 1,
            slabs: 1,
        }];
        let one = Strategy::Compact;
        let one = one
            .place(&site, &Threads::in_groups(1, 1).unwrap())
            .unwrap();
        let division = Sharing::Whole.divide(1, &far).unwrap();
        let error = Load::of(&site, &one, &division, &far)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("chunk 0") && error.contains("node 2"),
            "{error}"
        );
        let two = Sharing::Whole.divide(2, &[]).unwrap();
        assert!(Load::of(&site, &one, &two, &[]).is_err());
        let none = Sharing::Whole.divide(1, &[]).unwrap();
        assert_eq!(
            Load::of(&site, &one, &none, &[]).unwrap().remote_share(),
            0.0
        );
    }
}
