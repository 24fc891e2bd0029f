//! The commit that a program was built from.

use std::path::Path;
use std::process::{Command, Stdio};

/// The commit of the repository that `folder` is in, twelve digits, with `-dirty` where a tracked file differs from it.
/// `None` where there is no repository, or no git.
///
/// It is the commit at the time of the call; a program that was built earlier may stem from another. `atoll` therefore
/// embeds it when it is built; only programs that `cargo run` has just built should call this.
pub fn commit(folder: &Path) -> Option<String> {
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder).args(words);
        let ran = git.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let ran = ran.ok().filter(|ran| ran.status.success())?;
        Some(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let dirty = if changed.is_empty() { "" } else { "-dirty" };
    Some(format!("{commit}{dirty}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, words: &[&str]) {
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let mut git = Command::new("git");
        git.arg("-C").arg(folder).args(who).args(words);
        assert!(git.output().unwrap().status.success(), "{words:?}");
    }

    #[test]
    fn a_commit_is_named_and_changes_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(commit(folder), None, "no repository");
        git(folder, &["init", "-q"]);
        assert_eq!(commit(folder), None, "no commit yet");
        std::fs::write(folder.join("a"), "1").unwrap();
        git(folder, &["add", "a"]);
        git(folder, &["commit", "-q", "-m", "first"]);
        let clean = commit(folder).unwrap();
        assert_eq!(clean.len(), 12, "{clean}");
        assert!(clean.chars().all(|char| char.is_ascii_hexdigit()));
        // A report that lies there is no change of the program.
        std::fs::write(folder.join("lab.html"), "").unwrap();
        assert_eq!(commit(folder), Some(clean.clone()));
        std::fs::write(folder.join("a"), "2").unwrap();
        assert_eq!(commit(folder), Some(format!("{clean}-dirty")));
    }
}
