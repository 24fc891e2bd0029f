//! The functions of regular expressions whose values are texts and numbers; and `substring` with a pattern.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, StringArray, StringViewArray,
    StringViewBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, plan_err};
use messages::Error;

use crate::arguments::{TEXT, is_text};
use crate::own::Own;
use crate::regular::{Compiled, Known, Matches, Template, between};

/// The name of the function that `substring(text from pattern)` becomes.
pub const BY_PATTERN: &str = "substring by pattern";
/// The name of the function that `substring(text similar pattern escape c)` becomes.
pub const SIMILAR: &str = "substring similar";
/// The name of the function that `regexp_replace` becomes.
pub const REPLACE: &str = "regexp_replace from";
/// The name of the function that `regexp_like` becomes, and `~` and its kin with a pattern that the planner's operators do
/// not take.
pub const IS_MATCH: &str = "regexp_like of postgresql";
/// The name of the function that `regexp_count` becomes.
pub const COUNT: &str = "regexp_count of postgresql";

pub(super) fn all() -> Vec<Own> {
    let all = [
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
    ];
    all.into_iter().map(Own::with_single_constants).collect()
}

/// What `regexp_like` becomes.
pub fn matching() -> Own {
    let own = Own::new(
        IS_MATCH,
        |types| takes("regexp_like", types, "ttt", 2),
        |_| Ok(DataType::Boolean),
        is_match,
    );
    own.with_single_constants()
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
    // Views are read as they lie.
    let own = |(ty, kind): (&DataType, char)| match kind {
        't' if *ty == TEXT => TEXT,
        't' => DataType::Utf8,
        _ => DataType::Int64,
    };
    Ok(types.iter().zip(kinds.chars()).map(own).collect())
}

/// The values of an argument: one for each row, or one for all.
#[derive(Debug)]
enum Values<'a> {
    Views(&'a StringViewArray),
    Texts(&'a StringArray),
    Numbers(&'a [i64]),
}

/// Arguments, column by column.
#[derive(Debug)]
struct Columns<'a> {
    args: &'a [ArrayRef],
    values: Vec<Values<'a>>,
}

/// Arguments in types that are read here: plans have others only where nothing was cast.
fn given(args: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let own = |arg: &ArrayRef| match arg.data_type() {
        DataType::Utf8 | DataType::Utf8View | DataType::Int64 => Ok(Arc::clone(arg)),
        ty if ty.is_integer() => Ok(cast(arg, &DataType::Int64)?),
        _ => Ok(cast(arg, &TEXT)?),
    };
    args.iter().map(own).collect()
}

/// The place of a row in an array that may have one value for all.
fn place(count: usize, row: usize) -> usize {
    if count == 1 { 0 } else { row }
}

impl<'a> Columns<'a> {
    /// Those of [`given`] arguments.
    fn of(args: &'a [ArrayRef]) -> Columns<'a> {
        let values = |arg: &'a ArrayRef| match arg.data_type() {
            DataType::Int64 => Values::Numbers(arg.as_primitive::<Int64Type>().values()),
            DataType::Utf8 => Values::Texts(arg.as_string()),
            _ => Values::Views(arg.as_string_view()),
        };
        Columns {
            args,
            values: args.iter().map(values).collect(),
        }
    }

    /// Whether an argument is NULL in a row.
    fn is_null(&self, row: usize) -> bool {
        let is_null = |arg: &ArrayRef| {
            let nulls = arg.nulls();
            nulls.is_some_and(|nulls| nulls.is_null(place(nulls.len(), row)))
        };
        self.args.iter().any(is_null)
    }

    /// The text that argument `at` is in a row; an empty one where there is none.
    fn text(&self, at: usize, row: usize) -> &'a str {
        match self.values.get(at) {
            Some(Values::Views(texts)) => texts.value(place(texts.len(), row)),
            Some(Values::Texts(texts)) => texts.value(place(texts.len(), row)),
            Some(Values::Numbers(_)) | None => "",
        }
    }

    /// The number that argument `at` is in a row, if there is one.
    fn number(&self, at: usize, row: usize) -> Option<i64> {
        match self.values.get(at) {
            Some(Values::Numbers(numbers)) => numbers.get(place(numbers.len(), row)).copied(),
            _ => None,
        }
    }

    /// At which of the arguments the options stand.
    fn options_at(&self) -> usize {
        let count = self.values.len();
        let is_text = |at: &usize| !matches!(self.values[*at], Values::Numbers(_));
        (2..count).rev().find(is_text).unwrap_or(count)
    }

    /// Whether an argument is the same in all rows; so is one that is not there.
    fn is_constant(&self, at: usize) -> bool {
        self.args.get(at).is_none_or(|arg| arg.len() == 1)
    }
}

fn refused(code: &'static str, message: impl Into<String>) -> datafusion_common::DataFusionError {
    Error::coded(code, message).into()
}

/// The arguments of a row, and the expression in it.
#[derive(Debug)]
struct Call<'c, 'a> {
    columns: &'c Columns<'a>,
    row: usize,
    regex: &'c mut Known,
}

impl<'a> Call<'_, 'a> {
    fn text(&self, at: usize) -> &'a str {
        self.columns.text(at, self.row)
    }

    /// The number that is argument `at`, which is `name` in messages and at least `least`.
    fn number(&self, at: usize, name: &str, least: i64, default: i64) -> Result<usize> {
        let number = self.columns.number(at, self.row).unwrap_or(default);
        match usize::try_from(number) {
            Ok(own) if number >= least => Ok(own),
            _ => Err(refused(
                "22023",
                format!("invalid value for parameter \"{name}\": {number}"),
            )),
        }
    }

    /// The matches from the character `start` on, with groups if they are wanted.
    fn matches(&mut self, start: usize, grouped: bool) -> Matches<'_, 'a> {
        let text = self.text(0);
        let at = match start {
            1 => Some(0),
            start => {
                let from = text.char_indices().map(|(at, _)| at).nth(start - 1);
                from.or_else(|| (text.chars().count() + 1 == start).then_some(text.len()))
            }
        };
        if grouped {
            self.regex.matches(text, at)
        } else {
            self.regex.spans(text, at)
        }
    }

    fn not_global(&self, name: &str) -> Result<()> {
        if self.regex.all() {
            return Err(refused(
                "22023",
                format!("{name}() does not support the \"global\" option"),
            ));
        }
        Ok(())
    }

    /// `regexp_substr`.
    fn part(&mut self, name: &str) -> Result<Option<&'a str>> {
        let start = self.number(2, "start", 1, 1)?;
        let nth = self.number(3, "n", 1, 1)?;
        let group = self.number(5, "subexpr", 0, 0)?;
        self.not_global(name)?;
        let group = self.or_whole(group);
        let mut found = self.matches(start, group > 0);
        if !found.advance_by(nth)? {
            return Ok(None);
        }
        Ok(found.group(group).map(|group| group.text))
    }

    /// The group of this number; the whole match counts as the first one of an expression without groups.
    fn or_whole(&self, group: usize) -> usize {
        match (group, self.regex.groups()) {
            (1, 0) => 0,
            _ => group,
        }
    }

    /// What the first group found, or the whole expression where there are none.
    fn first_group(&mut self) -> Result<Option<&'a str>> {
        let group = self.regex.groups().min(1);
        let mut found = self.matches(1, group > 0);
        if !found.advance()? {
            return Ok(None);
        }
        Ok(found.group(group).map(|group| group.text))
    }
}

/// Calls `of` with each row's arguments and the expression in them.
fn each<'a>(
    columns: &Columns<'a>,
    rows: usize,
    first_option: usize,
    mut of: impl FnMut(Option<&mut Call<'_, 'a>>) -> Result<()>,
) -> Result<()> {
    let mut compiled = Compiled::default();
    let options = columns.options_at().max(first_option);
    let is_one = columns.is_constant(1) && columns.is_constant(options);
    for row in 0..rows {
        if columns.is_null(row) {
            of(None)?;
            continue;
        }
        let regex = match compiled.last().filter(|_| is_one) {
            Some(regex) => regex,
            None => compiled.of(columns.text(1, row), columns.text(options, row))?,
        };
        let mut call = Call {
            columns,
            row,
            regex,
        };
        of(Some(&mut call))?;
    }
    Ok(())
}

/// The value that `of` gives for each row without a NULL.
fn values<T>(
    args: &[ArrayRef],
    rows: usize,
    first_option: usize,
    of: impl Fn(&mut Call<'_, '_>) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    let args = given(args)?;
    let mut found = Vec::with_capacity(rows);
    each(&Columns::of(&args), rows, first_option, |call| {
        found.push(call.map(&of).transpose()?);
        Ok(())
    })?;
    Ok(found)
}

fn texts(
    args: &[ArrayRef],
    rows: usize,
    of: impl for<'a> Fn(&mut Call<'_, 'a>) -> Result<Option<&'a str>>,
) -> Result<ArrayRef> {
    let args = given(args)?;
    let mut out = StringViewBuilder::with_capacity(rows);
    each(&Columns::of(&args), rows, 2, |call| {
        let found = match call {
            Some(call) => of(call)?,
            None => None,
        };
        out.append_option(found);
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

/// Whether there is a match.
fn is_match(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let found = values(args, rows, 2, |call| {
        call.not_global("regexp_like")?;
        Ok(call.regex.is_match(call.text(0))?)
    })?;
    Ok(Arc::new(BooleanArray::from(found)))
}

/// How many matches there are from a place on.
fn count(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let found = values(args, rows, 3, |call| {
        let start = call.number(2, "start", 1, 1)?;
        call.not_global("regexp_count")?;
        let mut count = 0i64;
        let mut found = call.matches(start, false);
        while found.advance()? {
            count += 1;
        }
        Ok(count)
    })?;
    Ok(Arc::new(Int64Array::from(found)))
}

/// At which character a match begins, or which comes behind it.
fn instr(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let found = values(args, rows, 2, |call| {
        let start = call.number(2, "start", 1, 1)?;
        let nth = call.number(3, "n", 1, 1)?;
        let end = call.number(4, "endoption", 0, 0)?;
        if end > 1 {
            let message = format!("invalid value for parameter \"endoption\": {end}");
            return Err(refused("22023", message));
        }
        let group = call.number(6, "subexpr", 0, 0)?;
        call.not_global("regexp_instr")?;
        let (text, group) = (call.text(0), call.or_whole(group));
        let mut found = call.matches(start, group > 0);
        if !found.advance_by(nth)? {
            return Ok(0);
        }
        let place = found.group(group).map(|group| {
            let at = if end == 1 { group.end } else { group.start };
            text[..at].chars().count() as i32 + 1
        });
        Ok(place.unwrap_or(0))
    })?;
    Ok(Arc::new(Int32Array::from(found)))
}

/// A text with one match replaced, or all from a place on.
fn replace(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let args = given(args)?;
    let columns = Columns::of(&args);
    let repeats = (1..args.len()).all(|at| columns.is_constant(at));
    let mut out = StringViewBuilder::with_capacity(rows);
    let mut template = Template::default();
    let mut made = String::new();
    // The text before, and what was made of it, if that would be made of it again.
    let mut last = None;
    each(&columns, rows, 3, |call| {
        let Some(call) = call else {
            out.append_null();
            return Ok(());
        };
        let text = call.text(0);
        let part = match last {
            Some((before, part)) if before == text => part,
            _ => replaced(call, &mut template, &mut made)?,
        };
        last = repeats.then_some((text, part));
        out.append_value(part.unwrap_or(&made));
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

/// What `regexp_replace` makes of a row: a text that is there already, or else what it leaves in `out`.
fn replaced<'a>(
    call: &mut Call<'_, 'a>,
    template: &mut Template<'a>,
    out: &mut String,
) -> Result<Option<&'a str>> {
    let start = call.number(3, "start", 1, 1)?;
    // Without a number the option `g` says whether all are replaced; with one it says nothing.
    let default = if call.regex.all() { 0 } else { 1 };
    let nth = call.number(4, "n", 0, default)?;
    let text = call.text(0);
    template.read(call.text(2));
    let mut found = call.matches(start, template.refers());
    if !found.advance_by(nth.max(1))? {
        return Ok(Some(text));
    }
    if nth > 0
        && found.whole() == (0, text.len())
        && let Some(own) = template.only(&found)
    {
        return Ok(Some(own));
    }
    out.clear();
    let mut copied = 0;
    let mut there = true;
    while there {
        let (start, end) = found.whole();
        out.push_str(&text[copied..start]);
        template.put(&found, out);
        copied = end;
        there = nth == 0 && found.advance()?;
    }
    out.push_str(&text[copied..]);
    Ok(None)
}

/// `substring(text similar pattern escape c)`: what stands between the two separators, or the whole text.
fn similar(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let args = given(args)?;
    let columns = Columns::of(&args);
    let mut compiled = Compiled::default();
    let mut out = StringViewBuilder::with_capacity(rows);
    let mut last = None;
    let mut pattern = String::new();
    for row in 0..rows {
        if columns.is_null(row) {
            out.append_null();
            continue;
        }
        let written = (columns.text(1, row), columns.text(2, row));
        if last != Some(written) {
            pattern = between(written.0, written.1)?;
            last = Some(written);
        }
        let regex = compiled.of(&pattern, "")?;
        let mut call = Call {
            columns: &columns,
            row,
            regex,
        };
        out.append_option(call.first_group()?);
    }
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constants give what columns of the same values give, and views what other texts give.
    #[test]
    fn constants_are_as_columns_of_them() {
        let texts = [
            Some("http://www.a.b/c"),
            Some("http://www.a.b/c"),
            Some("x"),
            None,
            Some(""),
            Some("x"),
            Some("http://www.a.org/c"),
            Some("xx http://b/\nx"),
        ];
        let rows = texts.len();
        let views: ArrayRef = Arc::new(StringViewArray::from(texts.to_vec()));
        let plain: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let constant = |text: &str, count: usize| -> ArrayRef {
            Arc::new(StringArray::from(vec![text; count]))
        };
        let url = r"^https?://(?:www\.)?([^/]+)/.*$";
        for (pattern, with, options, wanted) in [
            (url, r"\1", "", "a.b|a.b|x|||x|a.org|xx http://b/\nx"),
            (url, "", "g", "||x|||x||xx http://b/\nx"),
            (
                url,
                r"<\1>",
                "",
                "<a.b>|<a.b>|x|||x|<a.org>|xx http://b/\nx",
            ),
            (r"/\w.*", "", "g", "http:/|http:/|x|||x|http:/|xx http:/"),
            (
                "[xc]",
                "-",
                "g",
                "http://www.a.b/-|http://www.a.b/-|-|||-|http://www.a.org/-|-- http://b/\n-",
            ),
            (".*", "-", "g", "--|--|--||-|--|--|--"),
        ] {
            let wanted = wanted.split('|').zip(&texts);
            let wanted = wanted.map(|(own, text)| text.map(|_| own));
            let wanted: StringViewArray = wanted.collect();
            for (texts, count) in [(&views, 1), (&views, rows), (&plain, 1), (&plain, rows)] {
                let with = constant(with, count);
                let args = [
                    Arc::clone(texts),
                    constant(pattern, count),
                    with,
                    constant(options, count),
                ];
                let found = replace(&args, rows).unwrap();
                assert_eq!(found.as_string_view(), &wanted, "{pattern} {count}");
            }
        }
    }
}
