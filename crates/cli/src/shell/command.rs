//! The shell's `\` commands.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use atoll::TableSummary;
use clap::ValueEnum;
use comfy_table::{Cell, CellAlignment, Table, presets};

use super::input::Input;
use super::{Shell, edit};
use crate::output::Expanded;
use crate::statement::Statement;
use crate::{Failure, pager, store, units};

/// The commands, with what they take and do.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("\\?", "", "this help"),
    ("\\q", "", "leave (or Ctrl-D)"),
    (
        "\\d",
        "[TABLE]",
        "tables, or the columns and keys of a table",
    ),
    ("\\dt", "[PATTERN]", "tables whose names match, such as l*"),
    (
        "\\l",
        "[FOLDER]",
        "stores in this store's folder, or in another",
    ),
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
];

impl Shell<'_> {
    /// Runs a `\` command; false means to leave. Its failures are told.
    pub fn command(&mut self, input: &mut Input, line: &str) -> Result<bool, Failure> {
        let line = line.trim_end_matches(';').trim_end();
        let (name, rest) = line
            .split_once(char::is_whitespace)
            .map_or((line, ""), |(name, rest)| (name, rest.trim()));
        if matches!(name, "\\q" | "\\quit") {
            return Ok(false);
        }
        let done = match name {
            "\\?" | "\\h" | "\\help" => {
                eprintln!("{}", help());
                Ok(())
            }
            "\\i" | "\\ir" => {
                return match file(rest) {
                    Ok(Some(path)) => self.script(&path),
                    Ok(None) => self.told(anyhow::anyhow!("\\i needs the name of a file")),
                    Err(error) => self.told(error),
                };
            }
            "\\e" => match self.edit(input, rest) {
                Ok(Some(text)) => return self.edited(input, &text),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            },
            "\\copy" => match copy(rest) {
                Ok(text) => {
                    let statement = Statement {
                        text,
                        line: 1,
                        column: 0,
                    };
                    self.statement(&statement)?;
                    return Ok(true);
                }
                Err(error) => Err(error),
            },
            _ => self.setting(name, rest),
        };
        match done {
            Ok(()) => Ok(true),
            Err(error) => self.told(error),
        }
    }

    fn told(&mut self, error: anyhow::Error) -> Result<bool, Failure> {
        self.runner.tell_and_go_on(Failure::Error(error))?;
        Ok(true)
    }

    /// Commands that show or change something and run no statement.
    fn setting(&mut self, name: &str, rest: &str) -> anyhow::Result<()> {
        let runner = &mut *self.runner;
        match name {
            "\\d" if !rest.is_empty() => describe(&runner.known()?, &unquoted(rest))?,
            "\\d" | "\\dt" => list(&runner.known()?, &unquoted(rest)),
            "\\l" => {
                let own = runner.path();
                let beside = own.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = file(rest)?.unwrap_or_else(|| beside.unwrap_or(Path::new(".")).into());
                stores(&folder, own)?;
            }
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
                    let most = most
                        .with_context(|| format!("\\limit takes a number of rows, not {rest:?}"))?;
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
                let path = file(rest)?;
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
            _ => bail!("unknown command {name}; \\? lists them"),
        }
        Ok(())
    }

    /// Lets the user edit what has been typed, else the last statement, or a file; what is to be run.
    fn edit(&mut self, input: &Input, rest: &str) -> anyhow::Result<Option<String>> {
        match file(rest)? {
            Some(path) => edit::file(&path),
            None if input.pending() => edit::text(input.text()),
            None => edit::text(&self.last),
        }
    }

    /// Runs what has been edited as if it had been typed; what is not complete is the next line's beginning.
    fn edited(&mut self, input: &mut Input, text: &str) -> Result<bool, Failure> {
        input.clear();
        self.edited.push(text.trim().to_owned());
        let mut edited = Input::default();
        let go_on = self.take(&mut edited, text)?;
        if edited.pending() {
            self.draft = Some(edited.text().trim().to_owned());
        }
        Ok(go_on)
    }
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

/// A name as it is meant: in quotes as it stands, otherwise in lower case.
fn unquoted(text: &str) -> String {
    match text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    {
        Some(name) => name.replace("\"\"", "\""),
        None => text.to_lowercase(),
    }
}

/// The file that a command names, perhaps in quotes or in the user's home.
fn file(text: &str) -> anyhow::Result<Option<PathBuf>> {
    let plain = match text.chars().next() {
        None => return Ok(None),
        Some(quote @ ('\'' | '"')) => {
            let inner = text[1..].strip_suffix(quote);
            inner.with_context(|| format!("{text} lacks a quote at its end"))?
        }
        Some(_) => text,
    };
    Ok(Some(at_home(plain)))
}

/// `~/` is the user's home.
fn at_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// `copy` as the database knows it: the file may stand without quotes.
fn copy(text: &str) -> anyhow::Result<String> {
    let usage = "\\copy takes TABLE from FILE, or TABLE or (QUERY) to FILE";
    let (at, length) = direction(text).context(usage)?;
    let (what, rest) = (&text[..at + length], text[at + length..].trim_start());
    let (name, options) = match rest.chars().next() {
        None => bail!("{usage}"),
        Some('\'') => {
            let mut end = 1;
            // A doubled quote is part of the name.
            loop {
                end += rest[end..]
                    .find('\'')
                    .context("the file's name lacks a quote at its end")?
                    + 1;
                match rest[end..].starts_with('\'') {
                    true => end += 1,
                    false => break,
                }
            }
            (rest[1..end - 1].replace("''", "'"), &rest[end..])
        }
        Some(_) => {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        }
    };
    if matches!(
        name.to_lowercase().as_str(),
        "stdin" | "stdout" | "pstdin" | "pstdout" | "program"
    ) {
        bail!("\\copy reads and writes files; name one, such as './{name}'");
    }
    let name = at_home(&name).display().to_string().replace('\'', "''");
    Ok(format!("copy {what} '{name}'{options}"))
}

/// Where `from` or `to` stands that comes before the file: outside of parentheses and quotes.
fn direction(text: &str) -> Option<(usize, usize)> {
    let (mut depth, mut quote, mut word) = (0, None, None);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) if c.is_alphanumeric() || c == '_' => {
                word = word.or(Some(at));
                continue;
            }
            _ => {}
        }
        if let Some(start) = word.take() {
            let word = text[start..at].to_lowercase();
            if depth == 0 && (word == "from" || word == "to") {
                return Some((start, at - start));
            }
        }
    }
    None
}

/// Whether a name matches a pattern with `*` for any characters and `?` for one.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pattern_rest = pattern.chars();
    match pattern_rest.next() {
        None => name.is_empty(),
        Some('*') => {
            let rest = pattern_rest.as_str();
            let mut starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            starts.any(|at| matches(rest, &name[at..]))
        }
        Some(c) => {
            let mut rest = name.chars();
            let same = rest.next().is_some_and(|own| c == '?' || own == c);
            same && matches(pattern_rest.as_str(), rest.as_str())
        }
    }
}

/// A table as results are shown; the last `numbers` columns stand at the right.
fn table(head: &[&str], rows: Vec<Vec<String>>, numbers: usize) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY);
    table.set_header(head);
    let first = head.len() - numbers;
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(|(at, text)| {
            Cell::new(text).set_alignment(match at >= first {
                true => CellAlignment::Right,
                false => CellAlignment::Left,
            })
        }));
    }
    table.to_string()
}

fn list(tables: &[TableSummary], pattern: &str) {
    let named = |table: &&TableSummary| {
        pattern.is_empty()
            || matches(pattern, &table.name)
            || matches(pattern, &table.name.to_lowercase())
    };
    let found: Vec<Vec<String>> = tables
        .iter()
        .filter(named)
        .map(|table| {
            vec![
                table.name.clone(),
                units::count(table.columns.len() as u64),
                units::count(table.rows),
            ]
        })
        .collect();
    match (found.is_empty(), tables.is_empty()) {
        (_, true) => eprintln!("no tables; create one, or load one with atoll import or \\copy"),
        (true, _) => eprintln!("no table matches {pattern:?}"),
        _ => eprintln!("{}", table(&["table", "columns", "rows"], found, 2)),
    }
}

fn describe(tables: &[TableSummary], name: &str) -> anyhow::Result<()> {
    let found = tables.iter().find(|table| table.name == name).or_else(|| {
        tables
            .iter()
            .find(|table| table.name.eq_ignore_ascii_case(name))
    });
    let Some(found) = found else {
        if name.contains(['*', '?']) {
            list(tables, name);
            return Ok(());
        }
        bail!("there is no table {name:?}; \\d lists them");
    };
    let keys = &found.primary_key;
    let rows = found.columns.iter().map(|column| {
        let mut notes = Vec::new();
        if !column.nullable {
            notes.push("not null");
        }
        if keys.contains(&column.name) {
            notes.push("primary key");
        }
        vec![
            column.name.clone(),
            atoll::type_name(&column.data_type),
            notes.join(", "),
        ]
    });
    eprintln!("{}", table(&["column", "type", ""], rows.collect(), 0));
    if keys.len() > 1 {
        eprintln!("primary key ({})", keys.join(", "));
    }
    for key in &found.foreign_keys {
        let (columns, parent) = (key.columns.join(", "), key.parent_columns.join(", "));
        eprintln!(
            "foreign key ({columns}) references {} ({parent})",
            key.parent
        );
    }
    eprintln!("{} rows", units::count(found.rows));
    Ok(())
}

fn stores(folder: &Path, own: &Path) -> anyhow::Result<()> {
    if !folder.is_dir() {
        bail!("there is no folder {}", folder.display());
    }
    let same = |path: &Path| match (path.canonicalize(), own.canonicalize()) {
        (Ok(path), Ok(own)) => path == own,
        _ => false,
    };
    let rows: Vec<Vec<String>> = store::stores(folder)
        .iter()
        .map(|path| {
            let mark = if same(path) { "*" } else { "" };
            let size = units::bytes(store::bytes(path));
            vec![mark.to_owned(), path.display().to_string(), size]
        })
        .collect();
    match rows.is_empty() {
        true => eprintln!("there are no stores in {}", folder.display()),
        false => eprintln!("{}", table(&["", "store", "size"], rows, 1)),
    }
    Ok(())
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
        assert!(help.lines().count() <= 20);
    }

    #[test]
    fn copy_takes_files_without_quotes() {
        let copied = |text: &str| copy(text).unwrap();
        assert_eq!(copied("t from a.csv"), "copy t from 'a.csv'");
        assert_eq!(
            copied("\"to\" (a, b) FROM 'it''s a.csv' csv header"),
            "copy \"to\" (a, b) FROM 'it''s a.csv' csv header"
        );
        assert_eq!(
            copied("(select 'to' from t where a in (select b from u)) to /tmp/o.parquet"),
            "copy (select 'to' from t where a in (select b from u)) to '/tmp/o.parquet'"
        );
        for wrong in ["", "t", "t from", "t to stdout", "t from 'a", "(select 1"] {
            assert!(copy(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn names_match_patterns() {
        for (pattern, name) in [
            ("l*", "lineitem"),
            ("*", ""),
            ("*te*", "lineitem"),
            ("p?rt", "part"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("l*", "orders"),
            ("", "a"),
            ("p?rt", "prt"),
            ("part", "partsupp"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn files_may_be_quoted() {
        assert_eq!(file("").unwrap(), None);
        assert_eq!(file("'a b.sql'").unwrap(), Some("a b.sql".into()));
        assert_eq!(file("a b.sql").unwrap(), Some("a b.sql".into()));
        assert!(file("'a").is_err());
        assert_eq!(
            (unquoted("Ab"), unquoted("\"A\"\"b\"")),
            ("ab".into(), "A\"b".into())
        );
    }
}
