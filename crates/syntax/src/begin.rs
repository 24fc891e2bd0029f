//! What is asked of transactions: `begin` and `start transaction` with modes, `set transaction`.

use messages::Result;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect;
use crate::modes::{Asked, Isolation};
use crate::words;

/// A statement that asks something of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModesStatement {
    /// `begin [work | transaction] [mode, ...]`, `start transaction [mode, ...]`.
    Begin(Asked),
    /// `set transaction mode, ...`, of the transaction that is in progress.
    Set(Asked),
}

/// Reads such a statement; `None` of others, which the parser refuses or knows.
///
/// # Errors
/// [`Error::Syntax`](messages::Error::Syntax) with a place.
pub(super) fn statement(tokens: &[TokenWithSpan]) -> Result<Option<ModesStatement>> {
    let leading: Vec<String> = words::leading(tokens).take(3).collect();
    let leading: Vec<&str> = leading.iter().map(String::as_str).collect();
    let (skipped, begins) = match leading.as_slice() {
        ["begin", "work" | "transaction", ..] | ["start", "transaction", ..] => (2, true),
        ["begin"] => (1, true),
        ["begin", next, ..] if is_mode(next) => (1, true),
        ["set", "transaction", next, ..] if is_mode(next) => (2, false),
        _ => return Ok(None),
    };
    let mut parser = dialect::parser(tokens.to_vec());
    for _ in 0..skipped {
        parser.next_token();
    }
    let asked = asked(&mut parser)?;
    Ok(Some(if begins {
        ModesStatement::Begin(asked)
    } else {
        ModesStatement::Set(asked)
    }))
}

/// Whether a mode begins with this word.
fn is_mode(word: &str) -> bool {
    matches!(word, "isolation" | "read" | "deferrable" | "not")
}

/// All modes up to the end, with commas between them or without. Of two about the same the last one counts.
fn asked(parser: &mut Parser<'_>) -> Result<Asked> {
    let mut asked = Asked::default();
    while parser.peek_token_ref().token != Token::EOF {
        if words::word(parser, "isolation") {
            words::need(parser, "level")?;
            asked.isolation = Some(isolation(parser)?);
        } else if words::word(parser, "read") {
            asked.read_only = Some(words::word(parser, "only"));
            if asked.read_only == Some(false) {
                words::need(parser, "write")?;
            }
        } else if words::word(parser, "not") {
            words::need(parser, "deferrable")?;
            asked.deferrable = Some(false);
        } else {
            words::need(parser, "deferrable")?;
            asked.deferrable = Some(true);
        }
        if parser.consume_token(&Token::Comma) && parser.peek_token_ref().token == Token::EOF {
            // A comma wants another mode.
            words::need(parser, "isolation")?;
        }
    }
    Ok(asked)
}

fn isolation(parser: &mut Parser<'_>) -> Result<Isolation> {
    if words::word(parser, "serializable") {
        return Ok(Isolation::Serializable);
    }
    if words::word(parser, "repeatable") {
        words::need(parser, "read")?;
        return Ok(Isolation::RepeatableRead);
    }
    words::need(parser, "read")?;
    if words::word(parser, "uncommitted") {
        return Ok(Isolation::ReadUncommitted);
    }
    words::need(parser, "committed")?;
    Ok(Isolation::ReadCommitted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};

    fn read(text: &str) -> Option<ModesStatement> {
        match parse(text).ok()?.pop()?.statement {
            Statement::Modes(own) => Some(own),
            _ => None,
        }
    }

    #[test]
    fn modes_are_read() {
        let none = Asked::default();
        for text in [
            "begin",
            "BEGIN WORK",
            "begin transaction",
            "start transaction",
        ] {
            assert_eq!(read(text), Some(ModesStatement::Begin(none)), "{text}");
        }
        let all = Asked {
            read_only: Some(true),
            isolation: Some(Isolation::Serializable),
            deferrable: Some(true),
        };
        for text in [
            "begin isolation level serializable, read only, deferrable",
            "start transaction read only isolation level serializable deferrable",
        ] {
            assert_eq!(read(text), Some(ModesStatement::Begin(all)), "{text}");
        }
        let set = |asked| Some(ModesStatement::Set(asked));
        let write = Asked {
            read_only: Some(false),
            ..none
        };
        assert_eq!(read("set transaction read write"), set(write));
        let eager = Asked {
            deferrable: Some(false),
            ..none
        };
        assert_eq!(read("set transaction not deferrable"), set(eager));
    }

    #[test]
    fn other_modes_are_refused() {
        for text in [
            "begin read",
            "begin read only,",
            "begin isolation level snapshot",
            "begin transaction read only now",
            "set transaction isolation",
            "set transaction not",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
