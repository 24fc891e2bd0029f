//! Where the things that a `create schema` makes within the schema begin.
//!
//! ```text
//! create schema ... {create table | create view | create sequence | create index | grant} ...
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::words::{is_word, leading};

/// The tokens of a `create schema` without what it makes, and of each thing that it makes; none of other statements, and if
/// it makes nothing.
pub(super) fn split(tokens: &[TokenWithSpan]) -> Option<(&[TokenWithSpan], Vec<&[TokenWithSpan]>)> {
    let mut words = leading(tokens);
    if words.next()? != "create" || words.next()? != "schema" {
        return None;
    }
    let mut starts: Vec<usize> = Vec::new();
    let mut depth = 0_usize;
    let mut before: Option<&Token> = None;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            own if depth == 0 && begins(own, before) => starts.push(at),
            _ => {}
        }
        before = Some(&token.token);
    }
    // The first is the schema itself.
    let (_, starts) = starts.split_first()?;
    let first = *starts.first()?;
    let ends = starts.iter().skip(1).copied().chain([tokens.len()]);
    let parts = starts.iter().zip(ends);
    Some((
        &tokens[..first],
        parts.map(|(start, end)| &tokens[*start..end]).collect(),
    ))
}

/// Whether a thing begins with a word behind another: not `with grant option`, nor a name.
fn begins(own: &Token, before: Option<&Token>) -> bool {
    let name = |word: &str| before.is_some_and(|before| is_word(before, word));
    let named = name("as") || before.is_some_and(|before| *before == Token::Period);
    !named && (is_word(own, "create") || is_word(own, "grant") && !name("with"))
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    fn parts(text: &str) -> Option<Vec<String>> {
        let tokens = Tokenizer::new(&DIALECT, text)
            .tokenize_with_location()
            .unwrap();
        let written = |tokens: &[TokenWithSpan]| -> String {
            let text: String = tokens.iter().map(|own| own.token.to_string()).collect();
            text.trim().to_owned()
        };
        let (head, parts) = split(&tokens)?;
        Some([head].into_iter().chain(parts).map(written).collect())
    }

    #[test]
    fn things_begin_with_their_verbs() {
        assert_eq!(parts("create schema s"), None);
        assert_eq!(parts("create table t (a int)"), None);
        assert_eq!(
            parts(
                "create schema s authorization a create table t (\"create\" int, b int default (1)) \
                 create view v as select a as create, t.grant from t grant all on t to b with grant option \
                 grant select on v to c"
            )
            .unwrap(),
            [
                "create schema s authorization a",
                "create table t (\"create\" int, b int default (1))",
                "create view v as select a as create, t.grant from t",
                "grant all on t to b with grant option",
                "grant select on v to c",
            ]
        );
    }
}
