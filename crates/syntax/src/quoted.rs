//! The place of the constant that an error is about.

use functions::json::normal::SYNTAX;
use functions::json::wrong;
use messages::Error;
use messages::error::Position;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::dialect::DIALECT;

/// The codes of errors that quote a text that is no value of its type, or none that the type has room for.
const CODES: [&str; 6] = ["22003", "22007", "22008", "22009", "22015", "22P02"];

/// Where in the statement `text` the constant stands that `error` quotes, as `'x'` in `select 'x'::int`: the first
/// of those that are alike. None if the error is about something else, or about a value that the statement has not
/// written; of those that have a [position](Error::position) it says nothing.
pub fn quoted_constant(error: &Error, text: &str) -> Option<Position> {
    if error.position().is_some() || !CODES.contains(&error.sqlstate()) {
        return None;
    }
    let told = error.told();
    let place = (told.message.find('"'), told.message.rfind('"'));
    let quoted = match place {
        (Some(from), Some(to)) => told.message.get(from + 1..to),
        _ => None,
    };
    let why = told.context.as_ref().filter(|_| told.message == SYNTAX);
    let is_it = |own: &str| match why {
        // What is wrong with JSON is told, and not the text.
        Some(why) => wrong::told(own).is_some_and(|all| all.trim_end().ends_with(why)),
        None => quoted == Some(own),
    };
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
    let same = |token: &Token| match token {
        Token::SingleQuotedString(own) | Token::EscapedStringLiteral(own) => is_it(own),
        Token::DollarQuotedString(own) => is_it(&own.value),
        _ => false,
    };
    let mut tokens = tokens.ok()?;
    tokens.retain(|own| !matches!(own.token, Token::Whitespace(_)));
    let found = tokens.iter().position(|own| same(&own.token))?;
    if is_read_by_pattern(&tokens[..found]) {
        return None;
    }
    let start = tokens[found].span.start;
    Some(Position {
        line: start.line,
        column: start.column,
    })
}

/// Whether what follows these tokens is the text that a function reads when the query runs, as PostgreSQL does: only
/// what is wrong with the constant itself is told of its place.
fn is_read_by_pattern(before: &[TokenWithSpan]) -> bool {
    let [.., name, open] = before else {
        return false;
    };
    let reads = |name: &str| {
        let name = name.to_lowercase();
        ["to_date", "to_timestamp", "to_number"].contains(&name.as_str())
    };
    open.token == Token::LParen && matches!(&name.token, Token::Word(word) if reads(&word.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_found_by_what_errors_quote() {
        let error = |code, message: &str| Error::Execution {
            code,
            message: message.into(),
        };
        let wrong = error("22P02", "invalid input syntax for type integer: \"it's\"");
        let text = "select 'its',\n  'it''s'::int, 'it''s'";
        let place = Position { line: 2, column: 3 };
        assert_eq!(quoted_constant(&wrong, text), Some(place));
        let place = Position { line: 1, column: 8 };
        assert_eq!(
            quoted_constant(&wrong, "select $a$it's$a$::int"),
            Some(place)
        );
        assert_eq!(quoted_constant(&wrong, "select a::int from t"), None);
        let field = error("22008", "date/time field value out of range: \"it's\"");
        assert_eq!(
            quoted_constant(&field, "select to_date('it''s', 'YYYY')"),
            None
        );
        assert!(quoted_constant(&field, "select date 'it''s'").is_some());
        // A text that ends nowhere.
        assert_eq!(quoted_constant(&wrong, "select 'it''s', '"), None);
        let long = error("22003", "value \"99999\" is out of range for type smallint");
        assert!(quoted_constant(&long, "select '99999'::smallint").is_some());
        let json = error(
            "22P02",
            "invalid input syntax for type json: Token \"x\" is invalid. JSON data, line 1: x",
        );
        let place = Position {
            line: 1,
            column: 13,
        };
        assert_eq!(quoted_constant(&json, "select '1', 'x'::json"), Some(place));
        let other = error(
            "23505",
            "duplicate key value violates unique constraint \"a\"",
        );
        assert_eq!(quoted_constant(&other, "select 'a'"), None);
    }
}
