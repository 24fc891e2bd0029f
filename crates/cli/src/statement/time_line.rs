//! `--time-line`: the page that shows which operator each thread was at.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use atoll::TimeLine;
use report::command_line_of;

use crate::program;
use crate::version::COMMIT;

/// A page that is written once all statements have run.
pub struct Page {
    path: PathBuf,
    line: Arc<TimeLine>,
    /// Threads of the database; 0 until one was open.
    threads: usize,
}

impl Page {
    /// To be written to `path`, of what `line` notes.
    pub fn new(path: &Path, line: &Arc<TimeLine>) -> Page {
        Page {
            path: path.to_owned(),
            line: line.clone(),
            threads: 0,
        }
    }

    /// Statements run on so many threads.
    pub fn on(&mut self, threads: usize) {
        self.threads = self.threads.max(threads);
    }

    /// Writes it.
    ///
    /// # Errors
    /// If no operator ran, or the file cannot be written.
    pub fn write(&self) -> anyhow::Result<()> {
        let noted = self.line.take();
        let command = command_line_of(program::words());
        let page = lab::time_line(&noted, self.threads, command).ok_or_else(|| {
            anyhow!(
                "no time line in {}: no operator ran, as rows were given as they are, found by their key, or nothing was asked",
                self.path.display()
            )
        })?;
        let page = page.commit(Some(COMMIT));
        let page = match topology::Machine::live() {
            Ok(machine) => page.machine(machine),
            Err(_) => page,
        };
        let written = page.write(&self.path).context("no time line")?;
        eprintln!("atoll: the time line is in {}", written.html.display());
        Ok(())
    }
}
