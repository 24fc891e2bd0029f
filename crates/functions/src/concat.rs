//! `concat` and `concat_ws`, of values of any type: truth is `t` or `f`, as PostgreSQL writes it.

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};

use crate::arguments::{TEXT, is_text, strings};
use crate::convert::to_texts;
use crate::lengthened::Made;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "concat",
            |types| match types {
                [] => plan_err!("function concat() does not exist: it takes at least one value"),
                types => Ok(types.to_vec()),
            },
            |_| Ok(TEXT),
            |args, rows| joined(None, args, rows),
        ),
        Own::new(
            "concat_ws",
            |types| match types {
                [separator, first, rest @ ..] if is_text(separator) => {
                    let mut own = vec![DataType::Utf8, first.clone()];
                    own.extend(rest.iter().cloned());
                    Ok(own)
                }
                _ => plan_err!("concat_ws takes a separator, which is a text, and values"),
            },
            |_| Ok(TEXT),
            |args, rows| joined(Some(&args[0]), &args[1..], rows),
        ),
    ]
}

/// The texts of values without those that are NULL; NULL where the separator is.
fn joined(separator: Option<&ArrayRef>, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let separators = separator.map(strings).transpose()?;
    let text = |value: &ArrayRef| -> Result<ArrayRef> { Ok(cast(&to_texts(value)?, &TEXT)?) };
    let texts: Vec<ArrayRef> = values.iter().map(text).collect::<Result<_>>()?;
    let texts: Vec<&StringViewArray> = texts.iter().map(|text| text.as_string_view()).collect();
    let mut made = Made::new(rows);
    for row in 0..rows {
        let between = match &separators {
            Some(separators) if separators.is_null(row) => {
                made.null();
                continue;
            }
            Some(separators) => separators.value(row),
            None => "",
        };
        let lengths = texts.iter().filter(|text| text.is_valid(row));
        let lengths = lengths.map(|text| text.value(row).len() + between.len());
        made.allow(lengths.fold(0, usize::saturating_add))?;
        let mut out = String::new();
        let there = texts.iter().filter(|text| text.is_valid(row));
        for (at, text) in there.enumerate() {
            if at > 0 {
                out.push_str(between);
            }
            out.push_str(text.value(row));
        }
        made.put(&out);
    }
    Ok(made.finish())
}
