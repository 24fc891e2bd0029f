//! Nodes are entered and left with hysteresis, because each time threads move there and back (E6).
//!
//! A step that is soon undone was a mistake, and the next of its kind needs twice as many checks that agree:
//!
//! 1. It entered another node, and until it was back its own nodes could have done all that it did meanwhile.
//! 2. It left a node, and soon entered one again.
//!
//! The first costs no throughput: what was done could have been done with the fewer cores in the same time. And where
//! its own nodes could have done with ease all that it did for a while, it goes back to them.

/// Checks after which the opposite step no longer counts as undoing a step, and after which a stay on other nodes is
/// reviewed.
const SOON: u32 = 50;

/// Load up to which cores do their work with ease, as a share of their time.
const EASE: f64 = 0.85;

/// Load that a core of another node must find, as a share of its time: memory is remote there.
pub(crate) const AWAY: f64 = 0.5;

/// The waiting threads are becoming fewer if their number falls by this share from one check to the next.
const FALLS: f64 = 0.1;

/// State of nodes between checks.
#[derive(Debug, Clone)]
pub(crate) struct Nodes {
    /// Checks in a row that wanted more cores than the present nodes have.
    entering: u32,
    /// Waiting threads at the previous check, and the number of cores then.
    waited: Option<(usize, f64)>,
    /// The stay with cores of another node, if there is one.
    away: Option<Away>,
    /// Checks since a node was left.
    left: Option<u32>,
    /// By this factor more checks have to agree before a node is entered, or left.
    enter: u32,
    leave: u32,
}

/// A stay with cores of other nodes.
#[derive(Debug, Clone, Copy)]
struct Away {
    /// Cores of the nodes from before the stay.
    home: usize,
    /// Checks since the stay began, or was last reviewed.
    checks: u32,
    /// Cpus kept busy, summed over these checks.
    busy: f64,
    /// The result of the last review: whether the cores from before could have done the work with ease.
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
    /// Takes a check and the number of cpus that were busy before it.
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

    /// Notes that the database stays within its nodes.
    pub(crate) fn stays(&mut self) {
        (self.entering, self.waited) = (0, None);
    }

    /// Takes a check that wants to enter a node, with the number of waiting threads and of cores; `true` once enough
    /// checks agree. Waiting that is becoming less by itself does not count.
    pub(crate) fn enters(&mut self, cores: usize, waiting: f64, confirm: u32) -> bool {
        let before = self.waited.replace((cores, waiting));
        let falls =
            before.is_some_and(|(same, before)| same == cores && waiting < before * (1.0 - FALLS));
        self.entering += u32::from(!falls);
        self.entering >= confirm.saturating_mul(self.enter)
    }

    /// The cores that would have been enough for the work of the last checks.
    pub(crate) fn homeward(&self) -> Option<usize> {
        let away = self.away.filter(|away| away.ease == Some(true))?;
        Some(away.home)
    }

    /// Checks that must agree before a node is left.
    pub(crate) fn to_leave(&self, confirm: u32) -> u32 {
        confirm.saturating_mul(self.leave)
    }

    /// Takes what was decided: the numbers of nodes before and after, and `home`, all cores of the nodes before. No
    /// factor grows beyond `patience`.
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
