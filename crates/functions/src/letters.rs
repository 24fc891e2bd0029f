//! `upper`, `lower` and `initcap`, which change each letter into one letter, as PostgreSQL's do without ICU: `upper('straße')` is
//! `STRAßE`. DataFusion's change it into `STRASSE`, which has another length.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};

use crate::arguments::strings;
use crate::registry::Registry;

/// What becomes of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    Upper,
    Lower,
    /// The first of each word becomes a capital.
    Initial,
}

/// DataFusion's functions, but for texts with letters beyond ASCII.
pub(super) fn all(registry: &Registry) -> impl Iterator<Item = Arc<ScalarUDF>> {
    let all = [
        ("upper", Way::Upper),
        ("lower", Way::Lower),
        ("initcap", Way::Initial),
    ];
    let all = all.map(|(name, way)| {
        let inner = Arc::clone(registry.scalar(name)?);
        Some(Arc::new(ScalarUDF::from(Letters { inner, way })))
    });
    all.into_iter().flatten()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Letters {
    inner: Arc<ScalarUDF>,
    way: Way,
}

impl ScalarUDFImpl for Letters {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(types)
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = args.return_field.data_type();
        match args.args.first() {
            Some(ColumnarValue::Scalar(value)) => {
                let text = value.try_as_str().flatten();
                if text.is_some_and(|text| !text.is_ascii()) {
                    let found = self.changed(&value.to_array()?, to)?;
                    let found = ScalarValue::try_from_array(&found, 0)?;
                    return Ok(ColumnarValue::Scalar(found));
                }
            }
            Some(ColumnarValue::Array(texts)) if !is_ascii(texts)? => {
                return Ok(ColumnarValue::Array(self.changed(texts, to)?));
            }
            _ => {}
        }
        self.inner.invoke_with_args(args)
    }
}

fn is_ascii(texts: &ArrayRef) -> Result<bool> {
    Ok(match texts.data_type() {
        DataType::Utf8 => texts.as_string::<i32>().is_ascii(),
        DataType::LargeUtf8 => texts.as_string::<i64>().is_ascii(),
        DataType::Utf8View => texts.as_string_view().is_ascii(),
        _ => strings(texts)?.is_ascii(),
    })
}

impl Letters {
    fn changed(&self, texts: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
        let texts = strings(texts)?;
        let found = texts.iter().map(|text| text.map(|text| self.text(text)));
        let found: StringArray = found.collect();
        Ok(cast(&(Arc::new(found) as ArrayRef), to)?)
    }

    fn text(&self, text: &str) -> String {
        let mut within = false;
        let change = |letter: char| {
            let is_first = !within;
            within = letter.is_alphanumeric();
            match self.way {
                Way::Upper => upper(letter),
                Way::Lower => lower(letter),
                Way::Initial if is_first => upper(letter),
                Way::Initial => lower(letter),
            }
        };
        text.chars().map(change).collect()
    }
}

/// The capital of a letter, if it is one letter.
fn upper(letter: char) -> char {
    let mut found = letter.to_uppercase();
    match (found.next(), found.next()) {
        (Some(own), None) => own,
        _ => letter,
    }
}

/// The small letter of a capital, if it is one letter. A capital `i` with a dot loses it.
fn lower(letter: char) -> char {
    let mut found = letter.to_lowercase();
    match (found.next(), found.next()) {
        (Some(own), None) => own,
        _ if letter == 'İ' => 'i',
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion_functions::string;

    /// Values of PostgreSQL 15 without ICU.
    #[test]
    fn a_letter_becomes_one_letter() {
        let of = |way: Way, text: &str| {
            let inner = string::upper();
            Letters { inner, way }.text(text)
        };
        assert_eq!(of(Way::Upper, "straße ŉǰﬀ ıÿǆ"), "STRAßE ŉǰﬀ IŸǄ");
        assert_eq!(of(Way::Lower, "ΑΣ İÄÉ"), "ασ iäé");
        assert_eq!(
            of(Way::Initial, "ßa ǆx ﬀA élan VITAL"),
            "ßa Ǆx ﬀa Élan Vital"
        );
    }
}
