//! `--format`, `--output`, `--cache` and the other options about results.

use std::path::PathBuf;
#[cfg(feature = "lab")]
use std::sync::Arc;

use atoll::Options;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::options::execution::{self, Execution};
use crate::options::resources::Resources;
use crate::output::format::Format;

/// How statements run, and what becomes of their results.
#[derive(Args, Debug)]
pub struct ResultOptions {
    /// How results are written [default: by the extension of --output, else table]
    #[arg(long, value_enum, conflicts_with = "json")]
    pub format: Option<Format>,
    /// Write results to a file, which appears when all of them are in it; .csv, .json, .arrow and .parquet tell the
    /// format
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show how long each statement took and what it read, on standard error
    #[arg(long)]
    pub timing: bool,
    /// What is in memory when a statement begins
    #[arg(long, value_enum, default_value_t = Cache::Warm)]
    pub cache: Cache,
    /// Write a page to a file that shows which operator each thread was at, and how many threads were busy
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "FILE")]
    pub time_line: Option<PathBuf>,
    /// One JSON object per statement, on a line of its own
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub resources: Resources,
    #[command(flatten)]
    pub execution: Execution,
}

impl ResultOptions {
    /// The library's options for a store that statements run on.
    ///
    /// # Errors
    /// If an option was given that has no effect, or a page cannot be written where it was asked for.
    pub fn store(&self, read_only: bool) -> Result<Options, Failure> {
        let options = execution::options(&self.resources, &self.execution, read_only)?;
        #[cfg(feature = "lab")]
        if let Some(path) = &self.time_line {
            report::can_write(path)?;
            let mut options = options;
            options.execution.time_line = Some(Arc::default());
            return Ok(options);
        }
        Ok(options)
    }
}

/// What is in memory when a statement begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    /// What the statements before have left there
    Warm,
    /// Nothing of the store: its pool is emptied, and its file dropped from the system's cache
    Cold,
    /// Nothing of any file: the system's caches are dropped as well, which needs root
    ColdSystem,
}
