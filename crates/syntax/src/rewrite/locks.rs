//! Lock clauses of queries as the parser reads them: `for no key update` is `for update`, `for key share` is `for share`, each
//! has one table behind `of`, and they stand behind `limit`.

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::words::is_word;

/// A lock clause that has been read.
struct Clause {
    /// It as the parser reads it.
    tokens: Vec<TokenWithSpan>,
    /// Where what follows it begins.
    end: usize,
}

/// The tokens with all lock clauses as the parser reads them.
pub(crate) fn locks(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| is_word(&token.token, "for")) {
        return tokens;
    }
    let mut done = Vec::with_capacity(tokens.len());
    // Clauses that stand before a limit, with how many parentheses are around them.
    let mut waiting: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(token) = tokens.get(at) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen | Token::EOF => {
                put(&mut waiting, depth, &mut done);
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        match clause(&tokens, at) {
            Some(Clause { tokens: own, end }) => {
                if comes_before_limit(&tokens, end) {
                    waiting.push((depth, own));
                } else {
                    done.extend(own);
                }
                at = end;
            }
            None => {
                done.push(token.clone());
                at += 1;
            }
        }
    }
    put(&mut waiting, 0, &mut done);
    done
}

/// Puts the clauses at the end of the query that they are of.
fn put(
    waiting: &mut Vec<(usize, Vec<TokenWithSpan>)>,
    depth: usize,
    done: &mut Vec<TokenWithSpan>,
) {
    let first = waiting.iter().position(|(own, _)| *own >= depth);
    for (_, clause) in waiting.split_off(first.unwrap_or(waiting.len())) {
        done.extend(clause);
    }
}

fn comes_before_limit(tokens: &[TokenWithSpan], at: usize) -> bool {
    let words = ["limit", "offset", "fetch"];
    let next = Reader { tokens, at }.peek();
    next.is_some_and(|at| words.iter().any(|word| is_word(&tokens[at].token, word)))
}

/// The lock clause that begins at `at`, if one does.
fn clause(tokens: &[TokenWithSpan], at: usize) -> Option<Clause> {
    if !is_word(&tokens.get(at)?.token, "for") {
        return None;
    }
    let mut reader = Reader { tokens, at };
    let begin = reader.take("for")?;
    let strength = if let Some(update) = reader.take("update") {
        update
    } else if let Some(share) = reader.take("share") {
        share
    } else if reader.take("no").is_some() {
        reader.take("key")?;
        reader.take("update")?
    } else {
        reader.take("key")?;
        reader.take("share")?
    };
    let mut tables: Vec<Vec<TokenWithSpan>> = Vec::new();
    let of = reader.take("of");
    if of.is_some() {
        tables.push(reader.name()?);
        while reader.is(&Token::Comma) {
            tables.push(reader.name()?);
        }
    }
    let mut rest = Vec::new();
    if let Some(nowait) = reader.take("nowait") {
        rest.push(nowait.clone());
    } else if let Some(skip) = reader.take("skip") {
        rest.extend([skip.clone(), reader.take("locked")?.clone()]);
    }
    let mut own = Vec::new();
    for table in tables
        .iter()
        .map(Some)
        .chain(tables.is_empty().then_some(None))
    {
        // It may stand right behind a number now.
        let space = Token::Whitespace(Whitespace::Space);
        own.push(TokenWithSpan::new(space, begin.span));
        own.extend([begin.clone(), strength.clone()]);
        if let (Some(of), Some(table)) = (of, table) {
            own.push(of.clone());
            own.extend(table.iter().cloned());
        }
        own.extend(rest.iter().cloned());
    }
    Some(Clause {
        tokens: own,
        end: reader.at,
    })
}

/// Takes words one after the other.
struct Reader<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
}

impl<'t> Reader<'t> {
    /// Where the next token stands that is no space.
    fn peek(&self) -> Option<usize> {
        let is_space = |at: &usize| matches!(self.tokens[*at].token, Token::Whitespace(_));
        (self.at..self.tokens.len()).find(|at| !is_space(at))
    }

    /// The next token, if it is this word.
    fn take(&mut self, wanted: &str) -> Option<&'t TokenWithSpan> {
        let at = self.peek()?;
        let token = self
            .tokens
            .get(at)
            .filter(|own| is_word(&own.token, wanted))?;
        self.at = at + 1;
        Some(token)
    }

    /// Whether this is the next token; it is taken.
    fn is(&mut self, wanted: &Token) -> bool {
        let found = self.peek().filter(|at| self.tokens[*at].token == *wanted);
        if let Some(at) = found {
            self.at = at + 1;
        }
        found.is_some()
    }

    /// The name of a table, with its schema if that is written.
    fn name(&mut self) -> Option<Vec<TokenWithSpan>> {
        let mut name = Vec::new();
        loop {
            let at = self.peek()?;
            let part = self.tokens.get(at)?;
            if !matches!(part.token, Token::Word(_)) {
                return None;
            }
            name.push(part.clone());
            self.at = at + 1;
            let point = self
                .peek()
                .filter(|at| self.tokens[*at].token == Token::Period);
            match point {
                Some(at) => {
                    name.push(self.tokens[at].clone());
                    self.at = at + 1;
                }
                None => return Some(name),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::locks;
    use crate::dialect::DIALECT;

    fn rewritten(text: &str) -> String {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        let words = locks(tokens.unwrap()).into_iter();
        let words: Vec<String> = words.map(|token| token.token.to_string()).collect();
        let text = words.join(" ");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn clauses_are_what_the_parser_knows() {
        for (text, wanted) in [
            (
                "select a from t for no key update",
                "select a from t for update",
            ),
            (
                "select a from t for key share nowait",
                "select a from t for share nowait",
            ),
            (
                "select a from t, u for update of t, s.u skip locked",
                "select a from t , u for update of t skip locked for update of s . u skip locked",
            ),
            (
                "select (select a from t for update limit 1) for share",
                "select ( select a from t limit 1 for update ) for share",
            ),
            (
                "select a from t for update offset 1 limit 2",
                "select a from t offset 1 limit 2 for update",
            ),
            (
                "select substring(a from 1 for 2)",
                "select substring ( a from 1 for 2 )",
            ),
            ("select a from t for update", "select a from t for update"),
        ] {
            assert_eq!(rewritten(text), wanted, "{text}");
        }
    }
}
