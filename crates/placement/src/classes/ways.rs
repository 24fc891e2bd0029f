//! Numbers of ways: exact as far as 128 bits go, and as logarithms beyond.

use crate::random::Random;

/// How many ways there are to do something.
///
/// Invariant: `exact` is the number, or `u128::MAX` where it is that or more; `ln` is its natural
/// logarithm within rounding, minus infinity for none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ways {
    pub(crate) exact: u128,
    pub(crate) ln: f64,
}

impl Ways {
    pub(crate) const NONE: Ways = Ways {
        exact: 0,
        ln: f64::NEG_INFINITY,
    };
    pub(crate) const ONE: Ways = Ways { exact: 1, ln: 0.0 };

    pub(crate) fn is_none(self) -> bool {
        self.exact == 0
    }

    /// Either this or that.
    pub(crate) fn or(self, other: Ways) -> Ways {
        if self.is_none() {
            return other;
        }
        if other.is_none() {
            return self;
        }
        let (more, less) = if self.ln > other.ln {
            (self.ln, other.ln)
        } else {
            (other.ln, self.ln)
        };
        Ways {
            exact: self.exact.saturating_add(other.exact),
            ln: more + (less - more).exp().ln_1p(),
        }
    }

    /// First this, then that.
    pub(crate) fn then(self, other: Ways) -> Ways {
        if self.is_none() || other.is_none() {
            return Ways::NONE;
        }
        Ways {
            exact: self.exact.saturating_mul(other.exact),
            ln: self.ln + other.ln,
        }
    }
}

/// Numbers of subsets (Pascal's triangle) of up to as many things as it was made for.
#[derive(Debug, Clone)]
pub(crate) struct Subsets {
    /// Row `n`: from 0 up to what half of `n` is, or to the first that is too large.
    exact: Vec<Vec<u128>>,
    ln_factorial: Vec<f64>,
}

impl Subsets {
    pub(crate) fn of_up_to(most: usize) -> Subsets {
        let mut exact: Vec<Vec<u128>> = vec![vec![1]];
        let mut ln_factorial = vec![0.0; most + 1];
        for n in 1..=most {
            ln_factorial[n] = ln_factorial[n - 1] + (n as f64).ln();
            let above = &exact[n - 1];
            let mut row = vec![1u128];
            for k in 1..=n / 2 {
                let value = look(above, n - 1, k - 1).saturating_add(look(above, n - 1, k));
                row.push(value);
                if value == u128::MAX {
                    break;
                }
            }
            exact.push(row);
        }
        Subsets {
            exact,
            ln_factorial,
        }
    }

    /// Subsets of size `k` of `n` things.
    pub(crate) fn count(&self, n: usize, k: usize) -> Ways {
        if k > n {
            return Ways::NONE;
        }
        let ln = &self.ln_factorial;
        Ways {
            exact: look(&self.exact[n], n, k),
            ln: if k == 0 || k == n {
                0.0
            } else {
                ln[n] - ln[k] - ln[n - k]
            },
        }
    }
}

/// Entry `k` of row `n`.
fn look(row: &[u128], n: usize, k: usize) -> u128 {
    let k = k.min(n - k);
    row.get(k).copied().unwrap_or(u128::MAX)
}

/// What decides at each fork on the way to one placement: the digits of its rank, or chance.
#[derive(Debug)]
pub(crate) enum Draw<'r> {
    /// What is left of the rank.
    Rank(u128),
    /// Each way as likely as another.
    Chance(&'r mut Random),
}

impl Draw<'_> {
    /// Chooses one of several options, each of which can be done in so many ways.
    pub(crate) fn choose(&mut self, options: &[Ways]) -> usize {
        let total = options.iter().fold(Ways::NONE, |sum, ways| sum.or(*ways));
        assert!(!total.is_none(), "there is a way to continue");
        let mut rank = match self {
            Draw::Rank(rank) => *rank,
            Draw::Chance(random) if total.exact < u128::MAX => random.below(total.exact),
            Draw::Chance(random) => return by_weight(options, total, random.unit()),
        };
        for (at, ways) in options.iter().enumerate() {
            if rank < ways.exact {
                if let Draw::Rank(left) = self {
                    *left = rank;
                }
                return at;
            }
            rank -= ways.exact;
        }
        unreachable!("a rank is below the sum of the ways")
    }

    /// Splits the rank: what follows is decided by the part that is left here until
    /// [`resume`](Draw::resume), which continues with `rest` ways.
    pub(crate) fn divide(&mut self, rest: Ways) -> u128 {
        match self {
            Draw::Rank(rank) => {
                let later = *rank % rest.exact;
                *rank /= rest.exact;
                later
            }
            Draw::Chance(_) => 0,
        }
    }

    /// Continues with what [`divide`](Draw::divide) put aside.
    pub(crate) fn resume(&mut self, later: u128) {
        if let Draw::Rank(rank) = self {
            *rank = later;
        }
    }

    /// A subset of `size` of the things `from`; the others are left in `from`. Uses up the rank.
    pub(crate) fn subset(
        &mut self,
        subsets: &Subsets,
        from: &mut Vec<usize>,
        size: usize,
    ) -> Vec<usize> {
        let mut taken = Vec::with_capacity(size);
        let mut left = Vec::with_capacity(from.len() - size);
        for (at, &thing) in from.iter().enumerate() {
            let (things, wanted) = (from.len() - at, size - taken.len());
            let take = match self {
                Draw::Chance(random) => random.index(things) < wanted,
                Draw::Rank(rank) => {
                    let with = match wanted {
                        0 => 0,
                        wanted => subsets.count(things - 1, wanted - 1).exact,
                    };
                    let take = *rank < with;
                    if !take {
                        *rank -= with;
                    }
                    take
                }
            };
            if take { &mut taken } else { &mut left }.push(thing);
        }
        *from = left;
        taken
    }
}

/// The option at `point` of the way through all of them, by their logarithms.
fn by_weight(options: &[Ways], total: Ways, point: f64) -> usize {
    let mut passed = 0.0;
    let mut last = 0;
    for (at, ways) in options
        .iter()
        .enumerate()
        .filter(|(_, ways)| !ways.is_none())
    {
        passed += (ways.ln - total.ln).exp();
        last = at;
        if point < passed {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_are_counted_exactly_until_they_are_too_many() {
        let subsets = Subsets::of_up_to(1000);
        assert_eq!(subsets.count(12, 6).exact, 924);
        assert_eq!(subsets.count(20, 10).exact, 184_756);
        assert_eq!(subsets.count(5, 6).exact, 0);
        // 120 choose 60, from the product formula.
        let exact = 96_614_908_840_363_322_603_893_139_521_372_656;
        assert_eq!(subsets.count(120, 60).exact, exact);
        assert_eq!(subsets.count(1000, 500).exact, u128::MAX);
        assert_eq!(subsets.count(1000, 999).exact, 1000);
        for (n, k) in [(12, 6), (120, 60), (40, 3)] {
            let ways = subsets.count(n, k);
            assert!((ways.ln - (ways.exact as f64).ln()).abs() < 1e-9);
        }
    }

    #[test]
    fn every_rank_is_another_subset() {
        let subsets = Subsets::of_up_to(7);
        let mut seen = std::collections::HashSet::new();
        for rank in 0..subsets.count(7, 3).exact {
            let mut from: Vec<usize> = (0..7).collect();
            let taken = Draw::Rank(rank).subset(&subsets, &mut from, 3);
            assert_eq!((taken.len(), from.len()), (3, 4));
            assert!(seen.insert(taken));
        }
        assert_eq!(seen.len(), 35);
    }
}
