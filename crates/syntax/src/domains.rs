//! The grammar of domains.
//!
//! ```text
//! create domain name [as] type [default e | [constraint n] {not null | null | check (e)}]...
//! alter domain name {set | drop} default ... | {set | drop} not null
//!     | add [constraint n] check (e) | drop constraint [if exists] n [restrict] | validate constraint n
//!     | rename constraint n to n | rename to n | set schema s | owner to r
//! drop domain [if exists] name, ... [cascade | restrict]
//! ```
//!
//! Expressions are kept as the texts that they are written as.

use messages::{Error, Result};
use sqlparser::ast::{ColumnDef, ColumnOption, DataType, Expr};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::dialect::{self, DIALECT};
use crate::grammar::refused;
use crate::names::{column_name, written};
use crate::rewrite;
use crate::rewritten::rewritten;
use crate::roles::{RoleName, role_name};
use crate::words::{self, need, unexpected, word};

/// What the conditions of a domain call a value.
pub const VALUE: &str = "value";

/// A statement about domains. Names are as the statement [writes](written) them.
#[derive(Clone, Debug, PartialEq)]
pub enum DomainStatement {
    /// `create domain`.
    Create(Box<NewDomain>),
    /// `alter domain`.
    Alter {
        /// Its name.
        name: String,
        /// What becomes of it.
        change: DomainChange,
    },
    /// `drop domain`.
    Drop {
        /// Their names.
        names: Vec<String>,
        /// Without an error if there is none.
        if_exists: bool,
        /// With what depends on them.
        cascade: bool,
    },
}

/// A domain that is to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDomain {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub data_type: DataType,
    /// The default, as it is written.
    pub default: Option<String>,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// What its values must satisfy.
    pub checks: Vec<NewCheck>,
}

/// A condition, and its name if it was given one.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCheck {
    /// The name of the constraint, if it was given one.
    pub name: Option<String>,
    /// The condition over `value`, as it is written.
    pub text: String,
}

/// What becomes of a domain.
#[derive(Clone, Debug, PartialEq)]
pub enum DomainChange {
    /// None: no default.
    Default(Option<String>),
    /// `set not null`, or `drop not null`.
    NotNull(bool),
    /// `add check`.
    Add(NewCheck),
    /// `drop constraint`.
    DropConstraint {
        /// Its name.
        name: String,
        /// Without an error if there is none.
        if_exists: bool,
    },
    /// `validate constraint`.
    Validate(String),
    /// `rename constraint`.
    RenameConstraint {
        /// Its name so far.
        name: String,
        /// Its new name.
        to: String,
    },
    /// `rename to` this name.
    Rename(String),
    /// `set schema` to this one.
    Move(String),
    /// `owner to` this role.
    Owner(RoleName),
}

/// The type that a text of a domain or of a composite type says.
///
/// # Errors
/// If it is none.
pub fn data_type(text: &str) -> Result<DataType> {
    let tokens = Tokenizer::new(&DIALECT, text)
        .tokenize_with_location()
        .map_err(|e| Error::from(ParserError::from(e)))?;
    let mut parser = dialect::parser(rewrite::structs(tokens));
    let found = parser.parse_data_type()?;
    words::end(&mut parser)?;
    Ok(found)
}

/// Reads such a statement; `None` of others.
///
/// # Errors
/// [`Error::Syntax`] with a place; [`Error::Unsupported`] for parts that there are not.
pub(super) fn statement(tokens: &[TokenWithSpan]) -> Result<Option<DomainStatement>> {
    let mut leading = words::leading(tokens);
    let first = leading.next().unwrap_or_default();
    let own = matches!(first.as_str(), "create" | "alter" | "drop");
    if !own || leading.next().as_deref() != Some("domain") {
        return Ok(None);
    }
    let mut parser = dialect::parser(rewritten(tokens)?);
    parser.next_token();
    parser.next_token();
    let found = match first.as_str() {
        "create" => return create(parser).map(Some),
        "alter" => DomainStatement::Alter {
            name: written(&parser.parse_object_name(false)?)?,
            change: change(&mut parser)?,
        },
        _ => drop(&mut parser)?,
    };
    words::end(&mut parser)?;
    Ok(Some(found))
}

/// What stands behind the name is read as the definition of a column.
fn create(mut parser: Parser<'_>) -> Result<DomainStatement> {
    let name = written(&parser.parse_object_name(false)?)?;
    word(&mut parser, "as");
    let mut tokens = vec![TokenWithSpan::wrap(Token::make_word(VALUE, None))];
    loop {
        let next = parser.next_token();
        if next.token == Token::EOF {
            break;
        }
        tokens.push(next);
    }
    let mut parser = dialect::parser(tokens);
    let column = parser.parse_column_def()?;
    words::end(&mut parser)?;
    domain(name, column).map(|own| DomainStatement::Create(Box::new(own)))
}

fn domain(name: String, column: ColumnDef) -> Result<NewDomain> {
    let (mut default, mut nullable) = (None, None);
    let mut checks = Vec::new();
    for option in column.options {
        let named = option.name.as_ref().map(column_name);
        match option.option {
            ColumnOption::NotNull => null(&mut nullable, false)?,
            ColumnOption::Null => null(&mut nullable, true)?,
            ColumnOption::Default(value) => {
                if default.replace(value.to_string()).is_some() {
                    return Err(syntax("multiple default expressions"));
                }
            }
            ColumnOption::Check(check) => {
                if check.enforced.is_some() {
                    return Err(refused("not enforced"));
                }
                checks.push(NewCheck {
                    name: named.or(check.name.as_ref().map(column_name)),
                    text: check.expr.to_string(),
                });
            }
            ColumnOption::Unique(_) => {
                return Err(syntax("unique constraints not possible for domains"));
            }
            ColumnOption::PrimaryKey(_) => {
                return Err(syntax("primary key constraints not possible for domains"));
            }
            ColumnOption::ForeignKey(_) => {
                return Err(syntax("foreign key constraints not possible for domains"));
            }
            other => return Err(refused(&format!("create domain ... {other}"))),
        }
    }
    Ok(NewDomain {
        name,
        data_type: column.data_type,
        default,
        not_null: nullable == Some(false),
        checks,
    })
}

fn null(place: &mut Option<bool>, nullable: bool) -> Result<()> {
    match place.replace(nullable) {
        Some(before) if before != nullable => Err(syntax("conflicting NULL/NOT NULL constraints")),
        _ => Ok(()),
    }
}

fn syntax(message: &str) -> Error {
    Error::Syntax {
        message: message.into(),
        position: None,
    }
}

fn change(parser: &mut Parser<'_>) -> Result<DomainChange> {
    if word(parser, "set") {
        if word(parser, "default") {
            let value = parser.parse_expr()?;
            return Ok(DomainChange::Default(Some(value.to_string())));
        }
        if word(parser, "schema") {
            let schema = column_name(&parser.parse_identifier()?);
            return Ok(DomainChange::Move(schema));
        }
        need(parser, "not")?;
        need(parser, "null")?;
        return Ok(DomainChange::NotNull(true));
    }
    if word(parser, "drop") {
        if word(parser, "default") {
            return Ok(DomainChange::Default(None));
        }
        if word(parser, "not") {
            need(parser, "null")?;
            return Ok(DomainChange::NotNull(false));
        }
        need(parser, "constraint")?;
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name = column_name(&parser.parse_identifier()?);
        // Nothing depends on a condition.
        if !word(parser, "cascade") {
            word(parser, "restrict");
        }
        return Ok(DomainChange::DropConstraint { name, if_exists });
    }
    if word(parser, "add") {
        return check(parser).map(DomainChange::Add);
    }
    if word(parser, "validate") {
        need(parser, "constraint")?;
        let name = column_name(&parser.parse_identifier()?);
        return Ok(DomainChange::Validate(name));
    }
    if word(parser, "rename") {
        if word(parser, "constraint") {
            let name = column_name(&parser.parse_identifier()?);
            need(parser, "to")?;
            let to = column_name(&parser.parse_identifier()?);
            return Ok(DomainChange::RenameConstraint { name, to });
        }
        need(parser, "to")?;
        let to = column_name(&parser.parse_identifier()?);
        return Ok(DomainChange::Rename(to));
    }
    if word(parser, "owner") {
        need(parser, "to")?;
        return Ok(DomainChange::Owner(role_name(parser)?));
    }
    let found = parser.peek_token();
    Err(unexpected(
        parser,
        "SET, DROP, ADD, RENAME, VALIDATE or OWNER TO",
        found,
    ))
}

fn check(parser: &mut Parser<'_>) -> Result<NewCheck> {
    let name = if word(parser, "constraint") {
        Some(column_name(&parser.parse_identifier()?))
    } else {
        None
    };
    for (key, what) in [
        ("unique", "unique"),
        ("primary", "primary key"),
        ("foreign", "foreign key"),
        ("references", "foreign key"),
    ] {
        if words::is_next(parser, key) {
            return Err(syntax(&format!(
                "{what} constraints not possible for domains"
            )));
        }
    }
    need(parser, "check")?;
    parser.expect_token(&Token::LParen)?;
    let condition: Expr = parser.parse_expr()?;
    parser.expect_token(&Token::RParen)?;
    if words::is_next(parser, "not") {
        return Err(refused("not valid"));
    }
    Ok(NewCheck {
        name,
        text: condition.to_string(),
    })
}

fn drop(parser: &mut Parser<'_>) -> Result<DomainStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
    let cascade = word(parser, "cascade");
    if !cascade {
        word(parser, "restrict");
    }
    Ok(DomainStatement::Drop {
        names: names.iter().map(written).collect::<Result<_>>()?,
        if_exists,
        cascade,
    })
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::CharacterLength;

    use super::*;

    fn read(text: &str) -> Result<Option<DomainStatement>> {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        statement(&tokens.unwrap())
    }

    fn alter(text: &str) -> DomainChange {
        match read(&format!("alter domain d {text}")) {
            Ok(Some(DomainStatement::Alter { change, .. })) => change,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn statements_are_read() {
        let length = CharacterLength::IntegerLength {
            length: 5,
            unit: None,
        };
        assert_eq!(
            read(
                "create domain S.Word as varchar(5) default 'a' not null check (value <> 'b') constraint long check (length(VALUE) > 2)"
            )
            .unwrap(),
            Some(DomainStatement::Create(Box::new(NewDomain {
                name: "s\u{1}word".into(),
                data_type: DataType::Varchar(Some(length)),
                default: Some("'a'".into()),
                not_null: true,
                checks: vec![
                    NewCheck {
                        name: None,
                        text: "value <> 'b'".into()
                    },
                    NewCheck {
                        name: Some("long".into()),
                        text: "length(VALUE) > 2".into()
                    },
                ],
            })))
        );
        assert_eq!(alter("drop default"), DomainChange::Default(None));
        assert_eq!(
            alter("set default 1 + 2"),
            DomainChange::Default(Some("1 + 2".into()))
        );
        assert_eq!(alter("set not null"), DomainChange::NotNull(true));
        assert_eq!(
            alter("add check (value > 0)"),
            DomainChange::Add(NewCheck {
                name: None,
                text: "value > 0".into()
            })
        );
        assert_eq!(
            alter("drop constraint if exists x cascade"),
            DomainChange::DropConstraint {
                name: "x".into(),
                if_exists: true
            }
        );
        assert_eq!(alter("rename to \"E\""), DomainChange::Rename("E".into()));
        assert_eq!(
            read("drop domain a, s.b cascade").unwrap(),
            Some(DomainStatement::Drop {
                names: vec!["a".into(), "s\u{1}b".into()],
                if_exists: false,
                cascade: true,
            })
        );
        assert_eq!(read("create table domain (a int)").unwrap(), None);
    }

    #[test]
    fn what_there_is_not_is_refused() {
        for text in [
            "create domain d",
            "create domain d as",
            "create domain d int unique",
            "create domain d int primary key",
            "create domain d int references t",
            "create domain d int not null null",
            "create domain d int default 1 default 2",
            "create domain d int generated always as identity",
            "create domain d int check (value > 0) e",
            "alter domain d",
            "alter domain d add check (value > 0) not valid",
            "alter domain d add unique (value)",
            "alter domain d set storage plain",
            "drop domain d cascade restrict",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
