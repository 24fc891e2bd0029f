//! JSON from texts.

use arrow::array::{ArrayRef, StringViewArray};
use datafusion_common::Result;
use table::JsonKind;

use crate::json::normal;
use crate::json::value::{of_texts, values};

/// The values that texts say.
///
/// # Errors
/// For a text that is no JSON.
pub(crate) fn read(texts: &StringViewArray, kind: JsonKind) -> Result<ArrayRef> {
    match kind {
        JsonKind::Text => {
            for text in texts.iter().flatten() {
                normal::check(text)?;
            }
            of_texts(kind, texts.clone())
        }
        JsonKind::Normal => {
            let normal = texts.iter().map(|text| text.map(normal::of).transpose());
            values(kind, normal.collect::<Result<Vec<_>>>()?)
        }
    }
}
