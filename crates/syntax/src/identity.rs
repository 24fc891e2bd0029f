//! The grammar of identity columns, whose values are numbers of a sequence.
//!
//! ```text
//! create table ... name type generated {always | by default} as identity [(option ...)]
//! alter table [if exists] name alter [column] name change
//! change = add generated {always | by default} as identity [(option ...)]
//!        | {set generated {always | by default} | set option | restart [[with] number]} ...
//!        | drop identity [if exists] | drop expression [if exists]
//! option = an option of a sequence
//! ```

use messages::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::{self, DIALECT};
use crate::names::{column_name, written};
use crate::sequences::{Of, SequenceOptions, is_option, option, restart};
use crate::words::{self, is_word, need, once, unexpected, word};

/// What is declared of an identity column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Whether rows that bring a value are refused, unless they insist.
    pub always: bool,
    /// How the numbers follow each other.
    pub options: SequenceOptions,
}

/// `alter table ... alter column ...` about what makes the column's values.
#[derive(Clone, Debug)]
pub struct AlterIdentity {
    /// The table, as it is written.
    pub table: String,
    /// Of the table.
    pub if_exists: bool,
    /// The column.
    pub column: String,
    /// What becomes of it.
    pub change: IdentityChange,
}

/// What is changed.
#[derive(Clone, Debug)]
pub enum IdentityChange {
    /// `add generated as identity`.
    Add(Identity),
    /// `set generated`, and options of the sequence.
    Set {
        /// Whether values of statements are refused; as before if none.
        always: Option<bool>,
        /// What changes of how the numbers follow each other.
        options: SequenceOptions,
    },
    /// The column keeps its values, and its sequence goes.
    Drop {
        /// Without an error if there is none.
        if_exists: bool,
    },
    /// A column whose values are computed becomes a plain one.
    DropExpression {
        /// Without an error if there is none.
        if_exists: bool,
    },
}

/// What the tokens of an option of a column declare; `None` of other options.
///
/// # Errors
/// For what is no option of a sequence.
pub(crate) fn of_option(tokens: &[Token]) -> Result<Option<Identity>> {
    if !tokens
        .first()
        .is_some_and(|token| is_word(token, "generated"))
    {
        return Ok(None);
    }
    let mut parser = Parser::new(&DIALECT).with_tokens(tokens.to_vec());
    let found = generated(&mut parser)?;
    words::end(&mut parser)?;
    Ok(Some(found))
}

/// `generated {always | by default} as identity [(option ...)]`.
fn generated(parser: &mut Parser<'_>) -> Result<Identity> {
    need(parser, "generated")?;
    let always = when(parser)?;
    need(parser, "as")?;
    need(parser, "identity")?;
    let mut options = SequenceOptions::default();
    if parser.consume_token(&Token::LParen) {
        while !parser.consume_token(&Token::RParen) {
            option(parser, &mut options, Of::Column)?;
        }
    }
    Ok(Identity { always, options })
}

/// `always`, or else `by default`.
fn when(parser: &mut Parser<'_>) -> Result<bool> {
    if word(parser, "always") {
        return Ok(true);
    }
    if word(parser, "by") {
        need(parser, "default")?;
        return Ok(false);
    }
    let found = parser.peek_token();
    Err(unexpected(parser, "ALWAYS or BY DEFAULT", found))
}

/// Reads an `alter table` that is about what makes the values of a column; `None` of others.
///
/// # Errors
/// [`Error::Syntax`] with a place.
pub(crate) fn statement(tokens: &[TokenWithSpan]) -> Result<Option<AlterIdentity>> {
    let mut words = words::leading(tokens);
    if words.next().as_deref() != Some("alter") || words.next().as_deref() != Some("table") {
        return Ok(None);
    }
    let mut parser = dialect::parser(tokens.to_vec());
    let Ok((table, if_exists, column)) = named(&mut parser) else {
        return Ok(None);
    };
    let Some(change) = change(&mut parser)? else {
        return Ok(None);
    };
    if parser.peek_token_ref().token == Token::Comma {
        return Err(Error::unsupported(
            "`alter table` makes one change at a time: write a statement for each",
        ));
    }
    words::end(&mut parser)?;
    Ok(Some(AlterIdentity {
        table,
        if_exists,
        column,
        change,
    }))
}

/// `alter table [if exists] [only] name alter [column] name`.
fn named(parser: &mut Parser<'_>) -> Result<(String, bool, String)> {
    need(parser, "alter")?;
    need(parser, "table")?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    word(parser, "only");
    let table = written(&parser.parse_object_name(false)?)?;
    need(parser, "alter")?;
    word(parser, "column");
    let column = column_name(&parser.parse_identifier()?);
    Ok((table, if_exists, column))
}

fn change(parser: &mut Parser<'_>) -> Result<Option<IdentityChange>> {
    let second = parser.peek_nth_token_ref(1).token.clone();
    let first = parser.peek_token_ref().token.clone();
    if is_word(&first, "add") {
        parser.next_token();
        return generated(parser).map(IdentityChange::Add).map(Some);
    }
    if is_word(&first, "drop") {
        let identity = is_word(&second, "identity");
        if !identity && !is_word(&second, "expression") {
            return Ok(None);
        }
        parser.next_token();
        parser.next_token();
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        return Ok(Some(if identity {
            IdentityChange::Drop { if_exists }
        } else {
            IdentityChange::DropExpression { if_exists }
        }));
    }
    let sets = is_word(&first, "set") && (is_word(&second, "generated") || is_option(&second));
    if sets || is_word(&first, "restart") {
        return set(parser).map(Some);
    }
    Ok(None)
}

/// `{set generated ... | set option | restart ...} ...`.
fn set(parser: &mut Parser<'_>) -> Result<IdentityChange> {
    let (mut always, mut options) = (None, SequenceOptions::default());
    loop {
        if word(parser, "restart") {
            once(&mut options.restart, restart(parser)?)?;
        } else if word(parser, "set") {
            if word(parser, "generated") {
                once(&mut always, when(parser)?)?;
            } else if word(parser, "restart") {
                once(&mut options.restart, restart(parser)?)?;
            } else {
                option(parser, &mut options, Of::Column)?;
            }
        } else {
            return Ok(IdentityChange::Set { always, options });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::tokenizer::Tokenizer;

    fn read(text: &str) -> Result<Option<AlterIdentity>> {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        statement(&tokens.unwrap())
    }

    #[test]
    fn changes_of_identity_are_told_from_others() {
        for other in [
            "alter table t alter a set not null",
            "alter table t alter a set default 1",
            "alter table t alter a set data type bigint",
            "alter table t alter a drop default",
            "alter table t rename to u",
            "alter sequence s restart",
        ] {
            assert!(read(other).unwrap().is_none(), "{other}");
        }
        let text = "alter table if exists only public.t alter column \"A\" set generated by default set start 5 restart with -7";
        let found = read(text).unwrap().unwrap();
        assert_eq!((&found.table[..], &found.column[..]), ("public\u{1}t", "A"));
        let IdentityChange::Set { always, options } = found.change else {
            panic!("it sets");
        };
        assert_eq!(always, Some(false));
        assert_eq!((options.start, options.restart), (Some(5), Some(Some(-7))));
        let added = read("alter table t alter a add generated always as identity (cycle)");
        assert!(matches!(
            added.unwrap().unwrap().change,
            IdentityChange::Add(Identity { always: true, .. })
        ));
        for wrong in [
            "alter table t alter a add generated as identity",
            "alter table t alter a set generated",
            "alter table t alter a restart restart",
            "alter table t alter a drop identity, alter b drop identity",
            "alter table t alter a drop identity cascade",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
