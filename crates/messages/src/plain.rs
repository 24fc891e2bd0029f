//! DataFusion's texts of plans, expressions and types, written as in SQL.
//!
//! It prints literals as it holds them (`Int64(1)`, `Decimal128(Some(150),3,2)`,
//! `IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 90, nanoseconds: 0 }")`) and types by Arrow's names.

use std::borrow::Cow;
use std::sync::LazyLock;

use chrono::DateTime;
use regex::{Captures, Regex};
use table::Infinity;

use crate::tags;

/// The text of a plan: literals as in a statement, without the tags of columns.
pub fn plan(text: &str) -> String {
    literals(&tags::untagged(text)).into_owned()
}

/// A line of a plan for people: long texts of statements are cut, `'aaa...'`.
pub fn line(text: &str) -> String {
    LONG_TEXT.replace_all(&plan(text), "'$1...'").into_owned()
}

/// The text of an error with literals and types as statements write them, and without the tags of columns.
pub fn message(text: &str) -> String {
    types(&plan(text))
}

/// Compiles a constant pattern.
fn regex(pattern: &str) -> Regex {
    match Regex::new(pattern) {
        Ok(regex) => regex,
        Err(_) => unreachable!("a constant pattern, which the tests use"),
    }
}

/// A text within quotes of more than 100 letters.
static LONG_TEXT: LazyLock<Regex> = LazyLock::new(|| regex(r"'((?s:[^']|''){100})(?s:[^']|'')+'"));

/// A literal as DataFusion prints it: the name of its type, and its value.
static LITERAL: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"\b(Boolean|U?Int(?:8|16|32|64)|Float(?:16|32|64)|(?:Large)?Utf8(?:View)?|Date(?:32|64)|Decimal(?:32|64|128|256)|Timestamp(?:Second|Millisecond|Microsecond|Nanosecond)|Time(?:32|64)(?:Second|Millisecond|Microsecond|Nanosecond)|Interval(?:YearMonth|DayTime|MonthDayNano)|Duration(?:Second|Millisecond|Microsecond|Nanosecond))\(("(?:[^"\\]|\\.)*"|Some\([^()]*\), ?\d+, ?-?\d+|-?\d+, Some\("[^"]*"\)|[^()"]*)\)"#,
    )
});

/// A decimal as operators print it: digits, precision, scale.
static DECIMAL: LazyLock<Regex> = LazyLock::new(|| regex(r"\bSome\((-?\d+)\), ?(\d+), ?(-?\d+)"));

static INTERVAL: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"IntervalMonthDayNano \{ months: (-?\d+), days: (-?\d+), nanoseconds: (-?\d+) \}")
});

fn literals(text: &str) -> Cow<'_, str> {
    if !text.contains(['(', '{']) {
        return Cow::Borrowed(text);
    }
    let named = LITERAL.replace_all(text, |found: &Captures<'_>| literal(found));
    let decimals =
        DECIMAL.replace_all(&named, |found: &Captures<'_>| decimal(&found[1], &found[3]));
    let intervals = INTERVAL.replace_all(&decimals, |found: &Captures<'_>| {
        format!("interval '{}'", interval(found))
    });
    Cow::Owned(intervals.into_owned())
}

fn literal(found: &Captures<'_>) -> String {
    let (kind, held) = (&found[1], &found[2]);
    if held == "NULL" || held.starts_with("NULL,") {
        return "NULL".to_string();
    }
    let quoted = || {
        let inside = held.strip_prefix('"').and_then(|h| h.strip_suffix('"'));
        let inside = inside.unwrap_or(held).replace("\\\"", "\"");
        format!("'{}'", inside.replace('\'', "''"))
    };
    match kind {
        "Utf8" | "LargeUtf8" | "Utf8View" => quoted(),
        "Date32" | "Date64" => format!("date {}", quoted()),
        kind if kind.starts_with("Decimal") => match DECIMAL.captures(held) {
            Some(parts) => decimal(&parts[1], &parts[3]),
            // `2.50,15,2` is a value, `15, 2` a type.
            None => match held.split(',').collect::<Vec<_>>()[..] {
                [value, _, _] => value.to_string(),
                _ => format!("decimal({held})"),
            },
        },
        kind if kind.starts_with("Timestamp") => timestamp(kind, held),
        kind if kind.starts_with("Time") => format!("time {}", quoted()),
        kind if kind.starts_with("Interval") => match INTERVAL.captures(held) {
            Some(parts) => format!("interval '{}'", interval(&parts)),
            None => format!("interval {}", quoted()),
        },
        _ => held.to_string(),
    }
}

/// `150` with scale 2 is `1.50`.
fn decimal(digits: &str, scale: &str) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    match scale.parse::<usize>() {
        Ok(scale) if scale > 0 => {
            let digits = format!("{digits:0>width$}", width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            format!("{sign}{whole}.{fraction}")
        }
        _ => format!("{sign}{digits}"),
    }
}

fn timestamp(kind: &str, held: &str) -> String {
    let count = held.split(',').next().unwrap_or_default();
    if let Some(infinity) = count.parse().ok().and_then(Infinity::of_count) {
        return format!("timestamp '{}'", infinity.text());
    }
    let moment = count.parse::<i64>().ok().and_then(|count| {
        Some(match kind.trim_start_matches("Timestamp") {
            "Second" => DateTime::from_timestamp(count, 0)?,
            "Millisecond" => DateTime::from_timestamp_millis(count)?,
            "Microsecond" => DateTime::from_timestamp_micros(count)?,
            _ => DateTime::from_timestamp_nanos(count),
        })
    });
    match moment {
        Some(moment) => format!("timestamp '{}'", moment.naive_utc()),
        None => format!("timestamp({held})"),
    }
}

/// `1 year 2 months 3 days 4.5 seconds`.
fn interval(parts: &Captures<'_>) -> String {
    let number = |at: usize| parts[at].parse::<i64>().unwrap_or_default();
    let (months, days, nanoseconds) = (number(1), number(2), number(3));
    let mut text = Vec::new();
    let mut add = |count: i64, unit: &str| {
        if count != 0 {
            let plural = if count.abs() == 1 { "" } else { "s" };
            text.push(format!("{count} {unit}{plural}"));
        }
    };
    add(months / 12, "year");
    add(months % 12, "month");
    add(days, "day");
    const HOUR: i64 = 3_600_000_000_000;
    const MINUTE: i64 = 60_000_000_000;
    add(nanoseconds / HOUR, "hour");
    add(nanoseconds % HOUR / MINUTE, "minute");
    let rest = nanoseconds % MINUTE;
    match rest % 1_000_000_000 {
        0 => add(rest / 1_000_000_000, "second"),
        _ => text.push(format!("{} seconds", rest as f64 / 1e9)),
    }
    if text.is_empty() {
        "0 seconds".to_string()
    } else {
        text.join(" ")
    }
}

/// Replaces Arrow's names of types, where they are whole words, by SQL's.
fn types(line: &str) -> String {
    let name = |word: &str| match word {
        "Int8" => "tinyint",
        "Int16" => "smallint",
        "Int32" => "integer",
        "Int64" => "bigint",
        "UInt8" => "tinyint unsigned",
        "UInt16" => "smallint unsigned",
        "UInt32" => "integer unsigned",
        "UInt64" => "bigint unsigned",
        "Float16" | "Float32" => "real",
        "Float64" => "double",
        "Utf8" | "LargeUtf8" | "Utf8View" => "varchar",
        "Binary" | "LargeBinary" | "BinaryView" => "bytea",
        "Date32" => "date",
        "Decimal128" => "decimal",
        "Boolean" => "boolean",
        _ => "",
    };
    let line = TIMESTAMP_TYPE.replace_all(line, |found: &Captures<'_>| match found.get(1) {
        Some(_) => "timestamp with time zone",
        None => "timestamp",
    });
    let line = INTERVAL_TYPE.replace_all(&line, "interval");
    let mut plain = String::with_capacity(line.len());
    let mut rest: &str = &line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let word_end = rest[start..]
            .find(|c: char| !c.is_ascii_alphanumeric())
            .map_or(rest.len(), |n| start + n);
        let word = &rest[start..word_end];
        plain.push_str(&rest[..start]);
        plain.push_str(if name(word).is_empty() {
            word
        } else {
            name(word)
        });
        rest = &rest[word_end..];
    }
    plain.push_str(rest);
    plain
}

static TIMESTAMP_TYPE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"\bTimestamp\((?:s|ms|µs|us|ns)(, "[^"]*")?\)"#));

static INTERVAL_TYPE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\bInterval\((?:YearMonth|DayTime|MonthDayNano)\)"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_written_as_in_statements() {
        for (text, wanted) in [
            ("sum(t.a) + Int64(1)", "sum(t.a) + 1"),
            ("t.s = Utf8(\"it's\")", "t.s = 'it''s'"),
            ("Utf8View(\"a \\\"b\\\"\")", "'a \"b\"'"),
            ("Decimal128(Some(-5),3,2)", "-0.05"),
            ("t.d < Some(2400),15,2", "t.d < 24.00"),
            ("t.d < Decimal128(2.50,15,2)", "t.d < 2.50"),
            ("CAST(a AS Decimal128(15, 2))", "CAST(a AS decimal(15, 2))"),
            ("Date32(\"1994-01-01\")", "date '1994-01-01'"),
            ("Boolean(true) AND Int64(NULL)", "true AND NULL"),
            (
                "TimestampMicrosecond(0, None) TimestampMicrosecond(1, Some(\"+00:00\"))",
                "timestamp '1970-01-01 00:00:00' timestamp '1970-01-01 00:00:00.000001'",
            ),
            (
                "IntervalMonthDayNano(\"IntervalMonthDayNano { months: 14, days: -1, nanoseconds: 3661500000000 }\")",
                "interval '1 year 2 months -1 day 1 hour 1 minute 1.5 seconds'",
            ),
            ("count(Int64(1)) AS count\u{1f}1", "count(1) AS count"),
        ] {
            assert_eq!(plan(text), wanted);
        }
        let long = |letters: usize| format!("a = '{}' and b = 'x'", "y".repeat(letters));
        assert_eq!(line(&long(100)), long(100));
        let cut = format!("a = '{}...' and b = 'x'", "y".repeat(100));
        assert_eq!(line(&long(100_000)), cut);
        assert_eq!(
            message("cannot compare Timestamp(µs) with Int64, Timestamp(ns, \"+00:00\")"),
            "cannot compare timestamp with bigint, timestamp with time zone"
        );
    }
}
