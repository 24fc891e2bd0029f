//! What walks find is what a parser finds.

use documents::{Form, Paths, Walk, unescaped};
use proptest::prelude::*;
use serde_json::Value;

/// The parts of `text` at `paths`.
fn parts(text: &str, paths: &[Vec<&str>], form: Form) -> Vec<Option<String>> {
    let mut found = vec![None; paths.len()];
    Paths::new(paths).find(text, form, &mut found).unwrap();
    found
        .into_iter()
        .map(|part| part.map(ToString::to_string))
        .collect()
}

fn part_of<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Object(members) => members.get(*key),
        _ => None,
    })
}

#[test]
fn several_paths_are_found_in_one_walk() {
    let text = r#"{"a": 1, "b": {"a": "}\"", "c": [1, {"d": "]"}]}, "é": [], "long": {"x": {"y": null}}, "other": {}}"#;
    let paths = [
        vec!["long", "x", "y"],
        vec!["b", "c"],
        vec!["b"],
        vec!["a"],
        vec!["a", "a"],
        vec!["b", "nothing"],
        vec!["long", "x"],
        vec!["é"],
        vec!["a"],
        vec!["none"],
    ];
    for form in [Form::Written, Form::Normal] {
        let found = parts(text, &paths, form);
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        let wanted = [
            Some("null"),
            Some(r#"[1, {"d": "]"}]"#),
            Some(r#"{"a": "}\"", "c": [1, {"d": "]"}]}"#),
            Some("1"),
            None,
            None,
            Some(r#"{"y": null}"#),
            Some("[]"),
            Some("1"),
            None,
        ];
        assert_eq!(found, wanted);
        let whole: Vec<&str> = vec![];
        assert_eq!(parts(text, &[whole], form), [Some(text.to_string())]);
    }
}

#[test]
fn of_several_members_under_a_key_the_last_counts_where_there_may_be_several() {
    let text = r#" { "a" : {"b": 1, "c": 2} , "\u0061" : {"c":3} } "#;
    let paths = [vec!["a", "b"], vec!["a", "c"], vec!["a"]];
    let found = parts(text, &paths, Form::Written);
    assert_eq!(
        found,
        [None, Some("3".into()), Some(r#"{"c":3}"#.to_string())]
    );
}

#[test]
fn escapes_that_are_no_character_are_told_where_keys_are_looked_at() {
    let text = r#"{"a": 1, "b": {"\ud800": 2}, "c": 3}"#;
    let fails = |path: Vec<&str>| {
        let mut found = [None];
        Paths::new(&[path])
            .find(text, Form::Written, &mut found)
            .is_err()
    };
    assert!(!fails(vec!["a"]));
    assert!(!fails(vec!["b"]));
    assert!(fails(vec!["b", "c"]));
}

#[test]
fn long_values_are_passed() {
    for count in 0..200 {
        let inner = format!("[{}", r#"{"a": "]}\\\"", "b": [1, 2]},"#.repeat(count));
        let text = format!("{inner}{{}}]  , rest");
        let mut walk = Walk::new(&text);
        assert_eq!(walk.value().map(str::len), Some(inner.len() + 3));
        assert!(walk.eat(b','));
        // What is not closed has no end.
        assert_eq!(Walk::new(&inner).value(), None);
    }
}

/// JSON with blanks and keys that are short, so that they meet. Where `once` is set, each key is in each object once.
fn json(once: bool) -> impl Strategy<Value = String> {
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
            Just("a long text that fills a good part of a block"),
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
    leaf.prop_recursive(4, 60, 6, move |inner| {
        let item = (blank(), inner.clone(), blank())
            .prop_map(|(before, own, behind)| format!("{before}{own}{behind}"));
        let key = prop_oneof![
            3 => Just("\"a\"".to_string()),
            3 => Just("\"b\"".to_string()),
            2 => Just("\"ab\"".to_string()),
            1 => string()
        ];
        let member = (blank(), key, blank(), item.clone());
        let object =
            (blank(), prop::collection::vec(member, 0..6)).prop_map(move |(own, mut members)| {
                let characters = |key: &str| serde_json::from_str::<String>(key).unwrap();
                if once {
                    members.sort_by_key(|(_, key, ..)| {
                        let key = characters(key);
                        (key.len(), key)
                    });
                    members.dedup_by_key(|(_, key, ..)| characters(key));
                }
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(before, key, behind, own)| format!("{before}{key}{behind}:{own}"))
                    .collect();
                format!("{{{own}{}}}", members.join(","))
            });
        let array = (blank(), prop::collection::vec(item, 0..6))
            .prop_map(|(own, items)| format!("[{own}{}]", items.join(",")));
        prop_oneof![1 => array, 3 => object]
    })
}

fn paths() -> impl Strategy<Value = Vec<Vec<&'static str>>> {
    let key = prop_oneof![Just("a"), Just("b"), Just("ab"), Just("é"), Just("aé")];
    prop::collection::vec(prop::collection::vec(key, 0..4), 1..6)
}

/// What is found is what `serde_json` finds.
fn compared(text: &str, paths: &[Vec<&str>], form: Form) -> Result<(), TestCaseError> {
    let value: Value = serde_json::from_str(text).unwrap();
    let found = parts(text, paths, form);
    for (path, part) in paths.iter().zip(found) {
        let part = part.map(|part| serde_json::from_str::<Value>(&part).unwrap());
        prop_assert_eq!(
            part.as_ref(),
            part_of(&value, path),
            "{:?} of {}",
            path,
            text
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn parts_of_normal_documents_are_those_of_a_parser(text in json(true), paths in paths()) {
        compared(&text, &paths, Form::Normal)?;
        compared(&text, &paths, Form::Written)?;
    }

    #[test]
    fn parts_of_any_documents_are_those_of_a_parser(text in json(false), paths in paths()) {
        compared(&text, &paths, Form::Written)?;
        if let Value::String(own) = serde_json::from_str(&text).unwrap() {
            prop_assert!(unescaped(&text).is_none_or(|text| text == own));
        } else {
            prop_assert_eq!(unescaped(&text), None);
        }
    }

    /// Texts that are no JSON end the walk, whatever they are.
    #[test]
    fn other_texts_do_no_harm(text in "[\\[\\]{}\"\\\\,: aé1]{0,200}", paths in paths()) {
        let all = Paths::new(&paths);
        for form in [Form::Written, Form::Normal] {
            let _ = all.find(&text, form, &mut vec![None; paths.len()]);
        }
        let _ = (unescaped(&text), Walk::new(&text).value());
    }
}
