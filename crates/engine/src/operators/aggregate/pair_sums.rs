//! The sums by which functions of pairs of numbers are computed: correlations, covariances and regressions.
//!
//! They are those of Youngs and Cramer (1971), as in [variances](super::deviations); PostgreSQL keeps the same ones.

use crate::error::{Error, Result};
use crate::logical::relation::PairFunction;

/// How many numbers a [`PairSums`] is kept as.
pub(crate) const PARTS: usize = 6;

/// The number of pairs, the sum of `x`, that of the squares of its differences from the mean, the same of `y`, and the sum of the
/// products of both differences.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PairSums {
    count: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

fn overflow() -> Error {
    Error::Overflow {
        what: "a covariance or a regression".into(),
    }
}

/// A sum of squares or products; one that is infinite is no number.
fn no_infinity(sum: f64) -> f64 {
    if sum.is_infinite() { f64::NAN } else { sum }
}

impl PairSums {
    /// Adds a pair.
    ///
    /// # Errors
    /// [`Error::Overflow`] if finite numbers have a sum that is not.
    #[inline]
    pub fn add(&mut self, x: f64, y: f64) -> Result<()> {
        let count = self.count + 1.0;
        let (sum_x, sum_y) = (self.x + x, self.y + y);
        let (apart_x, apart_y) = (x * count - sum_x, y * count - sum_y);
        let scale = 1.0 / (count * self.count);
        let sums = PairSums {
            count,
            x: sum_x,
            xx: self.xx + apart_x * apart_x * scale,
            y: sum_y,
            yy: self.yy + apart_y * apart_y * scale,
            xy: self.xy + apart_x * apart_y * scale,
        };
        // Of the first pair the scale is infinite, and these are no numbers.
        if (sums.x + sums.y + sums.xx + sums.yy + sums.xy).is_finite() {
            *self = sums;
            return Ok(());
        }
        self.add_unusual(sums, x, y)
    }

    /// Adds the first pair, or one after which not all of the new `sums` are finite.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[cold]
    fn add_unusual(&mut self, mut sums: PairSums, x: f64, y: f64) -> Result<()> {
        let before = *self;
        if before.count == 0.0 {
            sums.xx = if x.is_finite() { 0.0 } else { f64::NAN };
            sums.yy = if y.is_finite() { 0.0 } else { f64::NAN };
            sums.xy = sums.xx + sums.yy;
            *self = sums;
            return Ok(());
        }
        let finite_x = !before.x.is_infinite() && !x.is_infinite();
        let finite_y = !before.y.is_infinite() && !y.is_infinite();
        if finite_x && (sums.x.is_infinite() || sums.xx.is_infinite())
            || finite_y && (sums.y.is_infinite() || sums.yy.is_infinite())
            || finite_x && finite_y && sums.xy.is_infinite()
        {
            return Err(overflow());
        }
        for sum in [&mut sums.xx, &mut sums.yy, &mut sums.xy] {
            *sum = no_infinity(*sum);
        }
        if sums.x.is_infinite() {
            sums.xx = f64::NAN;
        }
        if sums.y.is_infinite() {
            sums.yy = f64::NAN;
        }
        *self = sums;
        Ok(())
    }

    /// Adds the sums of other pairs.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn merge(&mut self, other: &PairSums) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = *other;
            return Ok(());
        }
        let count = self.count + other.count;
        let apart_x = self.x / self.count - other.x / other.count;
        let apart_y = self.y / self.count - other.y / other.count;
        let weight = self.count * other.count / count;
        let merged = PairSums {
            count,
            x: self.x + other.x,
            xx: self.xx + other.xx + weight * apart_x * apart_x,
            y: self.y + other.y,
            yy: self.yy + other.yy + weight * apart_y * apart_y,
            xy: self.xy + other.xy + weight * apart_x * apart_y,
        };
        let sums = merged.parts().into_iter();
        let mut sums = sums.zip(self.parts()).zip(other.parts());
        if sums.any(|((sum, own), other)| {
            sum.is_infinite() && !own.is_infinite() && !other.is_infinite()
        }) {
            return Err(overflow());
        }
        *self = merged;
        Ok(())
    }

    /// The sums as numbers.
    pub fn parts(&self) -> [f64; PARTS] {
        [self.count, self.x, self.xx, self.y, self.yy, self.xy]
    }

    /// The sums of which these are the [`parts`](Self::parts).
    pub fn of_parts([count, x, xx, y, yy, xy]: [f64; PARTS]) -> PairSums {
        PairSums {
            count,
            x,
            xx,
            y,
            yy,
            xy,
        }
    }

    /// How many pairs there are.
    pub fn count(&self) -> i64 {
        self.count as i64
    }

    /// What `function` gives; NULL where there are too few pairs, or nothing to divide by.
    pub fn value(&self, function: PairFunction) -> Option<f64> {
        let PairSums {
            count,
            x,
            xx,
            y,
            yy,
            xy,
        } = *self;
        if count == 0.0 {
            return (function == PairFunction::Count).then_some(0.0);
        }
        let over = |by: f64, value: f64| (by != 0.0).then(|| value / by);
        match function {
            PairFunction::Count => Some(count),
            PairFunction::MeanX => Some(x / count),
            PairFunction::MeanY => Some(y / count),
            PairFunction::SquaresX => Some(xx),
            PairFunction::SquaresY => Some(yy),
            PairFunction::Products => Some(xy),
            PairFunction::CovarPop => Some(xy / count),
            PairFunction::CovarSamp => (count > 1.0).then(|| xy / (count - 1.0)),
            PairFunction::Correlation if xx == 0.0 || yy == 0.0 => None,
            PairFunction::Correlation => Some(xy / (xx * yy).sqrt()),
            PairFunction::Slope => over(xx, xy),
            PairFunction::Intercept => over(xx, x * xy).map(|own| (y - own) / count),
            PairFunction::Determination if xx == 0.0 => None,
            PairFunction::Determination if yy == 0.0 => Some(1.0),
            PairFunction::Determination => Some(xy * xy / (xx * yy)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Result<PairSums> {
        let mut sums = PairSums::default();
        pairs.iter().try_for_each(|(x, y)| sums.add(*x, *y))?;
        Ok(sums)
    }

    /// Values of PostgreSQL 15.
    #[test]
    fn values_are_those_of_postgresql() {
        let pairs = [
            (1.0, 10.0),
            (2.0, 10.0),
            (3.0, 20.0),
            (5.0, 5.0),
            (6.0, 7.0),
            (7.0, 20.0),
        ];
        let sums = of(&pairs).unwrap();
        for (function, wanted) in [
            (PairFunction::Count, 6.0),
            (PairFunction::MeanX, 4.0),
            (PairFunction::MeanY, 12.0),
            (PairFunction::SquaresX, 28.000_000_000_000_004),
            (PairFunction::Products, 9.0),
            (PairFunction::Correlation, 0.117_369_119_465_392_75),
            (PairFunction::CovarPop, 1.5),
            (PairFunction::CovarSamp, 1.8),
            (PairFunction::Slope, 0.321_428_571_428_571_4),
            (PairFunction::Intercept, 10.714_285_714_285_715),
            (PairFunction::Determination, 0.013_775_510_204_081_631),
        ] {
            assert_eq!(sums.value(function), Some(wanted), "{function:?}");
        }
        let level = of(&[(1.0, 2.0), (3.0, 2.0)]).unwrap();
        assert_eq!(level.value(PairFunction::Determination), Some(1.0));
        assert_eq!(level.value(PairFunction::Correlation), None);
        let steep = of(&[(1.0, 2.0), (1.0, 3.0)]).unwrap();
        assert_eq!(steep.value(PairFunction::Slope), None);
        assert_eq!(of(&[]).unwrap().value(PairFunction::SquaresX), None);
        assert_eq!(
            of(&[(1.0, 1.0)]).unwrap().value(PairFunction::CovarSamp),
            None
        );
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        for pairs in [
            [(1e308, 0.0), (1e308, 0.0)],
            [(0.0, 1e154), (0.0, 3e154)],
            [(1e200, 1e200), (2e200, 3e200)],
        ] {
            assert!(
                matches!(of(&pairs), Err(Error::Overflow { .. })),
                "{pairs:?}"
            );
            let (mut one, other) = (of(&pairs[..1]).unwrap(), of(&pairs[1..]).unwrap());
            assert!(
                matches!(one.merge(&other), Err(Error::Overflow { .. })),
                "{pairs:?}"
            );
        }
        let odd = of(&[(f64::INFINITY, 1.0), (1.0, 2.0)]).unwrap();
        assert!(odd.value(PairFunction::SquaresX).is_some_and(f64::is_nan));
        assert_eq!(odd.value(PairFunction::SquaresY), Some(0.5));
    }

    /// What is not finite comes after finite pairs and before them.
    #[test]
    fn pairs_that_are_not_finite_leave_no_number() {
        for odd in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            for pairs in [
                [(odd, 1.0), (1.0, 2.0), (4.0, 5.0)],
                [(1.0, 1.0), (odd, 2.0), (4.0, 5.0)],
                [(1.0, 1.0), (3.0, 2.0), (odd, 5.0)],
            ] {
                let sums = of(&pairs).unwrap();
                assert_eq!(sums.count(), 3, "{pairs:?}");
                assert!(
                    sums.x == odd || sums.x.is_nan() && odd.is_nan(),
                    "{pairs:?}"
                );
                assert!(sums.xx.is_nan() && sums.xy.is_nan(), "{pairs:?}");
                assert!(sums.yy.is_finite(), "{pairs:?}");
            }
        }
        // Sums that are finite, while their own sum is not.
        let great = of(&[(8e307, 8e307), (8e307, 8e307)]).unwrap();
        assert_eq!(great.parts(), [2.0, 1.6e308, 0.0, 1.6e308, 0.0, 0.0]);
    }

    #[test]
    fn parts_are_merged() {
        let number = |n: i32| (f64::from(n), f64::from(n * n % 17));
        let all: Vec<(f64, f64)> = (0..100).map(number).collect();
        let whole = of(&all).unwrap();
        let mut merged = PairSums::default();
        for part in all.chunks(13) {
            merged.merge(&of(part).unwrap()).unwrap();
        }
        for (one, other) in whole.parts().into_iter().zip(merged.parts()) {
            assert!(
                (one - other).abs() <= one.abs() * 1e-12,
                "{whole:?} {merged:?}"
            );
        }
        assert_eq!(PairSums::of_parts(merged.parts()), merged);
    }
}
