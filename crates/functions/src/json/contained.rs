//! A constant that many documents are asked to contain, as `@>` does: what is to stand at the ends of paths of keys.

use datafusion_common::Result;

use crate::json::cut::{self, Kind};
use crate::json::holds::{contains, digits};

/// A value of `jsonb` that documents may contain.
#[derive(Clone, Debug)]
pub(super) struct Contained {
    text: String,
    /// What takes the longest to compare comes last.
    leaves: Vec<Leaf>,
}

/// What is to stand at the end of a path.
#[derive(Clone, Debug)]
struct Leaf {
    /// The keys that lead to it from the document.
    keys: Vec<String>,
    wanted: Wanted,
}

#[derive(Clone, Debug)]
enum Wanted {
    /// A string, a boolean or null, of which equal ones have this text.
    Same(String),
    /// A number with these digits, zeros at its end left out.
    Number(String),
    /// Any object.
    Object,
    /// Any array.
    Array,
    /// What contains this value.
    Containing(String),
}

impl Contained {
    /// `text`, which is in the form of `jsonb`.
    ///
    /// # Errors
    /// For keys with escapes that stand for no character, which `jsonb` does not have.
    pub(super) fn new(text: &str) -> Result<Contained> {
        /// Of more leaves there are no paths.
        const MOST: usize = 64;
        let mut leaves = Vec::new();
        add_leaves(text, &mut Vec::new(), &mut leaves)?;
        if leaves.len() > MOST {
            let wanted = Wanted::Containing(text.to_string());
            let keys = Vec::new();
            leaves = vec![Leaf { keys, wanted }];
        }
        leaves.sort_by_key(|leaf| matches!(leaf.wanted, Wanted::Containing(_)));
        let text = text.to_string();
        Ok(Contained { text, leaves })
    }

    /// The text of the value.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The paths to what is looked at, from where `below` leads to the documents. There is at least one.
    pub(super) fn paths(&self, below: &[String]) -> Vec<Vec<String>> {
        let path = |leaf: &Leaf| [below, &leaf.keys[..]].concat();
        self.leaves.iter().map(path).collect()
    }

    /// Whether a document contains the value, by what stands at the ends of the [paths](Contained::paths).
    ///
    /// # Errors
    /// Those of [`contains`].
    pub(super) fn is_in(&self, parts: &[Option<&str>]) -> Result<bool> {
        for (leaf, part) in self.leaves.iter().zip(parts) {
            let is_met = match part {
                Some(part) => leaf.wanted.is_met(part)?,
                None => false,
            };
            if !is_met {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Adds the leaves of `value`, to which `keys` lead.
fn add_leaves(value: &str, keys: &mut Vec<String>, leaves: &mut Vec<Leaf>) -> Result<()> {
    /// The most keys of a path.
    const LONGEST: usize = 32;
    let members = match Kind::of(value) {
        Kind::Object if keys.len() < LONGEST => cut::members(value),
        _ => Vec::new(),
    };
    if members.is_empty() {
        let wanted = Wanted::of(value, keys.is_empty());
        let keys = keys.clone();
        leaves.push(Leaf { keys, wanted });
    }
    for (key, value) in members {
        keys.push(cut::characters(key)?);
        add_leaves(value, keys, leaves)?;
        keys.pop();
    }
    Ok(())
}

impl Wanted {
    /// What is to stand in the place of `value`, which may be the whole that is looked for.
    fn of(value: &str, is_whole: bool) -> Wanted {
        let text = value.to_string();
        match Kind::of(value) {
            // An array may contain it.
            kind if is_whole && kind.is_scalar() => Wanted::Containing(text),
            Kind::Object if value == "{}" => Wanted::Object,
            Kind::Array if value == "[]" => Wanted::Array,
            Kind::Object | Kind::Array => Wanted::Containing(text),
            Kind::Number => Wanted::Number(digits(value).to_string()),
            Kind::Null | Kind::Boolean | Kind::Text => Wanted::Same(text),
        }
    }

    /// Whether a part of a document is such. It has no blanks around it.
    fn is_met(&self, part: &str) -> Result<bool> {
        Ok(match self {
            Wanted::Same(text) => part == text,
            // Most parts that are something else are told by their first byte.
            Wanted::Number(number) => {
                part.as_bytes().first() == number.as_bytes().first() && digits(part) == number
            }
            Wanted::Object => part.starts_with('{'),
            Wanted::Array => part.starts_with('['),
            Wanted::Containing(value) => contains(part, value)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use documents::{Form, Paths};
    use fastrand::Rng;

    use super::*;
    use crate::json::normal;

    const KEYS: [&str; 6] = ["a", "b", "ab", "é", "q\\\"", "\\u0061"];
    const SCALARS: [&str; 18] = [
        "null",
        "true",
        "false",
        "1",
        "1.0",
        "1e0",
        "0.10e1",
        "10",
        "-0.50",
        "0",
        "-0.0",
        "12345678901234567890.5",
        "\"\"",
        "\"1\"",
        "\"x\"",
        "\"\\u0078\"",
        "\"a \\\"quoted\\\" one\\n\"",
        "\"]},: [{\"",
    ];

    fn one<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
        of[rng.usize(0..of.len())]
    }

    /// A value that is written in any way, some of its keys twice.
    fn value(rng: &mut Rng, depth: usize) -> String {
        let many = if depth == 0 { 0 } else { rng.usize(0..5) };
        let parts = |rng: &mut Rng, of: fn(&mut Rng, usize) -> String| {
            let all: Vec<String> = (0..many).map(|_| of(rng, depth - 1)).collect();
            all.join(" ,")
        };
        match rng.usize(0..6) {
            0..3 => format!("{{{}}}", parts(rng, member)),
            3 => format!("[{} ]", parts(rng, value)),
            _ => one(rng, &SCALARS).to_string(),
        }
    }

    fn member(rng: &mut Rng, depth: usize) -> String {
        let key = one(rng, &KEYS);
        format!("\"{key}\" :{}", value(rng, depth))
    }

    /// Some of a value in the form of `jsonb`, which it contains, written otherwise.
    fn some_of(rng: &mut Rng, text: &str) -> String {
        let mut some = Vec::new();
        match Kind::of(text) {
            Kind::Object => {
                for (key, value) in cut::members(text) {
                    if rng.bool() {
                        // Of two members the last counts.
                        some.push(format!("{key}:[7]"));
                        some.push(format!("{key}:{}", some_of(rng, value)));
                    }
                }
                format!("{{{}}}", some.join(","))
            }
            Kind::Array => {
                for item in cut::items(text) {
                    for _ in 0..rng.usize(0..3) {
                        some.push(some_of(rng, item));
                    }
                }
                rng.shuffle(&mut some);
                format!("[{}]", some.join(","))
            }
            Kind::Number if text.contains('.') => format!("{text}0"),
            Kind::Number => format!("{text}{}", one(rng, &["", ".0", "e0"])),
            _ => text.to_string(),
        }
    }

    /// Whether a document contains a constant by what is at the ends of the paths, which is what the comparison of all says.
    fn both(document: &str, constant: &str) -> bool {
        let document = normal::of(document).unwrap();
        let constant = normal::of(constant).unwrap();
        let contained = Contained::new(&constant).unwrap();
        let paths = contained.paths(&[]);
        let mut parts = vec![None; paths.len()];
        let paths = Paths::new(&paths);
        paths.find(&document, Form::Normal, &mut parts).unwrap();
        let found = contained.is_in(&parts).unwrap();
        let wanted = contains(&document, &constant).unwrap();
        assert_eq!(found, wanted, "{document} @> {constant}");
        found
    }

    #[test]
    fn what_paths_tell_is_what_a_comparison_of_all_tells() {
        let mut rng = Rng::with_seed(11);
        let (mut held, mut missed) = (0, 0);
        for _ in 0..4_000 {
            let (document, other) = (value(&mut rng, 4), value(&mut rng, 2));
            let some = some_of(&mut rng, &normal::of(&document).unwrap());
            assert!(both(&document, &some), "{document} @> {some}");
            let is_held = both(&document, &other) || both(&other, &document);
            held += usize::from(is_held);
            missed += usize::from(!is_held);
        }
        assert!(held > 100 && missed > 100, "{held} {missed}");
    }

    #[test]
    fn numbers_are_equal_by_their_values_and_texts_by_their_characters() {
        for (document, constant, wanted) in [
            (r#"{"a": 1}"#, r#"{"a": 1.0}"#, true),
            (r#"{"a": 1e0}"#, r#"{"a": 0.10e1}"#, true),
            (r#"{"a": -0.0}"#, r#"{"a": 0}"#, true),
            (r#"{"a": 1}"#, r#"{"a": 10}"#, false),
            (r#"{"a": 1}"#, r#"{"a": -1}"#, false),
            (r#"{"a": "1"}"#, r#"{"a": 1}"#, false),
            (r#"{"a": 1}"#, r#"{"a": "1"}"#, false),
            (r#"{"a": "null"}"#, r#"{"a": null}"#, false),
            (r#"{"a": "x\ny"}"#, r#"{"\u0061": "\u0078\u000ay"}"#, true),
            (r#"{"b": 1}"#, r#"{"a": null}"#, false),
            (r#"{"a": [1]}"#, r#"{"a": 1}"#, false),
            ("[1]", "1", true),
            ("[[1]]", "1", false),
            ("1", "1.0", true),
            ("1", "[1]", false),
            ("1", "[]", false),
            ("[1]", "{}", false),
            ("{}", "[]", false),
            (r#"{"a": {"b": 1}}"#, r#"{"a": {}}"#, true),
            (r#"{"a": []}"#, r#"{"a": {}}"#, false),
            (r#"{"a": [1, [2]]}"#, r#"{"a": []}"#, true),
            (r#"{"a": [1, [2, 3]]}"#, r#"{"a": [[3.0], 1]}"#, true),
            (r#"{"a": [1, [2, 3]]}"#, r#"{"a": [3]}"#, false),
        ] {
            assert_eq!(both(document, constant), wanted, "{document} @> {constant}");
        }
    }

    #[test]
    fn constants_of_many_leaves_and_levels_are_compared_as_a_whole() {
        let wide = |last: usize| {
            let members: Vec<String> = (0..100).map(|n| format!("\"k{n}\": {n}")).collect();
            format!("{{{}, \"last\": {last}}}", members.join(", "))
        };
        assert!(both(&wide(1), &wide(1)));
        assert!(!both(&wide(1), &wide(2)));
        let deep = |last: usize| format!("{}{last}{}", "{\"a\": ".repeat(60), "}".repeat(60));
        assert!(both(&deep(1), &deep(1)));
        assert!(!both(&deep(1), &deep(2)));
        let constant = Contained::new(&normal::of(&deep(1)).unwrap()).unwrap();
        assert_eq!(constant.paths(&["b".to_string()])[0].len(), 33);
    }
}
