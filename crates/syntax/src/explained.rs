//! What `explain` says before the statement, and `explain merge`, whose statement the parser does not know.

use datafusion_common::format::{ExplainFormat, ExplainStatementOptions};
use messages::{Error, Result};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::words::{is_word, leading};

/// Whether it runs, with the logical plan, as data.
///
/// # Errors
/// [`Error::Unsupported`] for other options.
pub(super) fn options(options: ExplainStatementOptions) -> Result<(bool, bool, bool)> {
    let ExplainStatementOptions {
        analyze,
        verbose,
        format,
        analyze_level,
        analyze_categories,
        show_statistics,
    } = options;
    let json = match format {
        None | Some(ExplainFormat::Indent) => Some(false),
        Some(ExplainFormat::PostgresJSON) => Some(true),
        Some(_) => None,
    };
    let json = json.filter(|_| {
        analyze_level.is_none() && analyze_categories.is_none() && show_statistics.is_none()
    });
    match json {
        Some(json) => Ok((analyze, verbose, json)),
        None => Err(Error::unsupported(
            "`explain` takes `analyze`, `verbose` and `format text | json`: other formats and options are not supported",
        )),
    }
}

/// An `explain` of a `merge` as one of a query, and the `merge`; none of other statements.
pub(super) fn of_merge(tokens: &[TokenWithSpan]) -> Option<(Vec<TokenWithSpan>, &[TokenWithSpan])> {
    if leading(tokens).next().as_deref() != Some("explain") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = None;
    for (place, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(_) if depth == 0 && is_word(&token.token, "merge") => {
                at = Some(place);
                break;
            }
            own @ Token::Word(_) if depth == 0 => {
                let known = ["explain", "analyze", "verbose"];
                if !known.iter().any(|word| is_word(own, word)) {
                    return None;
                }
            }
            _ => {}
        }
    }
    let (head, merge) = tokens.split_at_checked(at?)?;
    let mut head = head.to_vec();
    let place = merge.first()?.span;
    for token in [
        Token::make_keyword("SELECT"),
        Token::Number("1".to_owned(), false),
    ] {
        head.push(TokenWithSpan { token, span: place });
    }
    Some((head, merge))
}
