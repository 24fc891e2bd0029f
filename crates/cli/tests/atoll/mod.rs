//! Runs the real binary in a folder of its own.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder that goes when this does.
pub struct Folder(tempfile::TempDir);

/// What a command printed and how it ended.
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    arguments: String,
}

impl Folder {
    /// An empty folder, which goes when this does.
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// Where a file of that name is, or would be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the folders it lies in.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    /// The command, in this folder, with nothing on standard input.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
            .env_remove("RUST_BACKTRACE")
            .env("HOME", self.0.path())
            .env_remove("XDG_STATE_HOME");
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::new(self.command(arguments).output().unwrap(), arguments)
    }

    /// Runs the command to its end with `input` on a pipe.
    pub fn piped(&self, arguments: &[&str], input: &[u8]) -> Run {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let input = input.to_vec();
        // It may end before it has read all.
        let writer = std::thread::spawn(move || pipe.write_all(&input));
        let run = Run::new(child.wait_with_output().unwrap(), arguments);
        let _ = writer.join();
        run
    }
}

impl Run {
    fn new(output: Output, arguments: &[&str]) -> Run {
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            arguments: arguments.join(" "),
        }
    }
}

impl Run {
    /// What it printed.
    #[track_caller]
    pub fn succeeded(&self) -> String {
        assert_eq!(
            self.code,
            Some(0),
            "atoll {}: {}",
            self.arguments,
            self.stderr
        );
        self.stdout.clone()
    }

    /// It was refused as typed, with a message that contains all of `parts`.
    #[track_caller]
    pub fn failed_usage(&self, parts: &[&str]) {
        assert_eq!(
            self.code,
            Some(2),
            "atoll {}: {}",
            self.arguments,
            self.stderr
        );
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "{part:?} is not in {}",
                self.stderr
            );
        }
    }

    /// It failed with one line of error that contains `part`, and below it perhaps the place in the text.
    #[track_caller]
    pub fn failed_in_text(&self, part: &str) {
        let first = self.stderr.lines().next().unwrap_or_default();
        assert_eq!(
            self.code,
            Some(1),
            "atoll {}: {}",
            self.arguments,
            self.stderr
        );
        assert!(
            first.starts_with("atoll: ") && first.contains(part),
            "atoll {}: {part:?} is not in {first:?}",
            self.arguments
        );
    }

    /// It failed with `code` and one line of error that contains all of `parts`.
    #[track_caller]
    pub fn failed(&self, code: i32, parts: &[&str]) {
        assert_eq!(
            self.code,
            Some(code),
            "atoll {}: {}{}",
            self.arguments,
            self.stdout,
            self.stderr
        );
        let errors: Vec<_> = self
            .stderr
            .lines()
            .filter(|line| line.starts_with("atoll: "))
            .collect();
        assert_eq!(errors.len(), 1, "one line of error: {}", self.stderr);
        assert!(
            self.stderr.ends_with('\n') && self.stderr.lines().last() == errors.last().copied(),
            "{}",
            self.stderr
        );
        for part in parts {
            assert!(
                errors[0].contains(part),
                "atoll {}: {part:?} is not in {:?}",
                self.arguments,
                errors[0]
            );
        }
    }
}

/// Reads JSON.
#[track_caller]
pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
