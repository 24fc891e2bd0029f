//! The shell of `atoll afl`: statements over several lines, history, completion, `\` commands.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::time::Instant;

use array::Array;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper, Highlighter, Hinter};

use crate::commands::afl::cells::{self, Format};
use crate::commands::afl::options::Afl;
use crate::commands::afl::perform::{Show, perform};
use crate::commands::afl::statements::{Inside, Statement, split_complete};
use crate::failure::{Failure, one_line};
use crate::store::plain::{self, Open, Plain};
use crate::terminal::{history, interrupt, out};
use crate::units;

/// The commands, with their arguments and what they do.
const COMMANDS: [(&str, &str, &str); 4] = [
    (
        "\\d",
        "[NAME]",
        "list arrays, or show the dimensions, attributes and versions of one",
    ),
    ("\\q", "", "leave, as do exit, quit and Ctrl-D"),
    ("\\timing", "", "times of statements, or none"),
    ("\\?", "", "this list"),
];

/// Words that can be completed, besides operators and names.
const WORDS: &str = "analyze and append array as asc avg bool chunk compression count create default delete desc double explain \
     false float growing iif insert int16 int32 int64 int8 is_null list max min not null of or remove show sparse stdev \
     store sum true uint16 uint32 uint64 uint8 var version versions";

/// Whether a shell is to be opened: nothing is given to run, and somebody sits at a terminal.
pub fn is_wanted(args: &Afl) -> bool {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    terminal && args.text.is_none() && args.file.is_none() && !args.json
}

/// Runs the shell until the user leaves it.
pub fn run(args: &Afl) -> Result<(), Failure> {
    if args.create {
        plain::open(&args.store, &args.compute, Open::Create(None), false)?
            .store
            .close()?;
    }
    let mut shell = Shell {
        args,
        opened: open(args)?,
        timing: true,
    };
    let config = Config::builder()
        .max_history_size(10_000)?
        .completion_type(CompletionType::List)
        .build();
    let mut editor: Editor<Words, DefaultHistory> = Editor::with_config(config)?;
    let history = history::file("afl_history");
    if let Some(path) = &history {
        // There is none at the first start.
        let _ = editor.load_history(path);
    }
    interrupt::be_patient();
    let (version, store) = (env!("CARGO_PKG_VERSION"), args.store.display());
    eprintln!("atoll {version} on {store}, AFL; \\? for help");
    let mut text = String::new();
    loop {
        editor.set_helper(Some(shell.words()));
        match editor.readline(prompt(&text)) {
            Ok(line) => {
                let entry = format!("{text}{line}");
                text = entry.clone() + "\n";
                let go_on = shell.take(&mut text)?;
                if text.is_empty() {
                    history::remember(&mut editor, history.as_deref(), entry.trim());
                }
                if !go_on {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => text.clear(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        }
        interrupt::forget();
    }
    shell.opened.store.close()?;
    Ok(())
}

fn open(args: &Afl) -> Result<Plain, Failure> {
    plain::open(&args.store, &args.compute, Open::OnDemand, false)
}

/// The prompt after what was typed so far, which shows what is still open.
fn prompt(text: &str) -> &'static str {
    match split_complete(text).1 {
        Inside::Nothing => "afl> ",
        Inside::Statement => "  -> ",
        Inside::Open('\'') => "  '> ",
        Inside::Open('"') => "  \"> ",
        Inside::Open('*') => "  *> ",
        Inside::Open(_) => "  (> ",
    }
}

struct Shell<'a> {
    args: &'a Afl,
    opened: Plain,
    timing: bool,
}

impl Shell<'_> {
    /// Runs the statements that are complete, or a `\` command, and takes them out of the text; returns false to leave.
    fn take(&mut self, text: &mut String) -> Result<bool, Failure> {
        let whole = std::mem::take(text);
        let word = whole.trim().trim_end_matches(';').trim_end();
        let plain = ["exit", "quit", "help"];
        if word.starts_with('\\') || plain.iter().any(|of| word.eq_ignore_ascii_case(of)) {
            return self.command(word);
        }
        let (complete, inside) = split_complete(&whole);
        for statement in &complete {
            match self.statement(statement) {
                Ok(()) => {}
                Err(Failure::Interrupted) => {
                    eprintln!("cancelled");
                    return Ok(true);
                }
                Err(failure) => tell(failure)?,
            }
        }
        if inside != Inside::Nothing {
            // What follows the last complete statement stays.
            let done = complete.last().map_or(0, Statement::end);
            whole[done..].trim_start().clone_into(text);
        }
        Ok(true)
    }

    /// Runs a statement, with `explain` or `analyze` before it or without.
    fn statement(&mut self, statement: &Statement<'_>) -> Result<(), Failure> {
        self.refresh()?;
        let begun = Instant::now();
        let (show, statement) = shown(statement);
        let show = show.unwrap_or(Show::of(self.args));
        perform(self.args, &self.opened, &statement, show)?;
        if self.timing {
            eprintln!("{}", units::seconds(begun.elapsed().as_secs_f64()));
        }
        Ok(())
    }

    /// Opens the store again if another process has written to it.
    fn refresh(&mut self) -> Result<(), Failure> {
        if !self.opened.store.is_current()? {
            self.opened = open(self.args)?;
        }
        Ok(())
    }

    fn command(&mut self, line: &str) -> Result<bool, Failure> {
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match command.to_ascii_lowercase().as_str() {
            "\\q" | "exit" | "quit" => return Ok(false),
            "\\?" | "\\h" | "help" => help(),
            "\\timing" => {
                self.timing = !self.timing;
                eprintln!(
                    "times are {}",
                    if self.timing { "shown" } else { "not shown" }
                );
            }
            "\\d" => {
                if let Err(failure) = self.describe(rest.trim()) {
                    tell(failure)?;
                }
            }
            _ => eprintln!("atoll: unknown command {command}; \\? lists them"),
        }
        Ok(true)
    }

    /// `\d` and `\d NAME`.
    fn describe(&mut self, name: &str) -> Result<(), Failure> {
        self.refresh()?;
        let snapshot = self.opened.store.snapshot();
        let mut out = out::stdout();
        if name.is_empty() {
            let all = array::list(&snapshot)?;
            if all.is_empty() {
                eprintln!("no arrays; create array NAME ... makes one");
            } else {
                cells::list(&all, Format::Table, &mut out)?;
            }
            return Ok(out.flush()?);
        }
        let name = name.trim_matches('"');
        let array = Array::open(&snapshot, name)?;
        cells::schema(array.schema(), Format::Table, &mut out)?;
        if let Ok(versions) = array::versions(&snapshot, name)
            && !versions.is_empty()
        {
            cells::list(&versions, Format::Table, &mut out)?;
        }
        Ok(out.flush()?)
    }

    /// What can be completed now.
    fn words(&self) -> Words {
        let mut words: BTreeSet<String> = WORDS.split_whitespace().map(str::to_owned).collect();
        words.extend(afl::OPERATORS.iter().map(|&of| of.to_owned()));
        // If the catalog cannot be read, the next statement fails and says so.
        let snapshot = self.opened.store.snapshot();
        for name in array::names(&snapshot).unwrap_or_default() {
            if let Ok(array) = Array::open(&snapshot, &name) {
                let schema = array.schema();
                words.extend(schema.dimensions().iter().map(|of| of.name().to_owned()));
                words.extend(schema.attributes().iter().map(|of| of.name().to_owned()));
            }
            words.insert(name);
        }
        Words { words }
    }
}

/// What is shown of a statement by the word before it, and the statement without that.
fn shown<'a>(statement: &Statement<'a>) -> (Option<Show>, Statement<'a>) {
    for (word, show) in [("explain", Show::Plan), ("analyze", Show::Analysis)] {
        let text = statement.text.trim_start();
        let head = text
            .get(..word.len())
            .filter(|of| of.eq_ignore_ascii_case(word));
        let rest = head.map(|_| &text[word.len()..]);
        if let Some(rest) = rest.filter(|rest| rest.starts_with(char::is_whitespace)) {
            return (Some(show), statement.ending(rest));
        }
    }
    (None, *statement)
}

fn help() {
    for (command, arguments, what) in COMMANDS {
        eprintln!("  {:<16}{what}", format!("{command} {arguments}"));
    }
    eprintln!(
        "  {:<16}show the operators of a query, or also how they ran",
        "explain, analyze"
    );
    eprintln!("A statement ends with a semicolon; Ctrl-C ends one that runs.");
    eprintln!("Operators: {}", afl::OPERATORS.join(", "));
}

/// Prints why a statement failed, unless that was done, and goes on.
fn tell(failure: Failure) -> Result<(), Failure> {
    match failure {
        Failure::Told => Ok(()),
        Failure::Error(error) => {
            eprintln!("atoll: {}", one_line(&error));
            Ok(())
        }
        other => Err(other),
    }
}

/// The words that can be completed.
#[derive(Helper, Highlighter, Hinter)]
struct Words {
    words: BTreeSet<String>,
}

impl Validator for Words {}

impl Words {
    /// Where the word at the end of a line begins, and what it may become.
    fn of(&self, line: &str) -> (usize, Vec<String>) {
        let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '\\';
        let start = line
            .char_indices()
            .rev()
            .find(|&(_, c)| !inside(c))
            .map_or(0, |(at, c)| at + c.len_utf8());
        let begun = &line[start..];
        if begun.starts_with('\\') {
            let commands = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
            return (start, commands.filter(|of| of.starts_with(begun)).collect());
        }
        if begun.is_empty() {
            return (start, Vec::new());
        }
        let found = self.words.iter().filter(|of| of.starts_with(begun));
        let found = found.map(|of| {
            let operator = afl::OPERATORS.contains(&of.as_str());
            if operator {
                format!("{of}(")
            } else {
                of.clone()
            }
        });
        (start, found.collect())
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.of(&line[..position]);
        let pairs = found.into_iter().map(|word| Pair {
            display: word.clone(),
            replacement: word,
        });
        Ok((start, pairs.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_and_names_are_completed() {
        let mut words: BTreeSet<String> = afl::OPERATORS.iter().map(|&of| of.to_owned()).collect();
        words.extend(["temperature", "celsius"].map(str::to_owned));
        let words = Words { words };
        assert_eq!(
            words.of("sub"),
            (
                0,
                vec![
                    "subarray(".to_owned(),
                    "subset(".to_owned(),
                    "subtract(".to_owned()
                ]
            )
        );
        assert_eq!(words.of("filter(temp"), (7, vec!["temperature".to_owned()]));
        assert_eq!(
            words.of("filter(temperature, c"),
            (
                20,
                vec![
                    "celsius".to_owned(),
                    "compare(".to_owned(),
                    "concat(".to_owned(),
                    "cross_join(".to_owned()
                ]
            )
        );
        assert_eq!(words.of("\\t"), (0, vec!["\\timing".to_owned()]));
        assert_eq!(words.of("filter("), (7, vec![]));
    }

    #[test]
    fn words_before_a_statement_say_what_is_shown() {
        let of = |text: &str| {
            let (all, _) = split_complete(text);
            let (show, statement) = shown(&all[0]);
            (show, statement.text.trim().to_owned())
        };
        assert_eq!(
            of("explain filter(a, v > 1);"),
            (Some(Show::Plan), "filter(a, v > 1)".to_owned())
        );
        assert_eq!(of(" ANALYZE\na;"), (Some(Show::Analysis), "a".to_owned()));
        assert_eq!(of("explained;"), (None, "explained".to_owned()));
        assert_eq!(of("explain;"), (None, "explain".to_owned()));
    }
}
