//! `comment on constraint name on table is ...`, which the parser does not know: a comment on a column with a name that no column
//! has.

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::names::of_constraint;

/// Writes such a statement as one that the parser knows. Of constraints of domains it knows none.
pub(super) fn as_columns(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is = |at: Option<&usize>, word: &str| {
        let token = at.and_then(|at| tokens.get(*at));
        matches!(token.map(|own| &own.token), Some(Token::Word(own)) if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word))
    };
    let mut words = tokens.iter();
    let first = words.find(|own| !matches!(own.token, Token::Whitespace(_)));
    let is_comment =
        |own: &Token| matches!(own, Token::Word(own) if own.value.eq_ignore_ascii_case("comment"));
    if !first.is_some_and(|own| is_comment(&own.token)) {
        return tokens;
    }
    let places = tokens.iter().enumerate();
    let places = places.filter(|(_, own)| !matches!(own.token, Token::Whitespace(_)));
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    let begins = ["comment", "on", "constraint"];
    let begins = begins.iter().enumerate();
    let mut begins = begins.map(|(at, word)| is(places.get(at), word));
    if !begins.all(|own| own) || !is(places.get(4), "on") || is(places.get(5), "domain") {
        return tokens;
    }
    let (Some(word), Some(name), Some(table)) = (places.get(2), places.get(3), places.get(5))
    else {
        return tokens;
    };
    // Behind the name of the table.
    let Some(rest) = places.iter().skip(6).find(|at| is(Some(at), "is")) else {
        return tokens;
    };
    let Token::Word(constraint) = &tokens[*name].token else {
        return tokens;
    };
    let value = match constraint.quote_style {
        Some(_) => constraint.value.clone(),
        None => constraint.value.to_lowercase(),
    };
    let span = tokens[*name].span;
    let made = |token| TokenWithSpan::new(token, span);
    let mut written = tokens[..*word].to_vec();
    written.push(made(Token::make_keyword("COLUMN")));
    written.push(made(Token::Whitespace(Whitespace::Space)));
    let own = tokens[*table..*rest].iter();
    let own = own.filter(|own| !matches!(own.token, Token::Whitespace(_)));
    written.extend(own.cloned());
    written.push(made(Token::Period));
    written.push(made(Token::make_word(&of_constraint(&value), Some('"'))));
    written.push(made(Token::Whitespace(Whitespace::Space)));
    written.extend_from_slice(&tokens[*rest..]);
    written
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    fn written(text: &str) -> String {
        let mut tokens = Tokenizer::new(&DIALECT, text);
        let tokens = as_columns(tokens.tokenize_with_location().unwrap());
        tokens.iter().map(|own| own.token.to_string()).collect()
    }

    #[test]
    fn constraints_are_columns_of_another_name() {
        assert_eq!(
            written("comment on constraint Low on s.t is 'x'"),
            "comment on COLUMN s.t.\"\u{1}low\" is 'x'"
        );
        assert_eq!(
            written("COMMENT ON CONSTRAINT \"A b\" ON t IS null"),
            "COMMENT ON COLUMN t.\"\u{1}A b\" IS null"
        );
        for other in [
            "comment on constraint low on domain d is 'x'",
            "comment on column t.a is 'x'",
            "comment on constraint low",
            "comment on constraint is on is",
            "select 1",
        ] {
            assert_eq!(written(other), other);
        }
    }
}
