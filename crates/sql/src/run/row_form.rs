//! Rows as the lines of a file: CSV and text as PostgreSQL writes them, and JSON.

use std::io::Write as _;
use std::sync::Arc;

use arrow::array::{Array, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{ArrowPrimitiveType, DataType, FieldRef, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::json::writer::{
    Encoder, EncoderFactory, EncoderOptions, LineDelimited, NullableEncoder, WriterBuilder,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::run::text_form::TextForm;

/// How rows are written.
#[derive(Clone, Debug)]
pub(crate) enum RowForm {
    Csv(CsvForm),
    Text(TextForm),
    /// An object a line.
    Json,
}

/// How CSV is written.
#[derive(Clone, Debug)]
pub(crate) struct CsvForm {
    pub delimiter: u8,
    pub quote: u8,
    /// What stands before a quote, or before itself, within quotes.
    pub escape: u8,
    /// The text that stands for NULL. A value that is the same text stands within quotes.
    pub null: String,
    /// Whether the first line has the columns' names.
    pub header: bool,
    /// Columns whose values stand within quotes in any case; none behind the last.
    pub quoted: Vec<bool>,
}

impl RowForm {
    /// What comes before the rows of these columns.
    pub(crate) fn head<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<u8> {
        let form = match self {
            RowForm::Csv(form) => form,
            RowForm::Text(form) => return form.head(names),
            RowForm::Json => return vec![],
        };
        let mut line = vec![];
        if form.header {
            for (at, name) in names.enumerate() {
                if at > 0 {
                    line.push(form.delimiter);
                }
                form.field(name, (false, false), &mut line);
            }
            line.push(b'\n');
        }
        line
    }

    /// Rows as lines.
    ///
    /// # Errors
    /// If a value cannot be written.
    pub(crate) fn lines(&self, rows: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        match self {
            RowForm::Csv(form) => form.lines(rows),
            RowForm::Text(form) => form.lines(rows),
            RowForm::Json => {
                let builder = WriterBuilder::new().with_encoder_factory(Arc::new(Floats));
                let mut writer = builder.build::<_, LineDelimited>(vec![]);
                writer.write(rows)?;
                writer.finish()?;
                Ok(writer.into_inner())
            }
        }
    }
}

/// Floats in JSON as PostgreSQL's `to_json` writes them: those that are no numbers of JSON are strings.
#[derive(Debug)]
struct Floats;

impl EncoderFactory for Floats {
    fn make_default_encoder<'a>(
        &self,
        _field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Float32 => Box::new(FloatEncoder(array.as_primitive::<Float32Type>())),
            DataType::Float64 => Box::new(FloatEncoder(array.as_primitive::<Float64Type>())),
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

struct FloatEncoder<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);

impl<T: ArrowPrimitiveType> Encoder for FloatEncoder<'_, T>
where
    T::Native: Into<f64>,
{
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        let wide: f64 = value.into();
        // Writing to memory does not fail. The digits are those of the narrower type.
        let _ = if wide.is_nan() {
            write!(out, "\"NaN\"")
        } else if wide.is_infinite() {
            write!(out, "\"{}Infinity\"", if wide < 0.0 { "-" } else { "" })
        } else {
            write!(out, "{value:?}")
        };
    }
}

impl CsvForm {
    fn lines(&self, rows: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        let options = FormatOptions::default();
        let columns = rows.columns().iter();
        let columns = columns
            .map(|column| {
                let format = ArrayFormatter::try_new(column.as_ref(), &options)?;
                // `is_null` knows nothing of a column that has no type, of which all values are NULL.
                Ok((column.logical_nulls(), format))
            })
            .collect::<Result<Vec<_>, ArrowError>>()?;
        let alone = columns.len() == 1;
        let (mut lines, mut text) = (vec![], String::new());
        for row in 0..rows.num_rows() {
            for (at, (nulls, format)) in columns.iter().enumerate() {
                if at > 0 {
                    lines.push(self.delimiter);
                }
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    lines.extend_from_slice(self.null.as_bytes());
                } else {
                    text.clear();
                    format.value(row).write(&mut text)?;
                    let always = self.quoted.get(at).copied().unwrap_or(false);
                    self.field(&text, (alone, always), &mut lines);
                }
            }
            lines.push(b'\n');
        }
        Ok(lines)
    }

    /// Appends a value, within quotes if it could be taken for something else: for NULL, for several fields or, `alone`
    /// on its line, for the end of the data; or `always`.
    fn field(&self, text: &str, (alone, always): (bool, bool), line: &mut Vec<u8>) {
        let marks = |byte: u8| {
            byte == self.delimiter || byte == self.quote || matches!(byte, b'\n' | b'\r')
        };
        let odd = always || text == self.null || alone && text == "\\." || text.bytes().any(marks);
        if !odd {
            line.extend_from_slice(text.as_bytes());
            return;
        }
        line.push(self.quote);
        for byte in text.bytes() {
            if byte == self.quote || byte == self.escape {
                line.push(self.escape);
            }
            line.push(byte);
        }
        line.push(self.quote);
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Float32Array, Float64Array, Int32Array, StringArray};

    use super::*;

    fn form() -> CsvForm {
        CsvForm {
            delimiter: b',',
            quote: b'"',
            escape: b'"',
            null: String::new(),
            header: true,
            quoted: Vec::new(),
        }
    }

    fn written(form: CsvForm, texts: &[Option<&str>]) -> String {
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter((0..).take(texts.len())));
        let rows = RecordBatch::try_from_iter([("t", texts), ("n", numbers)]).unwrap();
        String::from_utf8(RowForm::Csv(form).lines(&rows).unwrap()).unwrap()
    }

    #[test]
    fn null_and_empty_text_differ() {
        let texts = [
            Some(""),
            None,
            Some("a,b"),
            Some("\"x\"\n"),
            Some(" y "),
            Some("NIL"),
        ];
        assert_eq!(
            written(form(), &texts),
            "\"\",0\n,1\n\"a,b\",2\n\"\"\"x\"\"\n\",3\n y ,4\nNIL,5\n"
        );
        let other = CsvForm {
            null: "NIL".into(),
            escape: b'\\',
            delimiter: b'|',
            ..form()
        };
        assert_eq!(
            written(other, &[Some(""), None, Some("a\\|\""), Some("NIL")]),
            "|0\nNIL|1\n\"a\\\\|\\\"\"|2\n\"NIL\"|3\n"
        );
        let quoted = CsvForm {
            quoted: vec![false, true],
            ..form()
        };
        assert_eq!(written(quoted, &[Some("a"), None]), "a,\"0\"\n,\"1\"\n");
    }

    #[test]
    fn json_keeps_floats_that_are_no_numbers() {
        let floats = [
            Some(0.1),
            None,
            Some(f64::NAN),
            Some(f64::NEG_INFINITY),
            Some(1e300),
        ];
        let wide: ArrayRef = Arc::new(Float64Array::from(floats.to_vec()));
        let narrow: ArrayRef = Arc::new(Float32Array::from(vec![0.1_f32; 5]));
        let rows =
            RecordBatch::try_from_iter_with_nullable([("f", wide, true), ("g", narrow, true)]);
        let lines = RowForm::Json.lines(&rows.unwrap()).unwrap();
        let wanted = [
            "{\"f\":0.1,\"g\":0.1}",
            "{\"g\":0.1}",
            "{\"f\":\"NaN\",\"g\":0.1}",
            "{\"f\":\"-Infinity\",\"g\":0.1}",
            "{\"f\":1e300,\"g\":0.1}",
        ];
        let text = String::from_utf8(lines).unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn names_stand_in_the_first_line() {
        let head = |form: CsvForm| RowForm::Csv(form).head(["a b", "c,d", ""].into_iter());
        assert_eq!(head(form()), b"a b,\"c,d\",\"\"\n");
        let none = CsvForm {
            header: false,
            ..form()
        };
        assert_eq!(head(none), b"");
        assert_eq!(RowForm::Json.head(["a"].into_iter()), b"");
    }
}
