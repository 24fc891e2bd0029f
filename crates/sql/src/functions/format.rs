//! `format`, with the directions of PostgreSQL: `%s`, `%I`, `%L`, `%%`, each with a position, a flag and a width.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err, plan_err};

use crate::functions::arguments::{TEXT, is_text, strings};
use crate::functions::own::Own;
use crate::functions::texts::{identifier, quoted};

pub(super) fn all() -> Vec<Own> {
    vec![Own::new("format", takes, |_| Ok(TEXT), format)]
}

fn takes(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [first, ..] if is_text(first) => Ok(vec![DataType::Utf8; types.len()]),
        _ => plan_err!("format takes a text with %s, %I or %L, and the values to put there"),
    }
}

fn format(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let columns: Vec<StringArray> = args.iter().map(strings).collect::<Result<_>>()?;
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

fn formatted(text: &str, values: &[Option<String>]) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut next = 0;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut digits = String::new();
            while let Some(c) = chars.next_if(char::is_ascii_digit) {
                digits.push(c);
            }
            digits
        };
        let mut left = chars.next_if_eq(&'-').is_some();
        let mut width = number(&mut chars);
        if !width.is_empty() && chars.next_if_eq(&'$').is_some() {
            next = match width.parse::<usize>() {
                Ok(position) if position > 0 => position - 1,
                _ => return exec_err!("format: positions count from 1"),
            };
            left = chars.next_if_eq(&'-').is_some();
            width = number(&mut chars);
        }
        let width = match width.as_str() {
            "" => 0,
            digits => match digits.parse::<usize>() {
                Ok(width) if width <= MAX_WIDTH => width,
                _ => return exec_err!("format: the width {digits} is too large"),
            },
        };
        let kind = chars.next();
        if kind == Some('%') {
            out.push('%');
            continue;
        }
        let Some(kind @ ('s' | 'I' | 'L')) = kind else {
            let found = kind.map_or(String::new(), |c| c.to_string());
            return exec_err!("format: `%{found}` is not a direction; there are %s, %I, %L and %%");
        };
        let Some(value) = values.get(next) else {
            return exec_err!(
                "format: there are {} values, not {}",
                values.len(),
                next + 1
            );
        };
        next += 1;
        let part = match (kind, value) {
            ('s', value) => value.clone().unwrap_or_default(),
            ('I', Some(value)) => identifier(value),
            ('I', None) => return exec_err!("format: NULL cannot be a name"),
            (_, Some(value)) => quoted(value, '\''),
            (_, None) => "NULL".to_string(),
        };
        let blanks = " ".repeat(width.saturating_sub(part.chars().count()));
        if left {
            out.extend([part, blanks])
        } else {
            out.extend([blanks, part])
        }
    }
    Ok(out)
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
        ] {
            assert_eq!(formatted(text, &values).unwrap(), wanted, "{text}");
        }
        for text in ["%d", "%", "%4$s", "%0$s", "%3$I", "%99999999999s"] {
            assert!(formatted(text, &values).is_err(), "{text}");
        }
    }
}
