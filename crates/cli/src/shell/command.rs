//! The shell's `\` commands.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;

use crate::output::table::Expanded;
use crate::shell::{catalog, copy, edit, listing, path};
use crate::statement::runner::Runner;
use crate::terminal::{interrupt, out, pager};
use crate::units;
use atoll::script::Statement;

/// The commands: name, arguments, what they do.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("\\?", "", "this help"),
    ("\\q", "", "leave (or Ctrl-D)"),
    ("\\d", "[TABLE]", "tables, or the columns and keys of one"),
    ("\\dt", "[PATTERN]", "tables whose names match, such as l*"),
    (
        "\\dv",
        "[PATTERN]",
        "views; also \\dn schemas, \\di indexes,",
    ),
    (
        "\\df",
        "[PATTERN]",
        "functions; also \\ds sequences, \\du roles",
    ),
    ("\\l", "[FOLDER]", "stores in this folder, or in another"),
    ("\\c", "[STORE]", "go to another store, or tell which it is"),
    ("\\i", "FILE", "run the statements in a file"),
    (
        "\\e",
        "[FILE]",
        "edit the last statement, or a file, and run it",
    ),
    (
        "\\o",
        "[FILE]",
        "results to a .csv, .json, ... file, or back here",
    ),
    ("\\copy", "TABLE from FILE", "append the rows of a file"),
    (
        "\\copy",
        "(QUERY) to FILE",
        "or TABLE to FILE: rows to a file",
    ),
    (
        "\\x",
        "[on|off|auto]",
        "a line for each column; auto: of rows too wide",
    ),
    (
        "\\limit",
        "[N]",
        "most rows of a result that are shown; 0: all",
    ),
    (
        "\\pager",
        "[on|off|COMMAND]",
        "scroll through results longer than the screen",
    ),
    ("\\timing", "[on|off]", "times of statements"),
    (
        "\\!",
        "[COMMAND]",
        "run a command of the system, or its shell",
    ),
    ("\\echo", "[TEXT]", "print a text"),
];

/// Commands that the help names beside others.
pub const FURTHER: &[&str] = &["\\dn", "\\di", "\\ds", "\\du"];

/// What the shell does after a command.
pub enum Action {
    /// Read the next line.
    GoOn,
    /// Leave the shell.
    Leave,
    /// Run the statements and commands of this file.
    Script(PathBuf),
    /// Run this statement.
    Statement(Statement),
    /// Run this text, which has been edited, as if it had been typed.
    Edited(String),
}

/// Runs a `\` command. `draft` is what `\e` edits where it names no file.
///
/// # Errors
/// If there is no such command, or it fails.
pub fn run(runner: &mut Runner, draft: &str, line: &str) -> anyhow::Result<Action> {
    if let Some(command) = line.strip_prefix("\\!") {
        system(command.trim())?;
        return Ok(Action::GoOn);
    }
    let line = line.trim_end_matches(';').trim_end();
    let (name, rest) = line
        .split_once(char::is_whitespace)
        .map_or((line, ""), |(name, rest)| (name, rest.trim()));
    match name {
        "\\q" | "\\quit" => return Ok(Action::Leave),
        "\\?" | "\\h" | "\\help" => out::line(&help()),
        "\\i" | "\\ir" => {
            let path = path::file(rest)?.ok_or_else(|| anyhow!("\\i needs the name of a file"))?;
            return Ok(Action::Script(path));
        }
        "\\e" => {
            let edited = match path::file(rest)? {
                Some(path) => edit::file(&path)?,
                None => edit::text(draft)?,
            };
            return Ok(edited.map_or(Action::GoOn, Action::Edited));
        }
        "\\copy" => {
            return Ok(Action::Statement(Statement {
                text: copy::copy(rest)?,
                line: 1,
                column: 0,
            }));
        }
        _ => setting(runner, name, rest)?,
    }
    Ok(Action::GoOn)
}

/// Commands that show or change something and run no statement.
fn setting(runner: &mut Runner, name: &str, rest: &str) -> anyhow::Result<()> {
    match name {
        "\\x" => {
            let style = &mut runner.sink.style;
            style.expanded = match (rest, style.expanded) {
                ("", Expanded::On) => Expanded::Off,
                ("", _) => Expanded::On,
                (word, _) => Expanded::from_str(word, true)
                    .map_err(|_| anyhow::anyhow!("\\x takes on, off or auto, not {word:?}"))?,
            };
            eprintln!("expanded rows are {}", word_of(style.expanded));
        }
        "\\limit" => {
            let style = &mut runner.sink.style;
            if !rest.is_empty() {
                let most = rest.replace([',', '_'], "").parse::<usize>();
                let most =
                    most.with_context(|| format!("\\limit takes a number of rows, not {rest:?}"))?;
                style.most = Some(most).filter(|most| *most > 0);
            }
            match style.most {
                Some(most) => {
                    eprintln!("{} rows of a result are shown", units::count(most as u64))
                }
                None => eprintln!("all rows of a result are shown"),
            }
        }
        "\\pager" => {
            runner.sink.pager = match (rest, &runner.sink.pager) {
                ("off", _) | ("", Some(_)) => None,
                ("on" | "", _) => Some(pager::usual()),
                (command, _) => Some(command.to_owned()),
            };
            match &runner.sink.pager {
                Some(pager) => eprintln!("results longer than the screen go through {pager:?}"),
                None => eprintln!("no pager is used"),
            }
        }
        "\\o" => {
            let path = path::file(rest)?;
            runner.sink.redirect(path.as_deref())?;
            match path {
                Some(path) => eprintln!("results go to {}; \\o ends that", path.display()),
                None => eprintln!("results are shown here"),
            }
        }
        "\\timing" => {
            runner.timing = match rest {
                "on" => true,
                "off" => false,
                "" => !runner.timing,
                word => bail!("\\timing takes on or off, not {word:?}"),
            };
            eprintln!("timing is {}", if runner.timing { "on" } else { "off" });
        }
        _ => listed(runner, name, rest)?,
    }
    Ok(())
}

/// Commands that list or tell something, and `\c`.
fn listed(runner: &mut Runner, name: &str, rest: &str) -> anyhow::Result<()> {
    match name {
        "\\l" => {
            let own = runner.path();
            let beside = own
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty() && !runner.temporary);
            let folder =
                path::file(rest)?.unwrap_or_else(|| beside.unwrap_or(Path::new(".")).into());
            listing::stores(&folder, own)?;
        }
        "\\c" | "\\connect" | "\\conninfo" => {
            if let Some(path) = path::file(rest)? {
                runner.change_to(&path)?;
            }
            if runner.temporary {
                eprintln!("the store is in memory; \\c STORE goes to another");
            } else {
                eprintln!("the store is {}", runner.path().display());
            }
        }
        "\\echo" => out::line(rest),
        _ => {
            // As in psql a plus asks for more of the same.
            let plain = name.trim_end_matches('+');
            let pattern = unquoted(rest);
            match plain {
                "\\d" if !rest.is_empty() => catalog::describe(runner, &pattern, plain != name)?,
                "\\d" | "\\dt" => listing::list(&runner.known()?, &pattern),
                _ if catalog::list(runner, plain, &pattern)? => {}
                _ => bail!("unknown command {name}; \\? lists them"),
            }
        }
    }
    Ok(())
}

/// Runs a command of the system on this terminal; without one, the user's shell.
fn system(command: &str) -> anyhow::Result<()> {
    let shell = std::env::var("SHELL").ok();
    let shell = shell.filter(|shell| !shell.trim().is_empty());
    let shell = shell.as_deref().unwrap_or("sh");
    let mut run = Command::new(shell);
    if !command.is_empty() {
        run.args(["-c", command]);
    }
    // Ctrl-C is for the command while it runs.
    let _ignored = interrupt::ignore();
    let ended = run.status();
    let ended = ended.with_context(|| format!("cannot start {shell:?}; set SHELL"))?;
    match ended.code() {
        Some(0) => {}
        Some(code) => eprintln!("it ended with status {code}"),
        None => eprintln!("it ended with {ended}"),
    }
    Ok(())
}

fn help() -> String {
    let mut text =
        String::from("Statements end with ; and may span lines. Ctrl-C cancels, Tab completes.");
    for (name, takes, what) in COMMANDS {
        let left = format!("{name} {takes}");
        text += &format!("\n  {left:23}  {what}");
    }
    text
}

fn word_of(expanded: Expanded) -> &'static str {
    match expanded {
        Expanded::On => "on",
        Expanded::Off => "off",
        Expanded::Auto => "auto",
    }
}

/// The name that an identifier stands for: as it is if in quotes, otherwise in lower case.
fn unquoted(text: &str) -> String {
    match text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    {
        Some(name) => name.replace("\"\"", "\""),
        None => text.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_a_screen() {
        let help = help();
        for line in help.lines() {
            assert!(line.chars().count() <= 79, "{line}");
        }
        // With the prompt below it.
        assert!(help.lines().count() < 24);
    }

    #[test]
    fn names_may_be_quoted() {
        assert_eq!(
            (unquoted("Ab"), unquoted("\"A\"\"b\"")),
            ("ab".into(), "A\"b".into())
        );
    }
}
