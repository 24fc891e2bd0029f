//! `like` with many `%`, or with a pattern that is computed: each part between two `%` is searched behind the one before, which
//! takes a time that grows with the text and not with the ways to match it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};
use datafusion_expr::{Expr, ScalarUDF, lit};
use messages::Error;

use crate::arguments::{is_text, strings};
use crate::own::Own;
use crate::present;

/// `text like pattern`, with backslashes before what is meant literally; `ilike` if letters are alike in both cases.
pub fn like(text: Expr, pattern: Expr, alike: bool) -> Expr {
    static LIKE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let types = |types: &[DataType]| match types {
            [text, pattern, _] if is_text(text) && is_text(pattern) => {
                Ok(vec![DataType::Utf8, DataType::Utf8, DataType::Boolean])
            }
            _ => plan_err!("like takes a text and a pattern"),
        };
        let own = Own::new("like parts", types, |_| Ok(DataType::Boolean), matched);
        Arc::new(own.into())
    });
    LIKE.call(vec![text, pattern, lit(alike)])
}

fn matched(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (texts, patterns) = (strings(&args[0])?, strings(&args[1])?);
    let alike = args[2].as_boolean();
    let mut known: HashMap<&str, Parts> = HashMap::new();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if texts.is_null(row) || patterns.is_null(row) || alike.is_null(row) {
            found.push(None);
            continue;
        }
        let alike = alike.value(row);
        let pattern = patterns.value(row);
        let parts = match known.entry(pattern) {
            Entry::Occupied(own) => own.into_mut(),
            Entry::Vacant(own) => own.insert(Parts::of(pattern, alike)?),
        };
        let text = texts.value(row);
        found.push(Some(if alike {
            parts.is_match(&lower(text))?
        } else {
            parts.is_match(text)?
        }));
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

/// The lower case of each letter that is one letter.
fn lower(text: &str) -> String {
    let one = |letter: char| {
        let mut all = letter.to_lowercase();
        match (all.next(), all.next()) {
            (Some(one), None) => one,
            _ => letter,
        }
    };
    text.chars().map(one).collect()
}

/// The parts of a pattern between its `%`: there are one more than `%`.
#[derive(Debug)]
struct Parts {
    all: Vec<Part>,
    /// Whether a backslash is the last character of the pattern: what matches up to there, and goes on, is an error.
    broken: bool,
}

/// Characters that follow one another; none is any.
#[derive(Debug, Default)]
struct Part {
    letters: Vec<Option<char>>,
    /// They as a text, if none of them is any.
    text: Option<String>,
}

impl Parts {
    fn of(pattern: &str, alike: bool) -> Result<Parts> {
        let pattern = if alike {
            lower(pattern)
        } else {
            pattern.to_string()
        };
        let mut parts = vec![Part::default()];
        let mut broken = false;
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            let own = match letter {
                '%' => {
                    parts.push(Part::default());
                    continue;
                }
                '_' => None,
                '\\' => {
                    let behind = letters.next();
                    broken = behind.is_none();
                    behind
                }
                letter => Some(letter),
            };
            if let Some(part) = parts.last_mut() {
                part.letters.push(own);
            }
        }
        if broken {
            // Any character, as the last of `letters` is now, and whatever follows it.
            parts.push(Part::default());
        }
        for part in &mut parts {
            part.text = part.letters.iter().copied().collect();
        }
        // Several `%` are one.
        let count = parts.len();
        let mut at = 0;
        parts.retain(|part| {
            at += 1;
            at == 1 || at == count || !part.letters.is_empty()
        });
        Ok(Parts { all: parts, broken })
    }

    fn is_match(&self, text: &str) -> Result<bool> {
        let found = self.finds(text)?;
        if found && self.broken {
            let message = "LIKE pattern must not end with escape character";
            return Err(Error::coded("22025", message).into());
        }
        Ok(found)
    }

    fn finds(&self, text: &str) -> Result<bool> {
        let (first, between, last) = match &self.all[..] {
            [] => return Ok(text.is_empty()),
            [whole] => return Ok(whole.starts(text) == Some(text.len())),
            [first, between @ .., last] => (first, between, last),
        };
        let Some(mut at) = first.starts(text) else {
            return Ok(false);
        };
        let mut searched = 0;
        for part in between {
            let Some(end) = part.find(&text[at..], &mut searched)? else {
                return Ok(false);
            };
            at += end;
        }
        let rest = &text[at..];
        // The last part stands at the end.
        let count = last.letters.len();
        let start = match count {
            0 => rest.len(),
            count => match rest.char_indices().rev().nth(count - 1) {
                Some((start, _)) => start,
                None => return Ok(false),
            },
        };
        Ok(last.starts(&rest[start..]).is_some())
    }
}

impl Part {
    /// Where it ends if it stands at the beginning of a text.
    fn starts(&self, text: &str) -> Option<usize> {
        if let Some(own) = &self.text {
            return text.starts_with(own.as_str()).then_some(own.len());
        }
        let mut letters = text.chars();
        for own in &self.letters {
            let letter = letters.next()?;
            if own.is_some_and(|own| own != letter) {
                return None;
            }
        }
        Some(text.len() - letters.as_str().len())
    }

    /// Where it ends at its first place in a text. `searched` counts bytes since the switch of the statement was looked at.
    fn find(&self, text: &str, searched: &mut usize) -> Result<Option<usize>> {
        /// Some milliseconds' worth of bytes.
        const CHECKED: usize = 1 << 20;
        let mut done = |bytes: usize| {
            *searched += bytes;
            if *searched < CHECKED {
                return Ok(());
            }
            *searched = 0;
            present::check()
        };
        if let Some(own) = &self.text {
            let at = text.find(own.as_str());
            done(at.unwrap_or(text.len()))?;
            return Ok(at.map(|at| at + own.len()));
        }
        for (at, _) in text.char_indices() {
            done(self.letters.len())?;
            if let Some(end) = self.starts(&text[at..]) {
                return Ok(Some(at + end));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(text: &str, pattern: &str) -> bool {
        Parts::of(pattern, false).unwrap().is_match(text).unwrap()
    }

    #[test]
    fn patterns_match_as_in_postgresql() {
        for (text, pattern, wanted) in [
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "a%c%c", false),
            ("acc", "a%c%c", true),
            ("abab", "a%ab", true),
            ("ab", "a%ab", false),
            ("äbc", "_b_", true),
            ("äbc", "%_b%_", true),
            ("äb", "%_b%_", false),
            ("", "", true),
            ("", "%%", true),
            ("", "_", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("a_\\", "%\\_\\\\", true),
            ("aaab", "%a_b", true),
            ("aXbYc", "a_b_c%", true),
        ] {
            assert_eq!(is(text, pattern), wanted, "{text} like {pattern}");
        }
        let broken = Parts::of("ab\\", false).unwrap();
        assert!(broken.is_match("abc").is_err());
        assert!(!broken.is_match("ab").unwrap());
        assert!(!broken.is_match("xbc").unwrap());
        let alike = |text: &str, pattern: &str| {
            let parts = Parts::of(pattern, true).unwrap();
            parts.is_match(&lower(text)).unwrap()
        };
        assert!(alike("ÄPFEL", "%äpf_l"));
        assert!(!alike("Straße", "strasse"));
    }

    #[test]
    fn many_parts_take_no_longer() {
        let text = "a".repeat(100_000);
        assert!(!is(&text, &format!("{}b", "%a".repeat(5_000))));
        assert!(!is(&text, &format!("{}b%", "%a_".repeat(5_000))));
        assert!(is(&text, &format!("{}%", "%a_".repeat(5_000))));
    }
}
