//! Standard output, which may be closed by its reader at any time.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "sql")]
use crate::terminal::elapsed;

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output, buffered: the caller has to flush it. Once its reader has gone, every write fails and [`closed`] is
/// true.
#[derive(Debug)]
pub struct Out(io::BufWriter<Raw>);

#[derive(Debug)]
struct Raw(io::Stdout);

/// Standard output.
pub fn stdout() -> Out {
    Out(io::BufWriter::with_capacity(64 << 10, Raw(io::stdout())))
}

/// Writes a line at once. If it cannot be written there is nobody to tell.
pub fn line(text: &str) {
    let mut out = stdout();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Whether the reader of standard output has gone, so that errors need not be reported.
pub fn closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

fn noted<T>(result: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &result
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        CLOSED.store(true, Ordering::Relaxed);
    }
    result
}

impl Write for Raw {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "sql")]
        elapsed::hide();
        noted(self.0.lock().write(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        noted(self.0.lock().flush())
    }
}

impl Write for Out {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
