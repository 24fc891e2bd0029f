//! Running the command of a figure, and what it said.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::catalogue::{Figure, How};
use crate::desk::Desk;
use crate::error::{Error, Result};

/// How often the command is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// The last lines of a command that are kept.
const LINES: usize = 60;

/// How a figure's command ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ran {
    /// The letter of its text, and its name.
    pub figure: (String, String),
    /// What was run.
    pub command: String,
    /// The day, as 2026-12-01.
    pub day: String,
    /// How long it took.
    pub seconds: f64,
    /// Why there is no result.
    pub failed: Option<String>,
    /// The last lines that it printed.
    pub printed: Vec<String>,
    /// The commit that the program was built from.
    pub commit: Option<String>,
}

/// What figures are run with.
pub struct Bench<'b> {
    /// Where each figure's reports go, in a folder of its own.
    pub folder: &'b Path,
    /// In place of the word STORE.
    pub store: Option<&'b Path>,
    /// The short form.
    pub quick: bool,
}

impl Bench<'_> {
    /// Runs the command of a figure of the text `rows`. A command that cannot run, or fails, is a result, too.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] if the user has asked for it; [`Error::Write`] if the folder cannot be made.
    pub fn run(&self, rows: &str, figure: &Figure, desk: &mut Desk<'_>) -> Result<Ran> {
        // Drawings take no time.
        let given = match (self.quick, figure.how) {
            (false, _) | (true, How::Drawn) => figure.command.as_ref(),
            _ => figure.quick.as_ref(),
        };
        let mut ran = Ran {
            figure: (rows.to_owned(), figure.name.clone()),
            command: given.cloned().unwrap_or_default(),
            day: report::today(),
            seconds: 0.0,
            failed: None,
            printed: vec![],
            commit: desk.commit.clone(),
        };
        let program = match given {
            None => Err("NOT RUN: it has no short form".to_owned()),
            Some(given) => self.program(given, desk),
        };
        match program {
            Err(why) => ran.failed = Some(why),
            Ok(mut command) => {
                let folder = self
                    .folder
                    .join(format!("{rows}-{}", figure.name.replace(['/', ' '], "-")));
                let begun = Instant::now();
                (ran.failed, ran.printed) = run_in(&folder, &mut command, desk)?;
                ran.seconds = begun.elapsed().as_secs_f64();
            }
        }
        Ok(ran)
    }

    /// The program with its words; why not, if it cannot run here.
    fn program(&self, given: &str, desk: &Desk<'_>) -> std::result::Result<Command, String> {
        let mut words = given.split_whitespace();
        let first = words.next().unwrap_or_default();
        let mut all: Vec<std::ffi::OsString> = match (first, &desk.database) {
            ("lab", _) => desk.lab.clone(),
            (_, Some(program)) => vec![program.into(), first.into()],
            _ => return Err("NOT RUN: it is a command of the whole program `atoll`".to_owned()),
        };
        for word in words {
            match (word, self.store) {
                ("STORE", Some(store)) => all.push(store.into()),
                ("STORE", None) => {
                    return Err(
                        "NOT RUN: it needs --store, a store with TPC-H (`atoll quickstart`)"
                            .to_owned(),
                    );
                }
                _ if word.starts_with("crates/") => match std::path::absolute(word) {
                    Ok(path) if path.exists() => all.push(path.into()),
                    _ => {
                        return Err(
                            "NOT RUN: it reads a file of the sources; run it in their folder"
                                .to_owned(),
                        );
                    }
                },
                _ => all.push(word.into()),
            }
        }
        let mut words = all.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        Ok(command)
    }
}

/// Why a command failed, if it did, and its last lines.
fn run_in(
    folder: &Path,
    command: &mut Command,
    desk: &Desk<'_>,
) -> Result<(Option<String>, Vec<String>)> {
    let failed = |source| Error::Write {
        path: folder.to_owned(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let printed = folder.join("printed.txt");
    let out = File::create(&printed).map_err(failed)?;
    let err = out.try_clone().map_err(failed)?;
    let child = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn();
    let why = match child {
        Err(error) => Some(format!("cannot start it: {error}")),
        Ok(child) => wait(child, desk)?,
    };
    Ok((why, last_lines(&printed)))
}

/// Why it failed, if it did.
fn wait(mut child: Child, desk: &Desk<'_>) -> Result<Option<String>> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(None),
            Ok(Some(status)) => return Ok(Some(format!("it ended with {status}"))),
            Ok(None) => {}
            Err(error) => return Ok(Some(format!("it cannot be waited for: {error}"))),
        }
        if desk.stop.load(Ordering::Relaxed) {
            // The terminal has told it, too; whoever is told by a signal to this process alone has not.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Interrupted);
        }
        std::thread::sleep(LOOK);
    }
}

fn last_lines(path: &PathBuf) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LINES);
    lines[skipped..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}
