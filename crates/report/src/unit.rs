//! Formatting of figures with their units for people.

use serde::Serialize;

/// What a figure counts or measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unit {
    /// A number without a unit.
    Plain,
    /// How many.
    Count,
    /// Bytes; shown in KiB, MiB, ...
    Bytes,
    /// Seconds; shown in s, ms, ...
    Seconds,
    /// Joules; shown in J, mJ, ...
    Joules,
    /// A part of a whole, 0 to 1; shown in %.
    Share,
    /// How many times as much.
    Ratio,
    /// How many of what is doubled from one to the next: 64Ki. A logarithmic axis of it has powers of two.
    Doubled,
}

/// Divisors, and what is left of the unit.
const COUNTS: [(f64, &str); 4] = [
    (1e9, "billions"),
    (1e6, "millions"),
    (1e3, "thousands"),
    (1.0, ""),
];
const SHORT: [(f64, &str); 3] = [(1e12, " T"), (1e9, " G"), (1e6, " M")];
const BYTES: [(f64, &str); 5] = [
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1_024.0, "KiB"),
    (1.0, "B"),
];
const SECONDS: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];

const JOULES: [(f64, &str); 4] = [(1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ")];

/// The first scale that is not above `value`, else the last.
fn scale<'a>(scales: &[(f64, &'a str)], value: f64) -> (f64, &'a str) {
    let fits = scales.iter().find(|(least, _)| value.abs() >= *least);
    fits.or(scales.last()).copied().unwrap_or((1.0, ""))
}

impl Unit {
    /// The value with its unit, to three digits; counts below a million in full. What is not a
    /// finite number is shown as `–`.
    ///
    /// ```
    /// use report::Unit;
    /// assert_eq!(Unit::Count.show(12_345.0), "12,345");
    /// assert_eq!(Unit::Bytes.show(67.9 * 1048576.0), "67.9 MiB");
    /// assert_eq!(Unit::Share.show(0.1234), "12.3 %");
    /// assert_eq!(Unit::Plain.show(f64::NAN), "–");
    /// ```
    pub fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        match self {
            Unit::Plain => digits(value),
            Unit::Count if value.abs() < 999_999.5 => grouped(value),
            Unit::Count => with(value, &SHORT, ""),
            Unit::Bytes => with(value, &BYTES, " "),
            Unit::Seconds if value == 0.0 => "0 s".to_owned(),
            Unit::Seconds => with(value, &SECONDS, " "),
            Unit::Joules if value == 0.0 => "0 J".to_owned(),
            Unit::Joules => with(value, &JOULES, " "),
            Unit::Share => format!("{} %", percent(value * 100.0)),
            Unit::Ratio => format!("{}×", digits(value)),
            Unit::Doubled => doubled(value),
        }
    }

    /// What values of an axis up to `most` are divided by, and the name of the unit that leaves.
    pub(super) fn axis(self, most: f64) -> (f64, &'static str) {
        match self {
            Unit::Plain => (1.0, ""),
            Unit::Count => scale(&COUNTS, most / 2.0),
            Unit::Bytes => scale(&BYTES, most),
            Unit::Seconds if most == 0.0 => (1.0, "s"),
            Unit::Seconds => scale(&SECONDS, most),
            Unit::Joules if most == 0.0 => (1.0, "J"),
            Unit::Joules => scale(&JOULES, most),
            Unit::Share => (0.01, "%"),
            // That it is a ratio stands in the axis' name.
            Unit::Ratio | Unit::Doubled => (1.0, ""),
        }
    }
}

fn with(value: f64, scales: &[(f64, &str)], between: &str) -> String {
    // Rounding may reach the next scale: 1023.9 KiB is 1 MiB.
    let (mut by, mut name) = scale(scales, value * 1.0005);
    if by > value.abs() * 1.001 {
        (by, name) = scale(scales, value);
    }
    format!("{}{between}{name}", digits(value / by))
}

/// One digit after the point, and more only below 1.
fn percent(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 0.995 => format!("{value:.1}"),
        _ => digits(value),
    }
}

/// Three significant digits, and all digits before the point.
pub(super) fn digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if size < 0.0005 {
        return format!("{value:.1e}");
    }
    let decimals = match size {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// An axis' tick: no digit more than needed.
pub(super) fn tick(value: f64) -> String {
    // Steps of ticks are 1, 2 or 5 times a power of ten, so what is below is rounding.
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" | "" => "0".to_owned(),
        text if text.len() > 7 && value.abs() >= 1e6 => format!("{value:.0e}"),
        text => text.to_owned(),
    }
}

/// A tick of an axis in steps of ten.
pub(super) fn power(value: f64) -> String {
    if (0.001..1e5).contains(&value) {
        tick(value)
    } else {
        format!("{value:.0e}")
    }
}

/// A count as a multiple of Ki or Mi, if it is a whole one.
pub(super) fn doubled(value: f64) -> String {
    for (size, name) in [(1_048_576.0, "Mi"), (1_024.0, "Ki")] {
        if value >= size && value % size == 0.0 {
            return format!("{}{name}", value / size);
        }
    }
    grouped(value)
}

/// A whole number with separators.
fn grouped(value: f64) -> String {
    if value.fract() != 0.0 && value.abs() < 100.0 {
        return digits(value);
    }
    let whole = format!("{value:.0}");
    let (sign, whole) = match whole.strip_prefix('-') {
        Some(rest) if rest != "0" => ("-", rest),
        Some(rest) => ("", rest),
        None => ("", whole.as_str()),
    };
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_keep_their_unit() {
        for (unit, value, shown) in [
            (Unit::Plain, 0.0, "0"),
            (Unit::Plain, 2.71, "2.71"),
            (Unit::Plain, 1e-9, "1.0e-9"),
            (Unit::Count, 999_999.0, "999,999"),
            (Unit::Count, 999_999.6, "1.00 M"),
            (Unit::Count, 1_234_567.0, "1.23 M"),
            (Unit::Count, -1_234.0, "-1,234"),
            (Unit::Count, -0.2, "-0.200"),
            (Unit::Count, 2.5, "2.50"),
            (Unit::Bytes, 0.0, "0 B"),
            (Unit::Bytes, 1023.9, "1.00 KiB"),
            (Unit::Bytes, 65_536.0, "64.0 KiB"),
            (Unit::Seconds, 0.156, "156 ms"),
            (Unit::Seconds, 0.9999, "1.00 s"),
            (Unit::Seconds, 0.0, "0 s"),
            (Unit::Joules, 0.0021, "2.10 mJ"),
            (Unit::Joules, 0.0, "0 J"),
            (Unit::Share, 1.0, "100 %"),
            (Unit::Share, 0.03, "3.0 %"),
            (Unit::Share, 0.0003, "0.030 %"),
            (Unit::Ratio, 1.5, "1.50×"),
            (Unit::Doubled, 65_536.0, "64Ki"),
            (Unit::Doubled, 3_145_728.0, "3Mi"),
            (Unit::Doubled, 1_500.0, "1,500"),
            (Unit::Doubled, 2.0, "2"),
            (Unit::Bytes, f64::INFINITY, "–"),
        ] {
            assert_eq!(unit.show(value), shown, "{unit:?} {value}");
        }
    }

    #[test]
    fn ticks_are_bare() {
        for (value, shown) in [
            (0.0, "0"),
            (0.1 + 0.2, "0.3"),
            (20.0, "20"),
            (-0.0, "0"),
            (1e9, "1e9"),
        ] {
            assert_eq!(tick(value), shown);
        }
        assert_eq!(Unit::Bytes.axis(3e6), (1_048_576.0, "MiB"));
        assert_eq!(Unit::Count.axis(5e6), (1e6, "millions"));
        assert_eq!(Unit::Count.axis(1.5e6), (1e3, "thousands"));
    }
}
