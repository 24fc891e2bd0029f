//! `drop` of kinds of things that there are none of here, such as functions, triggers, rules and operators: there can be no
//! such thing, so `if exists` has nothing to do, and without it nothing of the name exists.

use messages::Result;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect;
use crate::names::{base, written};
use crate::words::{self, need, unexpected, word};

/// `drop kind [if exists] name ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropAbsent {
    /// What it is called when it is done, such as `DROP FUNCTION`.
    pub tag: &'static str,
    /// Without an error if there is none.
    pub if_exists: bool,
    /// The table that the thing would belong to, as [`written`].
    pub of: Option<String>,
    /// What is told of each with `if exists`, but for `does not exist, skipping`.
    pub skipped: Vec<String>,
    /// The error without it, but for its state.
    pub error: String,
    /// The SQLSTATE of the error if there is none.
    pub code: &'static str,
}

/// How things of a kind are named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    /// By names.
    Plain,
    /// By a name and the types of arguments.
    Signature,
    /// By a name and the table that it belongs to.
    On,
}

/// Kinds: the words of the statement, the command, how messages call one, the state of the error, how it is named.
const KINDS: [(&[&str], &str, &str, &str, Named); 27] = [
    (
        &["function"],
        "DROP FUNCTION",
        "function",
        "42883",
        Named::Signature,
    ),
    (
        &["procedure"],
        "DROP PROCEDURE",
        "procedure",
        "42883",
        Named::Signature,
    ),
    (
        &["routine"],
        "DROP ROUTINE",
        "routine",
        "42883",
        Named::Signature,
    ),
    (
        &["aggregate"],
        "DROP AGGREGATE",
        "aggregate",
        "42883",
        Named::Signature,
    ),
    (&["trigger"], "DROP TRIGGER", "trigger", "42704", Named::On),
    (&["rule"], "DROP RULE", "rule", "42704", Named::On),
    (&["policy"], "DROP POLICY", "policy", "42704", Named::On),
    (
        &["event", "trigger"],
        "DROP EVENT TRIGGER",
        "event trigger",
        "42704",
        Named::Plain,
    ),
    (
        &["procedural", "language"],
        "DROP LANGUAGE",
        "language",
        "42704",
        Named::Plain,
    ),
    (
        &["language"],
        "DROP LANGUAGE",
        "language",
        "42704",
        Named::Plain,
    ),
    (
        &["collation"],
        "DROP COLLATION",
        "collation",
        "42704",
        Named::Plain,
    ),
    (
        &["conversion"],
        "DROP CONVERSION",
        "conversion",
        "42704",
        Named::Plain,
    ),
    (
        &["extension"],
        "DROP EXTENSION",
        "extension",
        "42704",
        Named::Plain,
    ),
    (&["server"], "DROP SERVER", "server", "42704", Named::Plain),
    (
        &["foreign", "data", "wrapper"],
        "DROP FOREIGN DATA WRAPPER",
        "foreign-data wrapper",
        "42704",
        Named::Plain,
    ),
    (
        &["foreign", "table"],
        "DROP FOREIGN TABLE",
        "foreign table",
        "42P01",
        Named::Plain,
    ),
    (
        &["access", "method"],
        "DROP ACCESS METHOD",
        "access method",
        "42704",
        Named::Plain,
    ),
    (
        &["publication"],
        "DROP PUBLICATION",
        "publication",
        "42704",
        Named::Plain,
    ),
    (
        &["subscription"],
        "DROP SUBSCRIPTION",
        "subscription",
        "42704",
        Named::Plain,
    ),
    (
        &["statistics"],
        "DROP STATISTICS",
        "statistics object",
        "42704",
        Named::Plain,
    ),
    (
        &["tablespace"],
        "DROP TABLESPACE",
        "tablespace",
        "42704",
        Named::Plain,
    ),
    (
        &["text", "search", "parser"],
        "DROP TEXT SEARCH PARSER",
        "text search parser",
        "42704",
        Named::Plain,
    ),
    (
        &["text", "search", "dictionary"],
        "DROP TEXT SEARCH DICTIONARY",
        "text search dictionary",
        "42704",
        Named::Plain,
    ),
    (
        &["text", "search", "template"],
        "DROP TEXT SEARCH TEMPLATE",
        "text search template",
        "42704",
        Named::Plain,
    ),
    (
        &["text", "search", "configuration"],
        "DROP TEXT SEARCH CONFIGURATION",
        "text search configuration",
        "42704",
        Named::Plain,
    ),
    (&["domain"], "DROP DOMAIN", "type", "42704", Named::Plain),
    (&["type"], "DROP TYPE", "type", "42704", Named::Plain),
];

/// Reads a `drop` of something that there is none of; `None` of other statements.
///
/// # Errors
/// [`Error::Syntax`](messages::Error::Syntax) with a place.
pub(super) fn statement(tokens: &[TokenWithSpan]) -> Result<Option<DropAbsent>> {
    let leading: Vec<String> = words::leading(tokens).take(4).collect();
    let Some(("drop", rest)) = leading
        .split_first()
        .map(|(first, rest)| (&first[..], rest))
    else {
        return Ok(None);
    };
    let begins = |kind: &[&str]| {
        kind.len() <= rest.len() && kind.iter().zip(rest).all(|(word, own)| word == own)
    };
    let Some((kind, tag, called, code, named)) = KINDS.iter().find(|kind| begins(kind.0)) else {
        return Ok(None);
    };
    let mut parser = dialect::parser(tokens.to_vec());
    need(&mut parser, "drop")?;
    for word in *kind {
        need(&mut parser, word)?;
    }
    let if_exists = word(&mut parser, "if");
    if if_exists {
        need(&mut parser, "exists")?;
    }
    let (mut skipped, mut errors) = (Vec::new(), Vec::new());
    let of = loop {
        let one = thing(&mut parser, called, *named)?;
        skipped.push(one.skipped);
        errors.push(one.error);
        if *named == Named::On || !parser.consume_token(&Token::Comma) {
            break one.of;
        }
    };
    if !word(&mut parser, "cascade") {
        word(&mut parser, "restrict");
    }
    words::end(&mut parser)?;
    Ok(Some(DropAbsent {
        tag,
        if_exists,
        of,
        skipped,
        error: errors.swap_remove(0),
        code,
    }))
}

/// A thing that is named.
struct Thing {
    skipped: String,
    error: String,
    of: Option<String>,
}

/// The next thing that a statement names, of the kind that messages call `called`.
fn thing(parser: &mut Parser<'_>, called: &str, named: Named) -> Result<Thing> {
    let name = written(&parser.parse_object_name(false)?)?;
    let name = base(&name).to_owned();
    let (skipped, error, of) = match named {
        Named::Plain => (
            format!("{called} \"{name}\""),
            format!("{called} \"{name}\" does not exist"),
            None,
        ),
        Named::Signature => match arguments(parser)? {
            Some((short, long)) => {
                let long = match (&long[..], called) {
                    ("", "aggregate") => "*",
                    (long, _) => long,
                };
                (
                    format!("{called} {name}({short})"),
                    format!("{called} {name}({long}) does not exist"),
                    None,
                )
            }
            None => (
                format!("{called} {name}()"),
                format!("could not find a {called} named \"{name}\""),
                None,
            ),
        },
        Named::On => {
            need(parser, "on")?;
            let table = written(&parser.parse_object_name(false)?)?;
            let shown = base(&table);
            let kind = if called == "rule" {
                "relation"
            } else {
                "table"
            };
            (
                format!("{called} \"{name}\" for relation \"{shown}\""),
                format!("{called} \"{name}\" for {kind} \"{shown}\" does not exist"),
                Some(table),
            )
        }
    };
    Ok(Thing { skipped, error, of })
}

/// The types of arguments, if there are any in parentheses: as notices show them, and as errors do.
fn arguments(parser: &mut Parser<'_>) -> Result<Option<(String, String)>> {
    if !parser.consume_token(&Token::LParen) {
        return Ok(None);
    }
    let (mut all, mut one, mut depth) = (Vec::new(), Vec::<String>::new(), 0);
    loop {
        let found = parser.next_token();
        match &found.token {
            Token::EOF => return Err(unexpected(parser, "`)` behind the arguments", found)),
            Token::RParen if depth == 0 => break,
            Token::Comma if depth == 0 => all.push(std::mem::take(&mut one)),
            token => {
                depth += i32::from(*token == Token::LParen) - i32::from(*token == Token::RParen);
                one.push(token.to_string().to_lowercase());
            }
        }
    }
    if !one.is_empty() {
        all.push(one);
    }
    let types: Vec<(String, String)> = all.iter().map(|one| shown(one)).collect();
    let short: Vec<&str> = types.iter().map(|own| own.0.as_str()).collect();
    let long: Vec<&str> = types.iter().map(|own| own.1.as_str()).collect();
    Ok(Some((short.join(","), long.join(", "))))
}

/// The type of an argument, which may have a mode and a name before it.
fn shown(argument: &[String]) -> (String, String) {
    let modes = ["in", "out", "inout", "variadic"];
    let mut rest: Vec<&str> = argument.iter().map(String::as_str).collect();
    if rest.len() > 1 && modes.contains(&rest[0]) {
        rest.remove(0);
    }
    let long = [
        "double",
        "character",
        "timestamp",
        "time",
        "bit",
        "interval",
    ];
    let is_word = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '"');
    if rest.len() > 1 && is_word(rest[1]) && !long.contains(&rest[0]) {
        rest.remove(0);
    }
    let item = rest.iter().position(|part| *part == "[");
    let array = if item.is_some() { "[]" } else { "" };
    let name = rest[..item.unwrap_or(rest.len())].join(" ");
    let (short, long) = match name.as_str() {
        "*" => ("", ""),
        "int" | "integer" | "int4" => ("pg_catalog.int4", "integer"),
        "smallint" | "int2" => ("pg_catalog.int2", "smallint"),
        "bigint" | "int8" => ("pg_catalog.int8", "bigint"),
        "real" | "float4" => ("pg_catalog.float4", "real"),
        "float" | "float8" | "double precision" => ("pg_catalog.float8", "double precision"),
        "boolean" | "bool" => ("pg_catalog.bool", "boolean"),
        "varchar" | "character varying" => ("pg_catalog.varchar", "character varying"),
        "numeric" | "decimal" => ("pg_catalog.numeric", "numeric"),
        other => (other, other),
    };
    (format!("{short}{array}"), format!("{long}{array}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};

    fn read(text: &str) -> DropAbsent {
        match parse(text).unwrap().remove(0).statement {
            Statement::Absent(own) => own,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn things_are_named_as_in_postgresql() {
        let own = read("drop function if exists f(int, a text, int[]) cascade");
        assert!(own.if_exists);
        assert_eq!(
            own.skipped,
            ["function f(pg_catalog.int4,text,pg_catalog.int4[])"]
        );
        assert_eq!(
            own.error,
            "function f(integer, text, integer[]) does not exist"
        );
        assert_eq!(
            read("drop aggregate a(*)").error,
            "aggregate a(*) does not exist"
        );
        assert_eq!(read("drop trigger a on s.b").skipped.len(), 1);
        assert_eq!(
            read("drop text search parser if exists a, b").skipped.len(),
            2
        );
        assert!(parse("drop trigger a").is_err());
    }
}
