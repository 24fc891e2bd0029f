//! Paths as people type them.

use std::path::PathBuf;

use anyhow::Context;

/// The file that a command names, perhaps in quotes, or with `~/` for the user's home.
pub fn file(text: &str) -> anyhow::Result<Option<PathBuf>> {
    let plain = match text.chars().next() {
        None => return Ok(None),
        Some(quote @ ('\'' | '"')) => {
            let inner = text[1..].strip_suffix(quote);
            inner.with_context(|| format!("{text} lacks a quote at its end"))?
        }
        Some(_) => text,
    };
    Ok(Some(at_home(plain)))
}

/// Replaces `~/` by the user's home.
pub fn at_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_be_quoted() {
        assert_eq!(file("").unwrap(), None);
        assert_eq!(file("'a b.sql'").unwrap(), Some("a b.sql".into()));
        assert_eq!(file("a b.sql").unwrap(), Some("a b.sql".into()));
        assert!(file("'a").is_err());
    }
}
