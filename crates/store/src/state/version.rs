//! Versions: what each commit published, and which versions readers still hold.

use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};

use crate::catalog::spaces::Catalog;

/// The store as one commit left it. Its pages are neither moved nor reused while a reader holds the version.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) number: u64,
    pub(crate) catalog: Catalog,
}

/// The versions that readers may still hold.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    /// Oldest first; the last is the current one. Some may have been let go already.
    held: VecDeque<(u64, Weak<Version>)>,
    /// How many there are when those let go are dropped next: twice those that were left the last
    /// time, so that a version costs the same however many are held.
    sweep: usize,
}

impl Versions {
    /// Adds a version later than all others.
    pub(crate) fn add(&mut self, version: &Arc<Version>) {
        if self.held.len() >= self.sweep.max(32) {
            // Not only the first ones, or one snapshot that lives long would keep a trace of
            // every later version.
            self.held.retain(|(_, held)| held.strong_count() > 0);
            self.sweep = 2 * self.held.len();
        }
        self.held
            .push_back((version.number, Arc::downgrade(version)));
    }

    /// The oldest version that somebody holds.
    pub(crate) fn oldest(&mut self) -> u64 {
        let let_go = |(_, held): &(u64, Weak<Version>)| held.strong_count() == 0;
        while self.held.front().is_some_and(let_go) {
            self.held.pop_front();
        }
        // Pairs with the release in the last holder's drop: what it read, it read before we
        // write.
        fence(Ordering::Acquire);
        self.held.front().map_or(0, |(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> Arc<Version> {
        Arc::new(Version {
            number,
            catalog: Catalog::new(),
        })
    }

    #[test]
    fn versions_let_go_leave_no_trace() {
        let mut versions = Versions::default();
        let first = version(0);
        versions.add(&first);
        let mut current = first.clone();
        for number in 1..10_000 {
            current = version(number);
            versions.add(&current);
            assert!(versions.held.len() <= 64, "{}", versions.held.len());
        }
        assert_eq!(versions.oldest(), 0);
        drop(first);
        assert_eq!(versions.oldest(), 9999);
        assert_eq!(versions.held.len(), 1);
        drop(current);
        assert_eq!(versions.oldest(), 0);
        let mut held: Vec<_> = (20_000..20_100).map(version).collect();
        held.iter().for_each(|version| versions.add(version));
        assert_eq!(versions.oldest(), 20_000);
        held.drain(..50);
        assert_eq!(versions.oldest(), 20_050);
    }
}
