//! The environment of an experiment: its program, where results and progress go, and when to stop.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use report::{Report, Table};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::json;

/// What an experiment needs from its caller.
pub struct Desk<'a> {
    /// The words that start this lab's commands: `["/usr/bin/atoll", "lab"]`. They are run inside
    /// emulated machines, which see the files of this system.
    pub lab: Vec<OsString>,
    /// The path of Atoll's program, if the lab runs in it.
    pub database: Option<PathBuf>,
    /// The command that repeats this experiment.
    pub command: String,
    /// The commit that this program was built from; `None` if unknown.
    pub commit: Option<String>,
    /// Where results go.
    pub out: &'a mut dyn Write,
    /// Where progress goes.
    pub err: &'a mut dyn Write,
    /// The experiment ends soon after this becomes true.
    pub stop: &'a AtomicBool,
}

impl Desk<'_> {
    /// Writes a JSON object on a line of its own.
    pub(crate) fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let text = json::write(value)?;
        self.say(&format!("{text}\n"))
    }

    /// Writes text to the results.
    pub(crate) fn say(&mut self, text: &str) -> Result<()> {
        let written = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
        written.map_err(|source| Error::Output { source })
    }

    /// Writes a line of progress; a failure to write it is ignored.
    pub(crate) fn progress(&mut self, text: &str) {
        let _ = writeln!(self.err, "atoll lab: {text}");
    }

    /// Ends an experiment: writes the report's files, and prints the tables or the JSON object.
    pub(crate) fn finish(
        &mut self,
        path: &Path,
        as_json: bool,
        report: Report,
        tables: &[&Table],
    ) -> Result<()> {
        let report = report.commit(self.commit.as_deref());
        let written = report.write(path)?;
        if as_json {
            self.line(&report.json())?;
        } else {
            for table in tables {
                self.say(&format!("{}\n", table.text()))?;
            }
        }
        self.progress(&format!(
            "{} and {}",
            written.html.display(),
            written.json.display()
        ));
        Ok(())
    }
}
