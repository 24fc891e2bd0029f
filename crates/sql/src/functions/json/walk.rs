//! Walks through the bytes of a JSON text to one of its parts. Nothing is copied, keys are compared as they are written, and what
//! stands behind the part is not looked at where it cannot matter.
//!
//! Texts are valid JSON; of others some part is found, or none.

use datafusion::common::{Result, exec_err};
use memchr::memchr2;
use table::JsonKind;

use crate::functions::present;

/// What takes a good part of a millisecond to walk through.
const LONG: usize = 1 << 18;

/// Where a walk through a text has come.
struct Walk<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Walk<'t> {
    /// At the beginning of a text. Of a long one for a statement that was cancelled there is nothing to be seen.
    fn through(text: &'t str) -> Walk<'t> {
        let is_vain = text.len() > LONG && present::check().is_err();
        let text = if is_vain { "" } else { text };
        Walk { text, at: 0 }
    }

    /// What comes next that is no blank, which stays there.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Whether a mark comes next, which is passed then.
    fn eat(&mut self, mark: u8) -> bool {
        let comes = self.peek() == Some(mark);
        self.at += usize::from(comes);
        comes
    }

    /// Passes the string that begins here: its text with the quotes, and whether there are escapes in it.
    fn string(&mut self) -> Option<(&'t str, bool)> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let (mut at, mut escaped) = (start + 1, false);
        loop {
            let rest = bytes.get(at..)?;
            let next = memchr2(b'"', b'\\', rest)?;
            if rest.get(next) == Some(&b'"') {
                self.at = at + next + 1;
                return Some((self.text.get(start..self.at)?, escaped));
            }
            escaped = true;
            at += next + 2;
        }
    }

    /// Passes what stands between brackets of one kind, the first of which comes next. Those of the other kind and all that is in
    /// strings do not matter: brackets come in pairs.
    fn enclosed(&mut self, open: u8, close: u8) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut depth = 0usize;
        loop {
            let mut rest = bytes.get(self.at..)?.iter();
            let is_mark = |byte: &u8| *byte == open || *byte == close || *byte == b'"';
            self.at += rest.position(is_mark)?;
            match bytes.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                mark if *mark == open => depth += 1,
                _ => depth = depth.saturating_sub(1),
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Passes the value that comes next.
    fn value(&mut self) -> Option<&'t str> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => return self.string().map(|(text, _)| text),
            b'{' => self.enclosed(b'{', b'}')?,
            b'[' => self.enclosed(b'[', b']')?,
            _ => {
                let mut rest = self.text.as_bytes().get(start..)?.iter();
                let ends =
                    |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
                self.at += rest.position(ends).unwrap_or(self.text.len() - start);
            }
        }
        self.text
            .get(start..self.at)
            .filter(|value| !value.is_empty())
    }
}

/// The characters of a string.
///
/// # Errors
/// For escapes that stand for no character.
pub(super) fn characters(text: &str) -> Result<String> {
    match serde_json::from_str::<String>(text) {
        Ok(found) => Ok(found),
        Err(e) => exec_err!(
            "unsupported Unicode escape sequence in {}: {e}",
            text.trim()
        ),
    }
}

/// What stands between the quotes of a string.
fn inner(string: &str) -> &str {
    let last = string.len().saturating_sub(1);
    string.get(1..last).unwrap_or_default()
}

/// The member of an object under a key: the last of several. Of `jsonb`, in which each key is once and shorter keys come first,
/// nothing behind it is looked at, nor behind the place where it would be.
///
/// # Errors
/// For escapes that stand for no character in keys that are looked at.
pub(crate) fn member<'t>(text: &'t str, key: &str, kind: JsonKind) -> Result<Option<&'t str>> {
    let is_normal = kind == JsonKind::Normal;
    let mut walk = Walk::through(text);
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
    let mut walk = Walk::through(text);
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

/// The characters of a string, if there are no escapes in it: they are as they are written.
pub(super) fn unescaped(text: &str) -> Option<&str> {
    let mut walk = Walk { text, at: 0 };
    if walk.peek()? != b'"' {
        return None;
    }
    match walk.string()? {
        (own, false) => Some(inner(own)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::functions::json::{cut, normal};

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
