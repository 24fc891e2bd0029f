//! A statement in the user's editor.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::terminal::interrupt;

/// Lets the user edit `text`; `None` if they left the editor without saving.
///
/// # Errors
/// If there is no editor, it fails, or the file that it is given cannot be written or read.
pub fn text(text: &str) -> anyhow::Result<Option<String>> {
    let path = std::env::temp_dir().join(format!("atoll-{}.sql", std::process::id()));
    // A file left by a killed process with the same id is removed; the new one is readable by this user only.
    let _ = fs::remove_file(&path);
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    let written = made.and_then(|mut file| writeln!(file, "{}", text.trim_end()));
    written.with_context(|| format!("cannot write {}", path.display()))?;
    let edited = file(&path);
    let _ = fs::remove_file(&path);
    edited
}

/// Lets the user edit a file; its text, or `None` if they left the editor without saving.
///
/// # Errors
/// If there is no editor, it fails, or the file cannot be read.
pub fn file(path: &Path) -> anyhow::Result<Option<String>> {
    let state = || {
        let now = fs::metadata(path).ok()?;
        // Some editors write a new file, and some write within the resolution of the file's time.
        Some((now.modified().ok()?, now.ino(), now.len()))
    };
    let before = state();
    let editor = editor();
    // Ctrl-C is for the editor while it runs.
    let _ignored = interrupt::ignore();
    let ended = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(path)
        .status()
        .with_context(|| format!("cannot start the editor {editor:?}; set EDITOR"))?;
    match ended.code() {
        Some(0) => {}
        Some(126 | 127) => bail!("there is no editor {editor:?}; set EDITOR to one"),
        _ => bail!("the editor {editor:?} ended with {ended}; nothing was run"),
    }
    if state() == before {
        eprintln!("nothing was saved, nothing is run");
        return Ok(None);
    }
    crate::text::of(path).map(Some)
}

/// The command of the editor: `$VISUAL`, `$EDITOR`, or the one that every system has.
fn editor() -> String {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok());
    let mut named = named.filter(|editor| !editor.trim().is_empty());
    named.next().unwrap_or_else(|| "vi".to_owned())
}
