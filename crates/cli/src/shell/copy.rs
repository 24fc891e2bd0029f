//! `\copy`: as the database's `copy`, for files without quotes.

use anyhow::{Context, bail};

use crate::shell::path::at_home;

/// Turns the arguments of `\copy` into a `copy` statement: the file's name gets quotes if it has none.
pub fn copy(text: &str) -> anyhow::Result<String> {
    let usage = "\\copy takes TABLE from FILE, or TABLE or (QUERY) to FILE";
    let (at, length) = direction(text).context(usage)?;
    let (what, rest) = (&text[..at + length], text[at + length..].trim_start());
    let (name, options) = match rest.chars().next() {
        None => bail!("{usage}"),
        Some('\'') => {
            let mut end = 1;
            // A doubled quote is part of the name.
            loop {
                end += rest[end..]
                    .find('\'')
                    .context("the file's name lacks a quote at its end")?
                    + 1;
                if !rest[end..].starts_with('\'') {
                    break;
                }
                end += 1;
            }
            (rest[1..end - 1].replace("''", "'"), &rest[end..])
        }
        Some(_) => {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        }
    };
    if matches!(
        name.to_lowercase().as_str(),
        "stdin" | "stdout" | "pstdin" | "pstdout" | "program"
    ) {
        bail!("\\copy reads and writes files; name one, such as './{name}'");
    }
    let name = at_home(&name).display().to_string().replace('\'', "''");
    Ok(format!("copy {what} '{name}'{options}"))
}

/// Finds the `from` or `to` before the file: the one outside of parentheses and quotes.
fn direction(text: &str) -> Option<(usize, usize)> {
    let (mut depth, mut quote, mut word) = (0, None, None);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) if c.is_alphanumeric() || c == '_' => {
                word = word.or(Some(at));
                continue;
            }
            _ => {}
        }
        if let Some(start) = word.take() {
            let word = text[start..at].to_lowercase();
            if depth == 0 && (word == "from" || word == "to") {
                return Some((start, at - start));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_takes_files_without_quotes() {
        let copied = |text: &str| copy(text).unwrap();
        assert_eq!(copied("t from a.csv"), "copy t from 'a.csv'");
        assert_eq!(
            copied("\"to\" (a, b) FROM 'it''s a.csv' csv header"),
            "copy \"to\" (a, b) FROM 'it''s a.csv' csv header"
        );
        assert_eq!(
            copied("(select 'to' from t where a in (select b from u)) to /tmp/o.parquet"),
            "copy (select 'to' from t where a in (select b from u)) to '/tmp/o.parquet'"
        );
        for wrong in ["", "t", "t from", "t to stdout", "t from 'a", "(select 1"] {
            assert!(copy(wrong).is_err(), "{wrong:?}");
        }
    }
}
