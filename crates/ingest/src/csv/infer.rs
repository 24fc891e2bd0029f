//! Type inference: the types that values written as text can have.

use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::datatypes::{DataType, Date32Type, TimeUnit};

use crate::dates::DateForm;
use crate::texts::{UTC, is_double, offset, utc};

/// Digits of the largest whole number that a column can have.
const DIGITS: usize = 38;

/// Longer values are text: nothing else is that long.
const LONGEST: usize = 64;

/// The kinds of values that a column has; an empty set has only NULLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u16);

impl Kinds {
    const TEXT: Kinds = Kinds(1);
    const BOOL: Kinds = Kinds(2);
    const INT: Kinds = Kinds(4);
    /// A whole number that needs more than 64 bits.
    const WIDE: Kinds = Kinds(8);
    const FLOAT: Kinds = Kinds(16);
    /// `nan`, `inf`: a number among numbers, a text otherwise.
    const SPECIAL: Kinds = Kinds(32);
    const DATE: Kinds = Kinds(64);
    /// With at most six digits of a second.
    const MICROS: Kinds = Kinds(128);
    const NANOS: Kinds = Kinds(256);
    /// `infinity`: a number among numbers, a date or a timestamp among these, a text otherwise.
    const INFINITE: Kinds = Kinds(512);
    /// A whole number of which a double keeps not all digits.
    const LONG: Kinds = Kinds(1024);
    /// A moment with an offset from UTC: an instant.
    const INSTANT: Kinds = Kinds(2048);
    /// A moment without one.
    const LOCAL: Kinds = Kinds(4096);

    const WHOLE: Kinds = Kinds(Self::INT.0 | Self::WIDE.0 | Self::LONG.0);
    const NUMBERS: Kinds = Kinds(Self::INT.0 | Self::WIDE.0 | Self::FLOAT.0);
    const TIMES: Kinds = Kinds(Self::MICROS.0 | Self::NANOS.0);

    /// The kind of one value that is not NULL.
    ///
    /// Numbers with leading zeros or a plus are texts: zip codes and telephone numbers would lose them.
    pub fn of(value: &str) -> Kinds {
        let Some(first) = value.bytes().next().filter(|_| value.len() <= LONGEST) else {
            return Kinds::TEXT;
        };
        match first {
            b'0'..=b'9' => match number(value) {
                Kinds::TEXT => moment(value),
                known => known,
            },
            b'.' => number(value),
            b'-' => match value[1..].bytes().next() {
                Some(b'0'..=b'9' | b'.') => number(value),
                _ => special(value),
            },
            b't' | b'T' | b'f' | b'F' if boolean(value) => Kinds::BOOL,
            b'n' | b'N' | b'i' | b'I' => special(value),
            _ => Kinds::TEXT,
        }
    }

    /// The kind of one value where dates have the form that is given.
    pub fn with(value: &str, dates: Option<&DateForm>) -> Kinds {
        match dates {
            None => Kinds::of(value),
            Some(form) if form.day(value).is_some() => Kinds::DATE,
            Some(_) => match Kinds::of(value) {
                Kinds::DATE => Kinds::TEXT,
                other => other,
            },
        }
    }

    /// Adds the kinds of another set.
    pub fn add(&mut self, other: Kinds) {
        self.0 |= other.0;
    }

    /// Whether there was no value.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all values are text; false where there is none.
    pub fn is_text(self) -> bool {
        !self.is_empty() && self.data_type() == DataType::Utf8View
    }

    fn within(self, others: Kinds) -> bool {
        self.0 & !others.0 == 0
    }

    fn has(self, others: Kinds) -> bool {
        self.0 & others.0 != 0
    }

    /// The unit of moments.
    fn unit(self) -> TimeUnit {
        if self.has(Kinds::NANOS) {
            TimeUnit::Nanosecond
        } else {
            TimeUnit::Microsecond
        }
    }

    /// The narrowest type that holds all values.
    pub fn data_type(self) -> DataType {
        let numbers = Kinds(Kinds::NUMBERS.0 | Kinds::SPECIAL.0 | Kinds::INFINITE.0);
        let dates = Kinds(Kinds::DATE.0 | Kinds::INFINITE.0);
        let local = Kinds(Kinds::TIMES.0 | Kinds::LOCAL.0 | dates.0);
        let instants = Kinds(Kinds::TIMES.0 | Kinds::INSTANT.0 | Kinds::INFINITE.0);
        match self {
            Kinds(0) => DataType::Utf8View,
            Kinds::BOOL => DataType::Boolean,
            all if all.within(Kinds(Kinds::INT.0 | Kinds::LONG.0)) => DataType::Int64,
            all if all.within(dates) && all.has(Kinds::DATE) => DataType::Date32,
            all if all.within(Kinds::WHOLE) => DataType::Decimal128(DIGITS as u8, 0),
            all if all.within(numbers) && all.has(Kinds::NUMBERS) => DataType::Float64,
            // Moments with an offset are instants, and no others.
            all if all.within(local) && all.has(Kinds::TIMES) => {
                DataType::Timestamp(all.unit(), None)
            }
            all if all.within(instants) && all.has(Kinds::TIMES) => {
                DataType::Timestamp(all.unit(), Some(UTC.into()))
            }
            _ => DataType::Utf8View,
        }
    }
}

fn boolean(value: &str) -> bool {
    value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false")
}

fn special(value: &str) -> Kinds {
    let name = value.strip_prefix('-').unwrap_or(value);
    if name.eq_ignore_ascii_case("infinity") {
        return Kinds::INFINITE;
    }
    if ["nan", "inf"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
    {
        Kinds::SPECIAL
    } else {
        Kinds::TEXT
    }
}

/// Whether a number is written with zeros, or a plus, before it: reading it as a number would lose them.
pub(crate) fn is_padded(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value).as_bytes();
    matches!(digits, [b'0', b'0'..=b'9', ..] | [b'+', ..])
}

fn number(value: &str) -> Kinds {
    if is_padded(value) {
        return Kinds::TEXT;
    }
    let digits = value.strip_prefix('-').unwrap_or(value).as_bytes();
    let run = |from: usize| {
        digits[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let whole = run(0);
    if whole == digits.len() {
        let mut kinds = match value.parse::<i64>() {
            Ok(_) => Kinds::INT,
            Err(_) if whole <= DIGITS => Kinds::WIDE,
            Err(_) => return Kinds::TEXT,
        };
        if !is_double(value) {
            kinds.add(Kinds::LONG);
        }
        return kinds;
    }
    let (mut at, mut fraction) = (whole, 0);
    if digits[at] == b'.' {
        fraction = run(at + 1);
        at += 1 + fraction;
    }
    if matches!(digits.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(digits.get(at + 1), Some(b'+' | b'-')));
        let exponent = if at <= digits.len() { run(at) } else { 0 };
        if exponent == 0 {
            return Kinds::TEXT;
        }
        at += exponent;
    }
    let finite = || value.parse::<f64>().is_ok_and(f64::is_finite);
    if whole + fraction > 0 && at == digits.len() && finite() {
        Kinds::FLOAT
    } else {
        Kinds::TEXT
    }
}

/// `2024-01-31`, or with a time after it.
fn moment(value: &str) -> Kinds {
    let bytes = value.as_bytes();
    let shape = |at: usize, byte: &u8| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    let date = bytes
        .get(..10)
        .is_some_and(|date| date.iter().enumerate().all(|(at, b)| shape(at, b)));
    match bytes.get(10) {
        _ if !date => Kinds::TEXT,
        None if Date32Type::parse(value).is_some() => Kinds::DATE,
        Some(b' ' | b'T') if bytes.len() >= 19 => {
            let Some(parsed) = utc().and_then(|utc| string_to_datetime(&utc, value).ok()) else {
                return Kinds::TEXT;
            };
            let fraction = value[19..].strip_prefix('.').unwrap_or_default();
            let mut kinds = match fraction.bytes().take_while(u8::is_ascii_digit).count() {
                ..=6 => Kinds::MICROS,
                // Years that nanoseconds do not reach.
                _ if parsed.timestamp_nanos_opt().is_none() => return Kinds::TEXT,
                _ => Kinds::NANOS,
            };
            kinds.add(match offset(value) {
                Some(_) => Kinds::INSTANT,
                None => Kinds::LOCAL,
            });
            kinds
        }
        _ => Kinds::TEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(values: &[&str]) -> DataType {
        let mut kinds = Kinds::default();
        values.iter().for_each(|value| kinds.add(Kinds::of(value)));
        kinds.data_type()
    }

    #[test]
    fn values_suggest_types() {
        use DataType::*;
        let micros = Timestamp(TimeUnit::Microsecond, None);
        let nanos = Timestamp(TimeUnit::Nanosecond, None);
        for (values, wanted) in [
            (&[][..], Utf8View),
            (&["1", "-20", "0"], Int64),
            (&["9223372036854775807", "-9223372036854775808"], Int64),
            (&["9223372036854775808", "1"], Decimal128(38, 0)),
            (&["123456789012345678901234567890123456789"], Utf8View),
            (&["1", "1.5"], Float64),
            (&[".5", "5.", "1e5", "-1.5E-3", "0.5"], Float64),
            (&["1.5", "NaN", "-inf", "Infinity"], Float64),
            (&["nan", "inf"], Utf8View),
            (&["infinity", "-Infinity"], Utf8View),
            (&["infinity", "2024-02-29"], Date32),
            (&["inf", "2024-02-29"], Utf8View),
            (&["-infinity", "2024-01-01 10:00:00"], micros.clone()),
            (&["true", "FALSE"], Boolean),
            (&["true", "1"], Utf8View),
            (&["2024-02-29", "1999-12-31"], Date32),
            (&["2023-02-29"], Utf8View),
            (&["2024-01-01", "2024-01-01 10:00:00"], micros.clone()),
            (
                &["2024-01-01T10:00:00", "9999-12-31 23:59:59.123456"],
                micros,
            ),
            (
                &[
                    "2024-01-01T10:00:00Z",
                    "2024-01-01 10:00:00.5+02:00",
                    "infinity",
                ],
                Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            ),
            (
                &["2024-01-01T10:00:00.123456789Z"],
                Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
            ),
            // Which instants the others are, nobody says.
            (&["2024-01-01T10:00:00Z", "2024-01-01 10:00:00"], Utf8View),
            (&["2024-01-01T10:00:00Z", "2024-01-01"], Utf8View),
            // What a double does not keep is no double.
            (&["9007199254740993", "1.5"], Utf8View),
            (&["9007199254740993", "1e3"], Utf8View),
            (&["9007199254740992", "1.5"], Float64),
            (&["9007199254740993", "1"], Int64),
            (&["123456789012345680000", "1.5"], Float64),
            (&["2024-01-01T10:00:00.1234567"], nanos),
            (&["9999-12-31T10:00:00.123456789"], Utf8View),
            (&["2024-01-01 25:00:00"], Utf8View),
            (&["2024-01-01", "5"], Utf8View),
            // What a number would not keep.
            (&["01234", "99999"], Utf8View),
            (&["00.5"], Utf8View),
            (&["-01"], Utf8View),
            (&["+4930123"], Utf8View),
            (&["1e999"], Utf8View),
            (&["1 ", "2"], Utf8View),
        ] {
            assert_eq!(inferred(values), wanted, "{values:?}");
        }
    }

    #[test]
    fn what_is_nearly_a_number_is_text() {
        for text in [
            "",
            "-",
            ".",
            "-.",
            "1e",
            "1e+",
            "e5",
            "1.2.3",
            "1,5",
            "0x1f",
            "1_000",
            "٣",
            "--1",
            "1-2",
            "in",
            "na",
            "infinit",
            "tru",
            "2024-01-1",
            "2024-01-01 1",
            "äöü",
        ] {
            assert_eq!(Kinds::of(text), Kinds::TEXT, "{text:?}");
        }
    }
}
