//! The lines that were typed in shells, kept from one to the next.

use std::path::{Path, PathBuf};

use rustyline::history::DefaultHistory;
use rustyline::{Editor, Helper};

/// Adds an entry to the history and at once to its file, so that closing the terminal loses nothing.
pub fn remember<H: Helper>(
    editor: &mut Editor<H, DefaultHistory>,
    file: Option<&Path>,
    entry: &str,
) {
    if entry.is_empty() || !editor.add_history_entry(entry).unwrap_or(false) {
        return;
    }
    if let Some(path) = file {
        // A history that cannot be saved is no reason to stop.
        let _ = editor.append_history(path);
    }
}

/// The file of a history, `$XDG_STATE_HOME/atoll/NAME`; makes its folder.
pub fn file(name: &str) -> Option<PathBuf> {
    let state = match std::env::var_os("XDG_STATE_HOME").map(PathBuf::from) {
        Some(path) if path.is_absolute() => path,
        _ => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    let folder = state.join("atoll");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join(name))
}
