//! The options of `copy`, in PostgreSQL's two spellings and DataFusion's, and what PostgreSQL refuses of them.

use ingest::Format;
use messages::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::encodings;
use crate::names::column_name;

/// What the first line of text holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderLine {
    /// A row.
    #[default]
    Row,
    /// The names of the columns, which are not looked at.
    Names,
    /// The names of the columns that are read, in their order.
    Match,
}

/// The columns that an option is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Forced {
    /// None.
    #[default]
    None,
    /// All of them.
    All,
    /// Those of these names.
    Columns(Vec<String>),
}

impl Forced {
    /// Whether each of the columns of these names is one of them.
    pub fn of<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<bool> {
        let is_one = |name: &str| match self {
            Forced::None => false,
            Forced::All => true,
            Forced::Columns(all) => all.iter().any(|own| own == name),
        };
        names.map(is_one).collect()
    }

    /// Whether any column may be one.
    pub(crate) fn is_any(&self) -> bool {
        *self != Forced::None
    }

    /// That all columns that are named are among those that are copied.
    ///
    /// # Errors
    /// For one that is not, which `missing` makes of its name; for one that is named twice.
    pub fn check(&self, copied: &[&str], missing: impl Fn(&str) -> Error) -> Result<()> {
        let Forced::Columns(names) = self else {
            return Ok(());
        };
        for (at, name) in names.iter().enumerate() {
            if !copied.contains(&name.as_str()) {
                return Err(missing(name));
            }
            if names[..at].contains(name) {
                return Err(Error::coded(
                    "42701",
                    format!("column \"{name}\" specified more than once"),
                ));
            }
        }
        Ok(())
    }
}

/// The format of a file, as far as the statement tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileOptions {
    /// `parquet`, `csv`, `text`, `json`, `arrow`; without it the file's extension decides.
    pub format: Option<String>,
    /// What the first line of a CSV file holds.
    pub header: Option<HeaderLine>,
    /// What separates the fields of a CSV file.
    pub delimiter: Option<u8>,
    /// What encloses fields of a CSV file that contain the delimiter.
    pub quote: Option<u8>,
    /// What escapes a quote inside a field of a CSV file.
    pub escape: Option<u8>,
    /// The text that stands for NULL in a CSV file.
    pub null: Option<String>,
    /// Columns whose values stand within quotes in any case.
    pub force_quote: Forced,
    /// Columns of which the text of NULL is NULL within quotes, too.
    pub force_null: Forced,
    /// Columns of which the text of NULL is that text.
    pub force_not_null: Forced,
    /// The encoding of text.
    pub encoding: Option<String>,
    /// Compression of a Parquet file: `zstd(3)`, `snappy`, ...; of CSV and JSON as a whole: `gzip`, `zstd`.
    pub compression: Option<String>,
    /// How the dates of a CSV file are written: `dd.mm.yyyy`.
    pub dates: Option<String>,
    /// The first option whose value is none, as a code and a message: told when all of the statement was read.
    pub refused: Option<(&'static str, String)>,
}

/// The kinds of formats that options differ for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PostgreSQL's text, a row a line.
    Text,
    /// Values with a delimiter between them.
    Csv,
    /// PostgreSQL's binary format.
    Binary,
    /// Not one of PostgreSQL's.
    Other,
}

impl Kind {
    /// That of a format by its name, or else by that of its file; CSV if nothing tells.
    pub fn of(format: Option<&str>, file: &str) -> Kind {
        let named = match format {
            Some("binary") => return Kind::Binary,
            Some(format) => Format::named(format),
            None => Format::of_name(file),
        };
        match named {
            Some(Format::Text) => Kind::Text,
            None | Some(Format::Csv | Format::Tbl) => Kind::Csv,
            Some(_) => Kind::Other,
        }
    }
}

impl FileOptions {
    /// Refuses what PostgreSQL refuses: values that are none, and options that a format or a direction does not have.
    ///
    /// # Errors
    /// With PostgreSQL's code and message.
    pub fn check(&self, kind: Kind, incoming: bool) -> Result<()> {
        if let Some((code, message)) = &self.refused {
            return Err(Error::coded(code, message.clone()));
        }
        self.check_header(kind, incoming)?;
        if let Some(encoding) = &self.encoding {
            encodings::check(encoding)?;
        }
        let wrong = |code, message: &str| Err(Error::coded(code, message));
        if kind == Kind::Binary {
            if self.delimiter.is_some() {
                return wrong("42601", "cannot specify DELIMITER in BINARY mode");
            }
            if self.null.is_some() {
                return wrong("42601", "cannot specify NULL in BINARY mode");
            }
            if self.header.unwrap_or_default() != HeaderLine::Row {
                return wrong("0A000", "cannot specify HEADER in BINARY mode");
            }
        }
        self.check_marks(kind)?;
        self.check_forced(kind, incoming)?;
        self.check_null(kind)
    }

    fn check_header(&self, kind: Kind, incoming: bool) -> Result<()> {
        if self.header != Some(HeaderLine::Match) {
            return Ok(());
        }
        let message = match kind {
            _ if !incoming => "cannot use \"match\" with HEADER in COPY TO",
            Kind::Other => "HEADER \"match\" is for text and CSV alone",
            _ => return Ok(()),
        };
        Err(Error::coded("0A000", message))
    }

    /// Delimiter, quote and escape.
    fn check_marks(&self, kind: Kind) -> Result<()> {
        let wrong = |code, message: String| Err(Error::coded(code, message));
        let is_end = |byte: u8| matches!(byte, b'\n' | b'\r');
        if self.delimiter.is_some_and(is_end) {
            return wrong(
                "22023",
                "COPY delimiter cannot be newline or carriage return".into(),
            );
        }
        if let Some(null) = &self.null
            && null.bytes().any(is_end)
        {
            return wrong(
                "22023",
                "COPY null representation cannot use newline or carriage return".into(),
            );
        }
        if kind == Kind::Text
            && let Some(delimiter) = self.delimiter
            && (delimiter.is_ascii_lowercase()
                || delimiter.is_ascii_digit()
                || matches!(delimiter, b'\\' | b'.'))
        {
            let message = format!("COPY delimiter cannot be \"{}\"", char::from(delimiter));
            return wrong("22023", message);
        }
        if matches!(kind, Kind::Text | Kind::Binary) {
            let given = [("quote", self.quote), ("escape", self.escape)];
            if let Some((name, _)) = given.into_iter().find(|(_, byte)| byte.is_some()) {
                return wrong("0A000", format!("COPY {name} available only in CSV mode"));
            }
        }
        if kind == Kind::Csv && self.delimiter() == self.quote() {
            return wrong("22023", "COPY delimiter and quote must be different".into());
        }
        Ok(())
    }

    fn check_forced(&self, kind: Kind, incoming: bool) -> Result<()> {
        let forced = [
            ("quote", &self.force_quote, false, "TO"),
            ("not null", &self.force_not_null, true, "FROM"),
            ("null", &self.force_null, true, "FROM"),
        ];
        for (name, columns, reads, direction) in forced {
            let message = match columns {
                Forced::None => continue,
                _ if kind != Kind::Csv => {
                    format!("COPY force {name} available only in CSV mode")
                }
                _ if incoming != reads => {
                    format!("COPY force {name} only available using COPY {direction}")
                }
                _ => continue,
            };
            return Err(Error::coded("0A000", message));
        }
        Ok(())
    }

    /// What stands for NULL.
    fn check_null(&self, kind: Kind) -> Result<()> {
        let Some(null) = self.null.as_ref().map(|null| null.as_bytes()) else {
            return Ok(());
        };
        let delimiter = match kind {
            Kind::Csv => self.delimiter(),
            _ => self.delimiter.unwrap_or(b'\t'),
        };
        let message = match kind {
            Kind::Text | Kind::Csv if null.contains(&delimiter) => {
                "COPY delimiter must not appear in the NULL specification"
            }
            Kind::Csv if null.contains(&self.quote()) => {
                "CSV quote character must not appear in the NULL specification"
            }
            _ => return Ok(()),
        };
        Err(Error::coded("0A000", message))
    }

    /// What separates fields of CSV.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter.unwrap_or(b',')
    }

    /// What stands around fields of CSV.
    pub fn quote(&self) -> u8 {
        self.quote.unwrap_or(b'"')
    }
}

/// The error for a column of an option that is none of those that are copied: all of a table are, or some, or those of a
/// query.
pub fn not_copied(option: &str, name: &str, table: Option<&str>, some: bool) -> Error {
    match table {
        _ if some => Error::coded(
            "42P10",
            format!("{option} column \"{name}\" not referenced by COPY"),
        ),
        Some(table) => Error::coded(
            "42703",
            format!("column \"{name}\" of relation \"{table}\" does not exist"),
        ),
        None => Error::coded("42703", format!("column \"{name}\" does not exist")),
    }
}

/// `stored as parquet`, `format csv`, `csv header delimiter '|'`, `with (format csv, header false)`,
/// `options ('format.delimiter' '|')`, in any combination.
pub(super) fn file_options(p: &mut Parser<'_>) -> std::result::Result<FileOptions, ParserError> {
    let mut options = Reading::default();
    loop {
        let token = p.next_token();
        match token.token {
            Token::EOF => return Ok(options.options),
            Token::LParen => {
                options.listed = true;
                loop {
                    options.next(p)?;
                    if !p.consume_token(&Token::Comma) {
                        break;
                    }
                }
                options.listed = false;
                p.expect_token(&Token::RParen)?;
            }
            Token::Word(ref word) => match word.value.to_lowercase().as_str() {
                "with" | "options" | "using" => {}
                "stored" => {
                    p.expect_keyword(Keyword::AS)?;
                    options.once("format")?;
                    options.options.format = Some(text(p)?.to_lowercase());
                }
                _ => {
                    p.prev_token();
                    options.next(p)?;
                }
            },
            _ => return p.expected("a file option or the end of the statement", token),
        }
    }
}

/// The options that were read.
#[derive(Default)]
struct Reading {
    options: FileOptions,
    /// Those that were given.
    given: Vec<&'static str>,
    /// They stand in parentheses.
    listed: bool,
}

impl Reading {
    /// That an option is given only once.
    fn once(&mut self, name: &'static str) -> std::result::Result<(), ParserError> {
        if self.given.contains(&name) {
            return Err(ParserError::ParserError(
                "conflicting or redundant options".into(),
            ));
        }
        self.given.push(name);
        Ok(())
    }

    fn next(&mut self, p: &mut Parser<'_>) -> std::result::Result<(), ParserError> {
        let at = p.peek_token();
        let name = option_name(p)?;
        match name.as_str() {
            "format" => {
                self.once("format")?;
                self.options.format = Some(text(p)?.to_lowercase());
            }
            "csv" | "parquet" | "json" | "arrow" | "binary" => {
                self.once("format")?;
                self.options.format = Some(name);
            }
            "header" | "has_header" => {
                self.once("header")?;
                self.options.header = Some(self.header(p)?);
            }
            "delimiter" | "delimiters" | "delim" | "sep" => {
                self.once("delimiter")?;
                self.options.delimiter = self.character(p, "delimiter")?;
            }
            "quote" => {
                self.once("quote")?;
                self.options.quote = self.character(p, "quote")?;
            }
            "escape" => {
                self.once("escape")?;
                self.options.escape = self.character(p, "escape")?;
            }
            "null" | "null_value" => {
                self.once("null")?;
                let _ = p.parse_keyword(Keyword::AS);
                self.options.null = Some(text(p)?);
            }
            "compression" => {
                self.once("compression")?;
                self.options.compression = Some(text(p)?);
            }
            "date_format" | "dateformat" => {
                self.once("date_format")?;
                self.options.dates = Some(text(p)?);
            }
            "encoding" => {
                self.once("encoding")?;
                self.options.encoding = Some(text(p)?);
            }
            // Rows that are written are as old as any.
            "freeze" => {
                self.once("freeze")?;
                _ = self.boolean(p, "freeze requires a Boolean value")?;
            }
            "force_quote" | "force_null" | "force_not_null" | "force" => self.forced(p, &name)?,
            _ => return unknown(p, at),
        }
        Ok(())
    }

    /// `force_quote (a, b)`, `force_quote *`; `force quote a, b` outside of parentheses.
    fn forced(&mut self, p: &mut Parser<'_>, name: &str) -> std::result::Result<(), ParserError> {
        let name = match name {
            "force_quote" => "force_quote",
            "force_null" => "force_null",
            "force_not_null" => "force_not_null",
            _ => match option_name(p)?.as_str() {
                "quote" => "force_quote",
                "null" => "force_null",
                "not" => {
                    p.expect_keyword(Keyword::NULL)?;
                    "force_not_null"
                }
                _ => {
                    p.prev_token();
                    let found = p.peek_token();
                    return p.expected("QUOTE, NULL or NOT NULL", found);
                }
            },
        };
        self.once(name)?;
        let columns = if p.consume_token(&Token::Mul) {
            Forced::All
        } else if !self.listed {
            columns(p)?
        } else if p.consume_token(&Token::LParen) {
            let columns = columns(p)?;
            p.expect_token(&Token::RParen)?;
            columns
        } else {
            let _ = text(p)?;
            self.refuse_list(name);
            Forced::None
        };
        if columns == Forced::All && name != "force_quote" {
            self.refuse_list(name);
            return Ok(());
        }
        match name {
            "force_quote" => self.options.force_quote = columns,
            "force_null" => self.options.force_null = columns,
            _ => self.options.force_not_null = columns,
        }
        Ok(())
    }

    fn refuse_list(&mut self, name: &str) {
        let message = format!("argument to option \"{name}\" must be a list of column names");
        self.refuse("22023", message);
    }

    fn refuse(&mut self, code: &'static str, message: String) {
        self.options.refused.get_or_insert((code, message));
    }

    fn header(&self, p: &mut Parser<'_>) -> std::result::Result<HeaderLine, ParserError> {
        let value = self.value(p)?;
        match value.as_deref().map(truth) {
            None | Some(Some(true)) => Ok(HeaderLine::Names),
            Some(Some(false)) => Ok(HeaderLine::Row),
            Some(None) if value.is_some_and(|value| value.eq_ignore_ascii_case("match")) => {
                Ok(HeaderLine::Match)
            }
            Some(None) => Err(ParserError::ParserError(
                "header requires a Boolean value or \"match\"".into(),
            )),
        }
    }

    /// An optional truth value: `freeze` alone means `freeze true`.
    fn boolean(&self, p: &mut Parser<'_>, wrong: &str) -> std::result::Result<bool, ParserError> {
        match self.value(p)? {
            None => Ok(true),
            Some(value) => truth(&value).ok_or_else(|| ParserError::ParserError(wrong.to_owned())),
        }
    }

    /// The value of an option that needs none.
    fn value(&self, p: &mut Parser<'_>) -> std::result::Result<Option<String>, ParserError> {
        let is_value = match p.peek_token().token {
            Token::Comma | Token::RParen | Token::EOF => false,
            Token::Word(word) => {
                self.listed
                    || matches!(
                        word.keyword,
                        Keyword::TRUE | Keyword::FALSE | Keyword::ON | Keyword::OFF
                    )
            }
            _ => true,
        };
        is_value.then(|| text(p)).transpose()
    }

    fn character(
        &mut self,
        p: &mut Parser<'_>,
        name: &str,
    ) -> std::result::Result<Option<u8>, ParserError> {
        let _ = p.parse_keyword(Keyword::AS);
        let value = text(p)?;
        match value.as_bytes() {
            [byte] => return Ok(Some(*byte)),
            [b'\\', b't'] => return Ok(Some(b'\t')),
            _ => {}
        }
        self.refuse(
            "0A000",
            format!("COPY {name} must be a single one-byte character"),
        );
        Ok(None)
    }
}

/// What a word means that is true or false.
fn truth(value: &str) -> Option<bool> {
    match value.to_lowercase().as_str() {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn unknown(p: &Parser<'_>, at: TokenWithSpan) -> std::result::Result<(), ParserError> {
    p.expected(
        "FORMAT, HEADER, DELIMITER, QUOTE, ESCAPE, NULL, FORCE_QUOTE, FORCE_NULL, FORCE_NOT_NULL, ENCODING, COMPRESSION or DATE_FORMAT",
        at,
    )
}

/// `header`, `'format.has_header'`: the last part, in lower case.
fn option_name(p: &mut Parser<'_>) -> std::result::Result<String, ParserError> {
    let mut name = text(p)?;
    while p.consume_token(&Token::Period) {
        name = text(p)?;
    }
    Ok(name.rsplit('.').next().unwrap_or_default().to_lowercase())
}

fn text(p: &mut Parser<'_>) -> std::result::Result<String, ParserError> {
    let _ = p.consume_token(&Token::Eq);
    let token = p.next_token();
    match token.token {
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Ok(text),
        Token::EscapedStringLiteral(text) => Ok(text),
        Token::Number(text, _) => Ok(text),
        _ => p.expected("a word or a string", token),
    }
}

/// `a, b`
fn columns(p: &mut Parser<'_>) -> std::result::Result<Forced, ParserError> {
    let columns = p.parse_comma_separated(Parser::parse_identifier)?;
    Ok(Forced::Columns(columns.iter().map(column_name).collect()))
}
