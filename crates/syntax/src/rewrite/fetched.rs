//! `fetch first (a + b) rows only`: the parser reads a constant there alone. It becomes `limit (a + b)`; with ties, the clause
//! stays behind it, with a mark for its number.

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::words::is_word;

/// The constant that says that the number of rows is that of the limit.
pub(super) const IN_LIMIT: &str = "__in limit";

/// Makes limits of the clauses that count by an expression.
pub(crate) fn fetched(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| is_word(&token.token, "fetch")) {
        return tokens;
    }
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let found: Vec<Clause> = (0..whole.len())
        .filter_map(|at| clause(&tokens, &whole, at))
        .collect();
    let mut tokens = tokens;
    // From the last to the first, so that places stay.
    for clause in found.into_iter().rev() {
        let Some(span) = tokens.get(clause.start).map(|token| token.span) else {
            continue;
        };
        let own = |token| TokenWithSpan::new(token, span);
        let space = || own(Token::Whitespace(Whitespace::Space));
        let mut end = vec![space()];
        if clause.with_ties {
            end.extend([
                own(Token::make_keyword("FETCH")),
                space(),
                own(Token::make_keyword("FIRST")),
                space(),
                own(Token::SingleQuotedString(IN_LIMIT.into())),
                space(),
                own(Token::make_keyword("ROWS")),
                space(),
                own(Token::make_keyword("WITH")),
                space(),
                own(Token::make_keyword("TIES")),
                space(),
            ]);
        }
        tokens.splice(clause.value.1..clause.end, end);
        let start = [own(Token::make_keyword("LIMIT")), space()];
        tokens.splice(clause.start..clause.value.0, start);
    }
    tokens
}

/// A clause, as places of tokens.
struct Clause {
    start: usize,
    /// Where its expression begins and ends.
    value: (usize, usize),
    end: usize,
    with_ties: bool,
}

/// The clause that begins at a place among those of the `whole` tokens, if it counts by an expression.
fn clause(tokens: &[TokenWithSpan], whole: &[usize], at: usize) -> Option<Clause> {
    let token = |at: usize| Some(&tokens.get(*whole.get(at)?)?.token);
    let is = |at: usize, words: &[&str]| {
        token(at).is_some_and(|token| words.iter().any(|word| is_word(token, word)))
    };
    if !is(at, &["fetch"]) || !is(at + 1, &["first", "next"]) {
        return None;
    }
    let first = at + 2;
    let last = match token(first)? {
        Token::LParen => {
            let mut depth = 0_usize;
            let mut rest = (first..whole.len()).skip_while(|at| {
                match token(*at) {
                    Some(Token::LParen) => depth += 1,
                    Some(Token::RParen) => depth -= 1,
                    _ => {}
                }
                depth > 0
            });
            rest.next()?
        }
        Token::Minus | Token::Plus if matches!(token(first + 1), Some(Token::Number(..))) => {
            first + 1
        }
        _ => return None,
    };
    if !is(last + 1, &["row", "rows"]) {
        return None;
    }
    let with_ties = is(last + 2, &["with"]) && is(last + 3, &["ties"]);
    let end = if with_ties {
        last + 3
    } else if is(last + 2, &["only"]) {
        last + 2
    } else {
        return None;
    };
    Some(Clause {
        start: *whole.get(at)?,
        value: (*whole.get(first)?, *whole.get(last)? + 1),
        end: *whole.get(end)? + 1,
        with_ties,
    })
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    #[test]
    fn clauses_that_count_by_an_expression_are_limits() {
        let read = |text: &str| -> String {
            let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
            let tokens = fetched(tokens.unwrap());
            let texts = tokens.iter().map(|token| token.token.to_string());
            texts.collect::<Vec<_>>().join("")
        };
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (text, wanted) in [
            (
                "select a fetch first (1 + (2)) rows only for update",
                "select a LIMIT (1 + (2)) for update",
            ),
            ("select a fetch next -1 row only", "select a LIMIT -1"),
            (
                "(select a offset 1 fetch first (select 2) rows with ties)",
                "(select a offset 1 LIMIT (select 2) FETCH FIRST '__in limit' ROWS WITH TIES )",
            ),
            (
                "select a fetch first 2 rows only",
                "select a fetch first 2 rows only",
            ),
            ("select fetch (1)", "select fetch (1)"),
        ] {
            assert_eq!(words(read(text)), wanted, "{text}");
        }
    }
}
