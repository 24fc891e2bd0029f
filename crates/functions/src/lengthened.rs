//! Functions of texts whose values may be much longer than their arguments: how long is known, and allowed, before they are
//! made.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewBuilder};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, plan_err};
use messages::Error;
use messages::types::type_name;

use crate::arguments::{TEXT, is_text, strings};
use crate::own::Own;
use crate::present;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "repeat",
            |types| takes("repeat", types, "ti"),
            |_| Ok(TEXT),
            repeat,
        ),
        Own::new(
            "lpad",
            |types| takes("lpad", types, "tit"),
            |_| Ok(TEXT),
            |args, rows| padded(args, rows, true),
        ),
        Own::new(
            "rpad",
            |types| takes("rpad", types, "tit"),
            |_| Ok(TEXT),
            |args, rows| padded(args, rows, false),
        ),
        Own::new(
            "replace",
            |types| takes("replace", types, "ttt"),
            |_| Ok(TEXT),
            replace,
        ),
        Own::new("chr", |types| takes("chr", types, "i"), |_| Ok(TEXT), chr),
    ]
}

/// Texts (`t`) and whole numbers (`i`); the text that a text is padded with may be left out.
fn takes(name: &str, types: &[DataType], kinds: &str) -> Result<Vec<DataType>> {
    let fits = |(ty, kind): (&DataType, char)| match kind {
        't' => is_text(ty),
        _ => ty.is_integer() || ty.is_null(),
    };
    let least = if kinds == "tit" { 2 } else { kinds.len() };
    let count = (least..=kinds.len()).contains(&types.len());
    if !count || !types.iter().zip(kinds.chars()).all(fits) {
        let names: Vec<String> = types.iter().map(type_name).collect();
        return plan_err!("function {name}({}) does not exist", names.join(", "));
    }
    let own = |kind| match kind {
        't' => DataType::Utf8,
        _ => DataType::Int64,
    };
    Ok(kinds.chars().take(types.len()).map(own).collect())
}

/// Texts that are made one after the other, within the memory of the statement.
pub(super) struct Made {
    texts: StringViewBuilder,
    /// Bytes of all of them.
    bytes: usize,
    /// Bytes since the switch of the statement was looked at.
    unchecked: usize,
}

/// Copying so many bytes takes a few milliseconds.
const CHECKED: usize = 4 << 20;

impl Made {
    pub(super) fn new(rows: usize) -> Made {
        Made {
            texts: StringViewBuilder::with_capacity(rows),
            bytes: 0,
            unchecked: 0,
        }
    }

    pub(super) fn null(&mut self) {
        self.texts.append_null();
    }

    /// Allows a text of so many bytes.
    ///
    /// # Errors
    /// If it is too large, or the statement was cancelled.
    pub(super) fn allow(&mut self, bytes: usize) -> Result<()> {
        present::fits(bytes)?;
        self.bytes = self.bytes.saturating_add(bytes);
        // It is made, and then put with the others.
        present::has_room(self.bytes.saturating_add(bytes))?;
        self.unchecked = self.unchecked.saturating_add(bytes);
        if self.unchecked >= CHECKED {
            self.unchecked = 0;
            present::check()?;
        }
        Ok(())
    }

    pub(super) fn put(&mut self, text: &str) {
        self.texts.append_value(text);
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        Arc::new(self.texts.finish())
    }
}

/// Appends a text so many times.
fn put_times(text: &str, times: usize, out: &mut String) -> Result<()> {
    let together = (CHECKED / text.len().max(1)).max(1);
    let mut left = times;
    while left > 0 {
        let now = left.min(together);
        out.extend(std::iter::repeat_n(text, now));
        left -= now;
        if left > 0 {
            present::check()?;
        }
    }
    Ok(())
}

fn numbers(array: &ArrayRef) -> &Int64Array {
    array.as_primitive::<Int64Type>()
}

fn repeat(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (texts, counts) = (strings(&args[0])?, numbers(&args[1]));
    let mut made = Made::new(rows);
    for row in 0..rows {
        if texts.is_null(row) || counts.is_null(row) {
            made.null();
            continue;
        }
        let text = texts.value(row);
        let times = usize::try_from(counts.value(row)).unwrap_or(0);
        let times = if text.is_empty() { 0 } else { times };
        let bytes = text.len().saturating_mul(times);
        made.allow(bytes)?;
        let mut out = String::with_capacity(bytes);
        put_times(text, times, &mut out)?;
        made.put(&out);
    }
    Ok(made.finish())
}

/// Texts of so many characters, with others before or behind them, or cut at the end.
fn padded(args: &[ArrayRef], rows: usize, before: bool) -> Result<ArrayRef> {
    /// PostgreSQL allows for the most bytes that a character may have.
    const WIDEST: usize = 4;
    let (texts, lengths) = (strings(&args[0])?, numbers(&args[1]));
    let fills = args.get(2).map(strings).transpose()?;
    let is_null = |row: usize| {
        let no_fill = fills.as_ref().is_some_and(|fills| fills.is_null(row));
        texts.is_null(row) || lengths.is_null(row) || no_fill
    };
    let mut made = Made::new(rows);
    for row in 0..rows {
        if is_null(row) {
            made.null();
            continue;
        }
        let text = texts.value(row);
        let fill = fills.as_ref().map_or(" ", |fills| fills.value(row));
        let length = usize::try_from(lengths.value(row)).unwrap_or(0);
        if length > present::MAX_VALUE / WIDEST {
            present::fits(usize::MAX)?;
        }
        if let Some((end, _)) = text.char_indices().nth(length) {
            made.put(&text[..end]);
            continue;
        }
        let missing = length.saturating_sub(text.chars().count());
        let letters = fill.chars().count();
        let (whole, rest) = match letters {
            0 => (0, ""),
            letters => {
                let end = fill.char_indices().nth(missing % letters);
                let rest = end.map_or("", |(end, _)| &fill[..end]);
                (missing / letters, rest)
            }
        };
        let bytes = text.len() + fill.len() * whole + rest.len();
        made.allow(bytes)?;
        let mut out = String::with_capacity(bytes);
        if !before {
            out.push_str(text);
        }
        put_times(fill, whole, &mut out)?;
        out.push_str(rest);
        if before {
            out.push_str(text);
        }
        made.put(&out);
    }
    Ok(made.finish())
}

fn replace(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let [texts, from, to] = [strings(&args[0])?, strings(&args[1])?, strings(&args[2])?];
    let mut made = Made::new(rows);
    for row in 0..rows {
        if [&texts, &from, &to].iter().any(|array| array.is_null(row)) {
            made.null();
            continue;
        }
        let (text, from, to) = (texts.value(row), from.value(row), to.value(row));
        if from.is_empty() || text.len() < from.len() {
            made.put(text);
            continue;
        }
        let count = text.matches(from).count();
        if count == 0 {
            made.put(text);
            continue;
        }
        let bytes =
            (text.len() - count * from.len()).saturating_add(count.saturating_mul(to.len()));
        made.allow(bytes)?;
        let mut out = String::with_capacity(bytes);
        let mut unchecked = 0;
        for (at, part) in text.split(from).enumerate() {
            if at > 0 {
                out.push_str(to);
            }
            out.push_str(part);
            unchecked += to.len() + part.len();
            if unchecked >= CHECKED {
                unchecked = 0;
                present::check()?;
            }
        }
        made.put(&out);
    }
    Ok(made.finish())
}

/// The character of a number.
fn chr(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let codes = numbers(&args[0]);
    let mut made = Made::new(rows);
    for row in 0..rows {
        if codes.is_null(row) {
            made.null();
            continue;
        }
        let code = codes.value(row);
        let wrong = |message: String| Error::coded("54000", message);
        let letter = match u32::try_from(code) {
            Ok(0) => Err(wrong("null character not permitted".into())),
            Ok(code @ ..=0x10_ffff) => char::from_u32(code).ok_or_else(|| {
                wrong(format!(
                    "requested character not valid for encoding: {code}"
                ))
            }),
            Err(_) if code < 0 => Err(wrong("character number must be positive".into())),
            _ => Err(wrong(format!(
                "requested character too large for encoding: {code}"
            ))),
        }?;
        made.put(letter.encode_utf8(&mut [0; 4]));
    }
    Ok(made.finish())
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::*;

    fn texts(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn whole(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    fn all(found: &ArrayRef) -> Vec<&str> {
        found.as_string_view().iter().flatten().collect()
    }

    #[test]
    fn texts_are_repeated_and_padded() {
        let found = repeat(
            &[texts(&["ab", "", "é"]), whole(&[2, 2_000_000_000, -1])],
            3,
        );
        assert_eq!(all(&found.unwrap()), ["abab", "", ""]);
        let args = [
            texts(&["hi", "hi", "äö", "hello", ""]),
            whole(&[5, 1, 4, 5, -3]),
            texts(&["xy", "xy", "€", "", "x"]),
        ];
        let found = padded(&args, 5, true).unwrap();
        assert_eq!(all(&found), ["xyxhi", "h", "€€äö", "hello", ""]);
        let found = padded(&args, 5, false).unwrap();
        assert_eq!(all(&found), ["hixyx", "h", "äö€€", "hello", ""]);
        let found = replace(
            &[texts(&["aaa", "abc"]), texts(&["a", ""]), texts(&["", "x"])],
            2,
        );
        assert_eq!(all(&found.unwrap()), ["", "abc"]);
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let refused = |found: Result<ArrayRef>| Error::from(found.unwrap_err()).to_string();
        let long = whole(&[2_000_000_000]);
        let message = "requested length too large";
        assert_eq!(refused(repeat(&[texts(&["x"]), long.clone()], 1)), message);
        assert_eq!(refused(padded(&[texts(&["x"]), long], 1, true)), message);
        let args = [
            texts(&[&"a".repeat(100_000)]),
            texts(&["a"]),
            texts(&[&"b".repeat(100_000)]),
        ];
        assert_eq!(refused(replace(&args, 1)), message);
        assert_eq!(
            refused(chr(&[whole(&[0])], 1)),
            "null character not permitted"
        );
        assert!(chr(&[whole(&[0xd800])], 1).is_err());
        assert!(chr(&[whole(&[-1])], 1).is_err());
    }
}
