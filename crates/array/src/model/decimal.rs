//! Coordinates as they were written: decimals, compared exactly.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The most digits after the point.
const MOST_DIGITS: u8 = 18;

/// A number as it was written, such as -25.423: a whole number and how many of its digits stand after the point.
/// Comparison is by value and exact: 2.50 equals 2.5, and no coordinate becomes a binary fraction.
///
/// ```
/// use array::Decimal;
///
/// let latitude: Decimal = "-25.423".parse()?;
/// assert!(latitude > "-25.426".parse()?);
/// assert_eq!(Decimal::from(2000), "2000.0".parse()?);
/// # Ok::<(), array::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Decimal {
    digits: i64,
    scale: u8,
}

impl Decimal {
    /// `digits` divided by ten to the power of `scale`; `None` for a scale above 18.
    pub fn new(digits: i64, scale: u8) -> Option<Decimal> {
        (scale <= MOST_DIGITS).then_some(Decimal { digits, scale })
    }

    /// Whether it is one that [`new`](Decimal::new) could have made: for what was read from a file.
    pub(crate) fn is_sound(self) -> bool {
        self.scale <= MOST_DIGITS
    }

    /// How many of its digits stand after the point, 0 to 18.
    pub fn scale(self) -> u8 {
        self.scale
    }

    /// It times ten to the power of `scale`; `None` if that is no whole number because it has more digits after the point,
    /// or for a scale above 18.
    pub fn digits(self, scale: u8) -> Option<i128> {
        let fits = self.scale <= scale && scale <= MOST_DIGITS;
        fits.then(|| self.scaled(scale))
    }

    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        self.digits as f64 / 10f64.powi(i32::from(self.scale))
    }

    /// The whole number that it is, if it is one.
    pub fn to_i64(self) -> Option<i64> {
        let unit = 10i64.checked_pow(u32::from(self.scale))?;
        (self.digits % unit == 0).then_some(self.digits / unit)
    }

    /// `self + steps * step`, if that can be written with 18 digits.
    pub fn plus(self, step: Decimal, steps: u64) -> Option<Decimal> {
        let scale = self.scale.max(step.scale);
        let start = self.scaled(scale);
        let sum = step
            .scaled(scale)
            .checked_mul(i128::from(steps))?
            .checked_add(start)?;
        Some(Decimal {
            digits: i64::try_from(sum).ok()?,
            scale,
        })
    }

    /// How many steps of `step` lead from `start` here: rounded down, and whether there is a rest.
    ///
    /// # Panics
    /// If `step` is zero.
    pub(crate) fn steps_from(self, start: Decimal, step: Decimal) -> (i128, bool) {
        let scale = self.scale.max(start.scale).max(step.scale);
        let way = self.scaled(scale) - start.scaled(scale);
        let step = step.scaled(scale);
        // Rounded down whatever the signs.
        let (quotient, rest) = (way.div_euclid(step), way.rem_euclid(step));
        let quotient = if step < 0 && rest != 0 {
            quotient - 1
        } else {
            quotient
        };
        (quotient, rest != 0)
    }

    /// How many steps of `step` lead from here to `last`, if a whole number of them does.
    ///
    /// ```
    /// use array::Decimal;
    ///
    /// let of = |text: &str| text.parse::<Decimal>().unwrap();
    /// assert_eq!(of("-25.42").steps_to(of("-25.429"), of("-0.001")), Some(9));
    /// assert_eq!(of("0").steps_to(of("3"), of("2")), None);
    /// assert_eq!(of("0").steps_to(of("3"), of("0")), None);
    /// ```
    pub fn steps_to(self, last: Decimal, step: Decimal) -> Option<u64> {
        if step.sign() == Ordering::Equal {
            return None;
        }
        match last.steps_from(self, step) {
            (steps, false) => u64::try_from(steps).ok(),
            _ => None,
        }
    }

    /// Whether it is zero, or which sign it has.
    pub(crate) fn sign(self) -> Ordering {
        self.digits.cmp(&0)
    }

    /// The digits with `scale` of them after the point, which is no less than there are. 63 bits times 10^18 fit.
    fn scaled(self, scale: u8) -> i128 {
        i128::from(self.digits) * 10i128.pow(u32::from(scale - self.scale))
    }
}

impl From<i64> for Decimal {
    fn from(whole: i64) -> Decimal {
        Decimal {
            digits: whole,
            scale: 0,
        }
    }
}

impl FromStr for Decimal {
    type Err = Error;

    /// Reads a sign, digits, and perhaps a point and more digits.
    ///
    /// # Errors
    /// [`Error::Decimal`].
    fn from_str(text: &str) -> Result<Decimal, Error> {
        let wrong = || Error::Decimal {
            text: text.to_owned(),
        };
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
        let digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let scale = u8::try_from(fraction.len()).ok();
        let scale = scale
            .filter(|&scale| scale <= MOST_DIGITS)
            .ok_or_else(wrong)?;
        let mut value: i64 = 0;
        for byte in digits.bytes() {
            let digit = i64::from(byte - b'0');
            let signed = if negative { -digit } else { digit };
            let more = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(signed));
            value = more.ok_or_else(wrong)?;
        }
        Ok(Decimal {
            digits: value,
            scale,
        })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = usize::from(self.scale);
        let digits = format!("{:0>1$}", self.digits.unsigned_abs(), scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let sign = if self.digits < 0 { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let scale = self.scale.max(other.scale);
        self.scaled(scale).cmp(&other.scaled(scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn they_compare_as_they_were_written() {
        assert!(decimal("-25.423") > decimal("-25.426"));
        assert_eq!(decimal("2.50"), decimal("+2.5"));
        assert_eq!(decimal("0.1").plus(decimal("0.1"), 2), Some(decimal("0.3")));
        assert_eq!(decimal("-9223372036854775808").to_i64(), Some(i64::MIN));
        assert!(decimal("9223372036854775807") > decimal("0.000000000000000001"));
        for wrong in [
            "",
            "-",
            ".",
            "1e5",
            "1.2.3",
            "0x1",
            "9223372036854775808",
            "1.1234567890123456789",
        ] {
            let error = wrong.parse::<Decimal>().unwrap_err();
            assert!(error.to_string().contains(&format!("'{wrong}'")), "{error}");
        }
    }

    #[test]
    fn steps_are_counted_in_both_directions() {
        let (start, step) = (decimal("-25.420"), decimal("-0.001"));
        assert_eq!(decimal("-25.423").steps_from(start, step), (3, false));
        assert_eq!(decimal("-25.4235").steps_from(start, step), (3, true));
        assert_eq!(decimal("-25.4195").steps_from(start, step), (-1, true));
        assert_eq!(
            decimal("7").steps_from(decimal("1"), decimal("2.5")),
            (2, true)
        );
        assert_eq!(
            decimal("0").steps_from(decimal("1"), decimal("2.5")),
            (-1, true)
        );
    }

    proptest! {
        #[test]
        fn what_is_displayed_reads_back(digits: i64, scale in 0..=18u8) {
            let one = Decimal::new(digits, scale).unwrap();
            let again: Decimal = one.to_string().parse().unwrap();
            prop_assert_eq!((again.digits, again.scale), (one.digits, one.scale));
        }

        #[test]
        fn a_step_leads_back(start in -1_000_000..1_000_000i64, step in -999..999i64, scale in 0..6u8, n in 0..5000u64) {
            prop_assume!(step != 0);
            let (start, step) = (Decimal::new(start, scale).unwrap(), Decimal::new(step, 3).unwrap());
            let there = start.plus(step, n).unwrap();
            prop_assert_eq!(there.steps_from(start, step), (i128::from(n), false));
        }
    }
}
