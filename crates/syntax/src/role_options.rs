//! The options of a role, as `create role` and `alter role` have them.

use messages::Result;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::grammar::refused;
use crate::grants::names;
use crate::words::{is_next, need, once, unexpected, word};

/// What is said of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleOptions {
    /// `superuser`, or `nosuperuser`.
    pub superuser: Option<bool>,
    /// `createrole`, or `nocreaterole`.
    pub create_role: Option<bool>,
    /// `inherit`, or `noinherit`.
    pub inherit: Option<bool>,
    /// `login`, or `nologin`.
    pub login: Option<bool>,
    /// Most sessions; none within for as many as there is room for.
    pub connections: Option<Option<u32>>,
    /// None within for `password null`.
    pub password: Option<Option<String>>,
    /// Roles that it becomes a member of.
    pub in_roles: Option<Vec<String>>,
    /// Roles that become members of it.
    pub members: Option<Vec<String>>,
    /// The same, with the right to make others members.
    pub admins: Option<Vec<String>>,
}

/// `connection limit number`; -1 is none.
fn connections(parser: &mut Parser<'_>, all: &mut RoleOptions) -> Result<bool> {
    if !word(parser, "connection") {
        return Ok(false);
    }
    need(parser, "limit")?;
    let less = parser.consume_token(&Token::Minus);
    let found = parser.next_token();
    let number = match &found.token {
        Token::Number(digits, _) => digits.parse::<u32>().ok(),
        _ => None,
    };
    let most = match (less, number) {
        (false, Some(most)) => Some(most),
        (true, Some(1)) => None,
        _ => {
            let what = "a number of connections, or -1 for no limit";
            return Err(unexpected(parser, what, found));
        }
    };
    once(&mut all.connections, most)?;
    Ok(true)
}

/// `[with] option ...`.
pub(super) fn options(parser: &mut Parser<'_>, new: bool) -> Result<RoleOptions> {
    word(parser, "with");
    let mut all = RoleOptions::default();
    while parser.peek_token_ref().token != Token::EOF {
        if flag(parser, &mut all)? || password(parser, &mut all)? || connections(parser, &mut all)?
        {
            continue;
        }
        if new && members(parser, &mut all)? {
            continue;
        }
        let found = parser.next_token();
        return Err(unexpected(parser, "an option of a role", found));
    }
    Ok(all)
}

/// What a role is or is not.
fn flag(parser: &mut Parser<'_>, all: &mut RoleOptions) -> Result<bool> {
    let flags: [(&str, &mut Option<bool>); 4] = [
        ("superuser", &mut all.superuser),
        ("createrole", &mut all.create_role),
        ("inherit", &mut all.inherit),
        ("login", &mut all.login),
    ];
    for (name, place) in flags {
        if word(parser, name) {
            once(place, true)?;
            return Ok(true);
        }
        if word(parser, &format!("no{name}")) {
            once(place, false)?;
            return Ok(true);
        }
    }
    for absent in ["createdb", "replication", "bypassrls"] {
        if is_next(parser, absent) {
            return Err(refused(&format!("{absent} of a role")));
        }
        // So it is with every role.
        if word(parser, &format!("no{absent}")) {
            return Ok(true);
        }
    }
    if is_next(parser, "valid") {
        return Err(refused("`valid ...` of a role"));
    }
    Ok(false)
}

fn password(parser: &mut Parser<'_>, all: &mut RoleOptions) -> Result<bool> {
    let encrypted = word(parser, "encrypted");
    if !word(parser, "password") {
        if encrypted {
            need(parser, "password")?;
        }
        return Ok(false);
    }
    if word(parser, "null") {
        once(&mut all.password, None)?;
        return Ok(true);
    }
    let found = parser.next_token();
    match found.token {
        Token::SingleQuotedString(text) => once(&mut all.password, Some(text))?,
        _ => return Err(unexpected(parser, "a password in quotes", found)),
    }
    Ok(true)
}

fn members(parser: &mut Parser<'_>, all: &mut RoleOptions) -> Result<bool> {
    let place = if word(parser, "in") {
        if !word(parser, "group") {
            need(parser, "role")?;
        }
        &mut all.in_roles
    } else if word(parser, "role") || word(parser, "user") {
        &mut all.members
    } else if word(parser, "admin") {
        &mut all.admins
    } else {
        return Ok(false);
    };
    once(place, names(parser)?)?;
    Ok(true)
}
