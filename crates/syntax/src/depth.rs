//! Limits on the length and depth of statements.
//!
//! The parser, the planner and the optimiser are recursive. Statements that would exhaust the stack are refused before
//! they are parsed, by counting over their tokens, which needs no recursion itself.

use messages::error::MAX_NESTING;
use messages::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Most operators in a row that no comma or clause separates: `a or b or c ...`, `x + y + z ...`,
/// `q union q union q ...`. Each adds a level to the tree that the planner walks.
pub(crate) const MAX_CHAIN: usize = 1_000;
/// Most parts of the `with` clauses of a statement. Each may be read by the next one, whose plan then stands around its own.
pub(crate) const MAX_PARTS: usize = 2_000;
/// Most bytes of one text.
pub(crate) const MAX_TEXT: usize = 64 << 20;

/// Statements with deeper trees are planned with a larger stack.
const DEEP: usize = 100;
/// The depth that is assumed of a statement which may name views: their trees come to its own.
pub const ROOMY: usize = DEEP + 1;
/// A larger stack is made if less than this is left.
const RED_ZONE: usize = 32 << 20;
/// The same of a statement whose tree is not deep.
const SHALLOW_ZONE: usize = 768 << 10;
/// Size of the larger stack. Only what is touched takes memory.
const STACK: usize = 64 << 20;

/// The parser's own recursion limit; it counts several levels for one parenthesis.
pub const PARSER_RECURSION: usize = 3 * MAX_NESTING;

/// Refuses texts that are longer than [`MAX_TEXT`].
pub(crate) fn check_length(text: &str) -> Result<()> {
    if text.len() <= MAX_TEXT {
        Ok(())
    } else {
        Err(Error::TooComplex {
            message: format!(
                "the text has {} bytes, the limit is {MAX_TEXT}; load data with `copy ... from` or import instead",
                text.len()
            ),
        })
    }
}

/// Whether a tree of this depth is to be handled [with room](with_room).
pub fn is_deep(depth: usize) -> bool {
    depth > DEEP
}

/// Runs `work` with enough stack for a tree of `depth`. Parsing, printing and dropping a tree is recursive, and the
/// caller's stack may be small.
pub fn with_room<T>(depth: usize, work: impl FnOnce() -> T) -> T {
    let zone = if is_deep(depth) {
        RED_ZONE
    } else {
        SHALLOW_ZONE
    };
    stacker::maybe_grow(zone, STACK, work)
}

/// `work`, polled [`with_room`].
pub fn polled_with_room<F: Future>(depth: usize, work: F) -> impl Future<Output = F::Output> {
    let mut work = Box::pin(work);
    std::future::poll_fn(move |cx| with_room(depth, || work.as_mut().poll(cx)))
}

/// Refuses statements whose trees would be too deep, and returns how deep the tree of these tokens may be.
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut deepest = 0;
    // One entry per open parenthesis: operators since the last separator on that level.
    let mut open: Vec<usize> = vec![0];
    let mut cases = 0usize;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => open.push(0),
            Token::RParen | Token::RBracket | Token::RBrace if open.len() > 1 => {
                open.pop();
            }
            Token::Comma => set_last(&mut open, 0),
            Token::Word(word) => match word.keyword {
                Keyword::CASE | Keyword::EXPLAIN => cases += 1,
                Keyword::END => cases = cases.saturating_sub(1),
                Keyword::WHERE
                | Keyword::HAVING
                | Keyword::ON
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE => set_last(&mut open, 0),
                Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::JOIN => add_last(&mut open),
                _ => {}
            },
            Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::Mod
            | Token::StringConcat
            | Token::DoubleColon
            | Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Pipe
            | Token::Ampersand
            | Token::Caret
            | Token::ExclamationMark
            | Token::Tilde
            | Token::Arrow
            | Token::LongArrow => add_last(&mut open),
            _ => {}
        }
        if open.len() + cases > MAX_NESTING {
            return Err(Error::too_deep());
        }
        let chain: usize = open.iter().sum();
        deepest = deepest.max(chain + open.len() + cases);
        if chain > MAX_CHAIN {
            return Err(Error::TooComplex {
                message: format!(
                    "more than {MAX_CHAIN} operators in one expression; use `in (...)`, a table of values, or several statements"
                ),
            });
        }
    }
    Ok(deepest.max(parts(tokens)?))
}

/// The parts of `with` clauses: `as (`, `as not materialized (`.
fn parts(tokens: &[TokenWithSpan]) -> Result<usize> {
    let (mut count, mut begins) = (0, false);
    for token in tokens {
        begins = match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => {
                count += usize::from(begins);
                false
            }
            Token::Word(word) if word.keyword == Keyword::AS => true,
            Token::Word(word) => {
                begins && matches!(word.keyword, Keyword::NOT | Keyword::MATERIALIZED)
            }
            _ => false,
        };
    }
    if count > MAX_PARTS {
        return Err(Error::TooComplex {
            message: format!(
                "more than {MAX_PARTS} parts of `with` in one statement; keep some in temporary tables"
            ),
        });
    }
    Ok(count)
}

fn set_last(open: &mut [usize], count: usize) {
    if let Some(last) = open.last_mut() {
        *last = count;
    }
}

fn add_last(open: &mut [usize]) {
    if let Some(last) = open.last_mut() {
        *last += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::GenericDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn check_text(text: &str) -> Result<usize> {
        check(
            &Tokenizer::new(&GenericDialect {}, text)
                .tokenize_with_location()
                .unwrap(),
        )
    }

    #[test]
    fn long_lists_pass_and_deep_trees_do_not() {
        let list = (0..100_000)
            .map(|i| i.to_string())
            .collect::<Vec<_>>()
            .join(",");
        check_text(&format!("select * from t where a in ({list})")).unwrap();
        let deep = format!("select {}1{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(matches!(check_text(&deep), Err(Error::TooComplex { .. })));
        let chain = format!("select 1{}", " + 1".repeat(100_000));
        assert!(matches!(check_text(&chain), Err(Error::TooComplex { .. })));
        let parts = |count: usize| {
            let more = (1..count).map(|at| format!(", a{at} as materialized (select * from a)"));
            format!("with a as (select 1){} select 1", more.collect::<String>())
        };
        assert_eq!(check_text(&parts(1_500)).unwrap(), 1_500);
        assert!(matches!(
            check_text(&parts(100_000)),
            Err(Error::TooComplex { .. })
        ));
        let unions = format!("select 1{}", " union all select 1".repeat(100_000));
        assert!(matches!(check_text(&unions), Err(Error::TooComplex { .. })));
    }
}
