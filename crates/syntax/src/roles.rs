//! The grammar of roles and rights.
//!
//! ```text
//! create {role | user | group} name [with] option ...
//! alter {role | user} name [with] option ...
//! alter {role | user} name set setting {to | =} {value | default}
//! alter {role | user} name reset {setting | all}
//! drop {role | user | group} [if exists] name, ...
//! grant {privilege, ... | all} on thing, ... to role, ... [with grant option]
//! revoke [grant option for] {privilege, ... | all} on thing, ... from role, ... [restrict]
//! grant role, ... to role, ... [with admin option]
//! revoke [admin option for] role, ... from role, ... [restrict]
//! alter {table | view | materialized view | sequence | array} [if exists] name owner to role
//! alter schema name owner to role
//! set [session | local] role {name | none}
//! reset role
//! show {role | session_authorization}
//! set session authorization name (and its like)
//! ```

use messages::Result;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use table::Privileges;

use crate::authorization::{self, AUTHORIZATION, Authorize};
use crate::dialect;
use crate::grammar::refused_for;
use crate::grants::{Things, given, name, names};
use crate::names::{column_name, of_schema, quoted, written};
use crate::role_options::{RoleOptions, options};
use crate::words::{self, is_next, need, unexpected, word};

/// The name of all roles together.
pub const PUBLIC: &str = "";

/// A statement about roles and rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleStatement {
    /// `create role`.
    Create {
        /// Its name.
        name: String,
        /// What it may.
        options: RoleOptions,
    },
    /// `alter role`.
    Alter {
        /// Its name.
        name: String,
        /// What changes of what it may.
        options: RoleOptions,
    },
    /// `alter role ... set` and `reset`.
    Configure {
        /// Its name.
        name: String,
        /// None for all.
        setting: Option<String>,
        /// None for what there is without it.
        value: Option<String>,
    },
    /// `drop role`.
    Drop {
        /// Their names.
        names: Vec<String>,
        /// Without an error if there is none.
        if_exists: bool,
    },
    /// `grant` and `revoke` of privileges.
    Privileges {
        /// `grant`; `revoke` if not.
        grants: bool,
        /// None for all that there are.
        privileges: Option<Privileges>,
        /// On what.
        things: Things,
        /// The empty name stands for all roles.
        roles: Vec<String>,
        /// Whether it is also, or only, about the right to grant them further.
        option: bool,
    },
    /// `grant` and `revoke` of roles.
    Members {
        /// `grant`; `revoke` if not.
        grants: bool,
        /// The roles whose members change.
        roles: Vec<String>,
        /// Who becomes a member, or is one no more.
        members: Vec<String>,
        /// Whether it is also, or only, about the right to make others members.
        option: bool,
    },
    /// `alter ... owner to`.
    Owner {
        /// What gets another owner.
        things: Things,
        /// Without an error if there is none.
        if_exists: bool,
        /// The new owner.
        role: RoleName,
    },
    /// `set role`; none for that of the user.
    Set {
        /// The role to take; none for the session's own.
        role: Option<String>,
        /// Until the transaction ends.
        local: bool,
    },
    /// `set session authorization`.
    Authorize(Authorize),
    /// `show role` and `show session_authorization`, by the name of the setting.
    Show(&'static str),
}

/// A role that is named, or who runs the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleName {
    /// The role of that name.
    Named(String),
    /// `current_user`.
    Current,
    /// `session_user`.
    Session,
}

/// Reads such a statement; `None` of others.
///
/// # Errors
/// [`Error::Syntax`] with a place; [`Error::Unsupported`] for parts that there are not.
pub(super) fn statement(tokens: &[TokenWithSpan]) -> Result<Option<RoleStatement>> {
    let mut leading = words::leading(tokens);
    let mut next = || leading.next().unwrap_or_default();
    let (first, second, third) = (next(), next(), next());
    let role = |word: &str| matches!(word, "role" | "user" | "group");
    let mut parser = dialect::parser(tokens.to_vec());
    let found = match (first.as_str(), second.as_str()) {
        ("create", kind) if role(kind) => create(&mut parser)?,
        ("alter", "role" | "user") => alter(&mut parser)?,
        ("alter", "group") => return Err(refused_for("alter group", "`grant` makes members")),
        ("alter", "default") if third == "privileges" => {
            return Err(refused_for(
                "alter default privileges",
                "`grant ... on all tables in schema` grants what is there",
            ));
        }
        ("alter", _) => match owner(&mut parser)? {
            Some(found) => found,
            None => return Ok(None),
        },
        ("drop", kind) if role(kind) => drop(&mut parser)?,
        ("drop" | "reassign", "owned") => {
            return Err(refused_for(
                &format!("{first} owned"),
                "`alter ... owner to` and `revoke` do it thing by thing",
            ));
        }
        ("grant", _) => grant(&mut parser)?,
        ("revoke", _) => revoke(&mut parser)?,
        ("set", "role") | ("set", "session" | "local") if second == "role" || third == "role" => {
            set(&mut parser)?
        }
        ("set" | "reset", _) if authorization::begins(tokens) => {
            RoleStatement::Authorize(authorization::statement(&mut parser)?)
        }
        ("show", AUTHORIZATION) => {
            skip(&mut parser, 2);
            RoleStatement::Show(AUTHORIZATION)
        }
        ("reset" | "show", "role") => {
            skip(&mut parser, 2);
            match first.as_str() {
                "show" => RoleStatement::Show("role"),
                _ => RoleStatement::Set {
                    role: None,
                    local: false,
                },
            }
        }
        _ => return Ok(None),
    };
    words::end(&mut parser)?;
    Ok(Some(found))
}

fn skip(parser: &mut Parser<'_>, words: usize) {
    for _ in 0..words {
        parser.next_token();
    }
}

/// Names of those who are granted something; `public` is all roles.
fn grantees(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    let mut all = Vec::new();
    loop {
        word(parser, "group");
        all.push(if word(parser, "public") {
            PUBLIC.to_owned()
        } else {
            name(parser)?
        });
        if !parser.consume_token(&Token::Comma) {
            return Ok(all);
        }
    }
}

fn create(parser: &mut Parser<'_>) -> Result<RoleStatement> {
    need(parser, "create")?;
    let user = word(parser, "user");
    if !user {
        parser.next_token();
    }
    let name = name(parser)?;
    let mut options = options(parser, true)?;
    options.login = options.login.or(user.then_some(true));
    Ok(RoleStatement::Create { name, options })
}

fn alter(parser: &mut Parser<'_>) -> Result<RoleStatement> {
    skip(parser, 2);
    if is_next(parser, "all") {
        return Err(refused_for(
            "alter role all",
            "the options of `atoll serve` are for all users",
        ));
    }
    let name = name(parser)?;
    for (word, instead) in [
        ("rename", "create another, and grant it what it needs"),
        ("in", "there is one database"),
    ] {
        if is_next(parser, word) {
            return Err(refused_for(&format!("alter role ... {word}"), instead));
        }
    }
    if word(parser, "set") {
        return set_setting(parser, name);
    }
    if word(parser, "reset") {
        let setting = if word(parser, "all") {
            None
        } else {
            Some(setting(parser)?)
        };
        return Ok(RoleStatement::Configure {
            name,
            setting,
            value: None,
        });
    }
    let options = options(parser, false)?;
    if options == RoleOptions::default() {
        let found = parser.peek_token();
        return Err(unexpected(parser, "what the role is to be", found));
    }
    Ok(RoleStatement::Alter { name, options })
}

/// The name of a setting.
fn setting(parser: &mut Parser<'_>) -> Result<String> {
    Ok(column_name(&parser.parse_identifier()?).to_lowercase())
}

/// What follows `alter role name set`.
fn set_setting(parser: &mut Parser<'_>, name: String) -> Result<RoleStatement> {
    let setting = Some(setting(parser)?);
    if is_next(parser, "from") {
        return Err(refused_for("set ... from current", "write the value"));
    }
    if !parser.consume_token(&Token::Eq) {
        need(parser, "to")?;
    }
    if word(parser, "default") {
        return Ok(RoleStatement::Configure {
            name,
            setting,
            value: None,
        });
    }
    let mut value = String::new();
    loop {
        let found = parser.next_token();
        match &found.token {
            Token::SingleQuotedString(text) if value.is_empty() => value.push_str(text),
            // Of a list, in which a text is a name.
            Token::SingleQuotedString(text) => value.push_str(&quoted(text)),
            Token::Number(..) | Token::Word(_) => value.push_str(&found.token.to_string()),
            _ => return Err(unexpected(parser, "a value", found)),
        }
        // A number and its unit.
        if let Token::Word(unit) = &parser.peek_token_ref().token
            && matches!(found.token, Token::Number(..))
        {
            value.push_str(&unit.value);
            parser.next_token();
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
        value.push_str(", ");
    }
    Ok(RoleStatement::Configure {
        name,
        setting,
        value: Some(value),
    })
}

fn drop(parser: &mut Parser<'_>) -> Result<RoleStatement> {
    skip(parser, 2);
    let if_exists = word(parser, "if");
    if if_exists {
        need(parser, "exists")?;
    }
    Ok(RoleStatement::Drop {
        names: names(parser)?,
        if_exists,
    })
}

/// `alter kind name owner to role`; none of other changes.
fn owner(parser: &mut Parser<'_>) -> Result<Option<RoleStatement>> {
    skip(parser, 1);
    let kinds = ["table", "view", "sequence", "array", "schema"];
    let kind = match kinds.into_iter().find(|kind| word(parser, kind)) {
        Some(kind) => kind,
        None if word(parser, "materialized") && word(parser, "view") => "view",
        None => return Ok(None),
    };
    let if_exists = word(parser, "if") && word(parser, "exists");
    if kind == "schema" && if_exists {
        return Ok(None);
    }
    if kind == "table" {
        word(parser, "only");
    }
    let things = if kind == "schema" {
        let Ok(schema) = parser.parse_identifier() else {
            return Ok(None);
        };
        Things::Schemas(vec![of_schema(&column_name(&schema))])
    } else {
        let Ok(name) = parser.parse_object_name(false) else {
            return Ok(None);
        };
        let names = vec![written(&name)?];
        match kind {
            "sequence" => Things::Sequences(names),
            _ => Things::Tables(names),
        }
    };
    if !word(parser, "owner") {
        return Ok(None);
    }
    need(parser, "to")?;
    let role = role_name(parser)?;
    Ok(Some(RoleStatement::Owner {
        things,
        if_exists,
        role,
    }))
}

/// A role, which need not be named.
///
/// # Errors
/// If there comes none.
pub(super) fn role_name(parser: &mut Parser<'_>) -> Result<RoleName> {
    Ok(
        if word(parser, "current_user") || word(parser, "current_role") {
            RoleName::Current
        } else if word(parser, "session_user") {
            RoleName::Session
        } else {
            RoleName::Named(name(parser)?)
        },
    )
}

/// Takes `with|granted by ...` behind a grant, of which only the option `wanted` is known.
fn grant_option(parser: &mut Parser<'_>, wanted: &str) -> Result<bool> {
    let option = word(parser, "with");
    if option {
        need(parser, wanted)?;
        need(parser, "option")?;
    }
    if is_next(parser, "granted") {
        return Err(refused_for("granted by", "who grants is the owner"));
    }
    Ok(option)
}

fn grant(parser: &mut Parser<'_>) -> Result<RoleStatement> {
    need(parser, "grant")?;
    let given = given(parser)?;
    need(parser, "to")?;
    Ok(match given {
        Ok((privileges, things)) => RoleStatement::Privileges {
            grants: true,
            privileges,
            things,
            roles: grantees(parser)?,
            option: grant_option(parser, "grant")?,
        },
        Err(roles) => RoleStatement::Members {
            grants: true,
            roles,
            members: names(parser)?,
            option: grant_option(parser, "admin")?,
        },
    })
}

fn revoke(parser: &mut Parser<'_>) -> Result<RoleStatement> {
    need(parser, "revoke")?;
    let kinds = ["grant", "admin"];
    let only = kinds.into_iter().find(|kind| is_next(parser, kind));
    if only.is_some() {
        skip(parser, 1);
        need(parser, "option")?;
        need(parser, "for")?;
    }
    let given = given(parser)?;
    need(parser, "from")?;
    let found = match given {
        Ok((privileges, things)) => RoleStatement::Privileges {
            grants: false,
            privileges,
            things,
            roles: grantees(parser)?,
            option: only.is_some(),
        },
        Err(roles) => RoleStatement::Members {
            grants: false,
            roles,
            members: names(parser)?,
            option: only.is_some(),
        },
    };
    if is_next(parser, "cascade") {
        return Err(refused_for(
            "revoke ... cascade",
            "revoke from those who got it from there, too",
        ));
    }
    word(parser, "restrict");
    Ok(found)
}

fn set(parser: &mut Parser<'_>) -> Result<RoleStatement> {
    need(parser, "set")?;
    let local = word(parser, "local");
    if !local {
        word(parser, "session");
    }
    need(parser, "role")?;
    if !parser.consume_token(&Token::Eq) {
        word(parser, "to");
    }
    let found = parser.peek_token();
    let role = match found.token {
        Token::SingleQuotedString(name) => {
            parser.next_token();
            Some(name)
        }
        _ if word(parser, "none") => None,
        _ => Some(name(parser)?),
    };
    Ok(RoleStatement::Set { role, local })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};

    fn read(text: &str) -> RoleStatement {
        match parse(text).unwrap().pop().unwrap().statement {
            Statement::Role(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn owners_are_read() {
        assert_eq!(
            read("alter table if exists s.t owner to current_user"),
            RoleStatement::Owner {
                things: Things::Tables(vec!["s\u{1}t".into()]),
                if_exists: true,
                role: RoleName::Current,
            }
        );
    }

    #[test]
    fn roles_have_limits() {
        let set = |setting: Option<&str>, value: Option<&str>| RoleStatement::Configure {
            name: "ann".into(),
            setting: setting.map(Into::into),
            value: value.map(Into::into),
        };
        for (text, wanted) in [
            (
                "alter role ann set statement_timeout = '5 s'",
                set(Some("statement_timeout"), Some("5 s")),
            ),
            (
                "alter user ann set Memory_Limit to 64MB",
                set(Some("memory_limit"), Some("64MB")),
            ),
            (
                "alter role ann set search_path = reef, \"A b\"",
                set(Some("search_path"), Some("reef, \"A b\"")),
            ),
            (
                "alter role ann set memory_limit to default",
                set(Some("memory_limit"), None),
            ),
            (
                "alter role ann reset memory_limit",
                set(Some("memory_limit"), None),
            ),
            ("alter role ann reset all", set(None, None)),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        let limited = |connections| RoleStatement::Alter {
            name: "ann".into(),
            options: RoleOptions {
                connections: Some(connections),
                ..RoleOptions::default()
            },
        };
        let text = "alter role ann connection limit 3";
        assert_eq!(read(text), limited(Some(3)));
        assert_eq!(
            read("alter role ann with connection limit -1"),
            limited(None)
        );
        for text in [
            "alter role ann connection limit",
            "alter role ann connection limit -2",
            "alter role ann connection limit 1 connection limit 2",
            "alter role all set memory_limit = '1GB'",
            "alter role ann set memory_limit",
            "alter role ann set memory_limit = ",
            "alter role ann set memory_limit = 1 2",
            "alter role ann set memory_limit from current",
            "alter role ann in database atoll set memory_limit = 1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn roles_have_options() {
        let options = RoleOptions {
            login: Some(true),
            superuser: Some(false),
            password: Some(Some("x".into())),
            in_roles: Some(vec!["a".into(), "B".into()]),
            ..RoleOptions::default()
        };
        assert_eq!(
            read(
                "create user Ann with encrypted password 'x' nosuperuser nocreatedb in role a, \"B\""
            ),
            RoleStatement::Create {
                name: "ann".into(),
                options,
            }
        );
        for text in [
            "create role",
            "create role a b",
            "create role a login nologin",
            "create role a createdb",
            "create role a valid until '2030-01-01'",
            "create role a password x",
            "alter role a",
            "alter role a rename to b",
            "alter role a in role b",
            "drop role",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
