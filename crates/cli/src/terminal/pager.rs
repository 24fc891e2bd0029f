//! The pager: a program that scrolls results which do not fit on the screen.

use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use anyhow::bail;

use crate::terminal::{elapsed, interrupt, out};

/// The columns and lines of the terminal, if standard output is one.
pub fn screen() -> Option<(usize, usize)> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the request writes one `winsize` through the pointer, which is to a local variable of that type.
    let told = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) };
    // Serial lines and some terminals in pipes do not know their size.
    let known = told == 0 && size.ws_col > 0 && size.ws_row > 0;
    known.then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// The default pager: `$PAGER`, or else `less` without wrapping of long lines.
pub fn usual() -> String {
    let named = std::env::var("PAGER").ok();
    named
        .filter(|pager| !pager.trim().is_empty())
        .unwrap_or_else(|| "less -S".to_owned())
}

/// Writes a result to standard output if it fits on the screen, else to a pager.
pub struct Paged<'a> {
    out: &'a mut out::Out,
    command: &'a str,
    /// The number of lines that fit on the screen.
    room: usize,
    state: State,
}

enum State {
    /// The text so far, which may still fit.
    Held(Vec<u8>),
    /// The pager, as the text does not fit. Ctrl-C is for the pager while it runs.
    Running(Child, interrupt::Ignored),
    /// The user left the pager, or there is none: the status it ended with, where known.
    Left(Option<i32>),
}

impl<'a> Paged<'a> {
    /// Writes nothing yet; `command` starts the pager, as the system's shell would run it.
    pub fn new(out: &'a mut out::Out, command: &'a str) -> Paged<'a> {
        Paged {
            out,
            command,
            // The prompt needs a line, too.
            room: screen().map_or(usize::MAX, |(_, height)| height.saturating_sub(1)),
            state: State::Held(Vec::new()),
        }
    }

    /// Whether the pager was left before the end.
    pub fn left(&self) -> bool {
        matches!(self.state, State::Left(_))
    }

    fn start(&mut self, held: &[u8]) -> io::Result<()> {
        self.out.flush()?;
        elapsed::hide();
        let ignored = interrupt::ignore();
        let child = Command::new("sh")
            .args(["-c", self.command])
            .stdin(Stdio::piped())
            .spawn()?;
        self.state = State::Running(child, ignored);
        self.write_all(held)
    }

    /// Waits until the user leaves the pager.
    ///
    /// # Errors
    /// If the output cannot be written, or there is no such pager.
    pub fn end(mut self) -> anyhow::Result<()> {
        let status = match std::mem::replace(&mut self.state, State::Left(None)) {
            State::Held(text) => {
                self.out.write_all(&text)?;
                self.out.flush()?;
                None
            }
            State::Running(mut child, _ignored) => {
                drop(child.stdin.take());
                child.wait()?.code()
            }
            State::Left(status) => status,
        };
        // What `sh` ends with where it finds no such command, or one that it may not run.
        match status {
            Some(126 | 127) => bail!(
                "cannot start the pager {:?}; name another one with \\pager COMMAND, or use \\pager off",
                self.command
            ),
            _ => Ok(()),
        }
    }
}

impl Write for Paged<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Held(held) => {
                held.extend_from_slice(bytes);
                if held.iter().filter(|byte| **byte == b'\n').count() > self.room {
                    let held = std::mem::take(held);
                    self.start(&held)?;
                }
                Ok(bytes.len())
            }
            State::Running(child, _) => {
                let Some(input) = &mut child.stdin else {
                    return Err(io::ErrorKind::BrokenPipe.into());
                };
                let written = input.write(bytes);
                if written.is_err() {
                    // A pager that cannot be started ends so early that it may read nothing at all.
                    let status = child.wait().ok().and_then(|status| status.code());
                    self.state = State::Left(status);
                }
                written
            }
            State::Left(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Paged<'_> {
    fn drop(&mut self) {
        // The statement has failed; the user may still read the rows so far.
        if let State::Running(child, _) = &mut self.state {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
