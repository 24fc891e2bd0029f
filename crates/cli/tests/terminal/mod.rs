//! The shell on a terminal of its own, as a person sees it.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A program and the other end of its terminal.
pub struct Terminal {
    child: Child,
    ours: File,
    /// What it has shown and nobody has waited for.
    seen: String,
}

impl Terminal {
    /// Starts `command` on a terminal of `columns` by `lines`.
    pub fn start(mut command: Command, columns: u16, lines: u16) -> Terminal {
        let (mut ours, mut theirs) = (0, 0);
        let size = libc::winsize {
            ws_row: lines,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        use std::ptr::{null, null_mut};
        // SAFETY: the two numbers are valid for writing and the size for reading; the other arguments may be null.
        let opened = unsafe { libc::openpty(&mut ours, &mut theirs, null_mut(), null(), &size) };
        assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: both were just opened and are owned by nobody else.
        let (ours, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        keep_output(&theirs);
        command
            .env("TERM", "xterm")
            .stdin(theirs.try_clone().unwrap());
        command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
        // SAFETY: between fork and exec only two system calls are made, both async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        Terminal {
            child: command.spawn().unwrap(),
            ours,
            seen: String::new(),
        }
    }

    /// Types `keys`.
    pub fn send(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `text` is shown, and returns what was shown before it, without colours and movements of the cursor.
    #[track_caller]
    pub fn until(&mut self, text: &str) -> String {
        let (started, mut buffer) = (Instant::now(), [0; 4096]);
        loop {
            let plain = plain(&self.seen);
            if let Some(at) = plain.find(text) {
                self.seen = plain[at + text.len()..].to_owned();
                return plain[..at].to_owned();
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "no {text:?} in {plain:?}"
            );
            if !comes(&self.ours) {
                continue;
            }
            let read = self.ours.read(&mut buffer).unwrap_or(0);
            assert!(read > 0, "it ended without {text:?}: {plain:?}");
            self.seen
                .push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    }

    /// Types a line and waits for the prompt after it; what was shown in between.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        // Words that no line holds mark the end.
        self.send(&format!("{line}\r\\no such\r"));
        let shown = self.until("unknown command \\no");
        self.until("atoll> ");
        shown
    }

    /// Waits for the end of the program; its exit status.
    pub fn status(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Leaves the shell; its exit status.
    pub fn leave(mut self) -> Option<i32> {
        self.send("\\q\r");
        self.child.wait().unwrap().code()
    }
}

/// Ctrl-C does not drop what the program has written and nobody has read: one that comes late would drop the answer to
/// the one before it.
fn keep_output(terminal: &OwnedFd) {
    let mut settings = std::mem::MaybeUninit::uninit();
    // SAFETY: the settings are valid for writing, and read only after they were written.
    let kept = unsafe {
        libc::tcgetattr(terminal.as_raw_fd(), settings.as_mut_ptr()) == 0 && {
            let mut settings: libc::termios = settings.assume_init();
            settings.c_lflag |= libc::NOFLSH;
            libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &settings) == 0
        }
    };
    assert!(kept, "{}", std::io::Error::last_os_error());
}

/// Whether something can be read within a second.
fn comes(terminal: &File) -> bool {
    let mut waited = libc::pollfd {
        fd: terminal.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: there is one entry, which is valid for reading and writing.
    unsafe { libc::poll(&mut waited, 1, 1000) > 0 }
}

/// A text without the sequences that move the cursor or colour; one that is not complete stays.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at..];
        let body = sequence.strip_prefix("\u{1b}[").unwrap_or("");
        match body.find(|c: char| c.is_ascii_alphabetic()) {
            Some(end) => rest = &body[end + 1..],
            None => {
                plain.push_str(sequence);
                return plain;
            }
        }
    }
    plain.push_str(rest);
    plain
}
