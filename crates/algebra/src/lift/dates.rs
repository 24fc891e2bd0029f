//! Year, month and day of days since 1970-01-01, in the proleptic Gregorian calendar.
//!
//! As Neri and Schneider count (Euclidean affine functions, 2021): years begin in March, so that
//! the leap day is the last, and each part is a quotient of a linear function of the rest.

use crate::fill;
use crate::level::dispatched;

/// Days in 400 years.
const ERA: i64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01.
const TO_1970: i64 = 719_468;

/// Eras that are added, so that days up to 32,800 years before our era are not negative.
const ERAS: i64 = 82;

/// The days that 32-bit arithmetic is right for.
const NEAR: std::ops::RangeInclusive<i64> = -(TO_1970 + ERAS * ERA)..=1 << 29;

/// Year, month 1..=12, day 1..=31.
type Civil = (i64, i64, i64);

/// Of a day in [`NEAR`]: in 32 bits, which vectorise.
#[inline(always)]
fn near(day: i64) -> Civil {
    let shifted = (day as u32).wrapping_add((TO_1970 + ERAS * ERA) as u32);
    let quarter = 4 * shifted + 3;
    let century = quarter / ERA as u32;
    let quarter = quarter % ERA as u32 / 4 * 4 + 3;
    let year = quarter / 1461;
    let of_year = quarter % 1461 / 4;
    let month = (5 * of_year + 2) / 153;
    let day = (5 * of_year + 2) % 153 / 5 + 1;
    let late = u32::from(month >= 10);
    let year = i64::from(100 * century + year + late) - 400 * ERAS;
    (year, i64::from(month + 3 - 12 * late), i64::from(day))
}

/// Of any day.
#[inline(always)]
fn far(day: i64) -> Civil {
    // Within one era the near arithmetic holds; eras are counted apart.
    let era = day.div_euclid(ERA);
    let (year, month, day) = near(day.rem_euclid(ERA));
    (year + 400 * era, month, day)
}

#[inline(always)]
fn parts(days: &[i64], out: &mut Vec<i64>, part: impl Fn(Civil) -> i64) {
    let (min, max) = days
        .iter()
        .fold((0, 0), |(min, max), d| (*d.min(&min), *d.max(&max)));
    if NEAR.contains(&min) && NEAR.contains(&max) {
        fill::map(days, out, |day| part(near(day)));
    } else {
        fill::map(days, out, |day| part(far(day)));
    }
}

dispatched! {
    /// `out[i]`: the year of day `days[i]`; 0 is the year before 1.
    pub fn year_of_day(days: &[i64], out: &mut Vec<i64>) {
        parts(days, out, |(year, _, _)| year);
    }

    /// `out[i]`: the month of day `days[i]`, 1 to 12.
    pub fn month_of_day(days: &[i64], out: &mut Vec<i64>) {
        parts(days, out, |(_, month, _)| month);
    }

    /// `out[i]`: the day of the month of day `days[i]`, 1 to 31.
    pub fn day_of_day(days: &[i64], out: &mut Vec<i64>) {
        parts(days, out, |(_, _, day)| day);
    }
}
