//! The names of character sets, of which only UTF-8 is read and written.

use messages::{Error, Result};

/// Character sets that PostgreSQL knows, as it compares their names: letters and digits alone, in lower case. Where a name ends in
/// `*`, numbers follow.
const KNOWN: [&str; 29] = [
    "abc",
    "alt",
    "big5",
    "euccn",
    "eucjis2004",
    "eucjp",
    "euckr",
    "euctw",
    "gb18030",
    "gbk",
    "iso8859*",
    "johab",
    "koi8",
    "koi8r",
    "koi8u",
    "latin*",
    "mskanji",
    "muleinternal",
    "shiftjis",
    "shiftjis2004",
    "sjis",
    "sqlascii",
    "tcvn",
    "tcvn5712",
    "uhc",
    "vscii",
    "win",
    "win*",
    "windows*",
];

/// That text of this encoding is read and written.
///
/// # Errors
/// If it is not UTF-8.
pub(crate) fn check(name: &str) -> Result<()> {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    if matches!(plain.as_str(), "utf8" | "unicode") {
        return Ok(());
    }
    let is_known = KNOWN.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => plain.strip_prefix(start).is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        }),
        None => *known == plain,
    });
    if is_known {
        return Err(Error::unsupported(format!(
            "text is read and written as UTF8, not as {name}: convert it first"
        )));
    }
    Err(Error::coded(
        "22023",
        "argument to option \"encoding\" must be a valid encoding name",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_utf_8_is_taken_however_it_is_written() {
        for name in ["utf8", "UTF-8", "Unicode", "utf_8"] {
            assert!(check(name).is_ok(), "{name}");
        }
        for (name, code) in [
            ("latin1", "0A000"),
            ("ISO-8859-15", "0A000"),
            ("WIN1252", "0A000"),
            ("SQL_ASCII", "0A000"),
            ("utf16", "22023"),
            ("latin", "22023"),
            ("", "22023"),
        ] {
            assert_eq!(check(name).unwrap_err().sqlstate(), code, "{name}");
        }
    }
}
