//! The grammar of schemas, and of the path in which names are looked up.
//!
//! ```text
//! create schema [if not exists] {name [authorization role] | authorization role} [what is in it ...]
//! drop schema [if exists] name, ... [cascade | restrict]
//! alter schema name {rename to name | owner to role}
//! alter {table | view | materialized view | sequence} [if exists] name set schema name
//! alter {view | materialized view | sequence | index} [if exists] name rename to name
//! set [session | local] search_path {to | =} {name, ... | default}
//! set [session | local] schema {'name' | default}
//! show search_path
//! reset search_path
//! select [pg_catalog.]set_config('search_path', 'name, ...', true | false)
//! set [session | local] {time zone | timezone | datestyle | intervalstyle} [to | =] {value | default}
//! show {time zone | timezone | datestyle | intervalstyle}
//! reset {time zone | timezone | datestyle | intervalstyle}
//! ```
//!
//! The last three are for sessions that nobody serves: servers keep these settings with others.

use std::sync::Arc;

use messages::{Error, Result};
use sqlparser::ast::ObjectName;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::dialect::{self, DIALECT};
use crate::names::PathSetting;
use crate::names::{column_name, written};
use crate::roles::{RoleName, role_name};
use crate::view_column::ViewColumn;
use crate::words::{self, is_next, is_word, need, unexpected, word};

/// A statement about schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaStatement {
    /// `create schema`.
    Create {
        /// None for that of the owner.
        name: Option<String>,
        /// Without an error if there is one.
        if_not_exists: bool,
        /// Whom it is to belong to.
        owner: Option<RoleName>,
    },
    /// `drop schema`.
    Drop {
        /// Their names.
        names: Vec<String>,
        /// Without an error if there is none.
        if_exists: bool,
        /// With what is in them.
        cascade: bool,
    },
    /// `alter schema ... rename to`.
    Rename {
        /// Its name so far.
        name: String,
        /// Its new name.
        to: String,
    },
    /// `alter ... set schema`.
    Move {
        /// What is moved.
        kind: Kind,
        /// As the statement [writes](written) it.
        name: String,
        /// Without an error if there is none.
        if_exists: bool,
        /// The schema to move it to.
        schema: String,
    },
    /// `alter ... rename to`, of what is no plain table.
    RenameRelation {
        /// What is renamed.
        kind: Kind,
        /// As the statement [writes](written) it.
        name: String,
        /// Without an error if there is none.
        if_exists: bool,
        /// Its new name.
        to: String,
    },
    /// `alter view ... rename [column] ... to`.
    RenameColumn(ViewColumn),
    /// `set search_path`; none for `default`.
    SetPath {
        /// The path; none for the one that a session begins with.
        setting: Option<PathSetting>,
        /// Until the transaction ends.
        local: bool,
        /// Whether it is a call of `set_config`, which returns what is set.
        called: bool,
    },
    /// `show search_path`.
    ShowPath,
    /// `set timezone` and its like; none for `default`.
    SetDates {
        /// The name of the setting.
        name: &'static str,
        /// Its value; none for the default.
        value: Option<String>,
        /// Until the transaction ends.
        local: bool,
    },
    /// `show timezone` and its like.
    ShowDates(&'static str),
}

/// What is moved from a schema to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of any kind: PostgreSQL takes the word for all of them.
    Table,
    /// A view.
    View,
    /// A materialized view.
    MaterializedView,
    /// A sequence.
    Sequence,
    /// Indexes stay in the schemas of their tables.
    Index,
}

/// Reads such a statement; `None` of others.
///
/// # Errors
/// [`Error::Syntax`] with a place; [`Error::Unsupported`] for parts that there are not.
pub(super) fn statement(tokens: &[TokenWithSpan]) -> Result<Option<SchemaStatement>> {
    let mut leading = words::leading(tokens);
    let mut next = || leading.next().unwrap_or_default();
    let (first, second) = (next(), next());
    let own = matches!(
        (first.as_str(), second.as_str()),
        ("create" | "drop" | "alter", "schema")
            | (
                "alter",
                "table" | "view" | "materialized" | "sequence" | "index"
            )
            | (
                "show" | "reset",
                "search_path" | "time" | "timezone" | "datestyle" | "intervalstyle"
            )
            | ("select", "set_config" | "pg_catalog")
            | ("set", _)
    );
    if !own {
        return Ok(None);
    }
    let mut parser = dialect::parser(tokens.to_vec());
    let found = match (first.as_str(), second.as_str()) {
        ("create", "schema") => create(&mut parser)?,
        ("drop", "schema") => drop(&mut parser)?,
        ("alter", "schema") => alter(&mut parser)?,
        ("alter", "table" | "view" | "materialized" | "sequence" | "index") => {
            let Some(found) = moved(&mut parser)? else {
                return Ok(None);
            };
            found
        }
        ("set", _) => {
            let Some(found) = set(&mut parser)? else {
                return Ok(None);
            };
            found
        }
        ("show", "search_path") => {
            two(&mut parser);
            SchemaStatement::ShowPath
        }
        ("show" | "reset", "time" | "timezone" | "datestyle" | "intervalstyle") => {
            let Some(found) = about_dates(&mut parser) else {
                return Ok(None);
            };
            found
        }
        ("reset", "search_path") => {
            two(&mut parser);
            SchemaStatement::SetPath {
                setting: None,
                local: false,
                called: false,
            }
        }
        ("select", "set_config" | "pg_catalog") => {
            let Some(found) = call(&mut parser)? else {
                return Ok(None);
            };
            found
        }
        _ => return Ok(None),
    };
    words::end(&mut parser)?;
    Ok(Some(found))
}

/// Takes the first two words.
fn two(parser: &mut Parser<'_>) {
    parser.next_token();
    parser.next_token();
}

/// The name of a schema.
fn name(parser: &mut Parser<'_>) -> Result<String> {
    let name = column_name(&parser.parse_identifier()?);
    if parser.peek_token_ref().token == Token::Period {
        let found = parser.peek_token();
        return Err(unexpected(
            parser,
            "the name of a schema, which has no other before it",
            found,
        ));
    }
    Ok(name)
}

fn create(parser: &mut Parser<'_>) -> Result<SchemaStatement> {
    two(parser);
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let mut owner = authorization(parser)?;
    let own = match owner {
        Some(_) => None,
        None => Some(name(parser)?),
    };
    if owner.is_none() {
        owner = authorization(parser)?;
    }
    Ok(SchemaStatement::Create {
        name: own,
        if_not_exists,
        owner,
    })
}

/// `authorization role`, if it comes next.
fn authorization(parser: &mut Parser<'_>) -> Result<Option<RoleName>> {
    if word(parser, "authorization") {
        role_name(parser).map(Some)
    } else {
        Ok(None)
    }
}

fn drop(parser: &mut Parser<'_>) -> Result<SchemaStatement> {
    two(parser);
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let mut names = vec![name(parser)?];
    while parser.consume_token(&Token::Comma) {
        names.push(name(parser)?);
    }
    let cascade = word(parser, "cascade");
    if !cascade {
        word(parser, "restrict");
    }
    Ok(SchemaStatement::Drop {
        names,
        if_exists,
        cascade,
    })
}

fn alter(parser: &mut Parser<'_>) -> Result<SchemaStatement> {
    two(parser);
    let from = name(parser)?;
    need(parser, "rename")?;
    need(parser, "to")?;
    Ok(SchemaStatement::Rename {
        name: from,
        to: name(parser)?,
    })
}

/// `alter kind [if exists] name {set schema name | owner to role}`.
fn moved(parser: &mut Parser<'_>) -> Result<Option<SchemaStatement>> {
    need(parser, "alter")?;
    let kind = if word(parser, "table") {
        Kind::Table
    } else if word(parser, "view") {
        Kind::View
    } else if word(parser, "sequence") {
        Kind::Sequence
    } else if word(parser, "index") {
        Kind::Index
    } else {
        need(parser, "materialized")?;
        if !word(parser, "view") {
            return Ok(None);
        }
        Kind::MaterializedView
    };
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    if kind == Kind::Table {
        word(parser, "only");
    }
    let Ok(name) = parser.parse_object_name(false) else {
        return Ok(None);
    };
    if kind != Kind::Table && word(parser, "rename") {
        if !word(parser, "to") {
            return renamed_column(parser, kind, &name, if_exists);
        }
        return Ok(Some(SchemaStatement::RenameRelation {
            kind,
            name: written(&name)?,
            if_exists,
            to: self::name(parser)?,
        }));
    }
    if kind == Kind::Index || !word(parser, "set") || !word(parser, "schema") {
        return Ok(None);
    }
    Ok(Some(SchemaStatement::Move {
        kind,
        name: written(&name)?,
        if_exists,
        schema: self::name(parser)?,
    }))
}

/// The rest of `alter view [if exists] name rename [column] name to name`.
fn renamed_column(
    parser: &mut Parser<'_>,
    kind: Kind,
    view: &ObjectName,
    if_exists: bool,
) -> Result<Option<SchemaStatement>> {
    if kind != Kind::View {
        return Ok(None);
    }
    word(parser, "column");
    let from = name(parser)?;
    need(parser, "to")?;
    Ok(Some(SchemaStatement::RenameColumn(ViewColumn {
        view: written(view)?,
        if_exists,
        from,
        to: name(parser)?,
    })))
}

/// `set [session | local] {search_path {to | =} | schema} ...`.
fn set(parser: &mut Parser<'_>) -> Result<Option<SchemaStatement>> {
    need(parser, "set")?;
    let local = word(parser, "local");
    if !local {
        word(parser, "session");
    }
    if let Some(name) = of_dates(parser) {
        if !parser.consume_token(&Token::Eq) {
            word(parser, "to");
        }
        let value = if word(parser, "default") || word(parser, "local") {
            None
        } else {
            Some(value(parser)?)
        };
        return Ok(Some(SchemaStatement::SetDates { name, value, local }));
    }
    let path = if word(parser, "search_path") {
        if !parser.consume_token(&Token::Eq) {
            need(parser, "to")?;
        }
        true
    } else if word(parser, "schema") {
        false
    } else {
        return Ok(None);
    };
    let setting = if word(parser, "default") {
        None
    } else if path {
        Some(Some(list(parser)?))
    } else {
        let found = parser.next_token();
        match found.token {
            Token::SingleQuotedString(name) => Some(Some(Arc::from([name]))),
            _ => return Err(unexpected(parser, "the name of a schema as a text", found)),
        }
    };
    Ok(Some(SchemaStatement::SetPath {
        setting,
        local,
        called: false,
    }))
}

/// `show timezone` and `reset timezone`.
fn about_dates(parser: &mut Parser<'_>) -> Option<SchemaStatement> {
    let shows = word(parser, "show");
    if !shows {
        word(parser, "reset");
    }
    let name = of_dates(parser)?;
    Some(if shows {
        SchemaStatement::ShowDates(name)
    } else {
        SchemaStatement::SetDates {
            name,
            value: None,
            local: false,
        }
    })
}

/// The name of a setting about dates and times, if it is next.
fn of_dates(parser: &mut Parser<'_>) -> Option<&'static str> {
    if is_next(parser, "time") {
        let zone = &parser.peek_nth_token_ref(1).token;
        if !is_word(zone, "zone") {
            return None;
        }
        parser.next_token();
        parser.next_token();
        return Some("timezone");
    }
    let all = ["timezone", "datestyle", "intervalstyle"];
    all.into_iter().find(|name| word(parser, name))
}

/// The value of a setting: a text, words with commas between them, a number with a sign, or an interval.
fn value(parser: &mut Parser<'_>) -> Result<String> {
    let mut value = String::new();
    loop {
        let found = parser.peek_token();
        let apart = value.ends_with(|c: char| c.is_alphanumeric() || c == '\'');
        match found.token {
            Token::EOF | Token::SemiColon if !value.is_empty() => return Ok(value),
            Token::EOF | Token::SemiColon => {
                return Err(unexpected(parser, "the value of a setting", found));
            }
            Token::SingleQuotedString(text) if apart => value += &format!(" '{text}'"),
            Token::SingleQuotedString(text) => value += &text,
            other if apart && other != Token::Comma => value += &format!(" {other}"),
            other => value += &other.to_string(),
        }
        parser.next_token();
    }
}

/// Names of schemas, which may be texts.
fn list(parser: &mut Parser<'_>) -> Result<Arc<[String]>> {
    let mut names = Vec::new();
    loop {
        let found = parser.next_token();
        names.push(match found.token {
            Token::SingleQuotedString(name) => name,
            Token::Word(word) if word.quote_style.is_some() => word.value,
            Token::Word(word) => word.value.to_lowercase(),
            _ => return Err(unexpected(parser, "the name of a schema", found)),
        });
        if !parser.consume_token(&Token::Comma) {
            return Ok(names.into());
        }
    }
}

/// The setting that a text is, as `set_config` and clients that connect give it.
///
/// # Errors
/// If it is no list of names.
pub fn setting(text: &str) -> Result<PathSetting> {
    if text.trim().is_empty() {
        return Ok(Some(Arc::from([])));
    }
    let invalid = || {
        Error::coded(
            "22023",
            format!(
                "invalid value for parameter \"search_path\": \"{text}\": it is a list of names"
            ),
        )
    };
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
    let mut parser = dialect::parser(tokens.map_err(|_| invalid())?);
    let names = list(&mut parser).map_err(|_| invalid())?;
    match parser.next_token().token {
        Token::EOF => Ok(Some(names)),
        _ => Err(invalid()),
    }
}

/// `select [pg_catalog.]set_config('search_path', 'names', truth)`.
fn call(parser: &mut Parser<'_>) -> Result<Option<SchemaStatement>> {
    need(parser, "select")?;
    if word(parser, "pg_catalog") && !parser.consume_token(&Token::Period) {
        return Ok(None);
    }
    if !word(parser, "set_config") || !parser.consume_token(&Token::LParen) {
        return Ok(None);
    }
    match parser.next_token().token {
        Token::SingleQuotedString(name) if name.eq_ignore_ascii_case("search_path") => {}
        _ => return Ok(None),
    }
    let comma = |parser: &mut Parser<'_>| parser.consume_token(&Token::Comma);
    if !comma(parser) {
        return Ok(None);
    }
    let Token::SingleQuotedString(text) = parser.next_token().token else {
        return Ok(None);
    };
    if !comma(parser) {
        return Ok(None);
    }
    let local = parser.next_token().token;
    let truth = |wanted: &[&str]| match &local {
        Token::SingleQuotedString(text) => wanted.contains(&text.as_str()),
        token => wanted.iter().any(|wanted| is_word(token, wanted)),
    };
    let local = match (truth(&["true", "t"]), truth(&["false", "f"])) {
        (true, _) => true,
        (_, true) => false,
        _ => return Ok(None),
    };
    if !parser.consume_token(&Token::RParen) || parser.peek_token_ref().token != Token::EOF {
        return Ok(None);
    }
    Ok(Some(SchemaStatement::SetPath {
        setting: Some(setting(&text)?),
        local,
        called: true,
    }))
}

#[cfg(test)]
mod tests;
