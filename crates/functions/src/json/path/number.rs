//! Numbers of a path, as texts in the form of `jsonb`.

use std::cmp::Ordering;

use messages::{Error, Result};

use crate::json::normal;

/// A number as `jsonb` writes it.
///
/// # Errors
/// If it is out of range.
pub(super) fn normal(text: &str) -> Result<String> {
    let text = text.trim_end_matches('.');
    let begins = text.trim_start_matches('-').starts_with('.');
    let whole = if begins {
        text.replacen('.', "0.", 1)
    } else {
        // `1.e3` has no digits behind its point.
        text.replace(".e", "e").replace(".E", "E")
    };
    normal::of(&whole).map_err(Error::from)
}

/// The sign, and the digits before and behind the point.
fn parts(text: &str) -> (bool, &str, &str) {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    (negative, whole.trim_start_matches('0'), behind)
}

/// The order of two numbers.
pub(super) fn compared(left: &str, right: &str) -> Ordering {
    let key = |(_, whole, behind): (bool, &str, &str)| {
        (
            whole.len(),
            whole.to_string(),
            behind.trim_end_matches('0').to_string(),
        )
    };
    let (left, right) = (parts(left), parts(right));
    let zero = |(_, whole, behind): (bool, &str, &str)| {
        whole.is_empty() && behind.bytes().all(|digit| digit == b'0')
    };
    let negative = |own: (bool, &str, &str)| own.0 && !zero(own);
    match (negative(left), negative(right)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => key(left).cmp(&key(right)),
        (true, true) => key(right).cmp(&key(left)),
    }
}

pub(super) fn negated(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(own) => own.to_string(),
        None if text.bytes().all(|digit| matches!(digit, b'0' | b'.')) => text.to_string(),
        None => format!("-{text}"),
    }
}

/// The whole number that is left without digits behind the point, if it fits 32 bits.
pub(super) fn whole(text: &str) -> Option<i64> {
    let whole = text.split('.').next()?;
    whole.parse::<i32>().ok().map(i64::from)
}

/// A number times ten to the power of a scale.
#[derive(Clone, Copy, Debug)]
struct Decimal {
    digits: i128,
    scale: u32,
}

fn too_long() -> Error {
    Error::unsupported("not supported: arithmetic in a jsonpath with more than 38 digits")
}

impl Decimal {
    fn of(text: &str) -> Result<Decimal> {
        let (_, _, behind) = parts(text);
        let scale = u32::try_from(behind.len()).map_err(|_| too_long())?;
        let digits = text.replace('.', "").parse().map_err(|_| too_long())?;
        Ok(Decimal { digits, scale })
    }

    fn scaled(self, scale: u32) -> Result<i128> {
        let more = scale
            .checked_sub(self.scale)
            .and_then(|by| 10i128.checked_pow(by));
        let digits = more.and_then(|by| self.digits.checked_mul(by));
        digits.ok_or_else(too_long)
    }

    fn text(self) -> String {
        let scale = self.scale as usize;
        let digits = format!("{:0>width$}", self.digits.unsigned_abs(), width = scale + 1);
        let (whole, behind) = digits.split_at(digits.len() - scale);
        let sign = if self.digits < 0 { "-" } else { "" };
        let point = if behind.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{behind}")
    }
}

/// The number rounded to a whole one, up or down.
pub(super) fn rounded(text: &str, up: bool) -> Result<String> {
    let own = Decimal::of(text)?;
    let unit = 10i128.checked_pow(own.scale).ok_or_else(too_long)?;
    let down = own.digits.div_euclid(unit);
    let more = up && own.digits.rem_euclid(unit) != 0;
    Ok((down + i128::from(more)).to_string())
}

/// The value of an operator of arithmetic.
///
/// # Errors
/// For a division by zero, and for numbers with too many digits.
pub(super) fn computed(sign: char, left: &str, right: &str) -> Result<String> {
    let (a, b) = (Decimal::of(left)?, Decimal::of(right)?);
    let scale = a.scale.max(b.scale);
    if matches!(sign, '/' | '%') && b.digits == 0 {
        return Err(Error::coded("22012", "division by zero"));
    }
    let found = match sign {
        '+' => Decimal {
            digits: a
                .scaled(scale)?
                .checked_add(b.scaled(scale)?)
                .ok_or_else(too_long)?,
            scale,
        },
        '-' => Decimal {
            digits: a
                .scaled(scale)?
                .checked_sub(b.scaled(scale)?)
                .ok_or_else(too_long)?,
            scale,
        },
        '*' => Decimal {
            digits: a.digits.checked_mul(b.digits).ok_or_else(too_long)?,
            scale: a.scale + b.scale,
        },
        '%' => Decimal {
            digits: a.scaled(scale)? % b.scaled(scale)?,
            scale,
        },
        _ => return divided(left, right, a, b),
    };
    Ok(found.text())
}

/// Where the first digits that count stand, in groups of four as PostgreSQL keeps them, and the first of these groups.
fn first_group(text: &str) -> (i64, i64) {
    let (_, whole, behind) = parts(text);
    if !whole.is_empty() {
        let groups = whole.len().div_ceil(4) as i64;
        let first = whole.len() - (groups as usize - 1) * 4;
        return (groups - 1, whole[..first].parse().unwrap_or(0));
    }
    let padded: Vec<u8> = behind
        .bytes()
        .chain(std::iter::repeat_n(b'0', (4 - behind.len() % 4) % 4))
        .collect();
    for (at, group) in padded.chunks(4).enumerate() {
        let group = group
            .iter()
            .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        if group != 0 {
            return (-(at as i64) - 1, group);
        }
    }
    (0, 0)
}

/// A quotient with as many digits as PostgreSQL gives it: at least 16 that count.
fn divided(left: &str, right: &str, a: Decimal, b: Decimal) -> Result<String> {
    let ((weight_a, first_a), (weight_b, first_b)) = (first_group(left), first_group(right));
    let mut weight = weight_a - weight_b;
    if first_a <= first_b {
        weight -= 1;
    }
    let wanted = (16 - weight * 4)
        .max(i64::from(a.scale.max(b.scale)))
        .clamp(0, 1000);
    let wanted = u32::try_from(wanted).map_err(|_| too_long())?;
    // One digit more than is kept, and the rest of that.
    let up = 10i128.checked_pow(wanted + b.scale).ok_or_else(too_long)?;
    let numerator = a.digits.checked_mul(up).ok_or_else(too_long)?;
    let down = 10i128.checked_pow(a.scale).ok_or_else(too_long)?;
    let denominator = b.digits.checked_mul(down).ok_or_else(too_long)?;
    let (quotient, rest) = (numerator / denominator, numerator % denominator);
    let half = rest.unsigned_abs() >= denominator.unsigned_abs().div_ceil(2);
    let away = if (numerator < 0) == (denominator < 0) {
        1
    } else {
        -1
    };
    let digits = if half { quotient + away } else { quotient };
    Ok(Decimal {
        digits,
        scale: wanted,
    }
    .text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_an_order_whatever_their_length() {
        let ascending = [
            "-12345678901234567890123456789012345678901",
            "-2",
            "-1.5",
            "-0.0",
            "0.01",
            "0.1",
            "9",
            "10",
            "10.5",
        ];
        for pair in ascending.windows(2) {
            assert_eq!(compared(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
        assert_eq!(compared("1.50", "1.5"), Ordering::Equal);
        assert_eq!(compared("-0", "0"), Ordering::Equal);
    }

    #[test]
    fn arithmetic_is_that_of_numeric() {
        for (left, sign, right, wanted) in [
            ("1", '+', "2.50", "3.50"),
            ("1", '-', "2", "-1"),
            ("1.5", '*', "1.5", "2.25"),
            ("7", '%', "-3", "1"),
            ("1", '/', "3", "0.33333333333333333333"),
            ("10", '/', "2", "5.0000000000000000"),
            ("-2", '/', "3", "-0.66666666666666666667"),
        ] {
            assert_eq!(
                computed(sign, left, right).unwrap(),
                wanted,
                "{left} {sign} {right}"
            );
        }
        assert_eq!(rounded("-1.5", true).unwrap(), "-1");
        assert_eq!(rounded("-1.5", false).unwrap(), "-2");
        assert_eq!(rounded("1.5", true).unwrap(), "2");
        assert!(computed('/', "1", "0.0").is_err());
        assert_eq!(normal(".5e1").unwrap(), "5");
        assert_eq!(whole("-1.9"), Some(-1));
    }
}
