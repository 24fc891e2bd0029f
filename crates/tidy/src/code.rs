//! What of a source file is code: not comments, and not what is compiled for tests only.
//!
//! Lines are told apart by how rustfmt lays them out, which `cargo fmt --check` holds; no text is parsed.

/// Whether the file at `path` belongs to the tests of its crate: `tests.rs`, or below a folder `tests`.
pub(crate) fn is_of_tests(path: &str) -> bool {
    path.split('/')
        .any(|part| part == "tests" || part == "tests.rs")
}

/// The lines of `text` that are code: comments and items under `#[cfg(test)]` are left out.
pub(crate) fn code(text: &str) -> impl Iterator<Item = &str> {
    // The indentation of the test item that is being skipped.
    let mut skipped: Option<usize> = None;
    text.lines().filter(move |line| {
        let start = line.trim_start();
        if start.starts_with("//") {
            return false;
        }
        if let Some(indent) = skipped {
            if line.len() - start.len() <= indent && start.ends_with([';', ',', '}']) {
                skipped = None;
            }
            return false;
        }
        if is_test_attribute(start) {
            skipped = Some(line.len() - start.len());
            return false;
        }
        true
    })
}

/// Whether `line` is `#[cfg(test)]`, or a `cfg` of which `test` is a condition.
fn is_test_attribute(line: &str) -> bool {
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,")
}

/// Whether `text` names the crate `name` (hyphens as underscores): a path that begins with it, a macro of it, or its
/// import. In a comment only a path counts, as in an example or a link.
pub(crate) fn names(text: &str, name: &str) -> bool {
    let name = name.replace('-', "_");
    text.lines().any(|line| {
        let comment = line.trim_start().starts_with("//");
        line.match_indices(&name).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + name.len()..]);
            let inside = |c: char| c.is_alphanumeric() || c == '_';
            // `arrow::buffer::Buffer` names a module of arrow; `::buffer::Buffer` names a crate.
            let module = before
                .strip_suffix("::")
                .is_some_and(|before| before.ends_with(inside));
            if module || before.ends_with(inside) || after.starts_with(inside) {
                return false;
            }
            let path = after.starts_with("::");
            let import = before.ends_with("use ") || before.ends_with("extern crate ");
            path || !comment && (import || after.starts_with('!'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{code, is_of_tests, names};

    #[test]
    fn comments_and_tests_are_no_code() {
        let text = "use a::b;\n// no\n#[cfg(test)]\nuse c;\n    /// no\n    #[cfg(test)]\n    #[inline]\n    fn d(\n    ) {\n        e;\n    }\n\
                    f();\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n#[cfg(not(test))]\nh();\n";
        assert_eq!(
            code(text).collect::<Vec<_>>(),
            ["use a::b;", "f();", "#[cfg(not(test))]", "h();"]
        );
        assert!(is_of_tests("src/csv/tests.rs") && is_of_tests("src/tests/mod.rs"));
        assert!(!is_of_tests("src/latests.rs"));
    }

    #[test]
    fn a_crate_is_named_by_paths_imports_and_macros() {
        for text in [
            "use clap_mangen::Man;",
            "pub use clap_mangen;",
            "let a = clap_mangen::Man::new();",
            "let a = ::clap_mangen::Man::new();",
            "clap_mangen! {",
            "/// [`Man`](clap_mangen::Man)",
        ] {
            assert!(names(text, "clap-mangen"), "{text}");
        }
        for text in [
            "use my_clap_mangen::Man;",
            "use clap::clap_mangen::Man;",
            "let clap_mangen = 1;",
            "// clap_mangen!",
            "clap_mangen_of::x()",
        ] {
            assert!(!names(text, "clap-mangen"), "{text}");
        }
    }
}
