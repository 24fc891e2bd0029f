//! The threads that are to be placed.

use crate::{Error, Result};

/// The most threads that are placed at once.
pub const MAX_THREADS: usize = 4096;

/// Threads in the order they are created, and the group each belongs to: threads of one group
/// work on the same data (a chunk, an instance).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threads {
    groups: Vec<usize>,
}

impl Threads {
    /// `threads` threads in `groups` groups whose sizes differ by at most one; a group is a run
    /// of threads created one after the other.
    ///
    /// # Errors
    ///
    /// [`Error::Threads`] outside 1 to [`MAX_THREADS`], [`Error::Groups`] outside 1 to `threads`.
    pub fn in_groups(threads: usize, groups: usize) -> Result<Threads> {
        if threads == 0 || threads > MAX_THREADS {
            return Err(Error::Threads { threads });
        }
        if groups == 0 || groups > threads {
            return Err(Error::Groups { groups, threads });
        }
        let group = |thread: usize| thread * groups / threads;
        Threads::with_groups((0..threads).map(group).collect())
    }

    /// The group of each thread, by any numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Threads`] for none or more than [`MAX_THREADS`].
    pub fn with_groups(groups: Vec<usize>) -> Result<Threads> {
        if groups.is_empty() || groups.len() > MAX_THREADS {
            let threads = groups.len();
            return Err(Error::Threads { threads });
        }
        Ok(Threads { groups })
    }

    /// How many there are: at least one.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// The group of each thread, in the order they are created.
    pub fn groups(&self) -> &[usize] {
        &self.groups
    }

    /// The threads of each group, groups in the order of their first thread.
    pub fn by_group(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut place = std::collections::HashMap::new();
        for (thread, &group) in self.groups.iter().enumerate() {
            let at = *place.entry(group).or_insert_with(|| {
                groups.push((group, Vec::new()));
                groups.len() - 1
            });
            groups[at].1.push(thread);
        }
        groups.into_iter().map(|(_, threads)| threads).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_even_runs() {
        let threads = Threads::in_groups(7, 3).unwrap();
        assert_eq!(threads.groups(), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(threads.by_group(), [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
        for (threads, groups) in [(0, 1), (1, 0), (3, 4), (MAX_THREADS + 1, 1)] {
            assert!(Threads::in_groups(threads, groups).is_err());
        }
    }
}
