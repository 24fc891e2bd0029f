//! Keys of `rollup`, `cube` and `grouping sets` that begin with a parenthesis and go on behind it: `rollup ((a + 1) * 2)`. The
//! parser takes what stands in the parentheses for keys that go together, so there are more of them around.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The tokens with parentheses around such keys.
pub(crate) fn grouped(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_list = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => {
            word.quote_style.is_none()
                && matches!(
                    word.keyword,
                    Keyword::ROLLUP | Keyword::CUBE | Keyword::SETS
                )
        }
        _ => false,
    };
    if !tokens.iter().any(is_list) {
        return tokens;
    }
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    let mut opened = vec![false; tokens.len()];
    let mut closed = vec![false; tokens.len()];
    let is_opened = |at: &usize| tokens[*at].token == Token::LParen;
    for (place, &at) in whole.iter().enumerate() {
        if is_list(&tokens[at]) && whole.get(place + 1).is_some_and(is_opened) {
            for (first, last) in keys(&tokens, &whole, place + 2) {
                opened[first] = true;
                closed[last] = true;
            }
        }
    }
    let mut all = Vec::with_capacity(tokens.len());
    for (token, (opened, closed)) in tokens.into_iter().zip(opened.into_iter().zip(closed)) {
        let span = token.span;
        if opened {
            all.push(TokenWithSpan::new(Token::LParen, span));
        }
        all.push(token);
        if closed {
            all.push(TokenWithSpan::new(Token::RParen, span));
        }
    }
    all
}

/// The first and the last token of each such key of a list whose first key begins at `place`.
fn keys(tokens: &[TokenWithSpan], whole: &[usize], place: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut first = place;
    // Where the parenthesis ends that the key begins with.
    let mut end = None;
    for (place, &at) in whole.iter().enumerate().skip(place) {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen if depth > 0 => {
                depth -= 1;
                if depth == 0 && end.is_none() {
                    end = Some(place);
                }
            }
            Token::RParen | Token::Comma if depth == 0 => {
                let begins = tokens[whole[first]].token == Token::LParen;
                if begins && end.is_some_and(|end| end + 1 < place) {
                    found.push((whole[first], whole[place - 1]));
                }
                if tokens[at].token == Token::RParen {
                    break;
                }
                (first, end) = (place + 1, None);
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    fn read(text: &str) -> String {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        let tokens = grouped(tokens.unwrap());
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn what_goes_on_behind_a_parenthesis_is_one_key() {
        assert_eq!(
            read("group by rollup ((a)::text, b, (a + 1) * (b))"),
            "group by rollup (((a)::text), b, ((a + 1) * (b)))"
        );
        assert_eq!(
            read("group by grouping sets (cube((a) + 1), (a) || 'x', ())"),
            "group by grouping sets (cube(((a) + 1)), ((a) || 'x'), ())"
        );
        for plain in [
            "group by rollup ((a, b), (c), d)",
            "group by rollup (f(a), (b))",
            "group by grouping sets ((a, b), (a), ())",
            "select cube from t where (a) = 1",
            "select rollup((a",
        ] {
            assert_eq!(read(plain), plain);
        }
    }
}
