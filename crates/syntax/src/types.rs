//! The grammar of types that people make.
//!
//! ```text
//! create type name as enum (['label', ...])
//! create type name as (field type, ...)
//! alter type name add value [if not exists] 'label' [{before | after} 'label']
//! alter type name rename value 'label' to 'label'
//! alter type name {rename to name | set schema name | owner to role}
//! drop type [if exists] name, ... [cascade | restrict]
//! ```

use messages::Result;
use sqlparser::ast::DataType;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect;
use crate::grammar::{refused, refused_for};
use crate::names::{column_name, written};
use crate::rewritten::rewritten;
use crate::roles::{RoleName, role_name};
use crate::words::{self, need, unexpected, word};

/// A statement about types. Names are as the statement [writes](written) them.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeStatement {
    /// `create type ... as enum`.
    Create {
        /// Its name.
        name: String,
        /// Its labels, in their order.
        labels: Vec<String>,
    },
    /// A composite type, of fields with names.
    Composite {
        /// Its name.
        name: String,
        /// Its fields.
        fields: Vec<(String, DataType)>,
    },
    /// `alter type`.
    Alter {
        /// Its name.
        name: String,
        /// What becomes of it.
        change: TypeChange,
    },
    /// `drop type`.
    Drop {
        /// Their names.
        names: Vec<String>,
        /// Without an error if there is none.
        if_exists: bool,
        /// With what depends on them.
        cascade: bool,
    },
}

/// What becomes of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeChange {
    /// `add value`.
    Add {
        /// The new label.
        label: String,
        /// Without an error if there is one.
        if_not_exists: bool,
        /// None at the end.
        place: Option<Beside>,
    },
    /// `rename value`.
    RenameValue {
        /// The label so far.
        label: String,
        /// The new one.
        to: String,
    },
    /// `rename to` this name.
    Rename(String),
    /// `set schema` to this one.
    Move(String),
    /// `owner to` this role.
    Owner(RoleName),
}

/// A place before or behind a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The label that it stands beside.
    pub label: String,
    /// Before it; behind it if not.
    pub before: bool,
}

/// Reads such a statement; `None` of others.
///
/// # Errors
/// [`Error::Syntax`](crate::Error::Syntax) with a place; [`Error::Unsupported`](crate::Error::Unsupported) for parts that
/// there are not.
pub(super) fn statement(tokens: &[TokenWithSpan]) -> Result<Option<TypeStatement>> {
    let mut leading = words::leading(tokens);
    let first = leading.next().unwrap_or_default();
    let own = matches!(first.as_str(), "create" | "alter" | "drop");
    if !own || leading.next().as_deref() != Some("type") {
        return Ok(None);
    }
    let mut parser = dialect::parser(tokens.to_vec());
    parser.next_token();
    parser.next_token();
    let found = match first.as_str() {
        "create" => return create(tokens, parser).map(Some),
        "alter" => TypeStatement::Alter {
            name: written(&parser.parse_object_name(false)?)?,
            change: change(&mut parser)?,
        },
        _ => drop(&mut parser)?,
    };
    words::end(&mut parser)?;
    Ok(Some(found))
}

fn create(tokens: &[TokenWithSpan], mut parser: Parser<'_>) -> Result<TypeStatement> {
    let name = written(&parser.parse_object_name(false)?)?;
    if !word(&mut parser, "as") {
        return Err(refused("create type but as enum or as (field type, ...)"));
    }
    if parser.peek_token_ref().token == Token::LParen {
        return composite(tokens, name);
    }
    if !word(&mut parser, "enum") {
        return Err(refused_for(
            "create type as a range",
            "there are enums, `create type name as enum ('a', 'b')`, and composite types, `create type name as (a int, b text)`",
        ));
    }
    parser.expect_token(&Token::LParen)?;
    let mut labels = Vec::new();
    if !parser.consume_token(&Token::RParen) {
        labels.push(label(&mut parser)?);
        while parser.consume_token(&Token::Comma) {
            labels.push(label(&mut parser)?);
        }
        parser.expect_token(&Token::RParen)?;
    }
    words::end(&mut parser)?;
    Ok(TypeStatement::Create { name, labels })
}

/// `create type name as (field type, ...)`, where types are read as those of columns are.
fn composite(tokens: &[TokenWithSpan], name: String) -> Result<TypeStatement> {
    let mut parser = dialect::parser(rewritten(tokens)?);
    parser.next_token();
    parser.next_token();
    parser.parse_object_name(false)?;
    need(&mut parser, "as")?;
    parser.expect_token(&Token::LParen)?;
    if parser.consume_token(&Token::RParen) {
        return Err(refused("a composite type without columns"));
    }
    let mut fields = Vec::new();
    loop {
        let field = column_name(&parser.parse_identifier()?);
        fields.push((field, parser.parse_data_type()?));
        if word(&mut parser, "collate") {
            return Err(refused("collate in a composite type"));
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    words::end(&mut parser)?;
    Ok(TypeStatement::Composite { name, fields })
}

/// A label, in quotes.
fn label(parser: &mut Parser<'_>) -> Result<String> {
    let found = parser.next_token();
    match found.token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => Ok(text),
        Token::DollarQuotedString(text) => Ok(text.value),
        _ => Err(unexpected(parser, "a label in quotes", found)),
    }
}

fn change(parser: &mut Parser<'_>) -> Result<TypeChange> {
    if word(parser, "add") {
        if !word(parser, "value") {
            return Err(refused("attributes of types"));
        }
        let words = [Keyword::IF, Keyword::NOT, Keyword::EXISTS];
        let if_not_exists = parser.parse_keywords(&words);
        let added = label(parser)?;
        let before = word(parser, "before");
        let place = if before || word(parser, "after") {
            let label = label(parser)?;
            Some(Beside { label, before })
        } else {
            None
        };
        return Ok(TypeChange::Add {
            label: added,
            if_not_exists,
            place,
        });
    }
    if word(parser, "rename") {
        if word(parser, "value") {
            let before = label(parser)?;
            need(parser, "to")?;
            return Ok(TypeChange::RenameValue {
                label: before,
                to: label(parser)?,
            });
        }
        if word(parser, "attribute") {
            return Err(refused("attributes of types"));
        }
        need(parser, "to")?;
        let to = column_name(&parser.parse_identifier()?);
        return Ok(TypeChange::Rename(to));
    }
    if word(parser, "set") {
        if !word(parser, "schema") {
            return Err(refused("properties of types"));
        }
        let schema = column_name(&parser.parse_identifier()?);
        return Ok(TypeChange::Move(schema));
    }
    if word(parser, "owner") {
        need(parser, "to")?;
        return Ok(TypeChange::Owner(role_name(parser)?));
    }
    let found = parser.peek_token();
    Err(unexpected(
        parser,
        "ADD VALUE, RENAME, SET SCHEMA or OWNER TO",
        found,
    ))
}

fn drop(parser: &mut Parser<'_>) -> Result<TypeStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
    let cascade = word(parser, "cascade");
    if !cascade {
        word(parser, "restrict");
    }
    Ok(TypeStatement::Drop {
        names: names.iter().map(written).collect::<Result<_>>()?,
        if_exists,
        cascade,
    })
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::ArrayElemTypeDef;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    fn read(text: &str) -> Result<Option<TypeStatement>> {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        statement(&tokens.unwrap())
    }

    #[test]
    fn statements_are_read() {
        let create = |name: &str, labels: &[&str]| TypeStatement::Create {
            name: name.into(),
            labels: labels.iter().map(ToString::to_string).collect(),
        };
        let own = |text| read(text).unwrap().unwrap();
        assert_eq!(
            own("create type Mood as enum ('sad', 'it''s ok')"),
            create("mood", &["sad", "it's ok"])
        );
        assert_eq!(own("create type s.e as enum ()"), create("s\u{1}e", &[]));
        assert_eq!(
            own("alter type e add value if not exists 'x' before 'y'"),
            TypeStatement::Alter {
                name: "e".into(),
                change: TypeChange::Add {
                    label: "x".into(),
                    if_not_exists: true,
                    place: Some(Beside {
                        label: "y".into(),
                        before: true
                    }),
                },
            }
        );
        assert_eq!(
            own("drop type if exists a, s.b cascade"),
            TypeStatement::Drop {
                names: vec!["a".into(), "s\u{1}b".into()],
                if_exists: true,
                cascade: true,
            }
        );
        assert_eq!(
            own("create type s.Pair as (R float8, \"I\" int[])"),
            TypeStatement::Composite {
                name: "s\u{1}pair".into(),
                fields: vec![
                    ("r".into(), DataType::Float8),
                    (
                        "I".into(),
                        DataType::Array(ArrayElemTypeDef::SquareBracket(
                            Box::new(DataType::Int(None)),
                            None
                        ))
                    ),
                ],
            }
        );
        assert_eq!(read("create table type (a int)").unwrap(), None);
    }

    #[test]
    fn what_there_is_not_is_refused() {
        for text in [
            "create type a",
            "create type a as ()",
            "create type a as (b)",
            "create type a as (b int,)",
            "create type a as (b text collate \"C\")",
            "create type a as (b int not null)",
            "create type a as range (subtype = int)",
            "create type a as enum ('b') c",
            "create type a as enum (b)",
            "alter type a add attribute b int",
            "alter type a set (storage = plain)",
            "alter type a add value 'b' beside 'c'",
            "alter type a",
            "drop type a cascade restrict",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
