//! The process that the cases run in, as both sides of it see it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often the parent looks at how far the cases are.
const LOOK: Duration = Duration::from_millis(10);
/// Bytes at the beginning of a progress file: the case that is under way, plus one.
const HEAD: u64 = 8;

/// The file through which the process says how far it is, however it ends.
#[derive(Debug)]
pub(crate) struct Progress(File);

impl Progress {
    pub(crate) fn create(path: &Path) -> io::Result<Progress> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        file.write_all_at(&[0; HEAD as usize], 0)?;
        Ok(Progress(file))
    }

    pub(crate) fn open(path: &Path) -> io::Result<Progress> {
        File::options()
            .read(true)
            .write(true)
            .open(path)
            .map(Progress)
    }

    /// Says that a case begins.
    pub(crate) fn begins(&self, case: u64) -> io::Result<()> {
        self.0.write_all_at(&(case + 1).to_le_bytes(), 0)
    }

    /// The case that began last.
    pub(crate) fn case(&self) -> io::Result<Option<u64>> {
        let mut head = [0; HEAD as usize];
        self.0.read_exact_at(&mut head, 0)?;
        Ok(u64::from_le_bytes(head).checked_sub(1))
    }

    /// Says what came of all cases.
    pub(crate) fn ends(&self, words: &str) -> io::Result<()> {
        self.0.write_all_at(words.as_bytes(), HEAD)
    }

    /// What came of all cases; empty if they were not all run.
    pub(crate) fn words(&mut self) -> io::Result<String> {
        let mut words = String::new();
        self.0.seek(SeekFrom::Start(HEAD))?;
        self.0.read_to_string(&mut words)?;
        Ok(words)
    }
}

/// This program once more, for one test only, with `limit` bytes of memory; what it prints goes to `output`.
pub(crate) fn start(
    test: &str,
    limit: u64,
    variable: (&str, &Path),
    output: File,
) -> io::Result<Child> {
    // The shell sets the limit, and then is the program.
    Command::new("sh")
        .args(["-c", "ulimit -d \"$0\" && exec \"$@\""])
        .arg((limit >> 10).to_string())
        .arg(std::env::current_exe()?)
        .args([
            "--exact",
            test,
            "--nocapture",
            "--test-threads=1",
            "--include-ignored",
        ])
        .env(variable.0, variable.1)
        // With one heap for all threads: glibc reserves 64 MiB for each heap, and the limit counts them.
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
}

/// Waits for the end of the process; `None` if it was killed, since one case took longer than `patience`.
pub(crate) fn wait(
    child: &mut Child,
    progress: &Progress,
    patience: Duration,
) -> io::Result<Option<ExitStatus>> {
    let (mut last, mut since) = (None, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let case = progress.case()?;
        if case != last {
            (last, since) = (case, Instant::now());
        }
        if since.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}
