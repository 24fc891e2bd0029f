//! The contents of `--help`, the manual pages and the reference: the definitions in [`Cli`], and examples.

mod examples;
pub mod markdown;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use crate::command_line::Cli;
use crate::help::examples::EXAMPLES;

/// The command line's definition, with the examples.
pub fn command() -> clap::Command {
    let with = |command: clap::Command, path: &[&str]| {
        let name = path.join(" ");
        match EXAMPLES.iter().find(|(of, _)| *of == name) {
            Some((_, examples)) => command.after_help(section(examples)),
            None => command,
        }
    };
    walk(Cli::command(), &[], &with)
}

/// Applies `with` to a command and all of its subcommands.
fn walk(
    mut command: clap::Command,
    path: &[&str],
    with: &impl Fn(clap::Command, &[&str]) -> clap::Command,
) -> clap::Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(&name, |below| {
            let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
            walk(below, &path, with)
        });
    }
    with(command, path)
}

/// The section with examples of a help text: command lines, each with what it does, on the same line if there is room.
fn section(examples: &[(&str, &str)]) -> String {
    let width = examples.iter().map(|(line, _)| line.chars().count()).max();
    let width = width.unwrap_or(0).min(60);
    let mut text = String::from("Examples:");
    for (line, what) in examples {
        text += &if line.chars().count() <= width {
            format!("\n  {line:width$}  # {what}")
        } else {
            format!("\n  {line}\n  {:width$}  # {what}", "")
        };
    }
    text
}

/// Reads a command line, which begins with the program's name; wrong usage ends the process, as do `--help` and
/// `--version`.
pub fn parse(words: &[OsString]) -> Cli {
    let read = Cli::from_arg_matches(&command().get_matches_from(words));
    read.unwrap_or_else(|error| error.exit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a command line as a shell splits it.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        assert!(!quoted, "{line}");
        words
    }

    fn all(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        found.push(path.to_owned());
        for below in command
            .get_subcommands()
            .filter(|below| !below.is_hide_set())
        {
            let path = format!("{path} {}", below.get_name());
            all(below, path.trim(), found);
        }
    }

    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        let mut commands = Vec::new();
        all(&command(), "", &mut commands);
        let with: Vec<_> = EXAMPLES.iter().map(|(of, _)| (*of).to_owned()).collect();
        let (mut a, mut b) = (commands.clone(), with);
        a.sort();
        b.sort();
        assert_eq!(a, b, "commands, and commands with examples");
        for path in &commands {
            let mut words: Vec<_> = ["atoll"]
                .into_iter()
                .chain(path.split_whitespace())
                .collect();
            words.push("--help");
            let help = command()
                .try_get_matches_from(words)
                .unwrap_err()
                .to_string();
            assert!(
                help.contains("\nExamples:\n  atoll"),
                "atoll {path}: {help}"
            );
        }
        for (of, examples) in EXAMPLES {
            for (line, what) in *examples {
                assert!(
                    line.starts_with(format!("atoll {of}").trim_end()),
                    "{line} is of {of}"
                );
                assert!(!what.is_empty() && !what.ends_with('.'), "{line}: {what}");
                let read = command().try_get_matches_from(words(line));
                let read = read.and_then(|matches| Cli::from_arg_matches(&matches));
                assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
            }
        }
    }
}
