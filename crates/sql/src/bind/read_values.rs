//! Values of columns from [what statements say](crate::bind::row_values) in quotes, in digits, in bytes and in brackets.
//!
//! Texts are read by the functions that casts use, so that a value is the same whoever reads it. What is refused, and what
//! another cast would come before, is none here: then the statement is planned, and gives the error.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, Int64Array, ListArray, StringViewArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use syntax::key_query::date;

use crate::bind::cells::{Cell, RowValue, is_digits, of_array, of_digits, whole};
use crate::functions::convert::convert;
use crate::functions::lists::types::{has, is_list, is_map, is_special, is_struct};
use crate::functions::temporal::local::Local;
use crate::functions::temporal::read::reads;
use crate::messages::types::exact_name;

/// Words that stand for the present day, wherever they are in a text.
const PRESENT: [&str; 5] = ["now", "today", "tomorrow", "yesterday", "allballs"];

/// Whether a cast from one type to another changes no value.
pub(super) fn is_same(from: &DataType, to: &DataType) -> bool {
    let is_text = |own: &DataType| {
        matches!(
            own,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        )
    };
    from == to
        || is_text(from) && is_text(to)
        || is_bytes(from) && is_bytes(to)
        || is_list(from) && is_list(to) && exact_name(from) == exact_name(to)
}

fn is_bytes(own: &DataType) -> bool {
    matches!(
        own,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

/// Whether how values of this type are read is for the session to say.
pub(crate) fn is_local(own: &DataType) -> bool {
    has(own, is_moment)
}

/// Whether texts become values of this type by [`convert`].
fn is_read(own: &DataType) -> bool {
    match own {
        // They are read to the microsecond first, and rounded then.
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, _) | DataType::Time32(_) => {
            false
        }
        DataType::Float32 | DataType::Float64 => true,
        own => reads(own) || is_bytes(own) || is_special(own),
    }
}

/// Whether what a text says may depend on when it is read.
fn may_be_present(text: &str, own: &DataType) -> bool {
    if !is_local(own) {
        return false;
    }
    let text = text.to_ascii_lowercase();
    PRESENT.iter().any(|word| text.contains(word))
}

fn is_moment(own: &DataType) -> bool {
    reads(own) && *own != DataType::Interval(IntervalUnit::MonthDayNano)
}

/// A text in quotes for a column of type `own`.
pub(super) fn of_text<'a>(text: &'a str, own: &DataType, local: Local) -> Option<Cell<'a>> {
    match own {
        DataType::Utf8View => return Some(Cell::Text(text)),
        DataType::Boolean => {
            return match text {
                "t" | "true" => Some(Cell::Boolean(true)),
                "f" | "false" => Some(Cell::Boolean(false)),
                _ => None,
            };
        }
        own if own.is_integer() => {
            let digits = is_digits(text) && !text.contains('.');
            return whole(text.parse().ok().filter(|_| digits)?, own);
        }
        own if own.is_decimal() => return of_digits(text, own),
        DataType::Date32 => {
            if let Some(day) = date(text) {
                return Some(Cell::Day(day));
            }
        }
        _ => {}
    }
    if !is_read(own) || may_be_present(text, own) {
        return None;
    }
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values([text]));
    let found = local.within(|| convert(&texts, own)).ok()?;
    of_array(&found, own)
}

/// Bytes for a column of type `own`.
pub(super) fn of_bytes<'a>(bytes: &[u8], own: &DataType) -> Option<Cell<'a>> {
    if !is_bytes(own) {
        return None;
    }
    let found = cast(&BinaryArray::from_vec(vec![bytes]), own).ok()?;
    of_array(&found, own)
}

/// An array of constants for a column of type `own`: whole numbers, or texts.
pub(super) fn of_items<'a>(items: &[RowValue], own: &DataType, local: Local) -> Option<Cell<'a>> {
    let DataType::List(field) = own else {
        return None;
    };
    let item = field.data_type();
    if is_list(item) || is_struct(item) || is_map(item) {
        return None;
    }
    let items = if item.is_integer() || matches!(item, DataType::Decimal128(..)) {
        let number = |item: &RowValue| match item {
            RowValue::Null => Some(None),
            RowValue::Whole(number) => Some(Some(*number)),
            _ => None,
        };
        let numbers = items.iter().map(number).collect::<Option<Vec<_>>>()?;
        Arc::new(Int64Array::from(numbers)) as ArrayRef
    } else {
        let text = |item: &RowValue| match item {
            RowValue::Null => Some(None),
            RowValue::Text(text) if !may_be_present(text, own) => Some(Some(text.clone())),
            _ => None,
        };
        let texts = items.iter().map(text).collect::<Option<Vec<_>>>()?;
        Arc::new(StringViewArray::from_iter(texts)) as ArrayRef
    };
    // Of what type one without items and of NULL alone is, is for the planner to say.
    if items.null_count() == items.len() {
        return None;
    }
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([items.len()]);
    let list: ArrayRef = Arc::new(ListArray::try_new(field, offsets, items, None).ok()?);
    let found = local.within(|| convert(&list, own)).ok()?;
    of_array(&found, own)
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use table::{jsonb_type, uuid_type};

    use super::*;
    use crate::functions::arguments::UTC;
    use crate::functions::lists::types::list_of;

    fn read(text: &str, own: &DataType) -> Option<String> {
        match of_text(text, own, Local::PLAIN)? {
            Cell::One(value) => {
                let texts = crate::functions::convert::to_texts(&value).unwrap();
                Some(texts.as_string_view().value(0).to_owned())
            }
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn texts_become_what_casts_make_of_them() {
        let stamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        let spans = DataType::Interval(IntervalUnit::MonthDayNano);
        let numbers = list_of(DataType::Int32);
        for (own, text, wanted) in [
            (
                &stamp,
                "2020-01-02 03:04:05.5",
                Some("2020-01-02 03:04:05.5"),
            ),
            (
                &instant,
                "2020-01-02 03:04+02",
                Some("2020-01-02 01:04:00+00"),
            ),
            (&spans, "1 day 2 hours", Some("1 day 02:00:00")),
            (&numbers, "{1,NULL,-3}", Some("{1,NULL,-3}")),
            (&numbers, "{1,x}", None),
            (&DataType::Float32, "0.1", Some("0.1")),
            (&DataType::Float32, "1e400", None),
            (&DataType::Int16, "-7", Some("Whole(-7)")),
            (&DataType::Int16, "40000", None),
            (&DataType::Int16, " 7", None),
            (&DataType::Int16, "7.0", None),
            (&DataType::Boolean, "t", Some("Boolean(true)")),
            (&DataType::Boolean, "yes", None),
            (&DataType::Decimal128(4, 2), "1.5", Some("Scaled(150)")),
            (&DataType::Decimal128(4, 2), "1.555", None),
            (&DataType::Decimal256(50, 3), "-1.5", Some("-1.500")),
            (&DataType::Decimal256(50, 3), "NaN", None),
            (&DataType::BinaryView, "\\x00fF", Some("\\x00ff")),
            (
                &jsonb_type(),
                "{\"b\": 1,\"a\":2}",
                Some("{\"a\": 2, \"b\": 1}"),
            ),
            (&jsonb_type(), "{", None),
        ] {
            assert_eq!(read(text, own).as_deref(), wanted, "{text} as {own}");
        }
        let id = "A0EEBC999C0B4EF8BB6D6BB9BD380A11";
        let wanted = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        assert_eq!(read(id, &uuid_type()).as_deref(), Some(wanted));
        assert_eq!(read("a0ee", &uuid_type()), None);
    }

    #[test]
    fn the_present_and_what_is_rounded_are_left_to_the_planner() {
        let stamp = |unit| DataType::Timestamp(unit, None);
        for text in ["now", " Today", "10:00 yesterday", "allballs"] {
            assert_eq!(read(text, &stamp(TimeUnit::Microsecond)), None, "{text}");
        }
        assert_eq!(read("{now}", &list_of(stamp(TimeUnit::Microsecond))), None);
        assert_eq!(read("2020-01-01", &stamp(TimeUnit::Millisecond)), None);
        let present = of_text("{now}", &list_of(DataType::Utf8View), Local::PLAIN);
        assert!(present.is_some());
        assert!(of_digits("0.1", &DataType::Float32).is_some());
        assert!(of_digits("1.255", &DataType::Decimal256(50, 2)).is_none());
        let items = [RowValue::Whole(1), RowValue::Null];
        let of = |own: DataType| of_items(&items, &list_of(own), Local::PLAIN).is_some();
        assert!(of(DataType::Int16) && !of(DataType::Utf8View) && !of(DataType::Float64));
        let nothing = of_items(&[RowValue::Null], &list_of(DataType::Int64), Local::PLAIN);
        assert!(nothing.is_none());
    }
}
