//! `format`, with the directions of PostgreSQL: `%s`, `%I`, `%L`, `%%`, each with a position, a flag and a width, which may be that of a value.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion_common::DataFusionError;
use datafusion_common::{Result, plan_err};
use messages::Error;
use messages::keywords::identifier;

use crate::arguments::{TEXT, is_bytea, is_text};
use crate::own::Own;
use crate::present;
use crate::texts::{literal, shown};

pub(super) fn all() -> Vec<Own> {
    vec![Own::new("format", takes, |_| Ok(TEXT), format)]
}

fn takes(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [first, ..] if is_text(first) => Ok(types.iter().map(taken).collect()),
        _ => plan_err!("format takes a text with %s, %I or %L, and the values to put there"),
    }
}

/// What values of a type are taken as. Those that a cast would write in another way than PostgreSQL does here come as they are.
fn taken(ty: &DataType) -> DataType {
    match ty {
        DataType::Boolean => DataType::Boolean,
        ty if is_bytea(ty) => DataType::Binary,
        _ => DataType::Utf8,
    }
}

/// Values as texts. What is true is `t`, as in answers, and not `true`, as in casts.
fn written(values: &ArrayRef) -> Result<StringArray> {
    if *values.data_type() != DataType::Boolean {
        return shown(values);
    }
    let letter = |truth: bool| if truth { "t" } else { "f" };
    let truths = values.as_boolean().iter();
    Ok(truths.map(|truth| truth.map(letter)).collect())
}

fn format(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let columns: Vec<StringArray> = args.iter().map(written).collect::<Result<_>>()?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let value = |column: &StringArray| {
            if column.is_null(row) {
                None
            } else {
                Some(column.value(row).to_string())
            }
        };
        let values: Vec<Option<String>> = columns[1..].iter().map(value).collect();
        found.push(match value(&columns[0]) {
            Some(text) => Some(formatted(&text, &values)?),
            None => None,
        });
    }
    Ok(Arc::new(StringArray::from(found)))
}

/// The largest width.
const MAX_WIDTH: usize = 1 << 20;

/// What is left of the text of a pattern.
type Rest<'t> = std::iter::Peekable<std::str::Chars<'t>>;

fn refused(code: &'static str, message: impl Into<String>) -> DataFusionError {
    Error::coded(code, message).into()
}

fn unterminated() -> DataFusionError {
    refused(
        "22023",
        "unterminated format() type specifier: for a single \"%\" use \"%%\"",
    )
}

/// Digits, if they come next.
fn number(rest: &mut Rest<'_>) -> Result<Option<usize>> {
    let mut digits = String::new();
    while let Some(c) = rest.next_if(char::is_ascii_digit) {
        digits.push(c);
    }
    if digits.is_empty() {
        return Ok(None);
    }
    match digits.parse::<usize>() {
        Ok(number) if number <= MAX_WIDTH => Ok(Some(number)),
        _ => Err(refused("22003", "number is out of range")),
    }
}

/// The place of the value that a number names.
fn place(number: usize) -> Result<usize> {
    number.checked_sub(1).ok_or_else(|| {
        let message = "format specifies argument 0, but arguments are numbered from 1";
        refused("22023", message)
    })
}

/// The values, and the place of the one that is taken where none is named.
struct Values<'v> {
    all: &'v [Option<String>],
    next: usize,
}

impl<'v> Values<'v> {
    fn take(&mut self, named: Option<usize>) -> Result<&'v Option<String>> {
        let at = named.unwrap_or(self.next);
        self.next = at + 1;
        let found = self.all.get(at);
        found.ok_or_else(|| refused("22023", "too few arguments for format()"))
    }

    /// A width behind `*`, which is that of a value: `*` or `*2$`. One below zero puts blanks at the right.
    fn width(&mut self, rest: &mut Rest<'_>) -> Result<(bool, usize)> {
        let named = match number(rest)? {
            Some(number) => {
                if rest.next_if_eq(&'$').is_none() {
                    let message = "width argument position must be ended by \"$\"";
                    return Err(refused("22023", message));
                }
                Some(place(number)?)
            }
            None => None,
        };
        let Some(text) = self.take(named)? else {
            return Ok((false, 0));
        };
        let Ok(width) = text.trim().parse::<i32>() else {
            let message = format!("invalid input syntax for type integer: \"{text}\"");
            return Err(refused("22P02", message));
        };
        match usize::try_from(width.unsigned_abs()) {
            Ok(length) if length <= MAX_WIDTH => Ok((width < 0, length)),
            _ => Err(refused("22003", "number is out of range")),
        }
    }
}

fn formatted(text: &str, values: &[Option<String>]) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut values = Values {
        all: values,
        next: 0,
    };
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
        } else if rest.next_if_eq(&'%').is_some() {
            out.push('%');
        } else {
            direction(&mut rest, &mut values, &mut out)?;
        }
    }
    Ok(out)
}

/// What stands behind a `%`: `[position$][-][width]type`.
fn direction(rest: &mut Rest<'_>, values: &mut Values<'_>, out: &mut String) -> Result<()> {
    let mut named = None;
    let mut width = number(rest)?;
    if let Some(position) = width
        && rest.next_if_eq(&'$').is_some()
    {
        named = Some(place(position)?);
        width = None;
    }
    let mut left = false;
    while width.is_none() && rest.next_if_eq(&'-').is_some() {
        left = true;
    }
    let width = match width {
        Some(width) => width,
        None if rest.next_if_eq(&'*').is_some() => {
            let (below, width) = values.width(rest)?;
            left |= below;
            width
        }
        None => number(rest)?.unwrap_or(0),
    };
    let kind = match rest.next() {
        Some(kind @ ('s' | 'I' | 'L')) => kind,
        Some(c) if !c.is_ascii_digit() => {
            return Err(refused(
                "22023",
                format!(
                    "unrecognized format() type specifier \"{c}\": for a single \"%\" use \"%%\""
                ),
            ));
        }
        _ => return Err(unterminated()),
    };
    let part = match (kind, values.take(named)?) {
        ('s', value) => value.clone().unwrap_or_default(),
        ('I', Some(value)) => identifier(value),
        ('I', None) => {
            let message = "null values cannot be formatted as an SQL identifier";
            return Err(refused("22004", message));
        }
        (_, Some(value)) => literal(value),
        (_, None) => "NULL".to_string(),
    };
    let blanks = width.saturating_sub(part.chars().count());
    present::fits(out.len().saturating_add(part.len()).saturating_add(blanks))?;
    present::check()?;
    let blanks = " ".repeat(blanks);
    if left {
        out.extend([part, blanks]);
    } else {
        out.extend([blanks, part]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::formatted;

    #[test]
    fn directions_are_followed() {
        let values = [Some("a".to_string()), Some("it's".to_string()), None];
        for (text, wanted) in [
            ("%s-%s", "a-it's"),
            ("%2$L %1$I %s", "'it''s' a it's"),
            ("[%5s][%-5s]", "[    a][it's ]"),
            ("%3$s|%3$L|100%%", "|NULL|100%"),
            ("plain", "plain"),
            ("[%-5s]", "[a    ]"),
            ("[%2$-6s]", "[it's  ]"),
        ] {
            assert_eq!(formatted(text, &values).unwrap(), wanted, "{text}");
        }
        let values = [Some("-4".to_string()), Some("b".to_string()), None];
        for (text, wanted) in [
            ("[%*s]", "[b   ]"),
            ("[%2$*1$s]", "[b   ]"),
            ("[%2$*3$L]", "['b']"),
            ("[%*1$s]", "[b   ]"),
        ] {
            assert_eq!(formatted(text, &values).unwrap(), wanted, "{text}");
        }
        for text in [
            "%d",
            "%",
            "%1$",
            "%1$1",
            "%*0$s",
            "%2$*2$s",
            "%4$s",
            "%0$s",
            "%3$I",
            "%99999999999s",
        ] {
            assert!(formatted(text, &values).is_err(), "{text}");
        }
    }
}
