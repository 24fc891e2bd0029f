//! The functions of regular expressions whose values are texts and numbers; and `substring` with a pattern.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, plan_err};

use crate::error::Error;
use crate::functions::arguments::{TEXT, is_text, strings};
use crate::functions::own::Own;
use crate::functions::regular::{Compiled, Expression, Found};

/// The function that `substring(text from pattern)` becomes.
pub(crate) const BY_PATTERN: &str = "substring by pattern";
/// The function that `substring(text similar pattern escape c)` becomes.
pub(crate) const SIMILAR: &str = "substring similar";
/// The function that `regexp_replace` becomes.
pub(crate) const REPLACE: &str = "regexp_replace from";
/// The function that `regexp_like` becomes, and `~` and its kin with a pattern that the planner's operators do not take.
pub(crate) const IS_MATCH: &str = "regexp_like of postgresql";
/// The function that `regexp_count` becomes.
pub(crate) const COUNT: &str = "regexp_count of postgresql";

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "regexp_substr",
            |types| takes("regexp_substr", types, "ttiiti", 2),
            |_| Ok(TEXT),
            |args, rows| texts(args, rows, |call| call.part("regexp_substr")),
        ),
        Own::new(
            "regexp_instr",
            |types| takes("regexp_instr", types, "ttiiiti", 2),
            |_| Ok(DataType::Int32),
            instr,
        ),
        Own::new(
            REPLACE,
            |types| match types {
                // Options in the place of the start.
                [.., options] if types.len() == 4 && is_text(options) => {
                    takes("regexp_replace", types, "tttt", 4)
                }
                types => takes("regexp_replace", types, "tttiit", 3),
            },
            |_| Ok(TEXT),
            replace,
        ),
        matching(),
        Own::new(
            COUNT,
            |types| takes("regexp_count", types, "ttit", 2),
            |_| Ok(DataType::Int64),
            count,
        ),
        Own::new(
            BY_PATTERN,
            |types| takes("substring", types, "tt", 2),
            |_| Ok(TEXT),
            |args, rows| texts(args, rows, |call| call.first_group()),
        ),
        Own::new(
            SIMILAR,
            |types| takes("substring", types, "ttt", 3),
            |_| Ok(TEXT),
            similar,
        ),
    ]
}

/// What `regexp_like` becomes.
pub(crate) fn matching() -> Own {
    Own::new(
        IS_MATCH,
        |types| takes("regexp_like", types, "ttt", 2),
        |_| Ok(DataType::Boolean),
        is_match,
    )
}

/// Texts (`t`) and whole numbers (`i`), of which the first `least` must be there.
fn takes(name: &str, types: &[DataType], kinds: &str, least: usize) -> Result<Vec<DataType>> {
    let fits = |(ty, kind): (&DataType, char)| match kind {
        't' => is_text(ty),
        _ => ty.is_integer() || ty.is_null(),
    };
    let count = least..=kinds.len();
    if !count.contains(&types.len()) || !types.iter().zip(kinds.chars()).all(fits) {
        return plan_err!(
            "function {name} does not take arguments of these types: a text, a pattern, then numbers and options"
        );
    }
    let own = |kind| match kind {
        't' => DataType::Utf8,
        _ => DataType::Int64,
    };
    Ok(kinds.chars().take(types.len()).map(own).collect())
}

/// An argument of a row.
#[derive(Clone, Copy, Debug)]
enum Argument<'a> {
    Text(&'a str),
    Number(i64),
}

/// The arguments of a row, and the expression in it.
#[derive(Debug)]
struct Call<'a> {
    args: Vec<Argument<'a>>,
    regex: &'a Expression,
    /// Whether the options ask for all matches.
    all: bool,
}

/// Arguments, column by column.
#[derive(Debug)]
struct Columns {
    texts: Vec<Option<StringArray>>,
    args: Vec<ArrayRef>,
}

impl Columns {
    fn new(args: &[ArrayRef]) -> Result<Columns> {
        let text = |arg: &ArrayRef| match arg.data_type() {
            DataType::Int64 => Ok(None),
            _ => strings(arg).map(Some),
        };
        Ok(Columns {
            texts: args.iter().map(text).collect::<Result<_>>()?,
            args: args.to_vec(),
        })
    }

    /// The arguments of a row; none if one of them is NULL.
    fn row(&self, row: usize) -> Option<Vec<Argument<'_>>> {
        let mut found = Vec::with_capacity(self.args.len());
        for (texts, arg) in self.texts.iter().zip(&self.args) {
            if arg.is_null(row) {
                return None;
            }
            found.push(match texts {
                Some(texts) => Argument::Text(texts.value(row)),
                None => Argument::Number(arg.as_primitive::<Int64Type>().value(row)),
            });
        }
        Some(found)
    }
}

fn text<'a>(args: &[Argument<'a>], at: usize) -> &'a str {
    match args.get(at) {
        Some(Argument::Text(text)) => text,
        _ => "",
    }
}

fn refused(code: &'static str, message: impl Into<String>) -> datafusion::error::DataFusionError {
    Error::coded(code, message).into()
}

impl<'a> Call<'a> {
    /// The number that is argument `at`, which is `name` in messages and at least `least`.
    fn number(&self, at: usize, name: &str, least: i64, default: i64) -> Result<usize> {
        let number = match self.args.get(at) {
            Some(Argument::Number(number)) => *number,
            _ => default,
        };
        match usize::try_from(number) {
            Ok(own) if number >= least => Ok(own),
            _ => Err(refused(
                "22023",
                format!("invalid value for parameter \"{name}\": {number}"),
            )),
        }
    }

    /// The matches from the character `start` on.
    fn matches(&self, start: usize) -> impl Iterator<Item = Result<Found<'a>>> {
        let text = text(&self.args, 0);
        let from = text.char_indices().map(|(at, _)| at).nth(start - 1);
        let at = from.or_else(|| (text.chars().count() + 1 == start).then_some(text.len()));
        self.regex.matches(text, at)
    }

    /// The match that is the `nth` from the character `start` on.
    fn nth(&self, start: usize, nth: usize) -> Result<Option<Found<'a>>> {
        self.matches(start).nth(nth - 1).transpose()
    }

    fn not_global(&self, name: &str) -> Result<()> {
        if self.all {
            return Err(refused(
                "22023",
                format!("{name}() does not support the \"global\" option"),
            ));
        }
        Ok(())
    }

    /// `regexp_substr`.
    fn part(&self, name: &str) -> Result<Option<&'a str>> {
        let start = self.number(2, "start", 1, 1)?;
        let nth = self.number(3, "n", 1, 1)?;
        let group = self.number(5, "subexpr", 0, 0)?;
        self.not_global(name)?;
        let found = self.nth(start, nth)?;
        let group = self.or_whole(group);
        Ok(found.and_then(|found| found.get(group).map(|group| group.text)))
    }

    /// The group of this number; the whole match counts as the first one of an expression without groups.
    fn or_whole(&self, group: usize) -> usize {
        match (group, self.regex.groups()) {
            (1, 0) => 0,
            _ => group,
        }
    }

    /// What the first group found, or the whole expression where there are none.
    fn first_group(&self) -> Result<Option<&'a str>> {
        let group = self.regex.groups().min(1);
        let found = self.regex.found(text(&self.args, 0), 0)?;
        Ok(found.and_then(|found| found.get(group).map(|group| group.text)))
    }
}

/// At which of the arguments the options stand.
fn options_at(count: usize, args: &[Argument<'_>]) -> usize {
    (2..count)
        .rev()
        .find(|at| matches!(args.get(*at), Some(Argument::Text(_))))
        .unwrap_or(count)
}

/// Calls `of` with each row's arguments and the expression in them.
fn each<T>(
    args: &[ArrayRef],
    rows: usize,
    first_option: usize,
    mut compiled: Compiled,
    mut of: impl FnMut(Option<&Call<'_>>) -> Result<T>,
) -> Result<Vec<T>> {
    let columns = Columns::new(args)?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let Some(own) = columns.row(row) else {
            found.push(of(None)?);
            continue;
        };
        let at = options_at(own.len(), &own).max(first_option);
        let (regex, all) = compiled.of(text(&own, 1), text(&own, at))?;
        let call = Call {
            args: own,
            regex,
            all: *all,
        };
        found.push(of(Some(&call))?);
    }
    Ok(found)
}

fn texts(
    args: &[ArrayRef],
    rows: usize,
    of: impl for<'a> Fn(&Call<'a>) -> Result<Option<&'a str>>,
) -> Result<ArrayRef> {
    let found = each(args, rows, 2, Compiled::default(), |call| {
        Ok(match call {
            Some(call) => of(call)?.map(str::to_string),
            None => None,
        })
    })?;
    Ok(Arc::new(StringArray::from(found)))
}

/// Whether there is a match.
fn is_match(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let found = each(args, rows, 2, Compiled::default(), |call| {
        let Some(call) = call else {
            return Ok(None);
        };
        call.not_global("regexp_like")?;
        Ok(Some(call.regex.is_match(text(&call.args, 0))?))
    })?;
    Ok(Arc::new(BooleanArray::from(found)))
}

/// How many matches there are from a place on.
fn count(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let found = each(args, rows, 3, Compiled::default(), |call| {
        let Some(call) = call else {
            return Ok(None);
        };
        let start = call.number(2, "start", 1, 1)?;
        call.not_global("regexp_count")?;
        let mut count = 0;
        for found in call.matches(start) {
            found?;
            count += 1;
        }
        Ok(Some(count))
    })?;
    Ok(Arc::new(Int64Array::from(found)))
}

/// At which character a match begins, or which comes behind it.
fn instr(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let found = each(args, rows, 2, Compiled::default(), |call| {
        let Some(call) = call else {
            return Ok(None);
        };
        let start = call.number(2, "start", 1, 1)?;
        let nth = call.number(3, "n", 1, 1)?;
        let end = call.number(4, "endoption", 0, 0)?;
        if end > 1 {
            let message = format!("invalid value for parameter \"endoption\": {end}");
            return Err(refused("22023", message));
        }
        let group = call.number(6, "subexpr", 0, 0)?;
        call.not_global("regexp_instr")?;
        let found = call.nth(start, nth)?;
        let place = found.and_then(|found| {
            let group = found.get(call.or_whole(group))?;
            let at = if end == 1 { group.end } else { group.start };
            Some(text(&call.args, 0)[..at].chars().count() as i32 + 1)
        });
        Ok(Some(place.unwrap_or(0)))
    })?;
    Ok(Arc::new(Int32Array::from(found)))
}

/// A text with one match replaced, or all from a place on.
fn replace(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let found = each(args, rows, 3, Compiled::default(), |call| {
        let Some(call) = call else {
            return Ok(None);
        };
        let start = call.number(3, "start", 1, 1)?;
        // Without a number the option `g` says whether all are replaced; with one it says nothing.
        let default = if call.all { 0 } else { 1 };
        let nth = call.number(4, "n", 0, default)?;
        let whole = text(&call.args, 0);
        let mut out = String::new();
        let mut copied = 0;
        let (skipped, taken) = match nth {
            0 => (0, usize::MAX),
            nth => (nth - 1, 1),
        };
        for found in call.matches(start).skip(skipped).take(taken) {
            let found = found?;
            let Some(own) = found.get(0) else {
                break;
            };
            out.push_str(&whole[copied..own.start]);
            put(text(&call.args, 2), &found, &mut out);
            copied = own.end;
        }
        out.push_str(&whole[copied..]);
        Ok(Some(out))
    })?;
    Ok(Arc::new(StringArray::from(found)))
}

/// What stands in the place of a match: `\1` is what its first group found, `\&` the match.
fn put(with: &str, found: &Found<'_>, out: &mut String) {
    let mut letters = with.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        let group = |at: usize| found.get(at).map_or("", |group| group.text);
        match letters.next() {
            Some('&') => out.push_str(group(0)),
            Some(c) if c.is_ascii_digit() && c != '0' => {
                out.push_str(group(c as usize - '0' as usize));
            }
            Some('\\') | None => out.push('\\'),
            Some(c) => out.extend(['\\', c]),
        }
    }
}

/// `substring(text similar pattern escape c)`: what stands between the two separators, or the whole text.
fn similar(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (texts, patterns, escapes) = (strings(&args[0])?, strings(&args[1])?, strings(&args[2])?);
    let mut compiled = Compiled::default();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if texts.is_null(row) || patterns.is_null(row) || escapes.is_null(row) {
            found.push(None);
            continue;
        }
        let pattern = parts(patterns.value(row), escapes.value(row))?;
        let (regex, _) = compiled.of(&pattern, "")?;
        let group = regex.groups().min(1);
        let part = regex.found(texts.value(row), 0)?;
        found.push(part.and_then(|part| part.get(group).map(|own| own.text.to_string())));
    }
    Ok(Arc::new(StringArray::from(found)))
}

/// The regular expression of a pattern of the standard whose middle part is its only group.
fn parts(pattern: &str, escape: &str) -> Result<String> {
    let mut letters = escape.chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return Err(refused("22025", "invalid escape string"));
    }
    let mut pieces = vec![String::new()];
    let mut rest = pattern.chars();
    let mut in_brackets = false;
    while let Some(letter) = rest.next() {
        let mut piece = pieces.pop().unwrap_or_default();
        let mut next = None;
        match letter {
            c if Some(c) == escape => match rest.next() {
                Some('"') => next = Some(String::new()),
                Some(c) => literal(c, &mut piece),
                None => return Err(refused("22025", "invalid escape sequence")),
            },
            ']' if in_brackets => {
                in_brackets = false;
                piece.push(']');
            }
            '\\' if in_brackets => piece.push_str("\\\\"),
            c if in_brackets => piece.push(c),
            '[' => {
                in_brackets = true;
                piece.push('[');
            }
            '%' => piece.push_str(".*"),
            '_' => piece.push('.'),
            '(' => piece.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => piece.push(letter),
            c => literal(c, &mut piece),
        }
        pieces.push(piece);
        pieces.extend(next);
    }
    // What stands before the middle is as short as it can be.
    match &pieces[..] {
        [whole] => Ok(format!("^(?:{whole})$")),
        [before, middle, after] => Ok(format!(
            "^(?:{before}){{1,1}}?({middle}){{1,1}}(?:{after})$"
        )),
        [before, rest] => Ok(format!("^(?:{before}){{1,1}}?({rest})$")),
        _ => Err(refused(
            "2200C",
            "SQL regular expression may not contain more than two escape-double-quote separators",
        )),
    }
}

/// Appends the character itself, whatever it means in a regular expression.
fn literal(letter: char, out: &mut String) {
    if letter.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(letter);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_between_separators_is_found() {
        for (text, pattern, wanted) in [
            ("abcdefg", "a#\"(b_d)#\"%", Some("bcd")),
            ("abcdefg", "#\"(b_d)#\"%", None),
            ("abcdefg", "a#\"%#\"g", Some("bcdef")),
            ("abcdefg", "a#\"%|ab#\"g", Some("bcdef")),
            ("abcdefg", "a*#\"%#\"g*", Some("abcdefg")),
            ("abcdefg", "a%", Some("abcdefg")),
        ] {
            let mut compiled = Compiled::default();
            let (regex, _) = compiled.of(&parts(pattern, "#").unwrap(), "").unwrap();
            let found = regex.found(text, 0).unwrap();
            let group = regex.groups().min(1);
            let found = found.and_then(|found| found.get(group).map(|own| own.text));
            assert_eq!(found, wanted, "{pattern}");
        }
        assert!(parts("a#\"b#\"c#\"d", "#").is_err());
    }
}
