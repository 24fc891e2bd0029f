//! Files that are written compressed as a whole.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;

use crate::options::Compression;

/// Compresses what is written to it, in the way of a whole file.
///
/// ```
/// use std::io::Write;
/// use ingest::{Compressing, Compression};
///
/// let mut file = Compressing::new(vec![], Compression::Gzip)?;
/// file.write_all(b"a,b\n1,2\n")?;
/// assert!(file.finish()?.starts_with(&[0x1f, 0x8b]));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Compressing<W: Write>(Form<W>);

/// How it is compressed.
enum Form<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Bzip2(BzEncoder<W>),
}

impl<W: Write> std::fmt::Debug for Compressing<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressing").finish_non_exhaustive()
    }
}

impl<W: Write> Compressing<W> {
    /// A writer that puts what it compresses into `inner`.
    ///
    /// # Errors
    /// Those of `inner`.
    pub fn new(inner: W, compression: Compression) -> io::Result<Compressing<W>> {
        Ok(Compressing(match compression {
            Compression::None => Form::Plain(inner),
            Compression::Gzip => Form::Gzip(GzEncoder::new(inner, flate2::Compression::default())),
            Compression::Zstd => Form::Zstd(zstd::stream::write::Encoder::new(inner, 0)?),
            Compression::Bzip2 => Form::Bzip2(BzEncoder::new(inner, bzip2::Compression::default())),
        }))
    }

    /// Writes the end of the file, and gives back where it went.
    ///
    /// # Errors
    /// Those of the inner writer.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            Form::Plain(inner) => Ok(inner),
            Form::Gzip(encoder) => encoder.finish(),
            Form::Zstd(encoder) => encoder.finish(),
            Form::Bzip2(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Compressing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Form::Plain(inner) => inner.write(bytes),
            Form::Gzip(encoder) => encoder.write(bytes),
            Form::Zstd(encoder) => encoder.write(bytes),
            Form::Bzip2(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Form::Plain(inner) => inner.flush(),
            Form::Gzip(encoder) => encoder.flush(),
            Form::Zstd(encoder) => encoder.flush(),
            Form::Bzip2(encoder) => encoder.flush(),
        }
    }
}
