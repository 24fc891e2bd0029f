//! Walks through the bytes of a JSON text to one of its parts. Nothing is copied, keys are compared as they are written, and what
//! stands behind the part is not looked at where it cannot matter.
//!
//! Texts are valid JSON; of others some part is found, or none.

use datafusion_common::{DataFusionError, Result};
use documents::{BadEscape, Form, Walk, inner};
use table::JsonKind;

use crate::present;

pub(super) use documents::unescaped;

/// What takes a good part of a millisecond to walk through.
const LONG: usize = 1 << 18;

/// A text, or nothing in the place of a long one for a statement that was cancelled: of such there is nothing to be seen.
pub(super) fn looked_at(text: &str) -> &str {
    let is_vain = text.len() > LONG && present::check().is_err();
    if is_vain { "" } else { text }
}

/// How objects of this kind are written.
pub(super) fn form(kind: JsonKind) -> Form {
    match kind {
        JsonKind::Text => Form::Written,
        JsonKind::Normal => Form::Normal,
    }
}

/// The error of a statement.
pub(super) fn told(e: BadEscape) -> DataFusionError {
    DataFusionError::Execution(e.to_string())
}

/// The characters of a string.
///
/// # Errors
/// For escapes that stand for no character.
pub(super) fn characters(text: &str) -> Result<String> {
    documents::characters(text).map_err(told)
}

/// The member of an object under a key: the last of several. Of `jsonb`, in which each key is once and shorter keys come first,
/// nothing behind it is looked at, nor behind the place where it would be.
///
/// # Errors
/// For escapes that stand for no character in keys that are looked at.
pub(crate) fn member<'t>(text: &'t str, key: &str, kind: JsonKind) -> Result<Option<&'t str>> {
    let is_normal = kind == JsonKind::Normal;
    let mut walk = Walk::new(looked_at(text));
    let mut found = None;
    if !walk.eat(b'{') {
        return Ok(None);
    }
    while walk.peek() == Some(b'"') {
        let Some((own, escaped)) = walk.string() else {
            break;
        };
        let is_it = if escaped {
            characters(own)? == key
        } else if is_normal && inner(own).len() > key.len() {
            break;
        } else {
            inner(own) == key
        };
        walk.eat(b':');
        let Some(value) = walk.value() else {
            break;
        };
        if is_it {
            found = Some(value);
            if is_normal {
                break;
            }
        }
        if !walk.eat(b',') {
            break;
        }
    }
    Ok(found)
}

/// The item of an array at a place that counts from 0.
pub(super) fn item(text: &str, place: usize) -> Option<&str> {
    let mut walk = Walk::new(looked_at(text));
    if !walk.eat(b'[') || walk.peek()? == b']' {
        return None;
    }
    for _ in 0..place {
        walk.value()?;
        if !walk.eat(b',') {
            return None;
        }
    }
    walk.value()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::json::{cut, normal};

    /// What the member was before there was a walk: all are cut, and all keys are read.
    fn cut_member<'t>(text: &'t str, key: &str) -> Option<&'t str> {
        let all = cut::members(text).into_iter();
        all.filter(|(own, _)| characters(own).unwrap() == key)
            .map(|(_, value)| value)
            .next_back()
    }

    fn both(text: &str, key: &str) -> Option<String> {
        let found = member(text, key, JsonKind::Text).unwrap();
        assert_eq!(found, cut_member(text, key), "{text} -> {key}");
        let normal = normal::of(text).unwrap();
        let own = member(&normal, key, JsonKind::Normal).unwrap();
        assert_eq!(own, cut_member(&normal, key), "{normal} -> {key}");
        assert_eq!(own.is_some(), found.is_some(), "{text} -> {key}");
        found.map(ToString::to_string)
    }

    #[test]
    fn members_are_found_wherever_they_stand() {
        let text = r#" { "a" : 1 , "b":{"a":"}\"","c":[1,{"d":"]"}]} ,"":null, "é\u00e9":[ ], "a":"last" , "q\"": true,"long key":-1.5e3}"#;
        for (key, wanted) in [
            ("a", Some(r#""last""#)),
            ("b", Some(r#"{"a":"}\"","c":[1,{"d":"]"}]}"#)),
            ("", Some("null")),
            ("éé", Some("[ ]")),
            ("q\"", Some("true")),
            ("long key", Some("-1.5e3")),
            ("c", None),
            ("d", None),
            ("long key ", None),
            ("a\0", None),
        ] {
            assert_eq!(both(text, key).as_deref(), wanted, "{key}");
        }
        for text in ["{}", " { } ", "{\n}"] {
            assert_eq!(both(text, "a"), None);
        }
    }

    #[test]
    fn escapes_that_are_no_character_are_told_where_they_were() {
        let text = r#"{"a": 1, "\ud800": 2, "b": 3}"#;
        // The last of several members counts, so that all keys are read.
        assert!(member(text, "a", JsonKind::Text).is_err());
        assert!(member(text, "b", JsonKind::Text).is_err());
    }

    #[test]
    fn items_are_found_by_their_place() {
        let text = r#" [ 1 , "a,]\"", [2,3] ,{"b":[4]}, null ] "#;
        for (place, wanted) in cut::items(text).into_iter().enumerate() {
            assert_eq!(item(text, place), Some(wanted));
        }
        assert_eq!(item(text, 5), None);
        for text in ["[]", " [ ] "] {
            assert_eq!((item(text, 0), item(text, 1)), (None, None));
        }
    }

    #[test]
    fn strings_without_escapes_are_as_they_are_written() {
        assert_eq!(unescaped(r#" "aé" "#), Some("aé"));
        assert_eq!(unescaped(r#""""#), Some(""));
        assert_eq!(unescaped(r#""a\n""#), None);
        assert_eq!(unescaped("1"), None);
    }

    /// JSON with blanks and keys that are short, so that they meet.
    fn json() -> impl Strategy<Value = String> {
        let string = || {
            let piece = prop_oneof![
                Just("a"),
                Just("b"),
                Just("é"),
                Just("\\\""),
                Just("\\\\"),
                Just("\\u0061"),
                Just("\\ud83d\\ude00"),
                Just("{"),
                Just("]"),
                Just(","),
                Just(":"),
            ];
            prop::collection::vec(piece, 0..3).prop_map(|parts| format!("\"{}\"", parts.concat()))
        };
        let blank = || prop_oneof![Just(""), Just(" "), Just("\n\t\r")];
        let leaf = prop_oneof![
            Just("null".to_string()),
            Just("true".to_string()),
            Just("-0.5e1".to_string()),
            any::<i32>().prop_map(|number| number.to_string()),
            string(),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            let item = (blank(), inner.clone(), blank())
                .prop_map(|(before, own, behind)| format!("{before}{own}{behind}"));
            let member = (blank(), string(), blank(), item.clone())
                .prop_map(|(before, key, behind, own)| format!("{before}{key}{behind}:{own}"));
            let list = |items: Vec<String>| items.join(",");
            prop_oneof![
                (blank(), prop::collection::vec(item, 0..6))
                    .prop_map(move |(own, items)| format!("[{own}{}]", list(items))),
                (blank(), prop::collection::vec(member, 0..6))
                    .prop_map(move |(own, items)| format!("{{{own}{}}}", list(items))),
            ]
        })
    }

    proptest! {
        /// What is found is what was cut out of all, and what `serde_json` finds.
        #[test]
        fn parts_are_those_that_are_cut(text in json(), key in "[ab]{0,2}|é|\"|a\"", place in 0usize..6) {
            match serde_json::from_str::<Value>(&text).unwrap() {
                Value::Object(members) => {
                    let found = both(&text, &key);
                    let found = found.map(|own| serde_json::from_str::<Value>(&own).unwrap());
                    prop_assert_eq!(found.as_ref(), members.get(&key));
                }
                Value::Array(items) => {
                    prop_assert_eq!(item(&text, place), cut::items(&text).get(place).copied());
                    let found = item(&text, place).map(|own| serde_json::from_str::<Value>(own).unwrap());
                    prop_assert_eq!(found.as_ref(), items.get(place));
                }
                Value::String(own) => {
                    prop_assert!(unescaped(&text).is_none_or(|text| text == own));
                }
                _ => prop_assert_eq!(unescaped(&text), None),
            }
        }

        /// Texts that are no JSON end the walk, whatever they are.
        #[test]
        fn other_texts_do_no_harm(text in "[\\[\\]{}\"\\\\,: aé1]{0,30}", key in "[aé]{0,2}", place in 0usize..4) {
            for kind in [JsonKind::Text, JsonKind::Normal] {
                let _ = member(&text, &key, kind);
            }
            let _ = (item(&text, place), unescaped(&text));
        }
    }
}
