//! `update t set j['a'][1] = '2'`: the value of a `jsonb` with another part, as PostgreSQL assigns to subscripts.

use datafusion_common::Result;
use messages::Error;

use crate::json::change::{array, object};
use crate::json::cut::{self, Kind};
use crate::json::normal::quote;

/// A key or a place on the way to a part.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub text: String,
    /// Whether it was written as a number.
    pub is_place: bool,
}

/// The value with `new` at the end of the way. What is missing on it is made: objects for keys, and arrays for places, which are
/// filled with nulls.
///
/// # Errors
/// If the way leads through a value that has no parts, or before the first item.
pub(crate) fn assigned(own: Option<&str>, way: &[Key], new: &str) -> Result<String> {
    let Some(first) = way.first() else {
        return Ok(new.to_string());
    };
    let empty = if first.is_place { "[]" } else { "{}" };
    put(own.unwrap_or(empty), way, new, 1)
}

fn put(text: &str, way: &[Key], new: &str, position: usize) -> Result<String> {
    let Some((key, rest)) = way.split_first() else {
        return Ok(new.to_string());
    };
    match Kind::of(text) {
        Kind::Object => {
            let mut quoted = String::new();
            quote(&key.text, &mut quoted);
            let mut members = cut::members(text);
            let at = members.iter().position(|(own, _)| *own == quoted);
            let value = match at {
                Some(at) => put(members[at].1, rest, new, position + 1)?,
                None => chain(rest, new),
            };
            match at {
                Some(at) => members[at].1 = &value,
                None => members.push((&quoted, &value)),
            }
            object(members)
        }
        Kind::Array => {
            let mut items = cut::items(text);
            let Ok(place) = key.text.trim().parse::<i32>() else {
                let text = &key.text;
                let message =
                    format!("path element at position {position} is not an integer: \"{text}\"");
                return Err(Error::coded("22P02", message).into());
            };
            let place = i64::from(place);
            let at = match place {
                0.. => place as usize,
                _ => match cut::position(items.len(), place) {
                    Some(at) => at,
                    None => {
                        let message = format!(
                            "path element at position {position} is out of range: {place}"
                        );
                        return Err(Error::coded("22023", message).into());
                    }
                },
            };
            let value = match items.get(at) {
                Some(item) => put(item, rest, new, position + 1)?,
                None => chain(rest, new),
            };
            if at >= MOST {
                return Err(Error::coded("54000", "a jsonb array has too many items").into());
            }
            while items.len() <= at {
                items.push("null");
            }
            items[at] = &value;
            Ok(array(&items))
        }
        _ => Err(Error::coded(
            "22023",
            "cannot replace existing key: The path assumes key is a composite object, but it is a scalar value.",
        )
        .into()),
    }
}

/// The most items that places make.
const MOST: usize = 10_000_000;

/// What is made of the rest of a way.
fn chain(way: &[Key], new: &str) -> String {
    let mut made = new.to_string();
    for key in way.iter().rev() {
        made = match key.text.trim().parse::<i32>() {
            Ok(place) => {
                let before = "null, ".repeat(usize::try_from(place).unwrap_or(0).min(MOST));
                format!("[{before}{made}]")
            }
            Err(_) => {
                let mut quoted = String::new();
                quote(&key.text, &mut quoted);
                format!("{{{quoted}: {made}}}")
            }
        };
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_assigned_as_in_postgresql() {
        let key = |text: &str, is_place| Key {
            text: text.into(),
            is_place,
        };
        let (a, b, one) = (key("a", false), key("b", false), key("1", true));
        for (own, way, wanted) in [
            (Some("{}"), vec![a.clone()], r#"{"a": 9}"#),
            (None, vec![a.clone()], r#"{"a": 9}"#),
            (None, vec![one.clone()], "[null, 9]"),
            (Some("[0]"), vec![one.clone()], "[0, 9]"),
            (
                Some(r#"{"a": {}}"#),
                vec![a.clone(), b.clone()],
                r#"{"a": {"b": 9}}"#,
            ),
            (
                Some("{}"),
                vec![a.clone(), one.clone(), b],
                r#"{"a": [null, {"b": 9}]}"#,
            ),
            (Some("[1, 2]"), vec![key("-1", true)], "[1, 9]"),
            (Some(r#"{"1": 0}"#), vec![one], r#"{"1": 9}"#),
        ] {
            assert_eq!(assigned(own, &way, "9").unwrap(), wanted, "{own:?} {way:?}");
        }
        assert!(assigned(Some("1"), std::slice::from_ref(&a), "9").is_err());
        assert!(assigned(Some("[1]"), &[a], "9").is_err());
        assert!(assigned(Some("[1]"), &[key("-2", true)], "9").is_err());
    }
}
