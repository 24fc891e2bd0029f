//! Has an unchanged program answer statements, so that only the accesses of one statement are counted.
//!
//! The program reads statements from its standard input, one after the other, and writes answers
//! to its standard output as it goes: `atoll sql STORE`, `psql`, a few lines of Python around a
//! library. After each statement it is asked to select a marker; once that comes back, the answer is complete.
//! Nothing else tells it that it is measured.

mod keep;
mod look;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use emulator::roi;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use keep::Keeping;
pub use keep::Placing;
pub use look::{Look, OnNode, Thread};

/// The control group of the program, if it is restricted to cpus or nodes.
const GROUP: &str = "/sys/fs/cgroup/atoll-lab";

/// What the program is to answer, and where it may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Task {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Statements that are answered before anything is counted.
    pub before: Vec<String>,
    /// The statement that is counted; it ends with a semicolon.
    pub statement: String,
    /// How often the statement is run, each time as a region of interest of its own.
    pub times: usize,
    /// Restricts the program to these cpus, in the kernel's list format.
    pub cpus: Option<String>,
    /// Restricts its memory to these nodes, whatever it asks for itself.
    pub mems: Option<String>,
    /// The placement of its threads; `None`: left to the system.
    pub placing: Option<Placing>,
    /// Whether to record the place of memory and threads before and after the counted statements.
    pub look: bool,
}

/// The answers, and where memory and threads were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The answer of each time.
    pub answers: Vec<String>,
    /// The place of memory and threads before the counted statements, if asked for.
    pub before: Option<Look>,
    /// The same after them.
    pub after: Option<Look>,
}

/// Carries out the task.
///
/// # Errors
///
/// [`Error::Drive`], which names the program, if it cannot be started, ends early, writes what is not text, or cannot
/// be restricted to its cpus and nodes.
pub fn drive(task: &Task) -> Result<Told> {
    let mut driven = Driven::start(task)?;
    for statement in &task.before {
        driven.ask(statement)?;
    }
    let mut told = Told::default();
    if task.look {
        told.before = Some(driven.look()?);
    }
    for _ in 0..task.times {
        roi::flush();
        roi::start();
        let answer = driven.ask(&task.statement);
        roi::stop();
        told.answers.push(answer?);
    }
    if task.look {
        told.after = Some(driven.look()?);
    }
    driven.end()?;
    Ok(told)
}

/// A running program that answers statements.
pub(crate) struct Driven {
    _keeping: Option<Keeping>,
    child: Child,
    output: BufReader<ChildStdout>,
    name: String,
    asked: usize,
}

impl Driven {
    /// Starts the program and sends it nothing yet.
    pub(crate) fn start(task: &Task) -> Result<Driven> {
        let name = task.command.first().cloned().unwrap_or_default();
        let failed = |why: String| Error::Drive {
            program: name.clone(),
            why,
        };
        confine(task).map_err(failed)?;
        let mut command = Command::new(&name);
        command.args(&task.command[task.command.len().min(1)..]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let (mut child, keeping) = match &task.placing {
            Some(placing) => {
                let (child, keeping) = keep::start(&mut command, placing)?;
                (child, Some(keeping))
            }
            None => {
                let started = command.spawn();
                (
                    started.map_err(|error| failed(format!("cannot start it: {error}")))?,
                    None,
                )
            }
        };
        let output = child
            .stdout
            .take()
            .ok_or_else(|| failed("it has no output".to_owned()))?;
        Ok(Driven {
            _keeping: keeping,
            child,
            output: BufReader::new(output),
            name,
            asked: 0,
        })
    }

    fn failed(&self, why: impl Into<String>) -> Error {
        Error::Drive {
            program: self.name.clone(),
            why: why.into(),
        }
    }

    /// Sends a statement and returns the answer.
    pub(crate) fn ask(&mut self, statement: &str) -> Result<String> {
        self.asked += 1;
        let mark = format!("atoll-lab-{}", self.asked);
        let text = format!("{statement}\nselect '{mark}' as done;\n");
        let input = self.child.stdin.as_mut();
        let written = input.map(|input| {
            input
                .write_all(text.as_bytes())
                .and_then(|()| input.flush())
        });
        if let Some(Err(error)) = written {
            return Err(self.failed(format!("it takes no statement: {error}")));
        }
        let (mut answer, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            match self.output.read_line(&mut line) {
                Ok(0) => {
                    return Err(self.failed(format!("it ended before it answered '{statement}'")));
                }
                Err(error) => {
                    return Err(self.failed(format!("its answer cannot be read: {error}")));
                }
                Ok(_) if line.contains(&mark) => return Ok(answer),
                // The name of the mark's column.
                Ok(_) if line.trim() == "done" => {}
                Ok(_) => answer.push_str(&line),
            }
        }
    }

    /// The present place of its memory and threads.
    pub(crate) fn look(&self) -> Result<Look> {
        look::look(&self.name, self.child.id())
    }

    /// Closes its input, and waits for its end.
    fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self
            .child
            .wait()
            .map_err(|error| self.failed(error.to_string()))?;
        if status.success() {
            Ok(())
        } else {
            Err(self.failed(format!("it failed: {status}")))
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Moves this process, and so what it starts, into a control group of its own.
fn confine(task: &Task) -> std::result::Result<(), String> {
    if task.cpus.is_none() && task.mems.is_none() {
        return Ok(());
    }
    let group = Path::new(GROUP);
    let put = |path: &Path, text: &str| {
        fs::write(path, text)
            .map_err(|error| format!("cannot write '{text}' to {}: {error}", path.display()))
    };
    put(
        Path::new("/sys/fs/cgroup/cgroup.subtree_control"),
        "+cpuset",
    )?;
    if let Err(error) = fs::create_dir(group)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(format!("cannot make {GROUP}: {error}"));
    }
    for (name, list) in [("cpuset.cpus", &task.cpus), ("cpuset.mems", &task.mems)] {
        if let Some(list) = list {
            put(&group.join(name), list)?;
        }
    }
    put(&group.join("cgroup.procs"), "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that answers like a database: statements of one line, a header, a row.
    const ECHO: &str = r#"while read -r line; do case "$line" in
        select*) printf 'done\n%s\n' "${line}" ;; fail*) exit 3 ;; *) printf 'answer to %s\n' "$line" ;; esac; done"#;

    fn task(before: &[&str], statement: &str) -> Task {
        Task {
            command: ["sh", "-c", ECHO].map(str::to_owned).to_vec(),
            before: before.iter().map(|text| (*text).to_owned()).collect(),
            statement: statement.to_owned(),
            times: 2,
            ..Task::default()
        }
    }

    #[test]
    fn answers_are_told_apart_from_marks() {
        let mut task = task(&["warm;"], "q6;");
        task.look = true;
        let told = drive(&task).unwrap();
        assert_eq!(told.answers, ["answer to q6;\n", "answer to q6;\n"]);
        let after = told.after.unwrap();
        assert_eq!(after.threads.len(), 1);
        assert!(after.nodes.iter().any(|node| node.data > 0));
        assert!(after.nodes.iter().any(|node| node.files > 0));
    }

    #[test]
    fn a_program_that_ends_early_is_named() {
        for task in [task(&[], "fail;"), task(&["fail;"], "q6;")] {
            let error = drive(&task).unwrap_err().to_string();
            assert!(error.contains("sh") && error.contains("fail;"), "{error}");
        }
        let mut none = task(&[], "q6;");
        none.command = vec!["/nonexistent/db".to_owned()];
        let error = drive(&none).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/db"), "{error}");
        none.command.clear();
        assert!(drive(&none).is_err());
    }
}
