//! Bands: the conditions of a join that keep a whole number of the build side between two of the probe side, `e.time <= m.time and
//! m.time < e.time + interval '5 minutes'`. Rows in the order of that number are found by it, so that few pairs are made.
//!
//! The conditions are tested all the same: a band only leaves out pairs that do not pass.

use std::collections::BTreeMap;

use algebra::filter::Op as Compare;

use crate::expr::{Expr, Node};
use crate::vector::value::{Kind, Var};

/// A vector of the build side, and what its numbers lie between, both ends included. An end is the number of a vector of the probe
/// side with another one added. If that is not zero, they are moments, of which the ends of all numbers are infinite: nothing is
/// added to these.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Band {
    /// The vector of the build side.
    pub of: Var,
    /// The least number.
    pub low: Option<(Var, i64)>,
    /// The greatest number.
    pub high: Option<(Var, i64)>,
    /// Without a least number: another vector of the build side and its least number, as in `start <= x and x <= stop`. It says
    /// how low the first one may be, since that is never further below than in the widest row.
    pub reaching: Option<(Var, (Var, i64))>,
}

impl Band {
    /// That of conditions, in a join whose build side has the vectors that `is_build` tells; one with both ends if there is such,
    /// or two vectors with one each.
    pub fn of(conditions: &[Expr], is_build: impl Fn(Var) -> bool) -> Option<Band> {
        let mut bands: BTreeMap<Var, Band> = BTreeMap::new();
        for condition in conditions {
            let Some((of, op, end)) = bound(condition, &is_build) else {
                continue;
            };
            let band = bands.entry(of).or_insert(Band {
                of,
                low: None,
                high: None,
                reaching: None,
            });
            let (is_low, is_high) = match op {
                Compare::Ge | Compare::Gt => (true, false),
                Compare::Le | Compare::Lt => (false, true),
                Compare::Eq => (true, true),
                Compare::Ne => (false, false),
            };
            // Of several ends the first is as good as any.
            if is_low {
                band.low.get_or_insert(end);
            }
            if is_high {
                band.high.get_or_insert(end);
            }
        }
        let ends = |band: &Band| usize::from(band.low.is_some()) + usize::from(band.high.is_some());
        if let Some(both) = bands.values().find(|band| ends(band) == 2) {
            return Some(both.clone());
        }
        let low = bands.values().find_map(|band| Some((band.of, band.low?)));
        if let Some(high) = bands.values().find(|band| band.high.is_some()) {
            return Some(Band {
                reaching: low,
                ..high.clone()
            });
        }
        bands.into_values().find(|band| band.low.is_some())
    }

    /// The vectors of the probe side that it reads.
    pub fn reads(&self) -> impl Iterator<Item = Var> {
        let reaching = self.reaching.map(|(_, low)| low);
        let ends = [self.low, self.high, reaching].into_iter().flatten();
        ends.map(|(var, _)| var)
    }
}

/// The vector of the build side that a condition compares with a sum of one of the probe side, how, and that sum.
fn bound(condition: &Expr, is_build: &impl Fn(Var) -> bool) -> Option<(Var, Compare, (Var, i64))> {
    let Node::Compare(op, a, b) = &condition.node else {
        return None;
    };
    let (a, b) = (sum(a)?, sum(b)?);
    let (op, build, probe) = match (is_build(a.0), is_build(b.0)) {
        (true, false) => (*op, a, b),
        (false, true) => (turned(*op), b, a),
        _ => return None,
    };
    Some((build.0, op, (probe.0, probe.1.checked_sub(build.1)?)))
}

/// The vector and the number of which an expression is the sum, which does not overflow but for what is infinite and stays so.
fn sum(e: &Expr) -> Option<(Var, i64)> {
    let found = match &e.node {
        Node::Var(var) => Some((*var, 0)),
        Node::Ranged(ranged) => ranged.sum(),
        _ => None,
    };
    found.filter(|_| e.ty.kind == Kind::Int)
}

/// The comparison with its sides exchanged.
fn turned(op: Compare) -> Compare {
    match op {
        Compare::Lt => Compare::Gt,
        Compare::Le => Compare::Ge,
        Compare::Gt => Compare::Lt,
        Compare::Ge => Compare::Le,
        Compare::Eq | Compare::Ne => op,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;
    use crate::expr::WholeFunction;
    use crate::expr::build::compare;
    use crate::expr::ranged::ranged;
    use crate::vector::value::Type;

    const BUILD: Var = 7;

    fn var(var: Var) -> Expr {
        let ty = Type::of(&DataType::Int64, false).unwrap();
        Expr::var(var, ty.within((0, 1_000)))
    }

    fn plus(e: Expr, number: i64) -> Expr {
        let kernel = WholeFunction::Plus(number);
        ranged(kernel, e, (0, 1_000), &DataType::Int64, || unreachable!()).unwrap()
    }

    fn band(conditions: &[(Compare, Expr, Expr)]) -> Option<Band> {
        let all = conditions.iter().cloned();
        let all: Vec<Expr> = all.map(|(op, a, b)| compare(op, a, b).unwrap()).collect();
        Band::of(&all, |var| var >= BUILD)
    }

    #[test]
    fn ends_of_bands() {
        let found = band(&[
            (Compare::Ge, var(1), var(BUILD)),
            (Compare::Lt, var(1), plus(var(BUILD), 300)),
        ]);
        let wanted = Band {
            of: BUILD,
            low: Some((1, -300)),
            high: Some((1, 0)),
            reaching: None,
        };
        assert_eq!(found, Some(wanted));
        let found = band(&[(Compare::Eq, plus(var(BUILD), 5), plus(var(2), 2))]);
        let wanted = Band {
            of: BUILD,
            low: Some((2, -3)),
            high: Some((2, -3)),
            reaching: None,
        };
        assert_eq!(found, Some(wanted));
    }

    #[test]
    fn the_vector_with_both_ends_is_taken() {
        let found = band(&[
            (Compare::Lt, var(1), var(BUILD)),
            (Compare::Gt, var(BUILD + 1), var(1)),
            (Compare::Le, var(BUILD + 1), var(2)),
        ]);
        let wanted = Band {
            of: BUILD + 1,
            low: Some((1, 0)),
            high: Some((2, 0)),
            reaching: None,
        };
        assert_eq!(found, Some(wanted));
    }

    #[test]
    fn two_vectors_with_an_end_each_are_the_ends_of_ranges() {
        let found = band(&[
            (Compare::Le, var(BUILD), var(1)),
            (Compare::Lt, plus(var(1), 5), var(BUILD + 1)),
        ]);
        let wanted = Band {
            of: BUILD,
            low: None,
            high: Some((1, 0)),
            reaching: Some((BUILD + 1, (1, 5))),
        };
        assert_eq!(found, Some(wanted));
    }

    #[test]
    fn other_conditions_are_no_bands() {
        assert_eq!(band(&[]), None);
        assert_eq!(band(&[(Compare::Ne, var(1), var(BUILD))]), None);
        assert_eq!(band(&[(Compare::Lt, var(1), var(2))]), None);
        assert_eq!(band(&[(Compare::Lt, var(BUILD + 1), var(BUILD))]), None);
    }
}
