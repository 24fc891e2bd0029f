//! Rows as the lines of a file as PostgreSQL's `copy` writes text: tabs between fields, a backslash before what would end
//! one, `\N` for NULL.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// How text is written.
#[derive(Clone, Debug)]
pub(crate) struct TextForm {
    /// Between two fields.
    pub delimiter: u8,
    /// What stands for NULL. A value that is the same text is not told from it, as in PostgreSQL.
    pub null: String,
    /// Whether the first line has the columns' names.
    pub header: bool,
}

impl TextForm {
    /// The line of the columns' names, if one is written.
    pub(crate) fn head<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<u8> {
        let mut line = vec![];
        if self.header {
            for (at, name) in names.enumerate() {
                self.separate(at, &mut line);
                self.field(name, &mut line);
            }
            line.push(b'\n');
        }
        line
    }

    /// Rows as lines. Booleans are a letter, as PostgreSQL's output of them is; other columns are texts already.
    ///
    /// # Errors
    /// If a value cannot be written.
    pub(crate) fn lines(&self, rows: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        let options = FormatOptions::default();
        let columns = rows.columns().iter();
        let columns = columns
            .map(|column| {
                let format = ArrayFormatter::try_new(column.as_ref(), &options)?;
                // `is_null` knows nothing of a column that has no type, of which all values are NULL.
                Ok((column, column.logical_nulls(), format))
            })
            .collect::<Result<Vec<_>, ArrowError>>()?;
        let (mut lines, mut text) = (vec![], String::new());
        for row in 0..rows.num_rows() {
            for (at, (column, nulls, format)) in columns.iter().enumerate() {
                self.separate(at, &mut lines);
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    lines.extend_from_slice(self.null.as_bytes());
                } else if *column.data_type() == DataType::Boolean {
                    lines.push(if column.as_boolean().value(row) {
                        b't'
                    } else {
                        b'f'
                    });
                } else {
                    text.clear();
                    format.value(row).write(&mut text)?;
                    self.field(&text, &mut lines);
                }
            }
            lines.push(b'\n');
        }
        Ok(lines)
    }

    fn separate(&self, at: usize, line: &mut Vec<u8>) {
        if at > 0 {
            line.push(self.delimiter);
        }
    }

    /// Appends a value, with a backslash before what would be taken for something else.
    fn field(&self, text: &str, line: &mut Vec<u8>) {
        for byte in text.bytes() {
            let letter = match byte {
                b'\\' => b'\\',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                8 => b'b',
                11 => b'v',
                12 => b'f',
                other if other == self.delimiter => other,
                plain => {
                    line.push(plain);
                    continue;
                }
            };
            line.extend_from_slice(&[b'\\', letter]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BooleanArray, StringArray};

    use super::*;

    fn form() -> TextForm {
        TextForm {
            delimiter: b'\t',
            null: "\\N".into(),
            header: true,
        }
    }

    fn written(form: &TextForm) -> String {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            Some("a\tb\\c\nd|e"),
            None,
            Some(""),
            Some("\u{8}\u{b}\u{c}\r"),
        ]));
        let truths: ArrayRef = Arc::new(BooleanArray::from(vec![
            Some(true),
            Some(false),
            None,
            Some(true),
        ]));
        let rows =
            RecordBatch::try_from_iter_with_nullable([("t", texts, true), ("b", truths, true)]);
        String::from_utf8(form.lines(&rows.unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn what_would_end_a_field_has_a_backslash() {
        assert_eq!(
            written(&form()),
            "a\\tb\\\\c\\nd|e\tt\n\\N\tf\n\t\\N\n\\b\\v\\f\\r\tt\n"
        );
        let other = TextForm {
            delimiter: b'|',
            null: "nil".into(),
            ..form()
        };
        assert_eq!(
            written(&other),
            "a\\tb\\\\c\\nd\\|e|t\nnil|f\n|nil\n\\b\\v\\f\\r|t\n"
        );
    }

    #[test]
    fn names_stand_in_the_first_line() {
        let head = |form: TextForm| form.head(["a\tb", "c"].into_iter());
        assert_eq!(head(form()), b"a\\tb\tc\n");
        let none = TextForm {
            header: false,
            ..form()
        };
        assert_eq!(head(none), b"");
    }
}
