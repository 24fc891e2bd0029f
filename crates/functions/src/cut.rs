//! Casts to `varchar(n)` and `char(n)`: functions that statements cannot name, so that what they return is known to have a length.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, plan_err};

use crate::arguments::{TEXT, is_text, strings};
use crate::own::Own;

/// The name of the function that takes the first characters of a text, as a cast to `varchar(n)` does.
pub const CUT_TEXT: &str = "cut text";

/// The name of the function that takes the first characters of a text without the blanks at the end, as a cast to `char(n)`
/// does.
pub const CUT_CHAR: &str = "cut char";

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(CUT_TEXT, takes, |_| Ok(TEXT), |args, _| cut(args, false)),
        Own::new(CUT_CHAR, takes, |_| Ok(TEXT), |args, _| cut(args, true)),
    ]
}

fn takes(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text, length] if is_text(text) && length.is_integer() => {
            Ok(vec![DataType::Utf8, DataType::Int64])
        }
        _ => plan_err!("a text and a number of characters are wanted"),
    }
}

fn cut(args: &[ArrayRef], trims: bool) -> Result<ArrayRef> {
    let texts = strings(&args[0])?;
    let lengths = args[1].as_primitive::<Int64Type>();
    let mut found = StringViewBuilder::with_capacity(texts.len());
    for (text, length) in texts.iter().zip(lengths) {
        let (Some(text), Some(length)) = (text, length) else {
            found.append_null();
            continue;
        };
        let most = usize::try_from(length).unwrap_or(0);
        let end = text.char_indices().nth(most);
        let first = end.map_or(text, |(end, _)| &text[..end]);
        found.append_value(if trims {
            first.trim_end_matches(' ')
        } else {
            first
        });
    }
    Ok(Arc::new(found.finish()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn the_first_characters_are_taken() {
        let texts = vec![Some("naïve"), Some("a  b"), Some("a "), Some(""), None];
        let args: [ArrayRef; 2] = [
            Arc::new(StringArray::from(texts)),
            Arc::new(Int64Array::from(vec![3; 5])),
        ];
        let of = |trims| {
            let found = cut(&args, trims).unwrap();
            let found = found.as_string_view().iter();
            found
                .map(|text| text.map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            of(false),
            [some("naï"), some("a  "), some("a "), some(""), None]
        );
        assert_eq!(
            of(true),
            [some("naï"), some("a"), some("a"), some(""), None]
        );
    }
}
