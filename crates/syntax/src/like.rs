//! The grammar of tables with the columns of another.
//!
//! ```text
//! create [[local] temporary] table [if not exists] name (like other [{including | excluding} part] ...)
//! part = all | comments | compression | constraints | defaults | generated | identity | indexes | statistics | storage
//! ```

use messages::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect;
use crate::names::written;
use crate::words::{self, need, unexpected, word};

/// `create table name (like other ...)`.
#[derive(Clone, Debug)]
pub struct CreateLike {
    /// The name of the new table.
    pub name: String,
    /// Whether it ends with the session.
    pub temporary: bool,
    /// Without an error if there is one.
    pub if_not_exists: bool,
    /// The table whose columns it gets.
    pub other: String,
    /// What else than names and types is copied.
    pub including: Including,
}

/// What a table gets of another beside names, types and NOT NULL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Including {
    /// Comments.
    pub comments: bool,
    /// Checks.
    pub constraints: bool,
    /// Defaults.
    pub defaults: bool,
    /// How columns are computed.
    pub generated: bool,
    /// Identities.
    pub identity: bool,
    /// Primary and unique keys.
    pub indexes: bool,
}

/// Reads such a statement; `None` of others.
///
/// # Errors
/// [`Error::Syntax`] with a place; if there are other columns, too.
pub(super) fn statement(tokens: &[TokenWithSpan]) -> Result<Option<CreateLike>> {
    if words::leading(tokens).next().as_deref() != Some("create") {
        return Ok(None);
    }
    let mut parser = dialect::parser(tokens.to_vec());
    need(&mut parser, "create")?;
    word(&mut parser, "local");
    let temporary = word(&mut parser, "temporary") || word(&mut parser, "temp");
    if !word(&mut parser, "table") {
        return Ok(None);
    }
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let Ok(name) = parser.parse_object_name(false) else {
        return Ok(None);
    };
    if !parser.consume_token(&Token::LParen) || !word(&mut parser, "like") {
        return Ok(None);
    }
    let other = written(&parser.parse_object_name(false)?)?;
    let mut including = Including::default();
    loop {
        let with = if word(&mut parser, "including") {
            true
        } else if word(&mut parser, "excluding") {
            false
        } else {
            break;
        };
        let part = parser.next_token();
        if !including.set(&part.token, with) {
            return Err(unexpected(&parser, "what is included of the table", part));
        }
    }
    if parser.peek_token_ref().token == Token::Comma {
        return Err(Error::unsupported(
            "`like` with other columns beside it is not supported: `alter table ... add column` adds them",
        ));
    }
    if !parser.consume_token(&Token::RParen) {
        let found = parser.peek_token();
        return Err(unexpected(&parser, "INCLUDING, EXCLUDING or )", found));
    }
    words::end(&mut parser)?;
    Ok(Some(CreateLike {
        name: written(&name)?,
        temporary,
        if_not_exists,
        other,
        including,
    }))
}

impl Including {
    /// Whether `part` is one; it is included then, or not.
    fn set(&mut self, part: &Token, with: bool) -> bool {
        let Token::Word(word) = part else {
            return false;
        };
        match word.value.to_lowercase().as_str() {
            "all" => {
                *self = Including {
                    comments: with,
                    constraints: with,
                    defaults: with,
                    generated: with,
                    identity: with,
                    indexes: with,
                }
            }
            "comments" => self.comments = with,
            "constraints" => self.constraints = with,
            "defaults" => self.defaults = with,
            "generated" => self.generated = with,
            "identity" => self.identity = with,
            "indexes" => self.indexes = with,
            // How PostgreSQL stores and plans: there is nothing to take over.
            "compression" | "statistics" | "storage" => {}
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};

    #[test]
    fn parts_are_named() {
        let read = |text: &str| match parse(text).unwrap().pop().unwrap().statement {
            Statement::Like(like) => like,
            other => panic!("{other:?}"),
        };
        let like =
            read("create temp table if not exists a (like b including all excluding defaults)");
        assert!(like.temporary && like.if_not_exists && like.name == "a" && like.other == "b");
        assert!(like.including.indexes && !like.including.defaults);
        assert_eq!(
            read("create table a (like b)").including,
            Including::default()
        );
        for wrong in [
            "create table a (like b including colour)",
            "create table a (like b, c int)",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
