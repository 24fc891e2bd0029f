//! The emulator as a process.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::tools::QEMU;

/// A file in memory: it has no name, so that nothing is left behind however we end.
pub(crate) fn memory_file(content: &[u8]) -> Result<File> {
    let failed = |source| Error::File {
        what: "make a file in memory for",
        path: QEMU.into(),
        source,
    };
    // SAFETY: the name is a C string; the call has no other precondition.
    let descriptor = unsafe { libc::memfd_create(c"atoll-lab".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    // SAFETY: the descriptor is new and nobody else's.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(content).map_err(failed)?;
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// The last lines of a file in memory, as one line.
pub(crate) fn last_lines(file: &File, lines: usize) -> String {
    const MOST: u64 = 16 << 10;
    let length = file.metadata().map_or(0, |data| data.len());
    let mut bytes = vec![0; length.min(MOST) as usize];
    let start = length - bytes.len() as u64;
    if file.read_exact_at(&mut bytes, start).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let clean = |line: &str| -> String { line.chars().filter(|c| !c.is_control()).collect() };
    let all: Vec<String> = text
        .lines()
        .map(|line| clean(line).trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    all[all.len().saturating_sub(lines)..].join("; ")
}

/// The running emulator; killed when dropped.
#[derive(Debug)]
pub(crate) struct Emulator {
    child: Child,
    output: ChildStdout,
    errors: File,
}

/// What there is to read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Bytes(usize),
    Nothing,
    End,
}

impl Emulator {
    /// Starts it in a process group of its own, so that Ctrl-C reaches only us, and such that it
    /// dies with the thread that calls this.
    pub(crate) fn start(arguments: &[String], inherited: &[RawFd]) -> Result<Emulator> {
        let failed = |source: io::Error| Error::Emulator {
            why: format!("{QEMU}: {source}"),
        };
        let errors = memory_file(&[])?;
        let mut command = Command::new(QEMU);
        command
            .args(arguments)
            // Open as long as we are: at its end the emulator would take the port as closed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().map_err(failed)?)
            .process_group(0);
        let inherited = inherited.to_vec();
        // SAFETY: between fork and exec only prctl and fcntl are called, which are
        // async-signal-safe, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                let ok = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
                    && inherited
                        .iter()
                        .all(|file| libc::fcntl(*file, libc::F_SETFD, 0) == 0);
                ok.then_some(()).ok_or_else(io::Error::last_os_error)
            });
        }
        let mut child = command.spawn().map_err(failed)?;
        let Some(output) = child.stdout.take() else {
            unreachable!("standard output is a pipe");
        };
        Ok(Emulator {
            child,
            output,
            errors,
        })
    }

    /// Reads what is there, waiting at most `wait`.
    pub(crate) fn read(&mut self, buffer: &mut [u8], wait: Duration) -> io::Result<Piece> {
        let mut poll = libc::pollfd {
            fd: self.output.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let wait = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the kernel reads and writes the one entry, which is ours.
        let ready = unsafe { libc::poll(&raw mut poll, 1, wait) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            let again = error.kind() == io::ErrorKind::Interrupted;
            return if again {
                Ok(Piece::Nothing)
            } else {
                Err(error)
            };
        }
        if ready == 0 {
            return Ok(Piece::Nothing);
        }
        match self.output.read(buffer)? {
            0 => Ok(Piece::End),
            bytes => Ok(Piece::Bytes(bytes)),
        }
    }

    /// Asks it to end, and kills it if it has not within two seconds: plugins write their
    /// results when it ends by itself.
    pub(crate) fn stop(&mut self) {
        let pid = self.child.id().cast_signed();
        // SAFETY: a signal to our own child, which has not been waited for.
        unsafe { libc::kill(pid, libc::SIGTERM) };
        if !self.ended_within(Duration::from_secs(2)) {
            // It may have ended in between.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }

    /// Whether it ends by itself in that time.
    pub(crate) fn ended_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it complained about last.
    pub(crate) fn complaint(&self) -> String {
        last_lines(&self.errors, 3)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // Both fail where it has ended, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
