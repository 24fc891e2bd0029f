//! Kernels of functions of whole numbers: of moments above all, and quotients.

use std::fmt;

use algebra::lift;

use crate::expr::division::Divisor;
use crate::vector::value::Values;

/// A field of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateField {
    /// The year.
    Year,
    /// The quarter of the year, from 1 on.
    Quarter,
    /// The month of the year, from 1 on.
    Month,
    /// The day of the month, from 1 on.
    Day,
}

/// A function of whole numbers of 64 bits. Moments are counted from 1970 on, and `day` is what a day counts: 1 for dates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WholeFunction {
    /// The sum with a number.
    Plus(i64),
    /// The product with a positive number.
    Times(i64),
    /// The quotient by a positive number, rounded down.
    Floor(i64),
    /// The quotient by a positive number, rounded towards zero.
    Quotient(i64),
    /// The quotient by a positive number, rounded to the nearest, and half away from zero.
    Rounded(i64),
    /// What is left of a number that is divided by a positive one; it has the sign of the number.
    Rest(i64),
    /// The greatest number that is not greater and a multiple of `step` away from `origin`.
    Bin {
        /// The distance of these numbers.
        step: i64,
        /// One of them.
        origin: i64,
    },
    /// `first` and on, by one each `unit`, and from `first` again after `length` of them; 0 is `start` units behind a beginning.
    Cycle {
        /// How long it stays the same.
        unit: i64,
        /// How many values there are.
        length: i64,
        /// How many units before 0 it began.
        start: i64,
        /// The least value.
        first: i64,
    },
    /// A field of the date of a moment.
    Field {
        /// The field.
        field: DateField,
        /// What a day counts.
        day: i64,
    },
    /// The beginning of the first month of every so many, counted from January on.
    Months {
        /// How many.
        step: i64,
        /// What a day counts.
        day: i64,
    },
    /// The moment after so many months, on the last day of a month that has no such day, and then `plus`.
    Later {
        /// How many months.
        months: i64,
        /// What a day counts.
        day: i64,
        /// What is added.
        plus: i64,
    },
    /// The number as a float, divided by another one.
    Float(f64),
}

/// A function of the whole numbers from `low` to `high`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    function: WholeFunction,
    low: i64,
    high: i64,
    /// What it divides by, if it does.
    by: Divisor,
    /// What numbers are counted from before they are divided, and the quotient of that.
    from: i64,
    quotient: i64,
}

/// What fits 64 bits.
pub(super) const NARROW: (i128, i128) = (i64::MIN as i128, i64::MAX as i128);

impl Whole {
    /// The kernel for the numbers from `low` to `high`; `None` if numbers would not fit.
    pub fn new(function: WholeFunction, low: i64, high: i64) -> Option<Whole> {
        use WholeFunction as F;
        // What is divided is counted from a multiple of the divisor on that is not greater than any number.
        let (divisor, origin) = match function {
            F::Floor(by) | F::Quotient(by) | F::Rounded(by) | F::Rest(by) => (by, 0),
            F::Bin { step, origin } => (step, origin),
            F::Cycle {
                unit,
                length,
                start,
                ..
            } => {
                // A whole round, of which the units are found.
                let round = unit
                    .checked_mul(length)
                    .filter(|_| length > 0 && unit > 0)?;
                (round, start.checked_mul(unit)?.checked_neg()?)
            }
            F::Field { day, .. } | F::Months { day, .. } | F::Later { day, .. } => (day, 0),
            F::Plus(_) | F::Times(_) | F::Float(_) => (1, 0),
        };
        let mut whole = Whole {
            function,
            low,
            high,
            by: Divisor::of(divisor)?,
            from: 0,
            quotient: 0,
        };
        if whole.counts() {
            let quotient = (i128::from(low) - i128::from(origin)).div_euclid(divisor.into());
            let from = i128::from(origin) + quotient * i128::from(divisor);
            if i128::from(high) - from > NARROW.1 {
                return None;
            }
            whole.from = i64::try_from(from).ok()?;
            whole.quotient = i64::try_from(quotient).ok()?;
        }
        whole.is_fit().then_some(whole)
    }

    /// The function.
    pub fn function(&self) -> &WholeFunction {
        &self.function
    }

    /// Whether it counts numbers from another one on, and divides them then.
    fn counts(&self) -> bool {
        use WholeFunction as F;
        !matches!(
            self.function,
            F::Plus(_) | F::Times(_) | F::Quotient(_) | F::Rounded(_) | F::Rest(_) | F::Float(_)
        )
    }

    /// Whether no number of the range leads to one that does not fit 64 bits, or a date that is not right.
    fn is_fit(&self) -> bool {
        use WholeFunction as F;
        /// Days of tens of thousands of years, which the calendar is right for.
        const DAYS: i64 = 10_000_000;
        let is_near = |day: i64, months: i64, plus: i64| {
            let (months, plus) = (months.checked_abs(), plus.checked_abs());
            let (Some(months), Some(plus)) = (months.filter(|own| *own < DAYS / 31), plus) else {
                return false;
            };
            let is_fit = |end: i64| {
                let days = end.div_euclid(day);
                let most = (days.saturating_abs() + 31 * (months + 2)).checked_mul(day);
                let most = most.and_then(|most| most.checked_add(plus));
                (-DAYS..=DAYS).contains(&days) && most.is_some()
            };
            is_fit(self.low) && is_fit(self.high)
        };
        let sum = |plus: i64| {
            let ends = [self.low, self.high];
            ends.iter().all(|end| end.checked_add(plus).is_some())
        };
        match self.function {
            F::Plus(plus) => sum(plus),
            F::Times(by) => {
                let ends = [self.low, self.high];
                by > 0 && ends.iter().all(|end| end.checked_mul(by).is_some())
            }
            // Signs are turned.
            F::Quotient(_) | F::Rounded(_) | F::Rest(_) => self.low > i64::MIN,
            F::Field { day, .. } => is_near(day, 0, 0),
            F::Months { step, day } => is_near(day, step, 0) && step > 0,
            F::Later { months, day, plus } => is_near(day, months, plus),
            F::Cycle { length, first, .. } => first.checked_add(length).is_some(),
            F::Floor(_) | F::Bin { .. } | F::Float(_) => true,
        }
    }

    /// Whether the kernel is right for all of them that are not NULL.
    pub fn holds_all(&self, values: &[i64], valid: Option<&[bool]>) -> bool {
        let is_beside = |value: i64| (value < self.low) | (value > self.high);
        // All are looked at, which takes no branches.
        if !values
            .iter()
            .fold(false, |any, value| any | is_beside(*value))
        {
            return true;
        }
        let mut rows = values.iter().zip(valid.unwrap_or_default());
        valid.is_some() && !rows.any(|(value, valid)| *valid && is_beside(*value))
    }

    /// The least and the greatest result.
    pub fn bounds(&self) -> (i128, i128) {
        use WholeFunction as F;
        let (low, high) = match self.function {
            F::Cycle { length, first, .. } => (first, first + length - 1),
            F::Rest(by) => (
                if self.low < 0 { 1 - by } else { 0 },
                if self.high > 0 { by - 1 } else { 0 },
            ),
            F::Field { field, .. } if field != DateField::Year => match field {
                DateField::Quarter => (1, 4),
                DateField::Month => (1, 12),
                _ => (1, 31),
            },
            F::Float(_) => (0, 0),
            // Of two days of which both become the last of a month the later one may have the earlier time.
            F::Later { day, .. } => {
                let (low, high) = self.ends();
                (low.saturating_sub(day), high.saturating_add(day))
            }
            // These ascend.
            _ => self.ends(),
        };
        (low.into(), high.into())
    }

    /// The results of the ends of the range.
    fn ends(&self) -> (i64, i64) {
        match self.apply(&[self.low, self.high]) {
            Values::Int(ends) => match ends[..] {
                [low, high] => (low, high),
                _ => (i64::MIN, i64::MAX),
            },
            _ => (0, 0),
        }
    }

    /// How many of what it divides by lie between where it counts from and `value`.
    #[inline(always)]
    fn steps(&self, value: i64) -> i64 {
        self.by.quotient(value.wrapping_sub(self.from) as u64)
    }

    /// The quotient of `value`, rounded down.
    #[inline(always)]
    fn floor(&self, value: i64) -> i64 {
        self.quotient.wrapping_add(self.steps(value))
    }

    /// The quotient of `value`, rounded towards zero.
    #[inline(always)]
    fn toward_zero(&self, value: i64) -> i64 {
        let quotient = self.by.quotient(value.unsigned_abs());
        if value < 0 { -quotient } else { quotient }
    }

    /// The results. Those of NULL, which may be any numbers, are any.
    pub fn apply(&self, values: &[i64]) -> Values {
        use WholeFunction as F;
        let of = values.iter().copied();
        let by = self.by.get();
        Values::Int(match self.function {
            F::Plus(plus) => of.map(|value| value.wrapping_add(plus)).collect(),
            F::Times(times) => of.map(|value| value.wrapping_mul(times)).collect(),
            F::Floor(_) => of.map(|value| self.floor(value)).collect(),
            F::Quotient(_) => of.map(|value| self.toward_zero(value)).collect(),
            F::Rounded(_) => of.map(|value| self.rounded(value)).collect(),
            F::Rest(_) => {
                let rest = |value: i64| {
                    let whole = self.toward_zero(value).wrapping_mul(by);
                    value.wrapping_sub(whole)
                };
                of.map(rest).collect()
            }
            F::Bin { .. } => {
                let bin = |value| self.from.wrapping_add(self.steps(value).wrapping_mul(by));
                of.map(bin).collect()
            }
            F::Cycle { unit, first, .. } => {
                let Some(unit) = Divisor::of(unit) else {
                    return Values::Int(vec![first; values.len()]);
                };
                let of_round = |value: i64| {
                    let since = value.wrapping_sub(self.from);
                    since.wrapping_sub(self.steps(value).wrapping_mul(by))
                };
                let at = |value| first.wrapping_add(unit.quotient(of_round(value) as u64));
                of.map(at).collect()
            }
            F::Field { field, .. } => field.of_days(&self.days(values)),
            F::Months { step, .. } => {
                let first = |(year, month): (i64, i64)| {
                    let months = year * 12 + month - 1;
                    let months = months - months.rem_euclid(step);
                    first_day(months).wrapping_mul(by)
                };
                self.months(values).map(first).collect()
            }
            F::Later { months, plus, .. } => self.later(values, months, plus),
            F::Float(divisor) => {
                return Values::Float(of.map(|value| value as f64 / divisor).collect());
            }
        })
    }

    #[inline(always)]
    fn rounded(&self, value: i64) -> i64 {
        let by = self.by.get();
        let whole = self.toward_zero(value);
        let rest = value.wrapping_sub(whole.wrapping_mul(by)).unsigned_abs();
        // Half of an odd number is more than its half rounded down.
        let carries = i64::from(rest >= by.unsigned_abs().div_ceil(2));
        whole.wrapping_add(if value < 0 { -carries } else { carries })
    }

    /// The days of moments. Of those beside the range, which are NULL, they are any that there are.
    fn days(&self, values: &[i64]) -> Vec<i64> {
        let (low, high) = (self.low, self.high);
        let of = values.iter();
        of.map(|value| self.floor((*value).clamp(low, high)))
            .collect()
    }

    /// The years and months of moments.
    fn months(&self, values: &[i64]) -> impl Iterator<Item = (i64, i64)> + use<> {
        let days = self.days(values);
        let (mut years, mut months) = (Vec::new(), Vec::new());
        lift::year_of_day(&days, &mut years);
        lift::month_of_day(&days, &mut months);
        years.into_iter().zip(months)
    }

    fn later(&self, values: &[i64], by: i64, plus: i64) -> Vec<i64> {
        let day = self.by.get();
        let days = self.days(values);
        let mut dates = Vec::new();
        lift::day_of_day(&days, &mut dates);
        let rows = values.iter().zip(days).zip(dates).zip(self.months(values));
        rows.map(|(((value, own), date), (year, month))| {
            let months = year * 12 + month - 1 + by;
            let (first, next) = (first_day(months), first_day(months + 1));
            let to = (first + date - 1).min(next - 1);
            let moved = (to - own).wrapping_mul(day);
            value.wrapping_add(moved).wrapping_add(plus)
        })
        .collect()
    }
}

impl DateField {
    fn of_days(self, days: &[i64]) -> Vec<i64> {
        let mut out = Vec::new();
        match self {
            DateField::Year => lift::year_of_day(days, &mut out),
            DateField::Day => lift::day_of_day(days, &mut out),
            DateField::Month | DateField::Quarter => lift::month_of_day(days, &mut out),
        }
        if self == DateField::Quarter {
            out.iter_mut().for_each(|month| *month = (*month + 2) / 3);
        }
        out
    }
}

/// The first day, counted from 1970, of a month that is counted from January of the year 0.
fn first_day(months: i64) -> i64 {
    // From March on, so that the day of a leap year is the last of one.
    let from_march = months - 2;
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 - 719_468
}

impl fmt::Display for WholeFunction {
    /// Writes `_` for the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use WholeFunction as F;
        match self {
            F::Plus(plus) => write!(f, "(_ + {plus})"),
            F::Times(times) => write!(f, "(_ * {times})"),
            F::Floor(by) => write!(f, "floor(_ / {by})"),
            F::Quotient(by) => write!(f, "(_ / {by})"),
            F::Rounded(by) => write!(f, "round(_ / {by})"),
            F::Rest(by) => write!(f, "(_ % {by})"),
            F::Bin { step, origin } => write!(f, "bin(_, {step}, {origin})"),
            F::Cycle {
                unit,
                length,
                start,
                first,
            } => write!(f, "cycle(_, {unit}, {length}, {start}, {first})"),
            F::Field { field, .. } => write!(f, "{}(_)", field.name()),
            F::Months { step, .. } => write!(f, "months(_, {step})"),
            F::Later { months, plus, .. } => write!(f, "later(_, {months}, {plus})"),
            F::Float(divisor) => write!(f, "float(_, {divisor:?})"),
        }
    }
}

impl DateField {
    fn name(self) -> &'static str {
        match self {
            DateField::Year => "year",
            DateField::Quarter => "quarter",
            DateField::Month => "month",
            DateField::Day => "day",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000;
    const DAY: i64 = 86_400 * SECOND;

    /// The years 1 to 9999.
    const YEARS: (i64, i64) = (-719_162 * DAY, 2_932_896 * DAY);

    fn results(function: WholeFunction, values: &[i64], (low, high): (i64, i64)) -> Vec<i64> {
        let whole = Whole::new(function, low, high).unwrap();
        let (least, most) = whole.bounds();
        match whole.apply(values) {
            Values::Int(found) => {
                let all = found.iter().map(|own| i128::from(*own));
                assert!(all.clone().all(|own| (least..=most).contains(&own)));
                found
            }
            other => panic!("{other:?}"),
        }
    }

    /// The year, the month and the day of a moment, and the day itself.
    fn date(at: i64) -> (i64, i64, i64, i64) {
        let day = at.div_euclid(DAY);
        let (mut years, mut months, mut days) = (vec![], vec![], vec![]);
        lift::year_of_day(&[day], &mut years);
        lift::month_of_day(&[day], &mut months);
        lift::day_of_day(&[day], &mut days);
        (years[0], months[0], days[0], day)
    }

    #[test]
    fn first_days_of_months() {
        for (year, month, wanted) in [
            (1970, 1, 0),
            (1970, 3, 59),
            (1972, 3, 790),
            (2000, 3, 11_017),
            (1, 1, -719_162),
            (10_000, 1, 2_932_897),
            (0, 3, -719_468),
        ] {
            assert_eq!(first_day(year * 12 + month - 1), wanted, "{year}-{month}");
        }
    }

    #[test]
    fn months_end_with_their_last_days() {
        let moved = |at: i64, months: i64| {
            let later = WholeFunction::Later {
                months,
                day: DAY,
                plus: 0,
            };
            results(later, &[at], YEARS)[0]
        };
        // 2024-01-31 12:00, 2024-02-29 12:00, 2023-02-28 12:00 and 2024-03-29 12:00.
        let noon = |day: i64| day * DAY + DAY / 2;
        assert_eq!(moved(noon(19_753), 1), noon(19_782));
        assert_eq!(moved(noon(19_782), -12), noon(19_416));
        assert_eq!(moved(noon(19_782), 1), noon(19_811));
        assert_eq!(moved(noon(19_753), 0), noon(19_753));
    }

    #[test]
    fn what_does_not_fit_has_no_kernel() {
        let all = (i64::MIN, i64::MAX);
        for function in [
            WholeFunction::Plus(1),
            WholeFunction::Times(2),
            WholeFunction::Floor(3),
            WholeFunction::Quotient(3),
            WholeFunction::Rest(3),
            WholeFunction::Months { step: 1, day: DAY },
        ] {
            assert!(Whole::new(function, all.0, all.1).is_none(), "{function:?}");
        }
        assert!(Whole::new(WholeFunction::Floor(0), 0, 9).is_none());
        assert!(Whole::new(WholeFunction::Quotient(-1), 0, 9).is_none());
        let bin = WholeFunction::Bin {
            step: i64::MAX,
            origin: i64::MAX,
        };
        assert!(Whole::new(bin, i64::MIN, 0).is_none());
    }

    #[test]
    fn values_beside_the_range_are_seen() {
        let whole = Whole::new(WholeFunction::Plus(1), -5, 5).unwrap();
        assert!(whole.holds_all(&[-5, 0, 5], None));
        assert!(!whole.holds_all(&[-6, 0], None));
        assert!(!whole.holds_all(&[-6, 7], Some(&[false, true])));
        assert!(whole.holds_all(&[-6, 0], Some(&[false, true])));
    }

    proptest! {
        /// As the processor divides.
        #[test]
        fn quotients(
            value in -(1i64 << 60)..1 << 60, zeros in 0u32..58, by in 1i64..1 << 40, small in 0u32..40, origin in -(1i64 << 50)..1 << 50,
        ) {
            let (value, by) = (value >> zeros, (by >> small).max(1));
            let range = (-(1 << 61), 1 << 61);
            let of = |function| results(function, &[value], range)[0];
            prop_assert_eq!(of(WholeFunction::Floor(by)), value.div_euclid(by));
            prop_assert_eq!(of(WholeFunction::Quotient(by)), value / by);
            prop_assert_eq!(of(WholeFunction::Rest(by)), value % by);
            let bin = value - (value - origin).rem_euclid(by);
            prop_assert_eq!(of(WholeFunction::Bin { step: by, origin }), bin);
            let (twice, by) = (2 * i128::from(value.abs()) + i128::from(by), i128::from(by));
            let rounded = (twice / (2 * by)) as i64 * value.signum();
            prop_assert_eq!(of(WholeFunction::Rounded(by as i64)), rounded);
        }

        /// Fields and beginnings of days, hours and months.
        #[test]
        fn moments(at in YEARS.0..=YEARS.1, step in prop::sample::select(vec![1i64, 3, 12, 120]), months in -900i64..900) {
            let of = |function| results(function, &[at], YEARS)[0];
            let (year, month, day, number) = date(at);
            let cycle = |unit, length, start, first| WholeFunction::Cycle { unit, length, start, first };
            prop_assert_eq!(of(cycle(3_600 * SECOND, 24, 0, 0)), at.rem_euclid(DAY) / (3_600 * SECOND));
            prop_assert_eq!(of(cycle(1, 60 * SECOND, 0, 0)), at.rem_euclid(60 * SECOND));
            prop_assert_eq!(of(cycle(DAY, 7, 4, 0)), (number + 4).rem_euclid(7));
            prop_assert_eq!(of(cycle(DAY, 7, 3, 1)), (number + 3).rem_euclid(7) + 1);
            let field = |field| WholeFunction::Field { field, day: DAY };
            prop_assert_eq!(of(field(DateField::Year)), year);
            prop_assert_eq!(of(field(DateField::Quarter)), (month - 1) / 3 + 1);
            prop_assert_eq!(of(field(DateField::Month)), month);
            prop_assert_eq!(of(field(DateField::Day)), day);
            let first = date(of(WholeFunction::Months { step, day: DAY }));
            let before = year * 12 + month - 1;
            let wanted = before - before.rem_euclid(step);
            prop_assert_eq!((first.0 * 12 + first.1 - 1, first.2), (wanted, 1));
            let moved = of(WholeFunction::Later { months, day: DAY, plus: 0 });
            let to = date(moved);
            prop_assert_eq!(to.0 * 12 + to.1 - 1, before + months);
            prop_assert!(to.2 == day || to.2 < day && date(moved + DAY).2 == 1);
            prop_assert_eq!(moved.rem_euclid(DAY), at.rem_euclid(DAY));
        }
    }
}
