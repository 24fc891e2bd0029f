//! Tags that keep output columns of one name apart inside a plan.
//!
//! PostgreSQL lets two output columns share a name, the planner does not. Where a name would clash it is given a tag: a
//! control character and the number of the column. Tags come off where rows, plans and errors leave for people.

use sqlparser::ast::Ident;

/// Separates a name from the number of its tag. No column of a stored table has it in its name.
const TAG: char = '\u{1f}';

/// The name of a plan's column without its tag.
pub fn shown(name: &str) -> &str {
    match name.rsplit_once(TAG) {
        Some((plain, number)) if number.bytes().all(|b| b.is_ascii_digit()) => plain,
        _ => name,
    }
}

/// `text` without the tags of the names in it.
pub(crate) fn untagged(text: &str) -> String {
    let mut parts = text.split(TAG);
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        plain.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    plain
}

/// `name` with the tag `number`.
pub fn tagged(name: &str, number: usize) -> Ident {
    Ident::with_quote('"', format!("{name}{TAG}{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_off() {
        assert_eq!(shown("count\u{1f}12"), "count");
        assert_eq!(shown("count"), "count");
        assert_eq!(shown("odd\u{1f}name"), "odd\u{1f}name");
        assert_eq!(
            untagged("sum(t.a) AS sum\u{1f}1, b AS ?column?\u{1f}22"),
            "sum(t.a) AS sum, b AS ?column?"
        );
    }
}
