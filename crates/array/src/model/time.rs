//! Numbers as times: so many units since a moment, as the CF conventions have it.

use serde::{Deserialize, Serialize};

use crate::model::decimal::Decimal;
use crate::model::types::Scalar;

/// The beginning of the Julian day count, which is the first moment of SQL, in microseconds from 1970 on.
const FIRST: i64 = -210_866_803_200_000_000;

/// The end of the year 262142, the last of the calendars that write times.
const LAST: i64 = 8_210_266_876_799_999_999;

/// The beginning of the Gregorian calendar, 1582-10-15, in microseconds from 1970 on.
const GREGORIAN: i64 = -12_219_292_800_000_000;

/// The most digits after the point of a [`Decimal`].
const MOST_DIGITS: u8 = 18;

/// Numbers that are times: how many units of a fixed length have passed since a moment. Moments are microseconds from the
/// beginning of 1970 on, without a zone.
///
/// ```
/// use array::{Decimal, Time};
///
/// // Days since 2000-01-01.
/// let days = Time::new(946_684_800_000_000, 86_400_000_000).unwrap();
/// let half: Decimal = "0.5".parse()?;
/// assert_eq!(days.of_decimal(half), Some(946_728_000_000_000));
/// assert_eq!(days.decimal(946_728_000_000_000), Some(half));
/// # Ok::<(), array::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Time {
    epoch: i64,
    unit: i64,
    first: i64,
}

impl Time {
    /// So many microseconds each, from a moment on. `None` where there is no such moment, or the unit is not positive.
    pub fn new(epoch: i64, unit: i64) -> Option<Time> {
        let time = Time {
            epoch,
            unit,
            first: FIRST,
        };
        time.is_sound().then_some(time)
    }

    /// The same in a calendar that had other days before 1582-10-15: there are no moments before. `None` if it counts from
    /// one of these.
    pub fn from_1582(mut self) -> Option<Time> {
        self.first = GREGORIAN;
        self.is_sound().then_some(self)
    }

    /// Whether it is one that [`new`](Time::new) could have made.
    pub(crate) fn is_sound(self) -> bool {
        self.unit > 0
            && self.first >= FIRST
            && self.epoch >= self.first
            && self.epoch <= LAST
            && self.first <= GREGORIAN
    }

    /// A moment within the limits.
    fn moment(self, micros: i128) -> Option<i64> {
        let moment = i64::try_from(micros.checked_add(self.epoch.into())?).ok()?;
        (self.first..=LAST).contains(&moment).then_some(moment)
    }

    /// The moment that a whole number says; `None` beyond the limits.
    pub fn of_whole(self, number: i128) -> Option<i64> {
        self.moment(number.checked_mul(self.unit.into())?)
    }

    /// The moment that a decimal says, to the nearest microsecond; `None` beyond the limits.
    pub fn of_decimal(self, number: Decimal) -> Option<i64> {
        let one = 10i128.pow(u32::from(number.scale()));
        let product = number
            .digits(number.scale())?
            .checked_mul(self.unit.into())?;
        // Half away from zero.
        let half = if product < 0 { -one / 2 } else { one / 2 };
        self.moment((product + half) / one)
    }

    /// The moment that a float says, to the nearest microsecond; `None` beyond the limits, and of NaN.
    pub fn of_float(self, number: f64) -> Option<i64> {
        // A unit is at least a microsecond, so that what is beyond this is beyond the limits.
        if number.is_nan() || number.abs() > 1e19 {
            return None;
        }
        let whole = (number.trunc() as i128).checked_mul(self.unit.into())?;
        let part = (number.fract() * self.unit as f64).round() as i128;
        self.moment(whole + part)
    }

    /// The moment that a value says; `None` beyond the limits, and of what is no number.
    pub fn of_scalar(self, value: Scalar) -> Option<i64> {
        match value {
            Scalar::Int(whole) => self.of_whole(whole),
            Scalar::Float(float) => self.of_float(float),
            Scalar::Bool(_) | Scalar::Null => None,
        }
    }

    /// The decimal that says a moment, exactly; `None` if none of 18 digits does.
    pub fn decimal(self, moment: i64) -> Option<Decimal> {
        let way = i128::from(moment) - i128::from(self.epoch);
        let unit = i128::from(self.unit);
        (0..=MOST_DIGITS).find_map(|scale| {
            let digits = way.checked_mul(10i128.pow(u32::from(scale)))?;
            let digits = (digits % unit == 0).then_some(digits / unit)?;
            Decimal::new(i64::try_from(digits).ok()?, scale)
        })
    }

    /// The whole number that says a moment; `None` if none does.
    pub fn whole(self, moment: i64) -> Option<i128> {
        let way = i128::from(moment) - i128::from(self.epoch);
        let unit = i128::from(self.unit);
        (way % unit == 0).then_some(way / unit)
    }

    /// The float that says a moment, to the microsecond; `None` if none does.
    pub fn float(self, moment: i64) -> Option<f64> {
        let way = i128::from(moment) - i128::from(self.epoch);
        let unit = i128::from(self.unit);
        let number = (way / unit) as f64 + (way % unit) as f64 / self.unit as f64;
        (self.of_float(number) == Some(moment)).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;

    #[test]
    fn numbers_are_moments_and_moments_numbers() {
        let days = Time::new(0, DAY).unwrap();
        assert_eq!(days.of_whole(19_723), Some(1_704_067_200_000_000));
        assert_eq!(days.of_float(-0.25), Some(-21_600_000_000));
        let third: Decimal = "0.3333333333333333".parse().unwrap();
        assert_eq!(days.of_decimal(third), Some(28_800_000_000), "8:00");
        assert_eq!(days.of_float(1.0 / 3.0), Some(28_800_000_000));
        assert_eq!(days.decimal(28_800_000_000), None);
        assert_eq!(days.float(28_800_000_000), Some(1.0 / 3.0));
        assert_eq!(days.decimal(21_600_000_000), Decimal::new(25, 2));
        assert_eq!(days.whole(21_600_000_000), None);
        assert_eq!(days.whole(-2 * DAY), Some(-2));
        assert_eq!(
            days.of_float(45_290.123_456_789),
            Some(3_913_066_666_666_569),
            "to the microsecond"
        );
    }

    #[test]
    fn what_is_no_moment_is_none() {
        let days = Time::new(0, DAY).unwrap();
        for float in [f64::NAN, f64::INFINITY, 1e300, -1e300, 1e10, -1e9] {
            assert_eq!(days.of_float(float), None, "{float}");
        }
        assert_eq!(days.of_whole(i128::MAX), None);
        assert_eq!(days.of_whole(i128::MIN), None);
        assert_eq!(days.of_decimal(Decimal::from(i64::MAX)), None);
        assert_eq!(days.of_scalar(Scalar::Null), None);
        assert_eq!(Time::new(0, 0), None);
        assert_eq!(Time::new(i64::MIN, DAY), None);
    }

    #[test]
    fn calendars_that_changed_begin_with_the_change() {
        let days = Time::new(0, DAY).unwrap();
        let mixed = days.from_1582().unwrap();
        assert_eq!(mixed.of_whole(-141_427), Some(GREGORIAN));
        assert_eq!(mixed.of_whole(-141_428), None);
        assert!(days.of_whole(-141_428).is_some());
        assert!(Time::new(GREGORIAN - 1, DAY).unwrap().from_1582().is_none());
    }
}
