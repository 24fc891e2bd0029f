//! The named placement strategies.

mod compact;
mod random;
mod shared;
mod sparse;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{Error, Placement, Result, Site, Threads, mapping};

pub use random::{draws, like};

/// How threads are placed. The text of each strategy is what the command line takes.
///
/// All but `os` give each thread one cpu, and use the second hardware threads of cores only when
/// cores have none left in the node or cache that the strategy chose. **More threads than cpus**: the cpus
/// are dealt out again from the first, so that none has more than one thread more than another
/// (shared: as far as groups can be kept together).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// Every thread may run on every allowed cpu: the baseline.
    Os,
    /// As few nodes as have cpus for all threads, near each other; filled one after the other in
    /// the order the threads are created.
    Compact,
    /// One thread per node, round robin, and within a node one per last-level cache. A node without
    /// cpus left is passed over. No node has more than one thread more than another that has a
    /// free cpu.
    Sparse,
    /// All threads of a group under one last-level cache, the groups spread over the caches.
    Shared,
    /// One of all placements that differ (see [`Classes`](crate::Classes)), each as likely as
    /// another, that is neither like compact nor like sparse.
    Random {
        /// The same seed gives the same placement.
        seed: u64,
    },
    /// Every placement that differs: [`Classes`](crate::Classes) lists them.
    Exhaustive,
    /// What a file says: see [`mapping::read`].
    File(PathBuf),
}

impl Strategy {
    /// The placement of `threads` by this strategy.
    ///
    /// # Errors
    ///
    /// [`Error::GroupTooLarge`] (shared), [`Error::NothingRandom`] (random),
    /// [`Error::Exhaustive`], and what reading a file may give.
    pub fn place(&self, site: &Site, threads: &Threads) -> Result<Placement> {
        match self {
            Strategy::Os => Ok(Placement::alike(threads.count(), &site.allowed())),
            Strategy::Compact => Ok(compact::place(site, threads.count())),
            Strategy::Sparse => Ok(sparse::place(site, threads.count())),
            Strategy::Shared => shared::place(site, threads),
            Strategy::Random { seed } => {
                let mut drawn = draws(site, threads, *seed, 1)?;
                drawn.pop().ok_or(Error::NothingRandom {
                    threads: threads.count(),
                })
            }
            Strategy::Exhaustive => Err(Error::Exhaustive),
            Strategy::File(path) => from_file(site, path, threads.count()),
        }
    }
}

/// The mapping of a file, repeated where it has fewer lines than there are threads.
fn from_file(site: &Site, path: &Path, threads: usize) -> Result<Placement> {
    let sets = mapping::read(path)?;
    let placement = Placement::explicit(site, sets)?;
    let sets = (0..threads).map(|thread| placement.of(thread).clone());
    Placement::explicit(site, sets.collect())
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::Os => write!(f, "os"),
            Strategy::Compact => write!(f, "compact"),
            Strategy::Sparse => write!(f, "sparse"),
            Strategy::Shared => write!(f, "shared"),
            Strategy::Random { seed } => write!(f, "random:{seed}"),
            Strategy::Exhaustive => write!(f, "exhaustive"),
            Strategy::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl FromStr for Strategy {
    type Err = Error;

    /// A name; `random` alone is `random:0`. What has a `/` or a `.` in it is a path.
    fn from_str(text: &str) -> Result<Strategy> {
        let unknown = || Error::Strategy {
            name: text.to_owned(),
        };
        Ok(match text {
            "os" => Strategy::Os,
            "compact" => Strategy::Compact,
            "sparse" => Strategy::Sparse,
            "shared" => Strategy::Shared,
            "random" => Strategy::Random { seed: 0 },
            "exhaustive" => Strategy::Exhaustive,
            _ => match text.strip_prefix("random:") {
                Some(seed) => Strategy::Random {
                    seed: seed.parse().map_err(|_| unknown())?,
                },
                None if text.contains(['/', '.']) => Strategy::File(PathBuf::from(text)),
                None => return Err(unknown()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in [
            "os",
            "compact",
            "sparse",
            "shared",
            "random:7",
            "exhaustive",
            "./map",
        ] {
            let strategy: Strategy = name.parse().unwrap();
            assert_eq!(strategy.to_string(), name);
        }
        for name in ["", "dense", "random:", "random:-1", "random:x"] {
            let error = name.parse::<Strategy>().unwrap_err().to_string();
            assert!(error.contains("compact, sparse, shared"), "{error}");
        }
    }
}
