//! The grammar of privileges, and of what they are of.

use messages::{Error, Result};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use table::Privileges;

use crate::grammar::{refused, refused_for};
use crate::names::{CATALOG, column_name, of_schema, written};
use crate::words::{is_next, need, unexpected, word};

/// What privileges are of, as the statement [writes](written) it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Things {
    /// Tables, views and arrays; of `alter ... owner`, what `kind` says.
    Tables(Vec<String>),
    /// These sequences.
    Sequences(Vec<String>),
    /// By the names that they have in the catalog.
    Schemas(Vec<String>),
    /// The database.
    Database,
    /// All tables and views that there are in these schemas.
    TablesIn(Vec<String>),
    /// All sequences in these schemas.
    SequencesIn(Vec<String>),
}

impl Things {
    /// All privileges that there are for such a thing.
    pub fn all(&self) -> Privileges {
        match self {
            Things::Tables(_) | Things::TablesIn(_) => Privileges::OF_TABLE,
            Things::Sequences(_) | Things::SequencesIn(_) => Privileges::OF_SEQUENCE,
            Things::Schemas(_) => Privileges::OF_SCHEMA,
            Things::Database => Privileges::OF_DATABASE,
        }
    }

    /// What such a thing is called in messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Things::Tables(_) | Things::TablesIn(_) => "table",
            Things::Sequences(_) | Things::SequencesIn(_) => "sequence",
            Things::Schemas(_) => "schema",
            Things::Database => "database",
        }
    }
}

/// The name of a role.
pub(super) fn name(parser: &mut Parser<'_>) -> Result<String> {
    Ok(column_name(&parser.parse_identifier()?))
}

/// Names of roles, with a comma between them.
pub(super) fn names(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    let mut names = vec![name(parser)?];
    while parser.consume_token(&Token::Comma) {
        names.push(name(parser)?);
    }
    Ok(names)
}

/// Privileges with a comma between them, and what they are of; `Err` within are names of roles.
pub(super) type Given = std::result::Result<(Option<Privileges>, Things), Vec<String>>;

/// Reads them.
///
/// # Errors
/// For what there is not, and privileges that things of their kind have not.
pub(super) fn given(parser: &mut Parser<'_>) -> Result<Given> {
    if word(parser, "all") {
        word(parser, "privileges");
        if parser.peek_token_ref().token == Token::LParen {
            return Err(columns());
        }
        need(parser, "on")?;
        return Ok(Ok((None, things(parser)?)));
    }
    let mut words = Vec::new();
    loop {
        words.push(parser.parse_identifier()?);
        if parser.peek_token_ref().token == Token::LParen {
            return Err(columns());
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    if !word(parser, "on") {
        return Ok(Err(words.iter().map(column_name).collect()));
    }
    let mut all = Privileges::default();
    for own in &words {
        let name = own.value.to_uppercase();
        let mut known = Privileges::ALL.iter();
        match known.find(|(_, known, _)| *known == name) {
            Some((one, _, _)) if own.quote_style.is_none() => all = all.and(*one),
            _ if matches!(name.as_str(), "CONNECT" | "TEMPORARY" | "TEMP") => {
                return Err(refused_for(
                    &format!("`{}` of a database", own.value.to_lowercase()),
                    "`login` of a role says who may connect, and whoever may has temporary tables",
                ));
            }
            _ if matches!(name.as_str(), "TRIGGER" | "EXECUTE" | "SET" | "MAINTAIN") => {
                return Err(refused(&format!("the privilege `{}`", own.value)));
            }
            _ => {
                return Err(Error::Syntax {
                    message: format!("unrecognized privilege type \"{}\"", own.value),
                    position: None,
                });
            }
        }
    }
    let things = things(parser)?;
    if !things.all().has(all) {
        let mut wrong = Privileges::ALL.iter();
        let wrong = wrong.find(|(one, ..)| all.has(*one) && !things.all().has(*one));
        return Err(Error::coded(
            "0LP01",
            format!(
                "invalid privilege type {} for {}",
                wrong.map_or("", |(_, name, _)| name),
                things.kind()
            ),
        ));
    }
    Ok(Ok((Some(all), things)))
}

fn columns() -> Error {
    refused_for(
        "a privilege on columns",
        "grant on a view of those columns instead",
    )
}

fn things(parser: &mut Parser<'_>) -> Result<Things> {
    if word(parser, "all") {
        let tables = word(parser, "tables");
        if !tables {
            need(parser, "sequences")?;
        }
        need(parser, "in")?;
        need(parser, "schema")?;
        let schemas = names(parser)?;
        return Ok(if tables {
            Things::TablesIn(schemas)
        } else {
            Things::SequencesIn(schemas)
        });
    }
    if word(parser, "schema") {
        let schemas = names(parser)?;
        return Ok(Things::Schemas(
            schemas.iter().map(|name| of_schema(name)).collect(),
        ));
    }
    if word(parser, "database") {
        let found = parser.peek_token();
        if name(parser)? != CATALOG {
            return Err(unexpected(
                parser,
                "the name of this database, atoll",
                found,
            ));
        }
        return Ok(Things::Database);
    }
    for absent in ["function", "language", "type", "domain", "tablespace"] {
        if is_next(parser, absent) {
            return Err(refused(&format!("rights on a {absent}")));
        }
    }
    let sequences = word(parser, "sequence");
    if !sequences && !word(parser, "table") {
        word(parser, "array");
    }
    let mut names = vec![written(&parser.parse_object_name(false)?)?];
    while parser.consume_token(&Token::Comma) {
        names.push(written(&parser.parse_object_name(false)?)?);
    }
    Ok(if sequences {
        Things::Sequences(names)
    } else {
        Things::Tables(names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};
    use crate::roles::PUBLIC;
    use crate::roles::{RoleName, RoleStatement};

    fn read(text: &str) -> RoleStatement {
        match parse(text).unwrap().pop().unwrap().statement {
            Statement::Role(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn privileges_are_of_things() {
        assert_eq!(
            read("grant select, INSERT on table s.t, u to ann, public with grant option"),
            RoleStatement::Privileges {
                grants: true,
                privileges: Some(Privileges::SELECT.and(Privileges::INSERT)),
                things: Things::Tables(vec!["s\u{1}t".into(), "u".into()]),
                roles: vec!["ann".into(), PUBLIC.into()],
                option: true,
            }
        );
        assert_eq!(
            read("revoke grant option for all privileges on schema s from ann restrict"),
            RoleStatement::Privileges {
                grants: false,
                privileges: None,
                things: Things::Schemas(vec!["s\u{1}".into()]),
                roles: vec!["ann".into()],
                option: true,
            }
        );
        assert_eq!(
            read("grant a, b to c with admin option"),
            RoleStatement::Members {
                grants: true,
                roles: vec!["a".into(), "b".into()],
                members: vec!["c".into()],
                option: true,
            }
        );
        assert_eq!(
            read("alter materialized view s.m owner to current_user"),
            RoleStatement::Owner {
                if_exists: false,
                things: Things::Tables(vec!["s\u{1}m".into()]),
                role: RoleName::Current,
            }
        );
        for text in [
            "grant select on t",
            "grant select (a) on t to b",
            "grant create on t to b",
            "grant usage on t to b",
            "grant select on schema s to b",
            "grant read on t to b",
            "grant connect on database atoll to b",
            "grant create on database other to b",
            "grant select on function f to b",
            "revoke select on t from b cascade",
            "alter table t owner",
            "alter default privileges grant select on tables to b",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
