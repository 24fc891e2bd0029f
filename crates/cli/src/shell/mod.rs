//! The shell: history, completion, statements over several lines, `\` commands.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

use atoll::{Database, TableSummary};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper, Highlighter, Hinter};

use crate::sql::Runner;
use crate::statement::{Splitter, split};
use crate::{Failure, interrupt, units};

/// Most rows of a result that the shell shows.
pub const MOST_ROWS: usize = 40;

/// Words that can be completed anywhere.
const KEYWORDS: &str = "all alter analyze and as asc avg between bigint boolean by case cast char copy count create cross \
     date decimal delete desc describe distinct double drop else end except exists explain extract false foreign from full \
     group having in inner insert int intersect interval into is join key left like limit max min not null offset on or \
     order outer primary references right select set show sum table text then timestamp to true union update using values \
     varchar verbose when where with";

const HELP: &str = "\
Statements end with a semicolon and may span lines. Ctrl-C cancels a running one.
  \\d          tables          \\d TABLE   columns and keys of a table
  \\timing     times on or off \\i FILE    run the statements in a file
  \\?          this help       \\q         leave (or Ctrl-D)";

/// Runs the shell until the user leaves it.
pub fn run(database: &Database, runner: &mut Runner) -> Result<(), Failure> {
    let config = Config::builder()
        .auto_add_history(true)
        .max_history_size(10_000)?
        .build();
    let mut editor: Editor<Words, DefaultHistory> = Editor::with_config(config)?;
    let history = history_file();
    if let Some(path) = &history {
        // The first time there is none.
        let _ = editor.load_history(path);
    }
    runner.timing = true;
    eprintln!(
        "atoll {} on {}; \\? for help",
        env!("CARGO_PKG_VERSION"),
        database.path().display()
    );
    loop {
        editor.set_helper(Some(Words::of(database)));
        match editor.readline("atoll> ") {
            Ok(text) if text.trim_start().starts_with('\\') => {
                if !command(database, runner, text.trim())? {
                    break;
                }
            }
            Ok(text) => statements(runner, &text)?,
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        }
        interrupt::forget();
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    runner.failed = false;
    Ok(())
}

/// Where the history is kept, its folder made: `$XDG_STATE_HOME/atoll/history`.
fn history_file() -> Option<PathBuf> {
    let state = match std::env::var_os("XDG_STATE_HOME").map(PathBuf::from) {
        Some(path) if path.is_absolute() => path,
        _ => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    let folder = state.join("atoll");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// Runs statements; a failure ends those after it on the same input, not the shell.
fn statements(runner: &mut Runner, text: &str) -> Result<(), Failure> {
    for statement in split(text) {
        match runner.one(&statement) {
            Ok(()) => {}
            Err(Failure::Interrupted) => {
                eprintln!("cancelled");
                return Ok(());
            }
            Err(failure) => return runner.tell_and_go_on(failure),
        }
    }
    Ok(())
}

/// Runs a `\` command; false means to leave.
fn command(database: &Database, runner: &mut Runner, text: &str) -> Result<bool, Failure> {
    let text = text.trim_end_matches(';').trim_end();
    let (name, argument) = text
        .split_once(char::is_whitespace)
        .map_or((text, ""), |(a, b)| (a, b.trim()));
    match name {
        "\\q" | "\\quit" => return Ok(false),
        "\\?" | "\\h" | "\\help" => eprintln!("{HELP}"),
        "\\timing" => {
            runner.timing = match argument {
                "on" => true,
                "off" => false,
                _ => !runner.timing,
            };
            eprintln!("timing is {}", if runner.timing { "on" } else { "off" });
        }
        "\\dt" => list(&database.tables()?),
        "\\d" if argument.is_empty() => list(&database.tables()?),
        "\\d" => {
            let tables = database.tables()?;
            let wanted = argument.trim_matches('"');
            match tables
                .iter()
                .find(|table| table.name.eq_ignore_ascii_case(wanted))
            {
                Some(table) => describe(table),
                None => eprintln!("atoll: there is no table {wanted:?}; \\d lists them"),
            }
        }
        "\\i" => match std::fs::read_to_string(argument) {
            Ok(text) => statements(runner, &text)?,
            Err(error) => eprintln!("atoll: cannot read {argument:?}: {error}; check the path"),
        },
        _ => eprintln!("atoll: unknown command {name}; \\? lists them"),
    }
    Ok(true)
}

fn list(tables: &[TableSummary]) {
    if tables.is_empty() {
        eprintln!("no tables; create one, or load one with atoll import");
    }
    let width = tables
        .iter()
        .map(|table| table.name.len())
        .max()
        .unwrap_or(0);
    for table in tables {
        eprintln!(
            "{:width$}  {:>14} rows",
            table.name,
            units::count(table.rows)
        );
    }
}

fn describe(table: &TableSummary) {
    let width = table
        .columns
        .iter()
        .map(|column| column.name.len())
        .max()
        .unwrap_or(0);
    for column in &table.columns {
        let null = if column.nullable { "" } else { " not null" };
        eprintln!(
            "{:width$}  {}{null}",
            column.name,
            atoll::type_name(&column.data_type)
        );
    }
    if !table.primary_key.is_empty() {
        eprintln!("primary key ({})", table.primary_key.join(", "));
    }
    for key in &table.foreign_keys {
        let (columns, parent) = (key.columns.join(", "), key.parent_columns.join(", "));
        eprintln!(
            "foreign key ({columns}) references {} ({parent})",
            key.parent
        );
    }
    eprintln!("{} rows", units::count(table.rows));
}

/// What can be completed, and when a statement is complete.
#[derive(Helper, Highlighter, Hinter)]
struct Words {
    words: BTreeSet<String>,
}

impl Words {
    fn of(database: &Database) -> Words {
        let mut words: BTreeSet<String> = KEYWORDS.split_whitespace().map(str::to_owned).collect();
        for table in database.tables().unwrap_or_default() {
            words.insert(table.name);
            words.extend(table.columns.into_iter().map(|column| column.name));
        }
        Words { words }
    }
}

/// The words that start like the one that ends at `position`, and where that one starts.
fn complete(words: &BTreeSet<String>, line: &str, position: usize) -> (usize, Vec<String>) {
    let before = &line[..position];
    let start = before
        .rfind(|c: char| !c.is_alphanumeric() && c != '_')
        .map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
    let typed = &before[start..];
    if typed.is_empty() {
        return (start, Vec::new());
    }
    let lower = typed.to_lowercase();
    let upper = typed.chars().all(|c| !c.is_lowercase());
    let keyword = |word: &str| KEYWORDS.split_whitespace().any(|keyword| keyword == word);
    let found = words
        .iter()
        .filter(|word| word.to_lowercase().starts_with(&lower));
    let found = found.map(|word| {
        if upper && keyword(word) {
            word.to_uppercase()
        } else {
            word.clone()
        }
    });
    (start, found.collect())
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = complete(&self.words, line, position);
        let pairs = found.into_iter().map(|word| Pair {
            display: word.clone(),
            replacement: word,
        });
        Ok((start, pairs.collect()))
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if whole(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

/// Whether the input can be run: it is empty, a command, or ends with a semicolon.
fn whole(input: &str) -> bool {
    if input.trim().is_empty() || input.trim_start().starts_with('\\') {
        return true;
    }
    let mut splitter = Splitter::default();
    splitter.push(&Cow::from(format!("{input}\n")));
    !splitter.pending()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_in_the_case_typed() {
        let words: BTreeSet<String> = ["select", "set", "l_shipdate"].map(str::to_owned).into();
        assert_eq!(complete(&words, "sel", 3), (0, vec!["select".to_owned()]));
        assert_eq!(
            complete(&words, "SE", 2),
            (0, vec!["SELECT".to_owned(), "SET".to_owned()])
        );
        assert_eq!(
            complete(&words, "select sum(l_s", 14),
            (11, vec!["l_shipdate".to_owned()])
        );
        assert_eq!(complete(&words, "select ", 7), (7, vec![]));
        assert_eq!(
            complete(&words, "'\u{e4}'se", 6),
            (4, vec!["select".to_owned(), "set".to_owned()])
        );
    }

    #[test]
    fn a_statement_is_whole_at_its_semicolon() {
        for input in [
            "",
            "  ",
            "\\d x",
            "select 1;",
            "select 1; -- done",
            "select 1; select 2;",
        ] {
            assert!(whole(input), "{input:?}");
        }
        for input in ["select 1", "select ';", "select 1; select", "/* ;"] {
            assert!(!whole(input), "{input:?}");
        }
    }
}
