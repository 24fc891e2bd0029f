//! The grammar of sequences.
//!
//! ```text
//! create [[local] {temporary | temp} | unlogged] sequence [if not exists] name [as type] [option ...]
//! alter sequence [if exists] name option ...
//! option = increment [by] number | minvalue number | no minvalue | maxvalue number | no maxvalue
//!        | start [with] number | cache number | [no] cycle | owned by table.column | owned by none
//!        | restart [[with] number] (`alter` only)
//! ```

use messages::{Error, Result};
use sqlparser::ast::{ObjectName, ObjectNamePart};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use table::{Position, Sequence};

use crate::dialect;
use crate::grammar::{refused, refused_for};
use crate::names::{column_name, written};
use crate::words::{self, is_word, need, once, unexpected, word};

/// A statement about sequences that is no plain SQL.
#[derive(Clone, Debug)]
pub enum SequenceStatement {
    /// `create sequence`.
    Create {
        /// Its name.
        name: String,
        /// Whether it goes with the session.
        temporary: bool,
        /// Without an error if there is one.
        if_not_exists: bool,
        /// How its numbers follow each other.
        options: SequenceOptions,
    },
    /// `alter sequence`.
    Alter {
        /// Its name.
        name: String,
        /// Without an error if there is none.
        if_exists: bool,
        /// What changes of how its numbers follow each other.
        options: SequenceOptions,
    },
}

/// What a statement says of a sequence; the outer `None` where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceOptions {
    /// Bytes of its type.
    pub bytes: Option<u8>,
    /// `increment by`.
    pub increment: Option<i64>,
    /// `Some(None)` for `no minvalue`.
    pub min: Option<Option<i64>>,
    /// `maxvalue`, or `no maxvalue`.
    pub max: Option<Option<i64>>,
    /// `start with`.
    pub start: Option<i64>,
    /// `cycle`, or `no cycle`.
    pub cycle: Option<bool>,
    /// `Some(None)` for a restart with the start value.
    pub restart: Option<Option<i64>>,
    /// Table and column that it belongs to; `Some(None)` for none.
    pub owner: Option<Option<(String, String)>>,
    /// What the sequence of an identity column is called, as it is [written].
    pub name: Option<String>,
}

/// What comes with the numbers of a statement that makes sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// `create sequence`.
    Created,
    /// `alter sequence`.
    Altered,
    /// The sequence of an identity column, which has the column's type.
    Column,
}

/// Whether tokens begin a statement about sequences.
pub(crate) fn begins(tokens: &[TokenWithSpan]) -> bool {
    let mut words = words::leading(tokens);
    let mut word = || words.next().unwrap_or_default();
    let first = word();
    let mut kind = word();
    if first == "create" && kind == "local" {
        kind = word();
    }
    if first == "create" && matches!(kind.as_str(), "temp" | "temporary" | "unlogged") {
        kind = word();
    }
    matches!(first.as_str(), "create" | "alter") && kind == "sequence"
}

/// Reads such a statement.
///
/// # Errors
/// [`Error::Syntax`] with a place; [`Error::Unsupported`] for parts that there are not.
pub(crate) fn statement(tokens: Vec<TokenWithSpan>) -> Result<SequenceStatement> {
    let mut parser = dialect::parser(tokens);
    let creates = parser.parse_keyword(Keyword::CREATE);
    if !creates {
        parser.expect_keyword(Keyword::ALTER)?;
    }
    let temporary = creates && lifetime(&mut parser)?;
    need(&mut parser, "sequence")?;
    let (unless, of) = if creates {
        let words = [Keyword::IF, Keyword::NOT, Keyword::EXISTS];
        (parser.parse_keywords(&words), Of::Created)
    } else {
        let words = [Keyword::IF, Keyword::EXISTS];
        (parser.parse_keywords(&words), Of::Altered)
    };
    let name = written(&parser.parse_object_name(false)?)?;
    let mut options = SequenceOptions::default();
    let mut count = 0;
    while parser.peek_token().token != Token::EOF {
        option(&mut parser, &mut options, of)?;
        count += 1;
    }
    if !creates && count == 0 {
        let end = parser.peek_token();
        return Err(unexpected(&parser, "what to change", end));
    }
    Ok(if creates {
        SequenceStatement::Create {
            name,
            temporary,
            if_not_exists: unless,
            options,
        }
    } else {
        SequenceStatement::Alter {
            name,
            if_exists: unless,
            options,
        }
    })
}

/// What stands before the word `sequence`: whether it goes with the session. One that is not logged is as any other.
fn lifetime(parser: &mut Parser<'_>) -> Result<bool> {
    let local = word(parser, "local");
    let temporary = word(parser, "temporary") || word(parser, "temp");
    if local && !temporary {
        need(parser, "temporary")?;
    }
    if !temporary {
        word(parser, "unlogged");
    }
    Ok(temporary)
}

/// Whether an option of a sequence may be next.
pub(super) fn is_option(token: &Token) -> bool {
    const WORDS: [&str; 10] = [
        "increment",
        "minvalue",
        "maxvalue",
        "start",
        "cycle",
        "cache",
        "no",
        "restart",
        "as",
        "sequence",
    ];
    WORDS.iter().any(|word| is_word(token, word))
}

/// Reads an option.
///
/// # Errors
/// If there is none, or it was there before.
pub(super) fn option(parser: &mut Parser<'_>, options: &mut SequenceOptions, of: Of) -> Result<()> {
    let found = parser.peek_token();
    if of != Of::Column && word(parser, "as") {
        let name = parser.parse_data_type()?.to_string().to_lowercase();
        let bytes = match name.as_str() {
            "smallint" | "int2" => 2,
            "integer" | "int" | "int4" => 4,
            "bigint" | "int8" => 8,
            _ => {
                return Err(Error::coded(
                    "22023",
                    "sequence type must be smallint, integer, or bigint",
                ));
            }
        };
        return once(&mut options.bytes, bytes);
    }
    if word(parser, "increment") {
        word(parser, "by");
        let increment = number(parser)?;
        return once(&mut options.increment, increment);
    }
    if word(parser, "minvalue") {
        let min = number(parser)?;
        return once(&mut options.min, Some(min));
    }
    if word(parser, "maxvalue") {
        let max = number(parser)?;
        return once(&mut options.max, Some(max));
    }
    if word(parser, "start") {
        word(parser, "with");
        let start = number(parser)?;
        return once(&mut options.start, start);
    }
    if word(parser, "cycle") {
        return once(&mut options.cycle, true);
    }
    if word(parser, "cache") {
        return match number(parser)? {
            1 => Ok(()),
            less if less < 1 => Err(Error::coded(
                "22023",
                format!("CACHE ({less}) must be greater than zero"),
            )),
            _ => Err(refused_for(
                "cache",
                "all sessions of a program share the numbers that are kept ahead",
            )),
        };
    }
    if word(parser, "no") {
        return none(parser, options);
    }
    if of == Of::Altered && word(parser, "restart") {
        return once(&mut options.restart, restart(parser)?);
    }
    if of != Of::Column && word(parser, "owned") {
        need(parser, "by")?;
        let owner = owner(parser)?;
        return once(&mut options.owner, owner);
    }
    if of == Of::Column && word(parser, "sequence") {
        return named(parser, options);
    }
    for other in ["owner", "rename", "set"] {
        if word(parser, other) {
            return Err(refused(&format!("{other} of a sequence")));
        }
    }
    Err(unexpected(parser, "an option of a sequence", found))
}

/// `name s`, behind `sequence`: what the sequence of an identity column is called.
fn named(parser: &mut Parser<'_>, options: &mut SequenceOptions) -> Result<()> {
    need(parser, "name")?;
    let name = written(&parser.parse_object_name(false)?)?;
    once(&mut options.name, name)
}

/// What comes behind `owned by`: a column with its table, or `none`.
fn owner(parser: &mut Parser<'_>) -> Result<Option<(String, String)>> {
    let mut parts = parser.parse_object_name(false)?.0;
    let last = parts.pop();
    let column = last.as_ref().and_then(ObjectNamePart::as_ident);
    match (parts.is_empty(), column) {
        (true, Some(word)) if word.quote_style.is_none() && column_name(word) == "none" => Ok(None),
        (false, Some(column)) => {
            let table = written(&ObjectName(parts))?;
            Ok(Some((table, column_name(column))))
        }
        _ => Err(Error::Syntax {
            message: "invalid OWNED BY option: specify OWNED BY table.column or OWNED BY NONE"
                .into(),
            position: None,
        }),
    }
}

/// What comes behind `no`.
fn none(parser: &mut Parser<'_>, options: &mut SequenceOptions) -> Result<()> {
    if word(parser, "minvalue") {
        return once(&mut options.min, None);
    }
    if word(parser, "maxvalue") {
        return once(&mut options.max, None);
    }
    if word(parser, "cycle") {
        return once(&mut options.cycle, false);
    }
    let found = parser.peek_token();
    Err(unexpected(parser, "MINVALUE, MAXVALUE or CYCLE", found))
}

/// What comes behind `restart`: a number, or nothing for the start value.
pub(super) fn restart(parser: &mut Parser<'_>) -> Result<Option<i64>> {
    let with = word(parser, "with");
    let next = parser.peek_token().token;
    let begins = matches!(next, Token::Number(..) | Token::Minus | Token::Plus);
    (with || begins).then(|| number(parser)).transpose()
}

/// A whole number with its sign.
fn number(parser: &mut Parser<'_>) -> Result<i64> {
    let minus = parser.consume_token(&Token::Minus);
    if !minus {
        let _ = parser.consume_token(&Token::Plus);
    }
    let found = parser.next_token();
    let Token::Number(digits, false) = &found.token else {
        return Err(unexpected(parser, "a number", found));
    };
    let text = if minus {
        format!("-{digits}")
    } else {
        digits.clone()
    };
    text.parse().map_err(|_| {
        Error::coded(
            "22003",
            format!("value \"{text}\" is out of range for type bigint"),
        )
    })
}

impl SequenceOptions {
    /// A new sequence with these options.
    ///
    /// # Errors
    /// As PostgreSQL refuses options that do not go with each other.
    pub fn new_sequence(&self, number: u64) -> Result<Sequence> {
        let sequence = Sequence {
            number,
            state: number,
            bytes: 8,
            start: 0,
            increment: 1,
            min: 1,
            max: i64::MAX,
            cycle: false,
            first: Position {
                value: 0,
                called: false,
            },
        };
        let as_new = SequenceOptions {
            min: Some(self.min.flatten()),
            max: Some(self.max.flatten()),
            ..self.clone()
        };
        let mut made = as_new.applied(&sequence)?;
        if self.start.is_none() {
            made.start = if made.increment > 0 {
                made.min
            } else {
                made.max
            };
        }
        made.first.value = made.start;
        within("START", made.start, &made)?;
        Ok(made)
    }

    /// What `before`, which is at `at`, is with these options: the sequence, and where it goes on if it goes on
    /// elsewhere.
    ///
    /// # Errors
    /// As PostgreSQL refuses options that do not go with each other, or with where the sequence is.
    pub fn changed(&self, before: &Sequence, at: Position) -> Result<(Sequence, Option<Position>)> {
        let made = self.applied(before)?;
        within("START", made.start, &made)?;
        let restart = self.restart.map(|value| Position {
            value: value.unwrap_or(made.start),
            called: false,
        });
        within("RESTART", restart.unwrap_or(at).value, &made)?;
        Ok((made, restart))
    }

    /// Type, step and bounds.
    fn applied(&self, before: &Sequence) -> Result<Sequence> {
        let mut made = before.clone();
        let (least, greatest) = bounds(before.bytes);
        // Bounds that were those of the type go with it.
        let (mut reset_min, mut reset_max) = (false, false);
        if let Some(bytes) = self.bytes {
            reset_min = before.min == least;
            reset_max = before.max == greatest;
            made.bytes = bytes;
        }
        let (least, greatest) = bounds(made.bytes);
        made.increment = self.increment.unwrap_or(made.increment);
        made.cycle = self.cycle.unwrap_or(made.cycle);
        made.start = self.start.unwrap_or(made.start);
        if made.increment == 0 {
            return Err(Error::coded("22023", "INCREMENT must not be zero"));
        }
        let rises = made.increment > 0;
        match self.max {
            Some(Some(max)) => made.max = max,
            Some(None) => made.max = if rises { greatest } else { -1 },
            None if reset_max => made.max = greatest,
            None => {}
        }
        match self.min {
            Some(Some(min)) => made.min = min,
            Some(None) => made.min = if rises { 1 } else { least },
            None if reset_min => made.min = least,
            None => {}
        }
        for (what, value) in [("MAXVALUE", made.max), ("MINVALUE", made.min)] {
            if !(least..=greatest).contains(&value) {
                let name = match made.bytes {
                    2 => "smallint",
                    4 => "integer",
                    _ => "bigint",
                };
                return Err(Error::coded(
                    "22023",
                    format!("{what} ({value}) is out of range for sequence data type {name}"),
                ));
            }
        }
        if made.min >= made.max {
            return Err(Error::coded(
                "22023",
                format!(
                    "MINVALUE ({}) must be less than MAXVALUE ({})",
                    made.min, made.max
                ),
            ));
        }
        Ok(made)
    }
}

fn within(what: &str, value: i64, sequence: &Sequence) -> Result<()> {
    let (side, bound, limit) = if value < sequence.min {
        ("less", "MINVALUE", sequence.min)
    } else if value > sequence.max {
        ("greater", "MAXVALUE", sequence.max)
    } else {
        return Ok(());
    };
    Err(Error::coded(
        "22023",
        format!("{what} value ({value}) cannot be {side} than {bound} ({limit})"),
    ))
}

/// The least and the greatest number of a type.
fn bounds(bytes: u8) -> (i64, i64) {
    match bytes {
        2 => (i16::MIN.into(), i16::MAX.into()),
        4 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}
