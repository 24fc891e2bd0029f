//! Nodes are entered and left with care, as threads move there and back (E6).
//!
//! A step that is soon undone was a mistake, and the next of its kind needs twice as many checks that agree:
//!
//! 1. It entered another node, and until it was back its own nodes could have done all that it did meanwhile.
//! 2. It left a node, and soon entered one again.
//!
//! The first costs no throughput: what was done could have been done with the fewer cores in the same time. And where
//! its own nodes could have done with ease all that it did for a while, it goes back to them.

/// Checks after which a step is no longer undone by the opposite one, and a stay is looked at.
const SOON: u32 = 50;

/// What is done with ease, as a share of the time of cores.
const EASE: f64 = 0.85;

/// A core of another node has to have so much to do, as a share of its time: there memory is remote.
pub(crate) const AWAY: f64 = 0.5;

/// What waits becomes less where it falls by this share from one check to the next.
const FALLS: f64 = 0.1;

/// What is remembered of the nodes between checks.
#[derive(Debug, Clone)]
pub(crate) struct Nodes {
    /// Checks that wanted more cores than its nodes have, since the last that did not.
    entering: u32,
    /// What waited at the check before, and with how many cores.
    waited: Option<(usize, f64)>,
    /// Since it entered another node.
    away: Option<Away>,
    /// Checks since it left one.
    left: Option<u32>,
    /// So many times as many checks have to agree before a node is entered, or left.
    enter: u32,
    leave: u32,
}

/// A stay with cores of other nodes.
#[derive(Debug, Clone, Copy)]
struct Away {
    /// Cores of the nodes where it was before.
    home: usize,
    /// Checks since it began, or was looked at.
    checks: u32,
    /// Cpus kept busy, summed over these checks.
    busy: f64,
    /// It has been looked at: these cores could have done it with ease, or not.
    ease: Option<bool>,
}

impl Away {
    fn mean(&self) -> f64 {
        self.busy / f64::from(self.checks.max(1))
    }
}

impl Default for Nodes {
    fn default() -> Nodes {
        Nodes {
            entering: 0,
            waited: None,
            away: None,
            left: None,
            enter: 1,
            leave: 1,
        }
    }
}

impl Nodes {
    /// A check, and how many cpus were busy before it.
    pub(crate) fn check(&mut self, busy: Option<f64>) {
        if let Some((away, busy)) = self.away.as_mut().zip(busy) {
            away.checks = away.checks.saturating_add(1);
            away.busy += busy;
            if away.checks >= SOON {
                away.ease = Some(away.mean() <= away.home as f64 * EASE);
                (away.checks, away.busy) = (0, 0.0);
            }
        }
        self.left = self.left.map(|checks| checks.saturating_add(1));
        if self.left.is_some_and(|checks| checks > SOON) {
            // It was right to leave.
            (self.left, self.leave) = (None, 1);
        }
    }

    /// It stays within its nodes.
    pub(crate) fn stays(&mut self) {
        (self.entering, self.waited) = (0, None);
    }

    /// A check that wants to enter a node, at which so much waited for so many cores: whether enough agree. What
    /// becomes less by itself is no reason.
    pub(crate) fn enters(&mut self, cores: usize, waiting: f64, confirm: u32) -> bool {
        let before = self.waited.replace((cores, waiting));
        let falls =
            before.is_some_and(|(same, before)| same == cores && waiting < before * (1.0 - FALLS));
        self.entering += u32::from(!falls);
        self.entering >= confirm.saturating_mul(self.enter)
    }

    /// The cores that could have done with ease what was done for a while.
    pub(crate) fn homeward(&self) -> Option<usize> {
        let away = self.away.filter(|away| away.ease == Some(true))?;
        Some(away.home)
    }

    /// Checks that must agree before a node is left.
    pub(crate) fn to_leave(&self, confirm: u32) -> u32 {
        confirm.saturating_mul(self.leave)
    }

    /// Cores were decided, on so many nodes before and after; `home`: all cores of those before. A factor is
    /// `patience` at most.
    pub(crate) fn settled(
        &mut self,
        (before, after): (usize, usize),
        (home, cores): (usize, usize),
        patience: u32,
    ) {
        let more = |factor: u32| factor.saturating_mul(2).min(patience).max(1);
        if after > before && before > 0 {
            if self.left.take().is_some() {
                self.leave = more(self.leave);
            }
            let new = Away {
                home,
                checks: 0,
                busy: 0.0,
                ease: None,
            };
            self.away.get_or_insert(new);
        }
        if after < before {
            self.left = Some(0);
        }
        if let Some(away) = self.away.filter(|away| cores <= away.home) {
            self.away = None;
            let short = away.mean() <= away.home as f64 + AWAY;
            let needless = away.ease.unwrap_or(short);
            self.enter = if needless { more(self.enter) } else { 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(nodes: &mut Nodes, checks: u32, busy: f64) {
        nodes.settled((1, 2), (4, 8), 8);
        for _ in 0..checks {
            nodes.check(Some(busy));
        }
        nodes.settled((2, 1), (8, 4), 8);
    }

    fn needed(nodes: &Nodes) -> u32 {
        let mut nodes = nodes.clone();
        (1..).find(|_| nodes.enters(4, 9.0, 3)).unwrap()
    }

    #[test]
    fn a_needless_stay_makes_the_next_one_rarer_and_one_that_was_needed_does_not() {
        let mut nodes = Nodes::default();
        assert_eq!(needed(&nodes), 3);
        for expected in [6, 12, 24, 24] {
            stay(&mut nodes, 10, 4.2);
            assert_eq!(needed(&nodes), expected);
        }
        stay(&mut nodes, 10, 6.0);
        assert_eq!(needed(&nodes), 3, "its own nodes could not have done it");
        stay(&mut nodes, SOON, 3.0);
        assert_eq!(needed(&nodes), 6, "they could have done it with ease");
        stay(&mut nodes, SOON, 3.9);
        assert_eq!(needed(&nodes), 3, "they could not");
    }

    #[test]
    fn what_becomes_less_is_no_reason_to_enter_a_node() {
        let mut nodes = Nodes::default();
        let waits = [20.0, 15.0, 11.0, 8.0];
        assert!(waits.iter().all(|waits| !nodes.enters(4, *waits, 2)));
        assert!(nodes.enters(4, 7.9, 2));
        nodes.stays();
        assert!(!nodes.enters(4, 9.0, 2), "it begins anew");
    }

    #[test]
    fn a_node_that_is_entered_again_is_left_later() {
        let mut nodes = Nodes::default();
        assert_eq!(nodes.to_leave(3), 3);
        for expected in [6, 12] {
            nodes.settled((2, 1), (8, 4), 4);
            nodes.check(Some(4.0));
            nodes.settled((1, 2), (4, 8), 4);
            assert_eq!(nodes.to_leave(3), expected);
        }
        nodes.settled((2, 1), (8, 4), 4);
        for _ in 0..=SOON {
            nodes.check(Some(1.0));
        }
        assert_eq!(nodes.to_leave(3), 3, "it was right to leave");
    }
}
