//! A decision is a function of readings: what this crate reads of the system, and what it starts, stands in one folder.

use std::fs;
use std::path::{Path, PathBuf};

/// What reads a file, clock or environment, starts a thread or process, or calls the system.
const EFFECTS: [&str; 13] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "thread::",
    "Instant::now",
    ".elapsed()",
    "SystemTime",
    "File",
    "libc",
    "unsafe",
    "counters",
];

/// The folder that may.
const PROCESS: &str = "src/runtime/process";

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The code of a file: without comments, and without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn only_the_folder_of_the_own_process_touches_the_system() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    sources(&root.join("src"), &mut all);
    let (inside, outside): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|path| path.starts_with(root.join(PROCESS)));
    for path in outside {
        let code = code(path);
        for effect in EFFECTS {
            assert!(
                !code.contains(effect),
                "{} has '{effect}'; what touches the system belongs to {PROCESS}",
                path.display()
            );
        }
    }
    // Else nothing is looked at.
    let touching = |path: &&PathBuf| EFFECTS.iter().any(|effect| code(path).contains(effect));
    assert!(inside.into_iter().filter(touching).count() >= 3);
}
