//! Functions that the engine has no kernel for, and tests of stored values.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringViewBuilder,
};
use arrow::compute::{and_kleene, cast, not, or_kleene};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;
use regex::Regex;

use crate::syntax::{Function, Sign};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// A condition on one text; found once per label of a dictionary.
#[derive(Debug)]
pub(crate) enum TextTest {
    Compare(Sign, String),
    In(Vec<String>),
    Match(Regex),
    Null,
    Not(Box<TextTest>),
    All(Vec<TextTest>),
    Any(Vec<TextTest>),
}

impl TextTest {
    fn hits(&self, texts: &ArrayRef) -> Result<BooleanArray, ArrowError> {
        let each = |test: &dyn Fn(&str) -> bool| {
            let texts = texts.as_string_view();
            texts.iter().map(|text| text.map(test)).collect()
        };
        let fold = |all: &[TextTest],
                    join: fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, ArrowError>,
                    start: bool| {
            let mut hits = BooleanArray::from(vec![start; texts.len()]);
            for one in all {
                hits = join(&hits, &one.hits(texts)?)?;
            }
            Ok(hits)
        };
        match self {
            TextTest::Compare(sign, with) => Ok(each(&|text| holds(*sign, text.cmp(with)))),
            TextTest::In(among) => Ok(each(&|text| among.iter().any(|one| one == text))),
            TextTest::Match(pattern) => Ok(each(&|text| pattern.is_match(text))),
            TextTest::Null => arrow::compute::is_null(texts),
            TextTest::Not(inner) => not(&inner.hits(texts)?),
            TextTest::All(all) => fold(all, and_kleene, true),
            TextTest::Any(all) => fold(all, or_kleene, false),
        }
    }
}

/// Whether `a sign b` holds for two values that compare as `order`.
fn holds(sign: Sign, order: Ordering) -> bool {
    match sign {
        Sign::Eq => order.is_eq(),
        Sign::Ne => order.is_ne(),
        Sign::Lt => order.is_lt(),
        Sign::Le => order.is_le(),
        Sign::Gt => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// `texts` as a view array, whatever they are stored as.
fn views(texts: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match texts.data_type() {
        DataType::Utf8View => Ok(Arc::clone(texts)),
        _ => cast(texts, &DataType::Utf8View),
    }
}

impl table::Test for TextTest {
    fn evaluate(&self, columns: &[ArrayRef], _: usize) -> Result<BooleanArray, Failed> {
        Ok(self.hits(&views(&columns[0])?)?)
    }
}

impl engine::Call for TextTest {
    fn call(&self, args: &[ArrayRef], _: usize) -> Result<ArrayRef, Failed> {
        Ok(Arc::new(self.hits(&views(&args[0])?)?))
    }

    fn name(&self) -> String {
        match self {
            TextTest::Compare(sign, with) => format!("{} {with:?}", sign.text()),
            TextTest::In(among) => format!("in {among:?}"),
            TextTest::Match(pattern) => format!("match {:?}", pattern.as_str()),
            _ => "test".into(),
        }
    }
}

/// The comparison of two strings.
#[derive(Debug)]
pub(crate) struct CompareStrings(pub Sign);

impl engine::Call for CompareStrings {
    fn call(&self, args: &[ArrayRef], _: usize) -> Result<ArrayRef, Failed> {
        let (a, b) = (views(&args[0])?, views(&args[1])?);
        let pairs = a.as_string_view().iter().zip(b.as_string_view().iter());
        let hits: BooleanArray = pairs
            .map(|(a, b)| Some(holds(self.0, a?.cmp(b?))))
            .collect();
        Ok(Arc::new(hits))
    }

    fn name(&self) -> String {
        self.0.text().into()
    }
}

/// A condition on stored integers: one of these ranges holds the value, both ends included.
#[derive(Debug)]
pub(crate) struct RangeTest(pub Arc<[(i128, i128)]>);

impl table::Test for RangeTest {
    fn evaluate(&self, columns: &[ArrayRef], _: usize) -> Result<BooleanArray, Failed> {
        let mut values = Vec::with_capacity(columns[0].len());
        table::wides_of(&columns[0], &mut values)?;
        let inside = |v: &i128| self.0.iter().any(|(low, high)| low <= v && v <= high);
        let hits = values.iter().map(inside).collect();
        Ok(BooleanArray::new(hits, columns[0].logical_nulls()))
    }
}

/// A part of a text: from which character on, counted from 1, and how many. As in SQL, places before the first one count.
#[derive(Debug)]
pub(crate) struct Substring;

impl engine::Call for Substring {
    fn call(&self, args: &[ArrayRef], rows: usize) -> Result<ArrayRef, Failed> {
        let texts = views(&args[0])?;
        let places = [
            cast(&args[1], &DataType::Int64)?,
            cast(&args[2], &DataType::Int64)?,
        ];
        let [first, count] = [0, 1].map(|n| places[n].as_primitive::<Int64Type>());
        let texts = texts.as_string_view();
        let mut parts = StringViewBuilder::with_capacity(rows);
        for row in 0..rows {
            if texts.is_null(row) || first.is_null(row) || count.is_null(row) {
                parts.append_null();
                continue;
            }
            parts.append_value(part(texts.value(row), first.value(row), count.value(row))?);
        }
        Ok(Arc::new(parts.finish()))
    }

    fn name(&self) -> String {
        Function::Substring.name().into()
    }
}

/// The characters `first` to `first + count - 1` of `text`, as far as there are any.
fn part(text: &str, first: i64, count: i64) -> Result<&str, Failed> {
    if count < 0 {
        let what = format!("`substring` cannot take {count} characters; take 0 or more");
        return Err(what.into());
    }
    // One behind the last place, counted from 0.
    let end = first.saturating_sub(1).saturating_add(count).max(0);
    let start = first.saturating_sub(1).clamp(0, end);
    let at = |place: i64| {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let found = text.char_indices().nth(place);
        found.map_or(text.len(), |(at, _)| at)
    };
    Ok(&text[at(start)..at(end)])
}

/// The first text whose condition, which stands before it, is true; else the last one.
#[derive(Debug)]
pub(crate) struct ChooseText;

impl engine::Call for ChooseText {
    fn call(&self, args: &[ArrayRef], rows: usize) -> Result<ArrayRef, Failed> {
        let mut branches = Vec::with_capacity(args.len() / 2);
        let mut last = None;
        for pair in args.chunks(2) {
            match pair {
                [when, then] => branches.push((when.as_boolean(), views(then)?)),
                _ => last = Some(views(&pair[0])?),
            }
        }
        let mut chosen = StringViewBuilder::with_capacity(rows);
        for row in 0..rows {
            let is_true = |when: &BooleanArray| when.is_valid(row) && when.value(row);
            let found = branches.iter().find(|(when, _)| is_true(when));
            let texts = found.map(|(_, then)| then).or(last.as_ref());
            match texts.map(|texts| texts.as_string_view()) {
                Some(texts) if texts.is_valid(row) => chosen.append_value(texts.value(row)),
                _ => chosen.append_null(),
            }
        }
        Ok(Arc::new(chosen.finish()))
    }

    fn name(&self) -> String {
        "case".into()
    }
}

/// Functions of floats.
#[derive(Debug)]
pub(crate) struct FloatFunction(pub Function);

impl engine::Call for FloatFunction {
    fn call(&self, args: &[ArrayRef], rows: usize) -> Result<ArrayRef, Failed> {
        let first = args[0].as_primitive::<Float64Type>();
        let value = |row: usize| {
            let x = first.value(row);
            match self.0 {
                Function::Power => x.powf(args[1].as_primitive::<Float64Type>().value(row)),
                Function::Exp => x.exp(),
                _ => x.sqrt(),
            }
        };
        let there = |row: usize| args.iter().all(|arg| arg.is_valid(row));
        let values: Float64Array = (0..rows)
            .map(|row| there(row).then(|| value(row)))
            .collect();
        Ok(Arc::new(values))
    }

    fn name(&self) -> String {
        self.0.name().into()
    }
}

/// Operations on the bits of whole numbers; absent: all turned over.
#[derive(Debug)]
pub(crate) struct BitFunction(pub Option<Sign>);

impl engine::Call for BitFunction {
    fn call(&self, args: &[ArrayRef], rows: usize) -> Result<ArrayRef, Failed> {
        let args: Vec<ArrayRef> = args
            .iter()
            .map(|arg| cast(arg, &DataType::Int64))
            .collect::<Result<_, _>>()?;
        let whole = |arg: &ArrayRef, row: usize| arg.as_primitive::<Int64Type>().value(row);
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            if args.iter().any(|arg| arg.is_null(row)) {
                values.push(None);
                continue;
            }
            let x = whole(&args[0], row);
            let Some(sign) = self.0 else {
                values.push(Some(!x));
                continue;
            };
            let y = whole(&args[1], row);
            values.push(Some(match sign {
                Sign::BitAnd => x & y,
                Sign::BitOr => x | y,
                Sign::BitXor => x ^ y,
                Sign::Left => shifted(x, y, i64::checked_shl)?,
                _ => shifted(x, y, i64::checked_shr)?,
            }));
        }
        Ok(Arc::new(Int64Array::from(values)))
    }

    fn name(&self) -> String {
        self.0.map_or("~", Sign::text).into()
    }
}

fn shifted(x: i64, by: i64, shift: fn(i64, u32) -> Option<i64>) -> Result<i64, Failed> {
    let places = u32::try_from(by).ok();
    let value = places.and_then(|places| shift(x, places));
    value.ok_or_else(|| format!("bits cannot be shifted by {by} places; take 0 to 63").into())
}
