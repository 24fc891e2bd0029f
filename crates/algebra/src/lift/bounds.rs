//! Between which numbers a vector lies: static analysis of overflow.

use crate::level::dispatched;

/// The least and the greatest number that a vector may hold.
///
/// Bounds of results follow from bounds of inputs. Once a bound leaves 128 bits it is
/// [`Bounds::UNKNOWN`], and so is all that is computed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// No value is less.
    pub min: i128,
    /// No value is greater.
    pub max: i128,
}

impl Bounds {
    /// Nothing is known: the numbers may need more than 128 bits.
    pub const UNKNOWN: Bounds = Bounds {
        min: i128::MIN,
        max: i128::MAX,
    };

    /// The bounds `min..=max`.
    ///
    /// # Panics
    /// When `min > max`.
    pub fn new(min: i128, max: i128) -> Bounds {
        assert!(min <= max, "bounds are upside down");
        Bounds { min, max }
    }

    /// The bounds of one number.
    pub fn exactly(value: i128) -> Bounds {
        Bounds {
            min: value,
            max: value,
        }
    }

    /// The bounds of `values`; `None` if there are none.
    pub fn of(values: &[i64]) -> Option<Bounds> {
        if values.is_empty() {
            return None;
        }
        let (min, max) = extremes(values);
        Some(Bounds {
            min: min.into(),
            max: max.into(),
        })
    }

    /// Whether all lie within 64 bits.
    pub fn fits_i64(self) -> bool {
        self.min >= i64::MIN.into() && self.max <= i64::MAX.into()
    }

    /// Whether all are known to lie within 128 bits.
    pub fn fits_i128(self) -> bool {
        self != Bounds::UNKNOWN
    }

    /// The bounds of `a + b`.
    #[expect(clippy::should_implement_trait, reason = "bounds are no numbers")]
    pub fn add(self, other: Bounds) -> Bounds {
        self.with(other, || {
            Some((
                self.min.checked_add(other.min)?,
                self.max.checked_add(other.max)?,
            ))
        })
    }

    /// The bounds of `a - b`.
    #[expect(clippy::should_implement_trait, reason = "bounds are no numbers")]
    pub fn sub(self, other: Bounds) -> Bounds {
        self.with(other, || {
            Some((
                self.min.checked_sub(other.max)?,
                self.max.checked_sub(other.min)?,
            ))
        })
    }

    /// The bounds of `a * b`.
    #[expect(clippy::should_implement_trait, reason = "bounds are no numbers")]
    pub fn mul(self, other: Bounds) -> Bounds {
        self.with(other, || {
            let a = self.min.checked_mul(other.min)?;
            let b = self.min.checked_mul(other.max)?;
            let c = self.max.checked_mul(other.min)?;
            let d = self.max.checked_mul(other.max)?;
            Some((a.min(b).min(c).min(d), a.max(b).max(c).max(d)))
        })
    }

    /// The bounds of `-a`.
    #[expect(clippy::should_implement_trait, reason = "bounds are no numbers")]
    pub fn neg(self) -> Bounds {
        Bounds::exactly(0).sub(self)
    }

    /// The bounds of a value that is one or the other: of a CASE, of a union.
    pub fn union(self, other: Bounds) -> Bounds {
        Bounds {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// The bounds of a sum of up to `rows` values, and of every partial sum of them.
    pub fn sum_of(self, rows: u64) -> Bounds {
        self.mul(Bounds {
            min: 0,
            max: rows.into(),
        })
    }

    /// What `bounds` gives, or unknown if that is nothing or an input is unknown.
    fn with(self, other: Bounds, bounds: impl FnOnce() -> Option<(i128, i128)>) -> Bounds {
        if !self.fits_i128() || !other.fits_i128() {
            return Bounds::UNKNOWN;
        }
        bounds().map_or(Bounds::UNKNOWN, |(min, max)| Bounds { min, max })
    }
}

dispatched! {
    fn extremes(values: &[i64]) -> (i64, i64) {
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        for value in values {
            min = min.min(*value);
            max = max.max(*value);
        }
        (min, max)
    }
}
