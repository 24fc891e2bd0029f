//! Sizes as people type them; sizes, counts and times as people read them.

/// Reads `65536`, `64KiB`, `1.5GiB`, `2GB`, `64k` (binary) into bytes.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => {
            return Err(format!(
                "unknown unit {:?}; use KiB, MiB, GiB, TiB, kB, MB, GB or TB",
                unit.trim()
            ));
        }
    };
    let size = number
        .parse::<f64>()
        .ok()
        .map(|number| number * factor as f64);
    match size {
        Some(size) if size >= 1.0 && size < u64::MAX as f64 => Ok(size as u64),
        _ => Err("take a size such as 64KiB, 1GiB or 2GB".to_owned()),
    }
}

/// Reads a number of rows of a block such as `64Ki`, `2Mi` or `65536`.
pub fn parse_rows(text: &str) -> Result<usize, String> {
    let (least, most) = (1_024, 2 << 20);
    let lower = text.trim().to_ascii_lowercase();
    let (digits, factor) = match lower.trim_end_matches('i') {
        rest if rest.ends_with('k') => (&rest[..rest.len() - 1], 1 << 10),
        rest if rest.ends_with('m') => (&rest[..rest.len() - 1], 1 << 20),
        _ => (lower.as_str(), 1),
    };
    let rows = digits.trim().parse::<usize>().ok();
    rows.and_then(|rows| rows.checked_mul(factor))
        .filter(|rows| (least..=most).contains(rows))
        .ok_or_else(|| {
            format!("{text:?} is no number of rows from 1Ki to 2Mi; write 64Ki or 65536")
        })
}

/// Reads how blocks are allocated: `each`, `set:8`, `fraction:4`, `whole`.
#[cfg(feature = "sql")]
pub fn parse_allocation(text: &str) -> Result<atoll::Allocation, String> {
    let number = |digits: &str| {
        let number = digits.parse::<usize>().ok();
        number.filter(|number| (1..=4096).contains(number))
    };
    let read = match text.split_once(':') {
        None if text == "each" => Some(atoll::Allocation::Each),
        None if text == "whole" => Some(atoll::Allocation::Whole),
        Some(("set", blocks)) => number(blocks).map(atoll::Allocation::Set),
        Some(("fraction", parts)) => number(parts).map(atoll::Allocation::Fraction),
        _ => None,
    };
    read.ok_or_else(|| {
        format!("{text:?} is no way to allocate; take each, set:8 or fraction:4 (of 1 to 4096), or whole")
    })
}

/// Reads `200ms`, `10s`, `1.5min`, `1h`, `10` (seconds) into seconds.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit {other:?}; use ms, s, min or h")),
    };
    match number.parse::<f64>().map(|number| number * factor) {
        // A hundred years: longer ones do not fit the clock.
        Ok(seconds) if seconds > 0.0 && seconds < 3.2e9 => Ok(seconds),
        _ => Err("take a time such as 200ms, 10s or 5min".to_owned()),
    }
}

/// `1.23 GiB`: three digits at least, in binary units.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    // 1023.95 would be shown as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match (unit, value) {
        (0, _) => format!("{bytes} B"),
        (_, value) if value < 9.995 => format!("{value:.2} {}", UNITS[unit]),
        (_, value) if value < 99.95 => format!("{value:.1} {}", UNITS[unit]),
        _ => format!("{value:.0} {}", UNITS[unit]),
    }
}

/// `1,234,567`
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12.3 ms`, `4.56 s`, `2:05 min`
pub fn seconds(seconds: f64) -> String {
    if seconds < 0.000_999_5 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 0.099_95 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 0.999_5 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 99.5 {
        format!("{seconds:.2} s")
    } else {
        let whole = seconds.round() as u64;
        format!("{}:{:02} min", whole / 60, whole % 60)
    }
}

/// A share as `97.5 %`; `-` if the whole is 0.
pub fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    }
}

/// `1 node`, `2 nodes`
pub fn plural(many: usize, what: &str) -> String {
    let s = if many == 1 { "" } else { "s" };
    format!("{} {what}{s}", count(many as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let rows = ["1Ki", "64ki", "65536", "2Mi", " 4k "].map(parse_rows);
        assert_eq!(rows, [1024, 65536, 65536, 2 << 20, 4096].map(Ok));
        for wrong in ["512", "3Mi", "64KiB", "", "Ki", "i", "-4Ki", "2.5Ki"] {
            assert!(parse_rows(wrong).is_err(), "{wrong:?}");
        }
        let sizes = ["65536", "64KiB", "64k", " 64 KiB ", "1.5GiB", "2GB", "1 kB"].map(parse_bytes);
        let wanted = [65_536, 65_536, 65_536, 65_536, 3 << 29, 2_000_000_000, 1000];
        assert_eq!(sizes, wanted.map(Ok));
        for wrong in [
            "",
            "0",
            "-1",
            "1XB",
            "KiB",
            "1e3",
            "99999999999TiB",
            "1.2.3",
        ] {
            assert!(parse_bytes(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn times_are_read() {
        let times = ["200ms", "10s", "10", " 1.5 min ", "2h"].map(parse_seconds);
        assert_eq!(times, [0.2, 10.0, 10.0, 90.0, 7200.0].map(Ok));
        for wrong in ["", "0", "-1s", "1d", "s", "1e3", "1.2.3s", "99999999999h"] {
            assert!(parse_seconds(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0, 1023, 1024, 10_240, 1_048_575, 5 << 40].map(bytes),
            [
                "0 B", "1023 B", "1.00 KiB", "10.0 KiB", "1.00 MiB", "5.00 TiB"
            ]
        );
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [0.000_012, 0.0123, 0.5, 4.561, 125.0].map(seconds),
            ["12 µs", "12.3 ms", "500 ms", "4.56 s", "2:05 min"]
        );
        assert_eq!([share(1, 2), share(0, 0)], ["50.0 %", "-"]);
    }
}
