//! `reindex`, `analyze`, `vacuum`, `cluster` and `checkpoint`: what they name is looked up, and there is little to do. What is
//! committed is on disk. Indexes of keys are kept whole by each commit, statistics of blocks are made when these are written, and pages
//! that are free are used again. `vacuum` moves what is left of blocks of which rows were deleted.
//!
//! ```text
//! reindex [(option, ...)] {index | table | schema | database | system} [concurrently] name
//! analyze [verbose] [(option, ...)] [table [(column, ...)], ...]
//! vacuum [freeze] [verbose] [analyze] [(option, ...)] [table [(column, ...)], ...]
//! cluster [verbose] [table [using index]]
//! checkpoint
//! ```

use messages::{Error, Result};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect;
use crate::names::{column_name, written};
use crate::not_there;
use crate::words::{self, is_next, is_word, need, unexpected, word};

/// Such a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// What it is called when it is done.
    pub tag: &'static str,
    /// What it names.
    pub named: Vec<Named>,
    /// Whether it may not be part of a transaction of several statements.
    pub alone: bool,
}

/// What is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A table, as [`written`], and columns.
    Table(String, Vec<String>),
    /// An index.
    Index(String),
    /// A schema.
    Schema(String),
}

/// Reads such a statement; `None` of others.
///
/// # Errors
/// [`Error::Syntax`] with a place; for `vacuum full`, and statements that are [not there](not_there).
pub(super) fn statement(tokens: &[TokenWithSpan]) -> Result<Option<Maintenance>> {
    let first = words::leading(tokens).next();
    let tag = match first.as_deref() {
        Some("reindex") => "REINDEX",
        Some("analyze" | "analyse") => "ANALYZE",
        Some("vacuum") => "VACUUM",
        Some("cluster") => "CLUSTER",
        Some("checkpoint") => "CHECKPOINT",
        _ => return not_there::refusal(tokens).map_or(Ok(None), Err),
    };
    let mut parser = dialect::parser(tokens.to_vec());
    parser.next_token();
    let mut own = Maintenance {
        tag,
        named: Vec::new(),
        alone: tag == "VACUUM",
    };
    let mut full = false;
    for option in ["full", "freeze", "verbose", "analyze", "analyse"] {
        let takes = match option {
            "verbose" => tag != "REINDEX",
            _ => tag == "VACUUM",
        };
        if takes && word(&mut parser, option) {
            full |= option == "full";
        }
    }
    if parser.consume_token(&Token::LParen) {
        full |= options(&mut parser, tag)?;
    }
    if full {
        return Err(Error::unsupported(
            "`vacuum full` is not supported: pages that are free are used again by themselves",
        ));
    }
    if tag == "REINDEX" {
        own.named.extend(reindexed(&mut parser)?);
    } else if tag != "CHECKPOINT" && parser.peek_token_ref().token != Token::EOF {
        loop {
            let table = written(&parser.parse_object_name(false)?)?;
            let mut columns = Vec::new();
            if tag != "CLUSTER" && parser.consume_token(&Token::LParen) {
                let names = parser.parse_comma_separated(Parser::parse_identifier)?;
                parser.expect_token(&Token::RParen)?;
                columns = names.iter().map(column_name).collect();
            }
            own.named.push(Named::Table(table, columns));
            if tag == "CLUSTER" {
                if word(&mut parser, "using") {
                    let index = written(&parser.parse_object_name(false)?)?;
                    own.named.push(Named::Index(index));
                }
                break;
            }
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
    }
    words::end(&mut parser)?;
    Ok(Some(own))
}

/// Options in parentheses. Returns whether `full` is among them.
fn options(parser: &mut Parser<'_>, tag: &str) -> Result<bool> {
    let known: &[&str] = match tag {
        "REINDEX" => &["verbose", "concurrently", "tablespace"],
        "ANALYZE" => &["verbose", "skip_locked"],
        "CLUSTER" => &["verbose"],
        _ => &[
            "full",
            "freeze",
            "verbose",
            "analyze",
            "analyse",
            "disable_page_skipping",
            "skip_locked",
            "index_cleanup",
            "process_toast",
            "truncate",
            "parallel",
        ],
    };
    let mut full = false;
    loop {
        let found = parser.next_token();
        let Some(name) = known.iter().find(|known| is_word(&found.token, known)) else {
            let Token::Word(own) = &found.token else {
                return Err(unexpected(parser, "an option", found));
            };
            return Err(Error::Syntax {
                message: format!("unrecognized {tag} option \"{}\"", own.value.to_lowercase()),
                position: None,
            });
        };
        let next = parser.peek_token_ref().token.clone();
        let mut on = true;
        if !matches!(next, Token::Comma | Token::RParen) {
            let value = parser.next_token().token;
            on = !["false", "off", "0"]
                .iter()
                .any(|off| value.to_string().eq_ignore_ascii_case(off));
        }
        full |= *name == "full" && on;
        if parser.consume_token(&Token::RParen) {
            return Ok(full);
        }
        parser.expect_token(&Token::Comma)?;
    }
}

/// What a `reindex` names.
fn reindexed(parser: &mut Parser<'_>) -> Result<Option<Named>> {
    let kinds = ["index", "table", "schema", "database", "system"];
    let Some(kind) = kinds.iter().find(|kind| is_next(parser, kind)) else {
        let found = parser.peek_token();
        return Err(unexpected(
            parser,
            "INDEX, TABLE, SCHEMA, DATABASE or SYSTEM",
            found,
        ));
    };
    need(parser, kind)?;
    word(parser, "concurrently");
    let name = written(&parser.parse_object_name(false)?)?;
    Ok(match *kind {
        "index" => Some(Named::Index(name)),
        "table" => Some(Named::Table(name, Vec::new())),
        "schema" => Some(Named::Schema(name)),
        // There is one.
        _ => None,
    })
}

/// A `drop index` without the word `concurrently`: there is nothing that it would lock.
pub(super) fn not_concurrently(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let leading: Vec<String> = words::leading(tokens).take(3).collect();
    if leading.len() < 3
        || leading[0] != "drop"
        || leading[1] != "index"
        || leading[2] != "concurrently"
    {
        return None;
    }
    let at = tokens
        .iter()
        .position(|own| is_word(&own.token, "concurrently"))?;
    let mut rest = tokens.to_vec();
    rest.remove(at);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};

    fn read(text: &str) -> Maintenance {
        match parse(text).unwrap().remove(0).statement {
            Statement::Maintenance(own) => own,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_named_is_read() {
        let table = |name: &str| Named::Table(name.to_owned(), vec![]);
        assert_eq!(read("vacuum (analyze, verbose off) a, b").named.len(), 2);
        assert_eq!(read("vacuum").named, []);
        assert_eq!(
            read("analyze verbose a (b, c)").named,
            [Named::Table(
                "a".to_owned(),
                vec!["b".to_owned(), "c".to_owned()]
            )]
        );
        assert_eq!(read("reindex table concurrently a").named, [table("a")]);
        assert_eq!(read("reindex (verbose) index a").named.len(), 1);
        assert_eq!(read("cluster a using b").named.len(), 2);
        for wrong in [
            "vacuum full a",
            "vacuum (full) a",
            "vacuum (colour)",
            "reindex a",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(
            parse("drop index concurrently a").unwrap()[0].statement,
            Statement::Sql(_)
        ));
    }
}
