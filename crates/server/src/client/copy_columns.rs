//! The columns that `copy` from the client fills: their names, and which of their fields are NULL.

use atoll::TransferFormat;

/// The columns that lines are read into.
#[derive(Debug)]
pub(crate) struct Columns {
    names: Vec<String>,
    /// Whether the text of NULL is NULL within quotes, too; none behind the last.
    null: Vec<bool>,
    /// Whether the text of NULL is that text; none behind the last.
    not_null: Vec<bool>,
}

impl Columns {
    /// Columns of these names, which come in this format.
    pub(crate) fn new(names: Vec<String>, format: &TransferFormat) -> Columns {
        let (null, not_null) = match format {
            TransferFormat::Csv {
                force_null,
                force_not_null,
                ..
            } => {
                let all = || names.iter().map(String::as_str);
                (force_null.of(all()), force_not_null.of(all()))
            }
            _ => Default::default(),
        };
        Columns {
            names,
            null,
            not_null,
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// This many columns without names, of which nothing is said.
    #[cfg(test)]
    pub(crate) fn plain(count: usize) -> Columns {
        Columns {
            names: vec![String::new(); count],
            null: Vec::new(),
            not_null: Vec::new(),
        }
    }

    /// Whether no field without quotes is NULL.
    pub(super) fn is_never_null(&self, column: usize) -> bool {
        self.not_null.get(column).copied().unwrap_or(false)
    }

    /// A field of CSV, of which nothing is known but the text of NULL.
    pub(super) fn field(&self, column: usize, field: Option<String>, null: &str) -> Option<String> {
        match field {
            None => self.is_never_null(column).then(|| null.to_owned()),
            Some(text) if text == null && self.null.get(column) == Some(&true) => None,
            some => some,
        }
    }

    /// That a line holds the names.
    ///
    /// # Errors
    /// If it does not.
    pub(super) fn check_names(&self, found: &[Option<String>], null: &str) -> Result<(), String> {
        if found.len() != self.names.len() {
            return Err(format!(
                "wrong number of fields in header line: got {}, expected {}",
                found.len(),
                self.names.len()
            ));
        }
        for (at, (found, name)) in found.iter().zip(&self.names).enumerate() {
            let got = match found {
                Some(found) if found == name => continue,
                Some(found) => format!("\"{found}\""),
                None => format!("null value (\"{null}\")"),
            };
            return Err(format!(
                "column name mismatch in header line field {}: got {got}, expected \"{name}\"",
                at + 1
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use atoll::HeaderLine;

    use super::*;
    use crate::client::copy_rows::read;

    fn format(options: &str) -> TransferFormat {
        let statement = format!("copy t from stdin ({options})");
        atoll::transfer(&statement).unwrap().unwrap().format
    }

    #[test]
    fn columns_are_forced_to_be_null_or_not() {
        let csv = |options: &str, text: &[u8]| {
            let format = format(&format!("format csv, {options}"));
            let names = ["a", "b", "c"].map(String::from).to_vec();
            let columns = Columns::new(names, &format);
            read(text, &format, &columns, HeaderLine::Row)
                .unwrap()
                .fields()
        };
        let row = |fields: [Option<&str>; 3]| fields.map(|field| field.map(String::from)).to_vec();
        let found = csv(
            "force_null (a, b), force_not_null (c)",
            b"1,\"\",\n\"\",x,\"\"\n1,,\n",
        );
        assert_eq!(found[0], row([Some("1"), None, Some("")]));
        assert_eq!(found[1], row([None, Some("x"), Some("")]));
        assert_eq!(found[2], row([Some("1"), None, Some("")]));
        // Of a column that is both, what stands within quotes is NULL.
        let found = csv(
            "null 'N', force_null (b, c), force_not_null (b)",
            b"1,N,\"N\"\n2,\"N\",N\n3,\"\",\n4,N,N\n",
        );
        assert_eq!(found[0], row([Some("1"), Some("N"), None]));
        assert_eq!(found[1], row([Some("2"), None, None]));
        assert_eq!(found[2], row([Some("3"), Some(""), Some("")]));
        assert_eq!(found[3], row([Some("4"), Some("N"), None]));
    }

    #[test]
    fn names_that_have_to_match_are_looked_at() {
        let told = |options: &str, text: &[u8]| {
            let format = format(options);
            let names = ["a", "b", "c"].map(String::from).to_vec();
            let columns = Columns::new(names, &format);
            let found = read(text, &format, &columns, HeaderLine::Match);
            found.map(|rows| rows.count).map_err(|wrong| wrong.message)
        };
        let csv = "format csv, header match";
        assert_eq!(told(csv, b"a,\"b\",c\n1,2,3\n"), Ok(1));
        assert_eq!(told("header match", b"a\tb\tc\n1\t2\t3\n"), Ok(1));
        let mismatch = "column name mismatch in header line field";
        for (text, message) in [
            (
                &b"a,b,d\n1,2,3\n"[..],
                format!("{mismatch} 3: got \"d\", expected \"c\""),
            ),
            (
                b"A,b,c\n",
                format!("{mismatch} 1: got \"A\", expected \"a\""),
            ),
            (
                b"a,b, c\n",
                format!("{mismatch} 3: got \" c\", expected \"c\""),
            ),
            (
                b"a,,c\n1,2,3\n",
                format!("{mismatch} 2: got null value (\"\"), expected \"b\""),
            ),
            (
                b"a,b\n1,2,3\n",
                "wrong number of fields in header line: got 2, expected 3".into(),
            ),
            (
                b"\\.\n",
                "wrong number of fields in header line: got 1, expected 3".into(),
            ),
            (
                b"",
                "wrong number of fields in header line: got 1, expected 3".into(),
            ),
        ] {
            assert_eq!(told(csv, text), Err(message), "{text:?}");
        }
    }
}
