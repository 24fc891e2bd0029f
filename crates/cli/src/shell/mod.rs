//! The shell: statements over several lines, history, completion, `\` commands.

mod catalog;
mod command;
mod complete;
mod copy;
mod edit;
pub mod incoming;
pub mod input;
mod listing;
mod path;

use std::path::Path;

use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};

use crate::failure::{Failure, one_line};
use crate::shell::command::Action;
use crate::shell::complete::Words;
use crate::shell::incoming::Incoming;
use crate::shell::input::{Input, Item};
use crate::statement::runner::Runner;
use crate::terminal::{history, interrupt, pager};
use crate::text;
use atoll::script::Statement;

/// Runs the shell until the user leaves it.
pub fn run(runner: &mut Runner) -> Result<(), Failure> {
    let config = Config::builder()
        .max_history_size(10_000)?
        .completion_type(CompletionType::List)
        .build();
    let mut editor: Editor<Words, DefaultHistory> = Editor::with_config(config)?;
    let history = history::file("history");
    if let Some(path) = &history {
        // There is none at the first start.
        let _ = editor.load_history(path);
    }
    runner.timing = true;
    interrupt::be_patient();
    let version = env!("CARGO_PKG_VERSION");
    if runner.temporary {
        eprintln!("atoll {version} in memory, which is gone when you leave; \\? for help");
    } else {
        let path = runner.path().display();
        eprintln!("atoll {version} on {path}; \\? for help");
    }
    let mut shell = Shell::new(&mut *runner);
    let (mut input, mut entry) = (Input::default(), String::new());
    loop {
        shell.measure();
        editor.set_helper(Some(shell.words(input.text())));
        let draft = shell.draft.take().unwrap_or_default();
        let prompt = input.prompt(shell.runner.transaction());
        match editor.readline_with_initial(prompt, (&draft, "")) {
            Ok(line) => {
                entry += &line;
                entry.push('\n');
                let go_on = shell.take(&mut input, &line)?;
                if !input.pending() {
                    history::remember(&mut editor, history.as_deref(), entry.trim_end());
                    entry.clear();
                }
                for text in shell.edited.drain(..) {
                    history::remember(&mut editor, history.as_deref(), &text);
                }
                if !go_on {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => {
                input.clear();
                entry.clear();
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        }
        interrupt::forget();
    }
    runner.forgive();
    Ok(())
}

/// Runs statements and commands as they arrive from standard input. The error of a failed one is printed and the next one
/// runs.
///
/// # Errors
/// If results or errors cannot be written, and on Ctrl-C.
pub fn piped(runner: &mut Runner, mut incoming: Incoming) -> Result<(), Failure> {
    let mut shell = Shell::new(runner);
    while let Some(item) = incoming.next()? {
        match item {
            Item::Statement(statement) => {
                if let Err(failure) = shell.runner.one(&statement) {
                    shell.runner.tell_and_go_on(failure)?;
                }
            }
            Item::Command(line) => {
                if !shell.command(&mut Input::script(), &line)? {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Runs statements and commands that were given at once: the first failure ends them, except in JSON, where each has its
/// line.
///
/// # Errors
/// The first failure, which has been printed.
pub fn given(runner: &mut Runner, items: &[Item]) -> Result<(), Failure> {
    let mut shell = Shell::new(runner);
    for item in items {
        match item {
            Item::Statement(statement) => shell.runner.all(std::slice::from_ref(statement))?,
            Item::Command(line) => match command::run(shell.runner, &shell.last, line) {
                Ok(action) => {
                    if !shell.act(&mut Input::script(), action)? {
                        break;
                    }
                }
                Err(error) => shell.runner.tell(Failure::Error(error))?,
            },
        }
    }
    Ok(())
}

/// The state that statements and commands act on.
struct Shell<'a> {
    runner: &'a mut Runner,
    /// The statement that ran last, for `\e`.
    last: String,
    /// The text with which the next line begins.
    draft: Option<String>,
    /// Texts that were typed in an editor, for the history.
    edited: Vec<String>,
}

/// How a statement ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Well,
    /// With an error that has been printed.
    Failed,
    /// It was ended by Ctrl-C.
    Cancelled,
}

impl<'a> Shell<'a> {
    fn new(runner: &'a mut Runner) -> Shell<'a> {
        Shell {
            runner,
            last: String::new(),
            draft: None,
            edited: Vec::new(),
        }
    }
}

impl Shell<'_> {
    /// The completion for a statement that continues after `before`.
    fn words(&mut self, before: &str) -> Words {
        // If the catalog cannot be read, the next statement fails and says so.
        Words::of(self.runner.tables().unwrap_or_default(), before)
    }

    /// Reads the size of the window, which may change between statements.
    fn measure(&mut self) {
        self.runner.sink.style.width = pager::screen().map(|(width, _)| width);
    }

    /// Runs the statements and commands that `text` completes; returns false to leave the shell. The error of a failed
    /// statement is printed and the next one runs; Ctrl-C ends all of them.
    fn take(&mut self, input: &mut Input, text: &str) -> Result<bool, Failure> {
        for item in input.push(text) {
            match item {
                Item::Command(line) => {
                    if !self.command(input, &line)? {
                        return Ok(false);
                    }
                }
                Item::Statement(statement) => {
                    if self.statement(&statement)? == Ended::Cancelled {
                        input.clear();
                        break;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Runs a `\` command and prints its failures; returns false to leave the shell.
    fn command(&mut self, input: &mut Input, line: &str) -> Result<bool, Failure> {
        let draft = if input.pending() {
            input.text()
        } else {
            &self.last
        };
        match command::run(self.runner, draft, line) {
            Ok(action) => self.act(input, action),
            Err(error) => {
                self.runner.tell_and_go_on(Failure::Error(error))?;
                Ok(true)
            }
        }
    }

    /// Does what a command asks for; returns false to leave the shell.
    fn act(&mut self, input: &mut Input, action: Action) -> Result<bool, Failure> {
        match action {
            Action::GoOn => Ok(true),
            Action::Leave => Ok(false),
            Action::Script(path) => self.script(&path),
            Action::Statement(statement) => self.statement(&statement).map(|_| true),
            Action::Edited(text) => self.edited(input, &text),
        }
    }

    /// Runs an edited text as if it had been typed; an incomplete rest becomes the beginning of the next line.
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

    /// Runs a statement, and prints its failure.
    fn statement(&mut self, statement: &Statement) -> Result<Ended, Failure> {
        self.last = format!("{};", statement.text.trim());
        let ran = self.runner.one(statement);
        // A file of results is complete for other programs from now on.
        let ran = ran.and_then(|()| Ok(self.runner.sink.publish()?));
        match ran {
            Ok(()) => Ok(Ended::Well),
            Err(Failure::Interrupted) => {
                eprintln!("cancelled");
                Ok(Ended::Cancelled)
            }
            Err(failure) => {
                self.runner.tell_and_go_on(failure)?;
                Ok(Ended::Failed)
            }
        }
    }

    /// Runs the statements and commands of a file; the first failure ends them.
    fn script(&mut self, path: &Path) -> Result<bool, Failure> {
        let text = match text::of(path) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("atoll: {}", one_line(&error));
                return Ok(true);
            }
        };
        let outer = self.runner.origin.replace(path.display().to_string());
        let went_on = self.lines(&text);
        self.runner.origin = outer;
        went_on
    }

    fn lines(&mut self, text: &str) -> Result<bool, Failure> {
        let mut script = Input::script();
        for item in Input::all(text) {
            match item {
                Item::Command(line) => {
                    if !self.command(&mut script, &line)? {
                        return Ok(false);
                    }
                }
                Item::Statement(statement) => {
                    if self.statement(&statement)? != Ended::Well {
                        eprintln!("what follows in the file was not run");
                        return Ok(true);
                    }
                }
            }
        }
        Ok(true)
    }
}
