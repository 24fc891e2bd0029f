//! Words that only some crates or files may say.

use serde::Deserialize;

use crate::code::{code, is_of_tests};
use crate::workspace::Workspace;

/// Words that stand in the code of a few places only. Comments and tests may say them.
///
/// A place is a crate (`sql`), or a folder or file of one, without `.rs` (`memory/src/limits`).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    /// The words, as they stand in the code.
    words: Vec<String>,
    /// Where the wall stands; in all crates if none is named.
    #[serde(default)]
    within: Vec<String>,
    /// The places that may say the words.
    only: Vec<String>,
    /// Why.
    why: String,
}

impl Words {
    /// What breaks this wall, as sentences: code that says a word and may not, places that may and do not, and a wall
    /// within a place that does not exist.
    pub(crate) fn broken(&self, workspace: &Workspace) -> Vec<String> {
        let mut broken = Vec::new();
        let mut said = vec![false; self.only.len()];
        let mut stands = vec![false; self.within.len()];
        for member in workspace.members.iter().filter(|one| one.name != "tidy") {
            for (path, text) in &member.texts {
                let full = format!("{}/{path}", member.name);
                let within = place(&self.within, &full);
                if let Some(within) = within {
                    stands[within] = true;
                }
                let inside = self.within.is_empty() || within.is_some();
                if !inside || !path.starts_with("src/") || is_of_tests(path) {
                    continue;
                }
                let Some(word) = self.first(text) else {
                    continue;
                };
                match place(&self.only, &full) {
                    Some(allowed) => said[allowed] = true,
                    None => broken.push(format!("{full} says {word:?}: {}", self.allowed())),
                }
            }
        }
        let words = self.words.join("\", \"");
        for (name, _) in self.within.iter().zip(stands).filter(|(_, stands)| !stands) {
            broken.push(format!(
                "there is no {name}, within which walls.toml has a wall against \"{words}\""
            ));
        }
        for (name, _) in self.only.iter().zip(said).filter(|(_, said)| !said) {
            broken.push(format!(
                "{name} no longer says \"{words}\": remove it from walls.toml"
            ));
        }
        broken
    }

    /// The first of the words that `text` has in its code.
    fn first(&self, text: &str) -> Option<&str> {
        let found = |word: &&String| code(text).any(|line| line.contains(word.as_str()));
        self.words.iter().find(found).map(String::as_str)
    }

    fn allowed(&self) -> String {
        if self.only.is_empty() {
            format!("none may; {}", self.why)
        } else {
            format!("only {} may; {}", self.only.join(", "), self.why)
        }
    }
}

/// The number of the first of `places` that the file `path` belongs to.
fn place(places: &[String], path: &str) -> Option<usize> {
    places.iter().position(|place| {
        path.strip_prefix(place.as_str())
            .is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Words;
    use crate::workspace::{Member, Workspace};

    fn member(name: &str, files: &[(&str, &str)]) -> Member {
        let texts = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Member {
            name: name.to_owned(),
            dependencies: BTreeSet::new(),
            test_dependencies: BTreeSet::new(),
            build_dependencies: BTreeSet::new(),
            files: Vec::new(),
            lines: Vec::new(),
            texts: texts.collect(),
        }
    }

    fn wall(within: &[&str], only: &[&str]) -> Words {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Words {
            words: owned(&["fs::"]),
            within: owned(within),
            only: owned(only),
            why: "faults".to_owned(),
        }
    }

    #[test]
    fn only_code_in_the_named_places_may_say_a_word() {
        let workspace = Workspace {
            dependencies: BTreeSet::new(),
            members: vec![
                member(
                    "disk",
                    &[
                        ("src/file.rs", "fs::read()"),
                        ("src/file/tests.rs", "fs::read()"),
                        ("tests/all.rs", "fs::read()"),
                    ],
                ),
                member(
                    "plan",
                    &[
                        ("src/file.rs", "// fs::read()"),
                        ("src/files.rs", "fs::read()"),
                    ],
                ),
            ],
        };
        let broken = |within: &[&str], only: &[&str]| wall(within, only).broken(&workspace).len();
        assert_eq!(broken(&[], &[]), 2);
        assert_eq!(broken(&[], &["disk"]), 1);
        assert_eq!(broken(&[], &["disk/src/file", "plan"]), 0);
        assert_eq!(broken(&["disk"], &["disk/src"]), 0);
        // `plan/src/file` is not `plan/src/files.rs`, and says nothing itself.
        assert_eq!(broken(&["plan"], &["plan/src/file"]), 2);
        // A crate that was renamed takes its walls along.
        assert_eq!(broken(&["disk", "plans"], &["disk/src"]), 1);
    }
}
