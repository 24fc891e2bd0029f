//! Commands as people type them.

use std::ffi::{OsStr, OsString};

/// The command line of this process, so that a shell repeats it: its program's name without the
/// folder, then its arguments, quoted where needed.
pub fn command_line() -> String {
    command_line_of(std::env::args_os())
}

/// As [`command_line`], of a program that was started with these words.
pub fn command_line_of(words: impl IntoIterator<Item = OsString>) -> String {
    let mut args = words.into_iter();
    let program = args.next().unwrap_or_default();
    let name = std::path::Path::new(&program)
        .file_name()
        .map(OsStr::to_owned)
        .unwrap_or(program);
    quoted([name].into_iter().chain(args))
}

/// Words as one line of shell. Bytes that are not UTF-8 are shown as U+FFFD.
///
/// ```
/// assert_eq!(report::quoted(["atoll", "sql", "it's"].map(Into::into)), r"atoll sql 'it'\''s'");
/// ```
pub fn quoted(words: impl IntoIterator<Item = OsString>) -> String {
    let words: Vec<String> = words
        .into_iter()
        .map(|word| quote(&word.to_string_lossy()))
        .collect();
    words.join(" ")
}

fn quote(word: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "-_./,:=@%+".contains(char);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        let line = quoted(["a b", "", "$(reboot)", "x=1"].map(OsString::from));
        assert_eq!(line, "'a b' '' '$(reboot)' x=1");
    }
}
