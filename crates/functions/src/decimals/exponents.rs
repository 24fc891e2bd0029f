//! Texts of numbers with an exponent, `1.5e-3`, as those without one that Arrow reads.

use std::borrow::Cow;

use arrow::array::StringArray;

/// Most digits behind the point that Arrow reads. Those beyond change no decimal.
const MOST: usize = 76;

/// The greatest exponent that is written out: no decimal has as many digits.
const GREATEST: i64 = 400;

/// The texts, of which those that are numbers with an exponent have none.
pub(super) fn without(texts: &StringArray) -> StringArray {
    let is_other = |text: &str| text.len() > MOST || text.contains(['e', 'E']);
    if !texts.iter().flatten().any(is_other) {
        return texts.clone();
    }
    let plain = |text| plain(text).map_or(Cow::Borrowed(text), Cow::Owned);
    texts.iter().map(|text| text.map(plain)).collect()
}

/// A number without exponent, and no more digits behind the point than are read; `None` if it is so, or is no number.
pub(crate) fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, behind) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{behind}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let point = i64::try_from(whole.len()).ok()? + exponent.clamp(-GREATEST, GREATEST);
    let (whole, behind) = match usize::try_from(point) {
        Ok(point) if point >= digits.len() => (format!("{digits:0<point$}"), String::new()),
        Ok(point) if point > 0 => {
            let (whole, behind) = digits.split_at(point);
            (whole.to_string(), behind.to_string())
        }
        _ => {
            let zeros = usize::try_from(point.unsigned_abs()).ok()?;
            ("0".to_string(), format!("{}{digits}", "0".repeat(zeros)))
        }
    };
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let behind = behind.get(..MOST).unwrap_or(&behind);
    Some(if behind.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{behind}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_move_the_point() {
        for (text, wanted) in [
            ("1e5", Some("100000")),
            (" -2.5E+1 ", Some("-25")),
            ("1.5e-3", Some("0.0015")),
            ("+.5e1", Some("5")),
            ("12.345e1", Some("123.45")),
            ("00.1e0", Some("0.1")),
            ("0e9", Some("0")),
            ("e5", None),
            ("1e", None),
            ("1e5.0", None),
            ("one", None),
            ("1.2.3e1", None),
        ] {
            assert_eq!(plain(text).as_deref(), wanted, "{text}");
        }
        let long = format!("0.{}", "3".repeat(100));
        assert_eq!(plain(&long).map(|text| text.len()), Some(78));
        assert_eq!(
            plain("1e-90000").map(|text| text.trim_end_matches('0').to_string()),
            Some("0.".to_string())
        );
    }
}
