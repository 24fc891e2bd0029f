//! Uuids: 16 bytes, from texts and to texts.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, FixedSizeBinaryBuilder, StringArray};
use arrow::datatypes::{DataType, Field};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, exec_err};
use datafusion_expr::ScalarFunctionArgs;
use datafusion_functions::string;

/// A new uuid, as an array of one.
///
/// # Errors
/// If there is no randomness.
pub fn random() -> Result<ArrayRef> {
    static OPTIONS: LazyLock<Arc<ConfigOptions>> = LazyLock::new(Arc::default);
    let made = string::uuid().invoke_with_args(ScalarFunctionArgs {
        args: Vec::new(),
        arg_fields: Vec::new(),
        number_rows: 1,
        return_field: Arc::new(Field::new("uuid", DataType::Utf8, false)),
        config_options: Arc::clone(&OPTIONS),
    })?;
    read(made.to_array(1)?.as_string::<i32>())
}

/// The uuids that texts say.
///
/// # Errors
/// For a text that is none.
pub fn read(texts: &StringArray) -> Result<ArrayRef> {
    let mut out = FixedSizeBinaryBuilder::with_capacity(texts.iter().len(), 16);
    for text in texts {
        match text {
            None => out.append_null(),
            Some(text) => match parse(text) {
                Some(id) => out.append_value(id)?,
                None => return exec_err!("invalid input syntax for type uuid: \"{text}\""),
            },
        }
    }
    Ok(Arc::new(out.finish()))
}

/// 32 hexadecimal digits, with a hyphen after any group of four, in braces or not.
fn parse(text: &str) -> Option<[u8; 16]> {
    let text = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut rest = text.as_bytes();
    let mut id = [0; 16];
    for (at, byte) in id.iter_mut().enumerate() {
        let (digits, behind) = rest.split_first_chunk::<2>()?;
        let digit = |d: u8| char::from(d).to_digit(16);
        *byte = (digit(digits[0])? << 4 | digit(digits[1])?) as u8;
        rest = match behind.strip_prefix(b"-") {
            Some(behind) if at % 2 == 1 && at < 15 => behind,
            _ => behind,
        };
    }
    rest.is_empty().then_some(id)
}

/// A uuid as PostgreSQL writes it.
pub fn write(id: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in id.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(digit.into(), 16));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_read_as_postgresql_does() {
        let id = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [
            id,
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        ] {
            assert_eq!(
                parse(text).map(|id| write(&id)).as_deref(),
                Some(id),
                "{text}"
            );
        }
        for text in [
            "",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a112",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0e-ebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-",
            " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
