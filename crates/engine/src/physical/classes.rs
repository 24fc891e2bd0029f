//! Classes of equal vectors.

use std::collections::BTreeSet;

use crate::vector::value::Var;

/// Vectors that are equal in each row of a join.
#[derive(Default)]
pub(crate) struct Classes(Vec<BTreeSet<Var>>);

impl Classes {
    /// Adds an equality.
    pub fn join(&mut self, (a, b): (Var, Var)) {
        let mut class = BTreeSet::from([a, b]);
        self.0.retain(|other| {
            let is_apart = class.is_disjoint(other);
            if !is_apart {
                class.extend(other);
            }
            is_apart
        });
        self.0.push(class);
    }

    /// The vectors that equal `var`, if there are others.
    pub fn of(&self, var: Var) -> Option<&BTreeSet<Var>> {
        self.0.iter().find(|class| class.contains(&var))
    }

    /// All classes.
    pub fn each(&self) -> impl Iterator<Item = &BTreeSet<Var>> {
        self.0.iter()
    }

    /// Whether the equality follows from those that were added.
    pub fn has(&self, (a, b): (Var, Var)) -> bool {
        self.0
            .iter()
            .any(|class| class.contains(&a) && class.contains(&b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equalities_follow_from_chains_of_others() {
        let mut classes = Classes::default();
        for pair in [(1, 2), (3, 4), (5, 6), (2, 3)] {
            classes.join(pair);
        }
        assert!(classes.has((1, 4)) && classes.has((4, 1)) && classes.has((5, 6)));
        assert_eq!(classes.of(2), Some(&BTreeSet::from([1, 2, 3, 4])));
        assert!(!classes.has((1, 5)) && !classes.has((7, 8)));
    }
}
