//! The reference of the command line: a page of Markdown from the definitions that `--help` shows.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, Command};

/// The top of the page.
const INTRODUCTION: &str = "\
<!-- Written from the program: UPDATE_DOCS=1 cargo test -p cli --test reference -->
# The command line
";

/// The page: a chapter for each command that `definition` shows to users, followed by those of its subcommands.
pub fn page(mut definition: Command) -> String {
    definition.build();
    let mut page = INTRODUCTION.to_owned();
    chapter(&mut page, &mut definition, 2);
    page
}

/// Adds the chapters of a command and its subcommands.
fn chapter(page: &mut String, command: &mut Command, level: usize) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = write!(page, "\n{} {name}\n", "#".repeat(level));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = write!(page, "\n{}\n", prose(about));
    }
    let usage = command.render_usage().to_string();
    let usage = usage.trim().trim_start_matches("Usage:").trim_start();
    let _ = write!(page, "\n```text\n{usage}\n```\n");
    arguments(page, command);
    if let Some(examples) = command.get_after_help() {
        let _ = write!(page, "\n```text\n{}\n```\n", examples.to_string().trim());
    }
    let below = command
        .get_subcommands_mut()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help");
    for command in below {
        chapter(page, command, (level + 1).min(4));
    }
}

/// Adds the arguments of a command, heading by heading, in the order of its help text.
fn arguments(page: &mut String, command: &Command) {
    let mut sections: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for argument in command.get_arguments().filter(|argument| shown(argument)) {
        let usual = if argument.is_positional() {
            "Arguments"
        } else {
            "Options"
        };
        let heading = argument.get_help_heading().unwrap_or(usual);
        match sections.iter_mut().find(|(of, _)| *of == heading) {
            Some((_, arguments)) => arguments.push(argument),
            None => sections.push((heading, vec![argument])),
        }
    }
    for (heading, arguments) in sections {
        let _ = write!(page, "\n**{heading}**\n\n");
        for argument in arguments {
            item(page, argument);
        }
    }
}

/// Whether an argument is shown: `--help`, which all commands have, is not.
fn shown(argument: &Arg) -> bool {
    !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

/// Adds an argument: its name, what it does, its possible values and its default.
fn item(page: &mut String, argument: &Arg) {
    let _ = write!(page, "- `{}`", synopsis(argument));
    if let Some(help) = argument.get_long_help().or(argument.get_help()) {
        let _ = write!(page, ": {}", prose(help));
    }
    let takes = argument.get_action().takes_values();
    let defaults = argument.get_default_values();
    if takes && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let names: Vec<_> = defaults
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        let _ = write!(page, " \\[default: `{}`\\]", names.join(","));
    }
    page.push('\n');
    let values = argument.get_possible_values();
    if !takes || argument.is_hide_possible_values_set() {
        return;
    }
    for value in values.iter().filter(|value| !value.is_hide_set()) {
        let _ = write!(page, "  - `{}`", value.get_name());
        if let Some(help) = value.get_help() {
            let _ = write!(page, ": {}", prose(help));
        }
        page.push('\n');
    }
}

/// `-o, --output <FILE>`, `<STORE>`, `[QUERY]`
fn synopsis(argument: &Arg) -> String {
    let mut names = Vec::new();
    names.extend(argument.get_short().map(|short| format!("-{short}")));
    names.extend(argument.get_long().map(|long| format!("--{long}")));
    let mut text = names.join(", ");
    if argument.is_positional() || argument.get_action().takes_values() {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{}", values(argument));
    }
    text
}

/// `<FILE>...`
fn values(argument: &Arg) -> String {
    let id = argument.get_id().as_str().to_uppercase();
    let name = match argument.get_value_names() {
        Some(names) => names.join("> <"),
        None => id,
    };
    let optional = argument.is_positional() && !argument.is_required_set();
    let (open, close) = if optional { ("[", "]") } else { ("<", ">") };
    let most = argument
        .get_num_args()
        .map_or(1, |range| range.max_values());
    let many = argument.is_positional() && most > 1;
    format!("{open}{name}{close}{}", if many { "..." } else { "" })
}

/// Escapes a text so that Markdown shows it as it is.
fn prose(text: &StyledStr) -> String {
    let text = text.to_string();
    let mut escaped = String::with_capacity(text.len());
    let mut code = false;
    for c in text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
    {
        code ^= c == '`';
        if !code && matches!(c, '*' | '_' | '<' | '>' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    #[test]
    fn a_command_is_a_chapter() {
        let store = Arg::new("store").required(true).help("The store");
        let files = Arg::new("file").num_args(1..).help("All of '*.csv'");
        let output = Arg::new("output").short('o').long("output");
        let output = output.value_name("FILE").default_value("a.csv");
        let loud = Arg::new("loud").long("loud").action(ArgAction::SetTrue);
        let loud = loud.help("As in `a_b`").help_heading("Sound");
        let secret = Arg::new("secret").long("secret").hide(true);
        let load = Command::new("load")
            .about("Load files")
            .args([store, files, output, loud, secret])
            .after_help("Examples:\n  p load a b");
        let hidden = Command::new("hidden").hide(true);
        let page = page(Command::new("p").subcommands([load, hidden]));
        let wanted = "\
### p load

Load files

```text
p load [OPTIONS] <store> [file]...
```

**Arguments**

- `<STORE>`: The store
- `[FILE]...`: All of '\\*.csv'

**Options**

- `-o, --output <FILE>` \\[default: `a.csv`\\]

**Sound**

- `--loud`: As in `a_b`

```text
Examples:
  p load a b
```
";
        assert!(page.ends_with(wanted), "{page}");
        assert!(!page.contains("hidden") && !page.contains("secret"));
    }
}
