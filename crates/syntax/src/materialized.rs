//! The grammar of materialized views: queries whose rows are kept.
//!
//! ```text
//! create materialized view [if not exists] name [(columns)] as query [with [no] data]
//! refresh materialized view [concurrently] name [with [no] data]
//! ```

use messages::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::parser::IsOptional;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect;
use crate::grammar::refused;
use crate::names::written;
use crate::words::{self, is_word, need, word};

/// A statement about materialized views.
#[derive(Clone, Debug)]
pub enum MaterializedStatement {
    /// `create materialized view`.
    Create {
        /// Its name.
        name: String,
        /// Without an error if there is one.
        if_not_exists: bool,
        /// The text of a plain view of the same columns.
        text: String,
        /// Whether it is filled at once.
        with_data: bool,
    },
    /// `refresh materialized view`.
    Refresh {
        /// Its name.
        name: String,
        /// Whether it is filled; emptied if not.
        with_data: bool,
    },
}

/// Reads such a statement; `None` of others. `source` is the text of tokens.
///
/// # Errors
/// [`Error::Syntax`] with a place.
pub(super) fn statement(
    tokens: &[TokenWithSpan],
    source: impl Fn(&[TokenWithSpan]) -> String,
) -> Result<Option<MaterializedStatement>> {
    let mut words = words::leading(tokens);
    let mut next = || words.next().unwrap_or_default();
    let (first, second, third) = (next(), next(), next());
    if second != "materialized" || third != "view" {
        return Ok(None);
    }
    let (tokens, with_data) = without_data(tokens);
    match first.as_str() {
        "create" => create(tokens, with_data, source).map(Some),
        "refresh" => refresh(tokens, with_data).map(Some),
        _ => Ok(None),
    }
}

/// The tokens before `with [no] data` at the end, and what that says.
fn without_data(tokens: &[TokenWithSpan]) -> (&[TokenWithSpan], bool) {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF))
        .collect();
    let is = |at: &usize, wanted: &str| is_word(&tokens[*at].token, wanted);
    match &whole[..] {
        [.., with, no, data] if is(with, "with") && is(no, "no") && is(data, "data") => {
            (&tokens[..*with], false)
        }
        [.., with, data] if is(with, "with") && is(data, "data") => (&tokens[..*with], true),
        _ => (tokens, true),
    }
}

fn create(
    tokens: &[TokenWithSpan],
    with_data: bool,
    source: impl Fn(&[TokenWithSpan]) -> String,
) -> Result<MaterializedStatement> {
    let begins = tokens.iter().position(|token| is_word(&token.token, "as"));
    let Some(begins) = begins else {
        return Err(Error::Syntax {
            message: "expected AS and a query".into(),
            position: None,
        });
    };
    let (head, query) = tokens.split_at(begins);
    let mut parser = dialect::parser(head.to_vec());
    need(&mut parser, "create")?;
    need(&mut parser, "materialized")?;
    need(&mut parser, "view")?;
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let object = parser.parse_object_name(false)?;
    let name = written(&object)?;
    let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false)?;
    words::end(&mut parser)?;
    let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let columns = if columns.is_empty() {
        String::new()
    } else {
        format!(" ({})", columns.join(", "))
    };
    Ok(MaterializedStatement::Create {
        name,
        if_not_exists,
        text: format!("create view {object}{columns} {}", source(query)),
        with_data,
    })
}

fn refresh(tokens: &[TokenWithSpan], with_data: bool) -> Result<MaterializedStatement> {
    let mut parser = dialect::parser(tokens.to_vec());
    need(&mut parser, "refresh")?;
    need(&mut parser, "materialized")?;
    need(&mut parser, "view")?;
    // Readers are never kept waiting.
    if word(&mut parser, "concurrently") && !with_data {
        return Err(refused(
            "refresh materialized view concurrently ... with no data",
        ));
    }
    let name = written(&parser.parse_object_name(false)?)?;
    words::end(&mut parser)?;
    Ok(MaterializedStatement::Refresh { name, with_data })
}
