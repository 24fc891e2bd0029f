//! Dependencies that no code names.

use std::collections::BTreeMap;

use crate::code::{code, is_of_tests, names};
use crate::workspace::{Member, Workspace};

/// What `workspace` offers under `workspace.dependencies` and no crate depends on, as sentences.
pub(crate) fn unchosen(workspace: &Workspace) -> Vec<String> {
    let chosen = |name: &&String| {
        workspace.members.iter().any(|member| {
            [
                &member.dependencies,
                &member.test_dependencies,
                &member.build_dependencies,
            ]
            .into_iter()
            .any(|names| names.contains(*name))
        })
    };
    let unchosen = workspace.dependencies.iter().filter(|name| !chosen(name));
    unchosen
        .map(|name| format!("workspace.dependencies has {name}, which no crate depends on"))
        .collect()
}

/// What `member` depends on and does not name, as sentences. What the keys of `unnamed` say need not be named.
///
/// What stands under `dependencies` is to be named outside of tests; under `dev-dependencies`, anywhere; under
/// `build-dependencies`, in `build.rs`.
pub(crate) fn unused(member: &Member, unnamed: &BTreeMap<String, String>) -> Vec<String> {
    let program = |path: &str| path.starts_with("src/") && !is_of_tests(path);
    let build = |path: &str| path == "build.rs";
    let kinds = [
        ("dependencies", &member.dependencies),
        ("dev-dependencies", &member.test_dependencies),
        ("build-dependencies", &member.build_dependencies),
    ];
    let mut broken = Vec::new();
    for (kind, dependencies) in kinds {
        for name in dependencies {
            let named = member.texts.iter().any(|(path, text)| match kind {
                "dependencies" => program(path) && names_outside_tests(text, name),
                "build-dependencies" => build(path) && names(text, name),
                _ => names(text, name),
            });
            match (named, unnamed.contains_key(name)) {
                (false, false) => broken.push(format!(
                    "crate {} has {name} among its {kind}, and no code that {kind} are for names it",
                    member.name
                )),
                (true, true) => broken.push(format!(
                    "crate {} names {name}: remove it from [unnamed] in walls.toml",
                    member.name
                )),
                _ => {}
            }
        }
    }
    broken
}

/// Whether code, an example in a comment or a link names the crate outside of the tests within `text`.
fn names_outside_tests(text: &str, name: &str) -> bool {
    let comments = text
        .lines()
        .filter(|line| line.trim_start().starts_with("//"));
    code(text).chain(comments).any(|line| names(line, name))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::{unchosen, unused};
    use crate::workspace::{Member, Workspace};

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_depended_on_is_named_where_it_may_be_used() {
        let texts = [
            (
                "src/lib.rs",
                "use a::A;\n#[cfg(test)]\nmod tests {\n    use b::B;\n}\n",
            ),
            ("tests/all.rs", "c! {}"),
            ("build.rs", "d::run()"),
        ];
        let mut member = Member {
            name: "one".to_owned(),
            dependencies: set(&["a", "b"]),
            test_dependencies: set(&["b", "c", "d"]),
            build_dependencies: set(&["c", "d"]),
            files: Vec::new(),
            lines: Vec::new(),
            texts: texts
                .map(|(path, text)| (path.to_owned(), text.to_owned()))
                .into(),
        };
        let found = unused(&member, &BTreeMap::new());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("has b among its dependencies"));
        assert!(found[1].contains("has c among its build-dependencies"));
        // A name that is allowed to be missing, and one that need not be any more.
        member.build_dependencies.clear();
        let allowed = ["a", "b"].map(|name| (name.to_owned(), "why".to_owned()));
        member.test_dependencies.clear();
        let found = unused(&member, &BTreeMap::from(allowed));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("names a"));
    }
    #[test]
    fn what_the_workspace_offers_is_chosen_by_a_crate() {
        let member = Member {
            name: "one".to_owned(),
            dependencies: set(&["a"]),
            test_dependencies: set(&["b"]),
            build_dependencies: set(&["c"]),
            files: Vec::new(),
            lines: Vec::new(),
            texts: Vec::new(),
        };
        let workspace = Workspace {
            members: vec![member],
            dependencies: set(&["a", "b", "c", "d"]),
        };
        let found = unchosen(&workspace);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("has d,"));
    }
}
