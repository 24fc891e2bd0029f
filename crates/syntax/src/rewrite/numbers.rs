//! Numbers as tokens.

use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Numbers as the planner reads them.
///
/// What is no whole number of 64 bits is a decimal, as it is with a point: `1e3` becomes `1000.`, and `9223372036854775808` gets a
/// point, too. Numbers with an exponent that have more digits than [`WRITTEN_OUT`] are doubles: `1e300` becomes
/// `cast('1e300' as double)`. `1_000` becomes `1000`, `0x1f` becomes `31`.
///
/// # Errors
///
/// For a number that runs into a word: `1abc` would be a column `1` with the name `abc`.
pub(crate) fn numbers(
    tokens: &[TokenWithSpan],
) -> std::result::Result<Vec<TokenWithSpan>, ParserError> {
    let mut changed = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::Number(text, long) => {
                let junk = match tokens.get(at + 1).map(|next| &next.token) {
                    _ if *long => "L",
                    Some(Token::Word(word)) => &word.value,
                    _ => "",
                };
                if !junk.is_empty() {
                    return Err(run_together(text, junk, token));
                }
                let plain = text.replace('_', "");
                if digits(&plain) > MOST_DIGITS {
                    return Err(too_long(token));
                }
                let negated = changed.iter().rev().find(|own| !is_space(own));
                let negated = negated.is_some_and(|own| own.token == Token::Minus);
                number(&plain, (token, negated), &mut changed);
            }
            Token::HexStringLiteral(digits) if is_number(token, digits) => {
                let value = u128::from_str_radix(&digits.replace('_', ""), 16);
                let Ok(value) = value else {
                    return Err(run_together("0x", digits, token));
                };
                changed.push(TokenWithSpan::new(
                    Token::Number(value.to_string(), false),
                    token.span,
                ));
            }
            _ => changed.push(token.clone()),
        }
    }
    Ok(changed)
}

fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The least number of which the opposite alone has 64 bits.
const LEAST: &str = "9223372036854775808";

/// A number, before which there may stand a minus.
fn number(text: &str, (token, negated): (&TokenWithSpan, bool), changed: &mut Vec<TokenWithSpan>) {
    let put = |token: Token, span| TokenWithSpan::new(token, span);
    let plain = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => written_out(mantissa, exponent),
        None => {
            let is_long = !text.contains('.') && text.parse::<i64>().is_err();
            let is_least = negated && text.trim_start_matches('0') == LEAST;
            let point = if is_long && !is_least { "." } else { "" };
            Some(format!("{text}{point}"))
        }
    };
    if let Some(plain) = plain {
        changed.push(put(Token::Number(plain, false), token.span));
        return;
    }
    let space = Token::Whitespace(Whitespace::Space);
    let parts = [
        Token::make_keyword("CAST"),
        Token::LParen,
        Token::SingleQuotedString(text.to_string()),
        space.clone(),
        Token::make_keyword("AS"),
        space,
        Token::make_keyword("DOUBLE"),
        Token::RParen,
    ];
    changed.extend(parts.map(|part| put(part, token.span)));
}

/// Whether the token is `0x1f` and not `X'1f'`: the tokeniser makes one of both, but the second is longer by a quote.
fn is_number(token: &TokenWithSpan, digits: &str) -> bool {
    let (start, end) = (token.span.start, token.span.end);
    start.line == end.line
        && end.column.saturating_sub(start.column) == digits.chars().count() as u64 + 2
}

/// Most digits of a number that is exact. One with an exponent and more is a double, and may have any.
const MOST_DIGITS: usize = 76;

/// Most digits of a number with an exponent that is exact, without the exponent.
const WRITTEN_OUT: usize = 38;

/// A number with an exponent as it is without one, with a point; none if it has too many digits then.
fn written_out(mantissa: &str, exponent: &str) -> Option<String> {
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let moved: i64 = exponent.parse().ok()?;
    let digits = format!("{whole}{fraction}");
    // Where the point stands, from the first digit on.
    let point = i64::try_from(whole.len()).ok()?.checked_add(moved)?;
    let most = WRITTEN_OUT as i64;
    if !(-most..=most).contains(&point) {
        return None;
    }
    let plain = if let Ok(point) = usize::try_from(point) {
        let digits = format!("{digits:0<point$}");
        let (whole, fraction) = digits.split_at(point);
        format!("{}.{fraction}", if whole.is_empty() { "0" } else { whole })
    } else {
        let zeros = usize::try_from(point.unsigned_abs()).ok()?;
        format!("0.{}{digits}", "0".repeat(zeros))
    };
    (self::digits(&plain) <= WRITTEN_OUT).then_some(plain)
}

/// How many digits of an exact number count.
fn digits(number: &str) -> usize {
    if number.contains(['e', 'E']) {
        return 0;
    }
    let whole = number.trim_start_matches('0');
    whole.bytes().filter(u8::is_ascii_digit).count()
}

fn too_long(token: &TokenWithSpan) -> ParserError {
    let start = token.span.start;
    ParserError::ParserError(format!(
        "a number has up to {MOST_DIGITS} digits: with an exponent it is a double at Line: {}, Column: {}",
        start.line, start.column
    ))
}

fn run_together(number: &str, junk: &str, token: &TokenWithSpan) -> ParserError {
    let start = token.span.start;
    ParserError::ParserError(format!(
        "the number {number}{junk} does not end where a word begins: put a space between, or `as` before a name at Line: {}, Column: {}",
        start.line, start.column
    ))
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::DIALECT;

    #[test]
    fn what_is_no_whole_number_of_64_bits_is_a_decimal() {
        for (text, wanted) in [
            ("1e3", "1000."),
            ("1.50e1", "15.0"),
            ("1.5e+3", "1500."),
            (".5e0", "0.5"),
            ("25e-1", "2.5"),
            ("1e-7", "0.0000001"),
            ("0e-4", "0.0000"),
            ("1e37", "10000000000000000000000000000000000000."),
            ("1e38", "CAST('1e38' AS DOUBLE)"),
            ("1e-39", "CAST('1e-39' AS DOUBLE)"),
            (
                "1e99999999999999999999",
                "CAST('1e99999999999999999999' AS DOUBLE)",
            ),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854775808."),
            ("-9223372036854775808", "-9223372036854775808"),
            ("- 9223372036854775809", "- 9223372036854775809."),
            ("1_000, 0x1f", "1000, 31"),
            ("1.", "1."),
        ] {
            let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
            let found = numbers(&tokens.unwrap()).unwrap();
            let found: String = found.iter().map(|own| own.token.to_string()).collect();
            assert_eq!(found, wanted, "{text}");
        }
    }
}
