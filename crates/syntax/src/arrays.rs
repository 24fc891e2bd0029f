//! The grammar of arrays: `create array`, `drop array`, and their named versions.
//!
//! ```text
//! create array [if not exists] name (element, ...) [sparse]
//! element = name [type] dimension [first:last[:step]] [growing] [chunk cells]
//!         | name [type] dimension (coordinate, ...)   [growing] [chunk cells]
//!         | name type [not null | null] [default value] [compression zstd | lz4 | none]
//! drop array [if exists] name, ...
//! create version name of array
//! drop version name of array
//! ```

use array::{Attribute, Compression, DataType, Decimal, Dimension, Layout, Scalar, Schema};
use messages::{Error, Result};
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect;
use crate::names::{check_column, check_new, column_name, table_name};
use crate::words::{self, need, unexpected, word};

/// A statement about arrays that SQL has not.
#[derive(Clone, Debug)]
pub enum ArrayStatement {
    /// `create array`.
    Create {
        /// Its name.
        name: String,
        /// Its dimensions and attributes.
        schema: Schema,
        /// Without an error if there is one.
        if_not_exists: bool,
    },
    /// `drop array`.
    Drop {
        /// Their names.
        names: Vec<String>,
        /// Without an error if there is none.
        if_exists: bool,
    },
    /// Keeps the present cells as a version.
    CreateVersion {
        /// The name of the array.
        array: String,
        /// The name of the version.
        version: String,
    },
    /// Drops a version.
    DropVersion {
        /// The name of the array.
        array: String,
        /// The name of the version.
        version: String,
    },
}

/// Whether tokens begin a statement about arrays.
pub(crate) fn begins(tokens: &[TokenWithSpan]) -> bool {
    let mut words = words::leading(tokens);
    let mut word = || words.next().unwrap_or_default();
    let (first, second) = (word(), word());
    matches!(first.as_str(), "create" | "drop") && matches!(second.as_str(), "array" | "version")
}

/// Reads such a statement.
///
/// # Errors
/// [`Error::Syntax`] with a place; [`Error::Invalid`] for an array that makes no sense.
pub(crate) fn statement(tokens: Vec<TokenWithSpan>) -> Result<ArrayStatement> {
    let mut parser = dialect::parser(tokens);
    let creates = parser.parse_keyword(Keyword::CREATE);
    if !creates {
        parser.expect_keyword(Keyword::DROP)?;
    }
    let version = word(&mut parser, "version");
    if !version {
        need(&mut parser, "array")?;
    }
    let found = match (creates, version) {
        (true, false) => create(&mut parser)?,
        (false, false) => drop(&mut parser)?,
        (creates, true) => {
            let version = column_name(&parser.parse_identifier()?);
            need(&mut parser, "of")?;
            let array = table_name(&parser.parse_object_name(false)?)?;
            if creates {
                ArrayStatement::CreateVersion { array, version }
            } else {
                ArrayStatement::DropVersion { array, version }
            }
        }
    };
    words::end(&mut parser)?;
    Ok(found)
}

type Parsed<T> = std::result::Result<T, ParserError>;

fn drop(parser: &mut Parser<'_>) -> Result<ArrayStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names: Vec<ObjectName> =
        parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
    let names = names.iter().map(table_name).collect::<Result<_>>()?;
    Ok(ArrayStatement::Drop { names, if_exists })
}

fn create(parser: &mut Parser<'_>) -> Result<ArrayStatement> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = table_name(&parser.parse_object_name(false)?)?;
    check_new(&name)?;
    parser.expect_token(&Token::LParen)?;
    let (mut dimensions, mut attributes) = (Vec::new(), Vec::new());
    loop {
        let name = column_name(&parser.parse_identifier()?);
        check_column(&name)?;
        let at = parser.peek_token();
        let of = typed(parser)?;
        if word(parser, "dimension") {
            if !attributes.is_empty() {
                return Err(Error::coded(
                    "42601",
                    format!(
                        "dimension \"{name}\" stands behind attributes; write all dimensions first"
                    ),
                ));
            }
            dimensions.push(dimension(parser, &name, of)?);
        } else {
            let Some(of) = of else {
                return Err(unexpected(parser, "a type, or DIMENSION", at));
            };
            attributes.push(attribute(parser, &name, of)?);
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    let layout = if word(parser, "sparse") {
        Layout::Sparse
    } else {
        Layout::Dense
    };
    let schema = Schema::new(dimensions, attributes).map_err(Error::from)?;
    Ok(ArrayStatement::Create {
        name,
        schema: schema.with_layout(layout),
        if_not_exists,
    })
}

/// SQL's types of numbers, by PostgreSQL's names, and DuckDB's where PostgreSQL has none.
const TYPES: [(&str, DataType); 17] = [
    ("boolean", DataType::Bool),
    ("bool", DataType::Bool),
    ("tinyint", DataType::I8),
    ("smallint", DataType::I16),
    ("int2", DataType::I16),
    ("integer", DataType::I32),
    ("int", DataType::I32),
    ("int4", DataType::I32),
    ("bigint", DataType::I64),
    ("utinyint", DataType::U8),
    ("usmallint", DataType::U16),
    ("uinteger", DataType::U32),
    ("ubigint", DataType::U64),
    ("real", DataType::F32),
    ("float4", DataType::F32),
    ("double", DataType::F64),
    ("float8", DataType::F64),
];

/// What the type of a column says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Typed {
    Of(DataType),
    /// `numeric`: only of coordinates.
    Numeric,
}

/// A type, if one is next.
fn typed(parser: &mut Parser<'_>) -> Result<Option<Typed>> {
    if word(parser, "int8") {
        // As PostgreSQL has it.
        return Ok(Some(Typed::Of(DataType::I64)));
    }
    if word(parser, "numeric") || word(parser, "decimal") {
        return Ok(Some(Typed::Numeric));
    }
    if let Some((name, of)) = TYPES.iter().find(|(name, _)| word(parser, name)) {
        if *name == "double" {
            word(parser, "precision");
        }
        return Ok(Some(Typed::Of(*of)));
    }
    match parser.peek_token().token {
        Token::Word(found) if !found.value.eq_ignore_ascii_case("dimension") => {
            let known: Vec<_> = TYPES.iter().map(|(name, _)| *name).collect();
            Err(Error::unsupported(format!(
                "no attribute of an array has type {}; there are {}",
                found.value.to_lowercase(),
                known.join(", ")
            )))
        }
        _ => Ok(None),
    }
}

fn dimension(parser: &mut Parser<'_>, name: &str, of: Option<Typed>) -> Result<Dimension> {
    let mut dimension = if parser.consume_token(&Token::LBracket) {
        let dimension = range(parser, name)?;
        parser.expect_token(&Token::RBracket)?;
        dimension
    } else {
        parser.expect_token(&Token::LParen)?;
        let list = parser.parse_comma_separated(decimal)?;
        parser.expect_token(&Token::RParen)?;
        Dimension::listed(name, list)
    };
    let fits = match of {
        None => true,
        Some(Typed::Numeric) => !dimension.is_integer(),
        Some(Typed::Of(of)) => of.is_integer() && dimension.is_integer(),
    };
    if !fits {
        return Err(Error::coded(
            "42P17",
            format!(
                "dimension \"{name}\": coordinates that are whole numbers one after the other are bigint, and others numeric; leave the type out, or write that"
            ),
        ));
    }
    if word(parser, "growing") {
        dimension = dimension.growing();
    }
    if word(parser, "chunk") {
        let cells = parser.parse_literal_uint()?;
        if cells == 0 {
            return Err(Error::coded(
                "42P17",
                format!("dimension \"{name}\": a chunk has at least one cell along it"),
            ));
        }
        dimension = dimension.chunk(cells);
    }
    Ok(dimension)
}

/// `first:last[:step]`; with `*` as the last it has no cell yet, and grows.
fn range(parser: &mut Parser<'_>, name: &str) -> Result<Dimension> {
    let first = decimal(parser)?;
    parser.expect_token(&Token::Colon)?;
    let last = if parser.consume_token(&Token::Mul) {
        None
    } else {
        Some(decimal(parser)?)
    };
    let step = if parser.consume_token(&Token::Colon) {
        Some(decimal(parser)?)
    } else {
        None
    };
    let one = step.unwrap_or(Decimal::from(1));
    let length =
        match last {
            None => 0,
            Some(last) => first.steps_to(last, one).ok_or_else(|| {
                Error::coded(
                    "42P17",
                    format!(
                        "dimension \"{name}\": steps of {one} do not lead from {first} to {last}"
                    ),
                )
            })? + 1,
        };
    let dimension = match (first.to_i64(), step) {
        (Some(start), None) => Dimension::integer(name, start, length),
        _ => Dimension::regular(name, first, one, length),
    };
    Ok(if last.is_none() {
        dimension.growing()
    } else {
        dimension
    })
}

/// A coordinate, with all digits that were written.
fn decimal(parser: &mut Parser<'_>) -> Parsed<Decimal> {
    let minus = parser.consume_token(&Token::Minus);
    let token = parser.next_token();
    let Token::Number(digits, _) = &token.token else {
        return parser.expected("a coordinate", token);
    };
    let text = format!("{}{digits}", if minus { "-" } else { "" });
    match text.parse() {
        Ok(decimal) => Ok(decimal),
        Err(_) => parser.expected("a number with at most 18 digits", token),
    }
}

fn attribute(parser: &mut Parser<'_>, name: &str, of: Typed) -> Result<Attribute> {
    let Typed::Of(data_type) = of else {
        return Err(Error::unsupported(format!(
            "attribute \"{name}\": attributes of arrays are no numeric; take double, or bigint"
        )));
    };
    // As in SQL, and not as in AFL, a column may be null if nothing else is said.
    let nullable = if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
        false
    } else {
        let _ = parser.parse_keyword(Keyword::NULL);
        true
    };
    let mut attribute = Attribute::new(name, data_type);
    if nullable {
        attribute = attribute.nullable();
    }
    if parser.parse_keyword(Keyword::DEFAULT) {
        let value = scalar(parser)?;
        let fits = value.cast(data_type).filter(|of| !of.is_null() || nullable);
        attribute = attribute.fill(fits.ok_or_else(|| {
            Error::coded(
                "42P17",
                format!("attribute \"{name}\" cannot have the default {value}"),
            )
        })?);
    }
    if word(parser, "compression") {
        let Ident { value: how, .. } = parser.parse_identifier()?;
        attribute = attribute.compressed(match how.to_lowercase().as_str() {
            "zstd" => Compression::Zstd(1),
            "lz4" => Compression::Lz4,
            "none" => Compression::None,
            _ => {
                return Err(Error::coded(
                    "22023",
                    format!("there is no compression {how}; there are zstd, lz4 and none"),
                ));
            }
        });
    }
    Ok(attribute)
}

/// A number, a truth value, or null.
fn scalar(parser: &mut Parser<'_>) -> Parsed<Scalar> {
    let minus = parser.consume_token(&Token::Minus);
    let token = parser.next_token();
    let value = match &token.token {
        Token::Number(digits, _) => {
            let text = format!("{}{digits}", if minus { "-" } else { "" });
            match (text.parse(), text.parse()) {
                (Ok(whole), _) => Some(Scalar::Int(whole)),
                (_, Ok(float)) => Some(Scalar::Float(float)),
                _ => None,
            }
        }
        Token::Word(word) if !minus => match word.keyword {
            Keyword::TRUE => Some(Scalar::Bool(true)),
            Keyword::FALSE => Some(Scalar::Bool(false)),
            Keyword::NULL => Some(Scalar::Null),
            _ => None,
        },
        _ => None,
    };
    match value {
        Some(value) => Ok(value),
        None => parser.expected("a number, true, false or null", token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::DIALECT;
    use sqlparser::tokenizer::Tokenizer;

    fn read(text: &str) -> Result<ArrayStatement> {
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
        let tokens = tokens.unwrap();
        assert!(begins(&tokens), "{text}");
        statement(tokens)
    }

    #[test]
    fn arrays_are_what_afl_makes_of_them() {
        let text = "create array if not exists temperature (
            latitude numeric dimension [-25.420:-25.520:-0.001], depth dimension (1.5, 2, 7.25) chunk 2,
            year bigint dimension [1990:*] growing chunk 10,
            celsius real compression zstd, count integer not null default -1, \"On\" boolean default true) sparse";
        let ArrayStatement::Create {
            name,
            schema,
            if_not_exists: true,
        } = read(text).unwrap()
        else {
            panic!("it creates");
        };
        assert_eq!(name, "temperature");
        assert_eq!(schema.shape(), [101, 3, 0]);
        assert_eq!(schema.layout(), Layout::Sparse);
        let [latitude, depth, year] = schema.dimensions() else {
            panic!("three dimensions");
        };
        assert_eq!(latitude.span(), "-25.420 to -25.520");
        assert_eq!(
            (depth.span().as_str(), depth.chunk_length()),
            ("1.5 to 7.25", 2)
        );
        assert!(year.is_growing() && year.is_integer() && year.chunk_length() == 10);
        let [celsius, count, on] = schema.attributes() else {
            panic!("three attributes");
        };
        assert!(celsius.is_nullable() && celsius.compression() == Compression::Zstd(1));
        assert_eq!(
            (count.is_nullable(), count.fill_value()),
            (false, Scalar::Int(-1))
        );
        assert_eq!((on.name(), on.fill_value()), ("On", Scalar::Bool(true)));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (text, part) in [
            ("create array a (v int)", "1 to 32 dimensions"),
            (
                "create array a (x dimension [0:3])",
                "at least one attribute",
            ),
            (
                "create array a (v int, x dimension [0:3])",
                "stands behind attributes",
            ),
            ("create array a (x dimension [0:3], v text)", "type text"),
            (
                "create array a (x dimension [0:3], v numeric)",
                "take double",
            ),
            (
                "create array a (x numeric dimension [0:3], v int)",
                "bigint",
            ),
            ("create array a (x double dimension [0:3], v int)", "bigint"),
            (
                "create array a (x dimension [0:3:2], v int)",
                "do not lead from 0 to 3",
            ),
            (
                "create array a (x dimension [0:3] chunk 0, v int)",
                "at least one cell",
            ),
            (
                "create array a (x dimension [0:3], v smallint default 99999)",
                "default 99999",
            ),
            (
                "create array a (x dimension [0:3], v int not null default null)",
                "default null",
            ),
            (
                "create array a (x dimension [0:3], v int compression snappy)",
                "snappy",
            ),
            (
                "create array a (x dimension [0:3], v int) dense",
                "end of the statement",
            ),
            ("create array a (x dimension, v int)", "expected"),
            ("create array a (x, v int)", "DIMENSION"),
            ("drop array", "expected"),
            ("create version v of", "expected"),
            ("create version v a", "OF"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(
                error.to_lowercase().contains(&part.to_lowercase()),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn versions_are_kept_and_dropped() {
        let made = read("create version \"Monday 1\" of A").unwrap();
        let kept = |made| match made {
            ArrayStatement::CreateVersion { array, version }
            | ArrayStatement::DropVersion { array, version } => (array, version),
            other => panic!("{other:?}"),
        };
        assert_eq!(kept(made), ("a".to_owned(), "Monday 1".to_owned()));
        let made = read("drop version v1 of public.a").unwrap();
        assert_eq!(kept(made), ("a".to_owned(), "v1".to_owned()));
    }
}
