//! The order of `jsonb`, as a text for each value: values are equal if their texts are, and less if those are.
//!
//! It is PostgreSQL's: objects are greater than arrays, these than booleans, numbers, strings and null; of two arrays or
//! objects that with more items is greater; keys and values are compared in the order in which they are kept. A scalar alone
//! counts as an array of one, so an empty array is less than it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringViewBuilder};
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};
use table::jsonb_type;

use crate::json::cut::{self, Kind};
use crate::json::value::texts;
use crate::own::Own;

/// The function that makes the text, which statements cannot write.
pub(crate) const KEY: &str = "jsonb key";

/// Where less of the stack is left, values that are nested deeper get another of [`STACK`] bytes.
const RED_ZONE: usize = 64 << 10;
const STACK: usize = 1 << 20;

/// Digits of counts and exponents.
const DIGITS: u32 = 6;
const BITS: u32 = 6;
/// The exponent 0, in the middle of those that there are.
const MIDDLE: i64 = 1 << (DIGITS * BITS - 1);

pub(super) fn all() -> Vec<Own> {
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    vec![Own::new(KEY, one, text, |args, _| keys(&args[0]))]
}

/// The texts of values of `jsonb`.
///
/// # Errors
/// If one of them is none.
pub(crate) fn keys(values: &ArrayRef) -> Result<ArrayRef> {
    let values = texts(values);
    let mut keys = StringViewBuilder::with_capacity(values.len());
    let mut key = String::new();
    for row in 0..values.len() {
        if values.is_null(row) {
            keys.append_null();
            continue;
        }
        key.clear();
        whole(values.value(row), &mut key)?;
        keys.append_value(&key);
    }
    Ok(Arc::new(keys.finish()))
}

fn one(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [own] if *own == jsonb_type() || *own == DataType::Null => Ok(vec![jsonb_type()]),
        _ => plan_err!("{KEY} takes a jsonb"),
    }
}

/// Appends the text of a value that is in none.
fn whole(text: &str, key: &mut String) -> Result<()> {
    if Kind::of(text).is_scalar() {
        key.push('\x10');
        number_of(1, key);
        key.push('\x01');
        return part(text, key);
    }
    if Kind::of(text) == Kind::Array {
        let items = cut::items(text);
        key.push('\x10');
        number_of(items.len() as i64, key);
        key.push('\x02');
        return items.into_iter().try_for_each(|item| part(item, key));
    }
    part(text, key)
}

/// Appends that of a value within another.
fn part(text: &str, key: &mut String) -> Result<()> {
    match Kind::of(text) {
        Kind::Null => key.push('\x01'),
        Kind::Text => {
            key.push('\x02');
            string(&cut::characters(text)?, key);
        }
        Kind::Number => {
            key.push('\x03');
            number(text, key);
        }
        Kind::Boolean => key.push_str(if text.trim() == "true" {
            "\x041"
        } else {
            "\x040"
        }),
        Kind::Array => {
            let items = cut::items(text);
            key.push('\x10');
            number_of(items.len() as i64, key);
            return stacker::maybe_grow(RED_ZONE, STACK, || {
                items.into_iter().try_for_each(|item| part(item, key))
            });
        }
        Kind::Object => {
            let members = cut::members(text);
            key.push('\x11');
            number_of(members.len() as i64, key);
            return stacker::maybe_grow(RED_ZONE, STACK, || {
                members.into_iter().try_for_each(|(name, value)| {
                    string(&cut::characters(name)?, key);
                    part(value, key)
                })
            });
        }
    }
    Ok(())
}

/// Appends a string. None has a character that is less than what ends it.
fn string(text: &str, key: &mut String) {
    key.push_str(text);
    key.push('\0');
}

/// Appends a number that is not negative, always in as many digits.
fn number_of(count: i64, key: &mut String) {
    for digit in digits(count) {
        key.push(char::from(b'0' + digit));
    }
}

fn digits(count: i64) -> impl Iterator<Item = u8> {
    let mask = (1 << BITS) - 1;
    let places = (0..DIGITS).rev();
    places.map(move |place| ((count >> (place * BITS)) & mask) as u8)
}

/// Appends a number: its sign, where its first digit stands, and its digits; all of them turned around if it is negative.
fn number(text: &str, key: &mut String) {
    let text = text.trim();
    let (negative, plain) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let whole = whole.trim_start_matches('0');
    let shown = fraction.trim_start_matches('0');
    let place = if whole.is_empty() {
        -((fraction.len() - shown.len()) as i64)
    } else {
        whole.len() as i64
    };
    let fraction = if whole.is_empty() { shown } else { fraction };
    let all = [whole, fraction].concat();
    let all = all.trim_end_matches('0');
    if all.is_empty() {
        key.push('1');
        return;
    }
    key.push(if negative { '0' } else { '2' });
    for digit in digits(MIDDLE + place) {
        let digit = if negative { 63 - digit } else { digit };
        key.push(char::from(b'0' + digit));
    }
    for digit in all.bytes().map(|digit| digit.saturating_sub(b'0').min(9)) {
        let digit = if negative { 9 - digit } else { digit };
        key.push(char::from(b'0' + digit));
    }
    key.push(if negative { '\x7f' } else { '\0' });
}

#[cfg(test)]
mod tests {
    use super::whole;
    use crate::json::normal;

    fn key(text: &str) -> String {
        let mut key = String::new();
        whole(&normal::of(text).unwrap(), &mut key).unwrap();
        key
    }

    #[test]
    fn keys_are_in_the_order_of_postgresql() {
        let ordered = [
            "[]",
            "null",
            "\"\"",
            "\"b\"",
            "\"ba\"",
            "\"x\"",
            "-100",
            "-2",
            "-1.25",
            "-1.2",
            "-0.01",
            "0",
            "0.001",
            "0.0011",
            "0.01",
            "1",
            "1.5",
            "9",
            "10",
            "100",
            "false",
            "true",
            "[\"a\"]",
            "[1]",
            "[[]]",
            "[{}]",
            "[1, 2]",
            "{}",
            "{\"a\": 1}",
            "{\"aa\": 1}",
            "{\"b\": 0}",
            "{\"a\": 0, \"c\": 1}",
            "{\"a\": 1, \"b\": 2}",
        ];
        for pair in ordered.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{} < {}", pair[0], pair[1]);
        }
        for (a, b) in [
            ("1.0", "1"),
            ("-0", "0.00"),
            ("1e2", "100.0"),
            ("{\"b\":2,\"a\":1.00}", "{\"a\":1,\"b\":2}"),
            ("[1.50, \"\\u0061\"]", "[1.5,\"a\"]"),
        ] {
            assert_eq!(key(a), key(b));
        }
    }
}
