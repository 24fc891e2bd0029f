//! Builds the commit into the program, so that it can say which state of the source its results are of.
//!
//! `ATOLL_COMMIT` is what it says: from the environment where a packager sets it, else from git, with `-dirty` where a
//! tracked file differs from the commit; empty where neither knows.

use std::path::Path;
use std::process::Command;

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let folder = Path::new(&folder);
    println!("cargo::rerun-if-env-changed=ATOLL_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let commit = std::env::var("ATOLL_COMMIT").ok().or_else(|| read(folder));
    let commit = commit.unwrap_or_default();
    println!("cargo::rustc-env=ATOLL_COMMIT={commit}");
}

/// The commit of the repository, which is asked again when it, or any source of the program, has changed.
fn read(folder: &Path) -> Option<String> {
    let git = |words: &[&str]| {
        let ran = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(words)
            .output();
        let ran = ran.ok().filter(|ran| ran.status.success())?;
        Some(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let log = git(&[
        "rev-parse",
        "--path-format=absolute",
        "--git-path",
        "logs/HEAD",
    ])?;
    // A file that is not there would be changed at each build.
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    let crates = folder.join("..").read_dir().ok()?.flatten();
    for one in crates.map(|entry| entry.path()) {
        for part in ["src", "Cargo.toml"].map(|part| one.join(part)) {
            if part.exists() {
                println!("cargo::rerun-if-changed={}", part.display());
            }
        }
    }
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let dirty = if changed.is_empty() { "" } else { "-dirty" };
    Some(format!("{commit}{dirty}"))
}
