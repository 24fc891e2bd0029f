//! The program that the commands run in, and how it is started again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context, anyhow};

use crate::allocator::Allocator;

/// The program that the commands run in.
#[derive(Clone, Debug)]
pub struct Program {
    /// The words that it was started with, the first of which is its name.
    pub arguments: Vec<OsString>,
    /// Its file, if there is one that can be started by itself.
    pub file: Option<PathBuf>,
    /// The words that start it again, before those of a command; without any, its file does.
    pub again: Vec<OsString>,
    /// Its allocator.
    pub allocator: Allocator,
}

impl Program {
    /// This process: its words, and its file.
    pub fn of_process(allocator: Allocator) -> Program {
        Program {
            arguments: std::env::args_os().collect(),
            file: std::env::current_exe().ok(),
            again: Vec::new(),
            allocator,
        }
    }
}

static RUNS: OnceLock<Program> = OnceLock::new();

/// Says which program this is, once.
pub fn set(program: Program) -> &'static Program {
    RUNS.get_or_init(|| program)
}

/// The words that the program was started with.
pub fn words() -> Vec<OsString> {
    RUNS.get()
        .map_or_else(Vec::new, |program| program.arguments.clone())
}

/// The program's file.
///
/// # Errors
/// If it has none, or none that is known.
#[cfg_attr(
    not(feature = "lab"),
    expect(dead_code, reason = "only experiments ask for it")
)]
pub fn file() -> anyhow::Result<PathBuf> {
    let program = RUNS.get().context("no command is run")?;
    program.file.clone().ok_or_else(|| {
        anyhow!(
            "cannot tell where the program `atoll` is, which this starts again: call it by its path"
        )
    })
}

/// The words that start the program again, before those of a command; empty if they are not known.
pub fn again() -> Vec<OsString> {
    let Some(program) = RUNS.get() else {
        return Vec::new();
    };
    if !program.again.is_empty() {
        return program.again.clone();
    }
    program.file.iter().map(|file| file.into()).collect()
}
