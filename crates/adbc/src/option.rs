//! Values of options, which come as texts or as numbers.

use adbc_core::error::Result;
use adbc_core::options::OptionValue;

use crate::error::{invalid, missing, unknown};

/// The text that an option was set to.
pub(crate) fn text(key: &str, value: &OptionValue) -> Result<String> {
    match value {
        OptionValue::String(text) => Ok(text.clone()),
        OptionValue::Bytes(bytes) => String::from_utf8(bytes.clone())
            .map_err(|_| invalid(format!("{key}: the bytes are no text in UTF-8"))),
        OptionValue::Int(number) => Ok(number.to_string()),
        _ => Err(invalid(format!("{key}: give a text, not {value:?}"))),
    }
}

/// `true` or `false`.
pub(crate) fn truth(key: &str, value: &OptionValue) -> Result<bool> {
    let wrong = || invalid(format!("{key}: give \"true\" or \"false\", not {value:?}"));
    match value {
        OptionValue::String(text) => match text.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(wrong()),
        },
        OptionValue::Int(1) => Ok(true),
        OptionValue::Int(0) => Ok(false),
        _ => Err(wrong()),
    }
}

/// A number that is not negative, also one in a text.
pub(crate) fn number(key: &str, value: &OptionValue) -> Result<u64> {
    let read = match value {
        OptionValue::Int(number) => u64::try_from(*number).ok(),
        OptionValue::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    read.ok_or_else(|| invalid(format!("{key}: give a number from 0 on, not {value:?}")))
}

/// The number that the text of an option is, for those who ask for one.
pub(crate) fn as_int(key: &str, text: &str) -> Result<i64> {
    match text {
        "true" => Ok(1),
        "false" => Ok(0),
        _ => text
            .parse()
            .map_err(|_| unknown(format!("{key} is {text:?}, which is no whole number"))),
    }
}

/// As [`as_int`], for those who ask for a fraction.
pub(crate) fn as_double(key: &str, text: &str) -> Result<f64> {
    text.parse()
        .map_err(|_| unknown(format!("{key} is {text:?}, which is no number")))
}

/// The refusal of an option that there is not.
pub(crate) fn no_option(what: &str, key: &str) -> adbc_core::error::Error {
    missing(format!("{what} have no option {key:?}"))
}

/// The refusal to tell an option that there is not, or that was not set.
pub(crate) fn not_set(what: &str, key: &str) -> adbc_core::error::Error {
    unknown(format!("{what} have no option {key:?}, or it is not set"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_what_they_are_for() {
        assert!(truth("k", &"true".into()).unwrap());
        assert!(!truth("k", &OptionValue::Int(0)).unwrap());
        assert!(
            truth("k", &"yes".into())
                .unwrap_err()
                .message
                .contains("k:")
        );
        assert_eq!(number("k", &" 12".into()), Ok(12));
        assert!(number("k", &OptionValue::Int(-1)).is_err());
        assert!(number("k", &OptionValue::Double(1.0)).is_err());
        assert_eq!(
            text("k", &OptionValue::Bytes(b"ab".to_vec())).unwrap(),
            "ab"
        );
        assert!(text("k", &OptionValue::Bytes(vec![0xff])).is_err());
        assert_eq!(as_int("k", "true"), Ok(1));
        assert!(as_int("k", "x").is_err());
    }
}
