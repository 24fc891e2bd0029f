//! Values in PostgreSQL's binary formats.

use arrow::datatypes::{DataType, i256};
use sql::Infinity;

use crate::values::types;

/// Days from 1970 to 2000, where PostgreSQL counts from.
pub(crate) const EPOCH_DAYS: i64 = 10_957;

/// The same in microseconds.
pub(crate) const EPOCH_MICROS: i64 = EPOCH_DAYS * 86_400_000_000;

/// A date, from a count of days from 1970 on: infinite ones are the ends of the type.
pub(crate) fn day(days: i32) -> i32 {
    match Infinity::of_day(days) {
        Some(Infinity::Past) => i32::MIN,
        Some(Infinity::Future) => i32::MAX,
        None => days.saturating_sub(EPOCH_DAYS as i32),
    }
}

/// A timestamp, from a count of microseconds from 1970 on, likewise.
pub(crate) fn timestamp(micros: i64) -> i64 {
    match Infinity::of_count(micros) {
        Some(Infinity::Past) => i64::MIN,
        Some(Infinity::Future) => i64::MAX,
        None => micros.saturating_sub(EPOCH_MICROS),
    }
}

/// The infinity that a date in binary is, or a timestamp, which are the ends of their types; none of others.
pub(crate) fn infinity<T: PartialEq>(value: T, ends: (T, T)) -> Option<Infinity> {
    if value == ends.0 {
        return Some(Infinity::Past);
    }
    (value == ends.1).then_some(Infinity::Future)
}

/// A decimal number, `unscaled / 10^scale`: groups of four digits, aligned at the point.
pub(crate) fn numeric(unscaled: i128, scale: i8, out: &mut Vec<u8>) {
    let mut digits = unscaled.unsigned_abs().to_string();
    if scale < 0 {
        digits.extend(std::iter::repeat_n('0', usize::from(scale.unsigned_abs())));
    }
    let scale = usize::from(scale.max(0).unsigned_abs());
    numeric_of(unscaled < 0, &digits, scale, out);
}

/// A decimal of 256 bits, the unscaled one, or what is no number.
pub(crate) fn wide_numeric(value: i256, scale: i8, out: &mut Vec<u8>) {
    if let Some(own) = sql::NotFinite::of(value) {
        return not_finite(own, out);
    }
    let digits = value.to_string();
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits.as_str()),
    };
    let scale = usize::from(scale.max(0).unsigned_abs());
    numeric_of(negative, digits, scale, out);
}

/// What a decimal is that is no number: no digits, and a sign of its own.
pub(crate) fn not_finite(own: sql::NotFinite, out: &mut Vec<u8>) {
    let sign: u16 = match own {
        sql::NotFinite::NaN => 0xC000,
        sql::NotFinite::Infinity => 0xD000,
        sql::NotFinite::NegativeInfinity => 0xF000,
    };
    for part in [0, 0, sign, 0] {
        out.extend(part.to_be_bytes());
    }
}

/// A decimal number of these digits, of which the last `scale` stand behind the point.
pub(crate) fn numeric_of(negative: bool, digits: &str, scale: usize, out: &mut Vec<u8>) {
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let whole = format!("{}{whole}", "0".repeat((4 - whole.len() % 4) % 4));
    let fraction = format!("{fraction}{}", "0".repeat((4 - fraction.len() % 4) % 4));
    let groups = |text: &str| -> Vec<u16> {
        let chunks = text.as_bytes().chunks(4);
        chunks
            .map(|four| {
                four.iter()
                    .fold(0, |n, digit| n * 10 + u16::from(digit - b'0'))
            })
            .collect()
    };
    let mut all = groups(&whole);
    let mut weight = all.len() as i16 - 1;
    all.extend(groups(&fraction));
    let leading = all.iter().take_while(|group| **group == 0).count();
    all.drain(..leading);
    weight -= leading as i16;
    while all.last() == Some(&0) {
        all.pop();
    }
    if all.is_empty() {
        weight = 0;
    }
    let sign: u16 = if negative && !all.is_empty() {
        0x4000
    } else {
        0
    };
    out.extend((all.len() as u16).to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend((scale as u16).to_be_bytes());
    for group in all {
        out.extend(group.to_be_bytes());
    }
}

/// Writes the text of a value.
type WriteText = fn(&str, &mut Vec<u8>);

/// How a value of this type is written that is a text here; none of others.
pub(crate) fn of_text(oid: u32, data_type: &DataType) -> Option<WriteText> {
    match (oid, data_type) {
        (types::TID, DataType::Utf8 | DataType::Utf8View) => Some(place),
        (types::TIMETZ, DataType::Utf8 | DataType::Utf8View) => Some(time_in_zone),
        _ => None,
    }
}

/// Where a row is, from its text: `(0,1)`.
pub(crate) fn place(text: &str, out: &mut Vec<u8>) {
    let inner = text.trim_start_matches('(').trim_end_matches(')');
    let (block, row) = inner.split_once(',').unwrap_or((inner, ""));
    out.extend(block.parse::<u32>().unwrap_or(0).to_be_bytes());
    out.extend(row.parse::<u16>().unwrap_or(0).to_be_bytes());
}

/// A time with a zone, from its text: `04:05:06.7-08:30`.
pub(crate) fn time_in_zone(text: &str, out: &mut Vec<u8>) {
    let at = text.find(['+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at(at);
    let number = |part: Option<&str>| part.and_then(|p| p.parse::<i64>().ok()).unwrap_or(0);
    let seconds = |text: &str| {
        let mut parts = text.split(':');
        number(parts.next()) * 3600 + number(parts.next()) * 60 + number(parts.next())
    };
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let micros = number(Some(&format!("{fraction:0<6}")[..6]));
    let west = match zone.strip_prefix('-') {
        Some(zone) => seconds(zone),
        None => -seconds(zone.trim_start_matches('+')),
    };
    out.extend((seconds(whole) * 1_000_000 + micros).to_be_bytes());
    out.extend((west as i32).to_be_bytes());
}

/// An interval.
pub(crate) fn interval(months: i32, days: i32, micros: i64, out: &mut Vec<u8>) {
    out.extend(micros.to_be_bytes());
    out.extend(days.to_be_bytes());
    out.extend(months.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_zone_to_the_west() {
        let mut out = Vec::new();
        time_in_zone("04:05:06.7-08:30", &mut out);
        let mut wanted = 14_706_700_000_i64.to_be_bytes().to_vec();
        wanted.extend(30_600_i32.to_be_bytes());
        assert_eq!(out, wanted);
    }

    #[test]
    fn groups_are_aligned_at_the_point() {
        let mut out = Vec::new();
        numeric(123_456, 2, &mut out);
        // 1234.56: groups 1234 and 5600, the first one of weight 0.
        assert_eq!(out, [0, 2, 0, 0, 0, 0, 0, 2, 4, 210, 21, 224]);
    }
}
