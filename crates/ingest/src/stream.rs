//! The bytes of a file: a plain one, which can be read again and at any place, a compressed one, or a pipe.

use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use arrow::error::ArrowError;

use crate::error::{Error, Result};
use crate::options::{Compression, Format, Options};

/// The byte order mark that some programs write before UTF-8; it is no part of the first value.
pub(crate) const MARK: &[u8] = "\u{feff}".as_bytes();

/// Bytes that tell a file's format and compression.
const HEAD: usize = 4096;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Whether a file begins as one of bzip2 does: with its size of blocks, and the mark of a block or of the end.
fn is_bzip2(head: &[u8]) -> bool {
    const BLOCK: &[u8] = &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    const END: &[u8] = &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
    match head {
        [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] => {
            rest.starts_with(BLOCK) || rest.starts_with(END)
        }
        _ => false,
    }
}

/// Beginnings of compressions that are not read.
const UNREAD: [(&[u8], &str); 2] = [
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (b"PK\x03\x04", "zip"),
];

/// Uncompressed bytes, the first of which can be looked at before they are read.
pub(crate) struct Stream {
    head: Vec<u8>,
    ended: bool,
    rest: Box<dyn Read + Send>,
}

impl Stream {
    fn new(rest: Box<dyn Read + Send>) -> Stream {
        Stream {
            head: vec![],
            ended: false,
            rest,
        }
    }

    /// The first `count` bytes; fewer where there are no more.
    pub fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        let missing = count.saturating_sub(self.head.len()) as u64;
        if missing > 0 && !self.ended {
            let read = self
                .rest
                .by_ref()
                .take(missing)
                .read_to_end(&mut self.head)?;
            self.ended = (read as u64) < missing;
        }
        Ok(&self.head[..count.min(self.head.len())])
    }

    /// All bytes, those that were looked at included.
    pub fn into_read(self) -> impl Read + Send {
        Cursor::new(self.head).chain(self.rest)
    }
}

/// A regular file as it was when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            size: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

/// What a source is.
#[derive(Debug)]
enum Kind {
    /// A regular file.
    File(Stamp),
    /// A pipe, a device, a stream of batches: what is read once.
    Once,
    /// Batches in memory, of so many bytes.
    Memory(u64),
}

/// Where the bytes of a file come from.
#[derive(Debug)]
pub(crate) struct Source {
    /// The file as it was named.
    path: PathBuf,
    compression: Compression,
    kind: Kind,
    /// What is left of a pipe, until it is read.
    once: Mutex<Option<Once>>,
}

/// A pipe that was begun.
struct Once(Stream);

impl std::fmt::Debug for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a pipe")
    }
}

impl Source {
    /// Opens the file at `path`, `-` for standard input, and finds its compression and format.
    pub fn open(path: &Path, options: &Options) -> Result<(Source, Stream, Format)> {
        let standard = path.as_os_str() == "-";
        let failed = |error: io::Error| Error::io(path, &error);
        let (mut raw, stamp) = if standard {
            (Stream::new(Box::new(io::stdin())), None)
        } else {
            let file = File::open(path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_dir() {
                return Err(Error::file(path, "is a directory; name a file in it"));
            }
            let stamp = metadata.is_file().then(|| Stamp::of(&metadata));
            (Stream::new(Box::new(file)), stamp)
        };
        let path = if standard {
            PathBuf::from("standard input")
        } else {
            path.to_owned()
        };
        let head = raw.peek(HEAD).map_err(|error| Error::io(&path, &error))?;
        let compression = compression(&path, options, head)?;
        let mut stream =
            decompressed(raw, compression).map_err(|error| Error::io(&path, &error))?;
        let head = stream
            .peek(HEAD)
            .map_err(|error| Error::io(&path, &error))?;
        let format = format(&path, options, head)?;
        let source = Source {
            path,
            compression,
            kind: stamp.map_or(Kind::Once, Kind::File),
            once: Mutex::new(None),
        };
        Ok((source, stream, format))
    }

    /// What is no file: batches in memory, of so many bytes, or a stream of batches where nothing is said.
    pub fn of_batches(name: &str, bytes: Option<u64>) -> Source {
        Source {
            path: name.into(),
            compression: Compression::None,
            kind: bytes.map_or(Kind::Once, Kind::Memory),
            once: Mutex::new(None),
        }
    }

    /// The file as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size as it lies there; none for pipes.
    pub fn bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::File(stamp) => Some(stamp.size),
            Kind::Memory(bytes) => Some(*bytes),
            Kind::Once => None,
        }
    }

    /// Whether any part of it can be read by itself.
    pub fn is_plain(&self) -> bool {
        !self.is_once() && self.compression == Compression::None
    }

    /// Whether it can be read a single time.
    pub fn is_once(&self) -> bool {
        matches!(self.kind, Kind::Once)
    }

    /// The file as it was when it was opened, if it is a regular one.
    fn stamp(&self) -> Option<&Stamp> {
        match &self.kind {
            Kind::File(stamp) => Some(stamp),
            Kind::Once | Kind::Memory(_) => None,
        }
    }

    /// Keeps the stream of a pipe that was looked at for [`Source::read`].
    pub fn keep(&self, stream: Stream) {
        if self.is_once() {
            *self.once.lock().unwrap_or_else(|e| e.into_inner()) = Some(Once(stream));
        }
    }

    /// The file's uncompressed bytes from the start.
    pub fn read(&self) -> Result<Box<dyn Read + Send>> {
        if self.is_once() {
            let mut once = self.once.lock().unwrap_or_else(|e| e.into_inner());
            return match once.take() {
                Some(Once(stream)) => Ok(Box::new(stream.into_read())),
                None => Err(Error::file(
                    &self.path,
                    "was read already, and a pipe can be read only once; write it to a file first, or into a table",
                )),
            };
        }
        let file = self.file()?;
        let stream = decompressed(Stream::new(Box::new(file)), self.compression);
        let stream = stream.map_err(|error| Error::io(&self.path, &error))?;
        Ok(Box::new(stream.into_read()))
    }

    /// A file to read at any place: this one, or a temporary one with what comes out of a pipe.
    pub fn random(&self, stream: Option<Stream>) -> Result<File> {
        let failed = |error: io::Error| Error::io(&self.path, &error);
        if self.compression != Compression::None {
            return Err(Error::file(
                &self.path,
                "is compressed as a whole, which its format does not allow; decompress it first",
            ));
        }
        match stream.filter(|_| self.is_once()) {
            Some(stream) => {
                let mut file = tempfile::tempfile().map_err(failed)?;
                io::copy(&mut stream.into_read(), &mut file).map_err(failed)?;
                Ok(file)
            }
            None => self.file(),
        }
    }

    fn file(&self) -> Result<File> {
        let file = File::open(&self.path).map_err(|error| Error::io(&self.path, &error))?;
        let now = file.metadata().ok().map(|metadata| Stamp::of(&metadata));
        if self.stamp().is_some() && now.as_ref() != self.stamp() {
            return Err(self.changed());
        }
        Ok(file)
    }

    /// Fails if the file is another by now: what was read of it may then be of the one or of the other.
    pub fn check(&self) -> Result<()> {
        let Some(stamp) = self.stamp() else {
            return Ok(());
        };
        match std::fs::metadata(&self.path) {
            Ok(now) if Stamp::of(&now) == *stamp => Ok(()),
            Ok(_) => Err(self.changed()),
            Err(error) => Err(Error::file(
                &self.path,
                format!("changed while it was read: {error}"),
            )),
        }
    }

    fn changed(&self) -> Error {
        Error::file(
            &self.path,
            "changed while it was read; run the statement again",
        )
    }
}

fn decompressed(stream: Stream, compression: Compression) -> io::Result<Stream> {
    Ok(match compression {
        Compression::None => stream,
        Compression::Gzip => Stream::new(Box::new(flate2::read::MultiGzDecoder::new(
            stream.into_read(),
        ))),
        Compression::Zstd => Stream::new(Box::new(zstd::stream::read::Decoder::new(
            stream.into_read(),
        )?)),
        Compression::Bzip2 => Stream::new(Box::new(bzip2::read::MultiBzDecoder::new(
            stream.into_read(),
        ))),
    })
}

/// How the file is compressed: as its first bytes say, or as it was asked for.
fn compression(path: &Path, options: &Options, head: &[u8]) -> Result<Compression> {
    let seen = match head {
        head if head.starts_with(GZIP) => Compression::Gzip,
        head if head.starts_with(ZSTD) => Compression::Zstd,
        head if is_bzip2(head) => Compression::Bzip2,
        _ => Compression::None,
    };
    if let Some(given) = options.compression {
        return if given == seen || given == Compression::None {
            Ok(given)
        } else {
            Err(Error::file(
                path,
                "is not compressed in the way that was given; leave it out",
            ))
        };
    }
    if let Some((_, name)) = UNREAD.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(Error::file(
            path,
            format!(
                "is compressed with {name}, which is not read; decompress it first, or use gzip, zstd or bzip2"
            ),
        ));
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    let named = extension.and_then(Compression::of_extension);
    match named.filter(|named| *named != seen) {
        Some(_) => Err(Error::file(
            path,
            "is not compressed as its name says; decompress or rename it, or give the compression",
        )),
        None => Ok(seen),
    }
}

/// The file's format: as it was asked for, as its name says unless its first bytes say otherwise, as they say.
fn format(path: &Path, options: &Options, head: &[u8]) -> Result<Format> {
    let seen = match head {
        [b'P', b'A', b'R', b'1', ..] => Some(Format::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => {
            Some(Format::Arrow)
        }
        head if is_json(head) => Some(Format::Json),
        _ => None,
    };
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let named = Format::of_name(name);
    let format = match (options.format, named, seen) {
        (Some(given), ..) => given,
        (None, Some(Format::Csv), Some(Format::Json)) if named_text(name) => Format::Json,
        (None, Some(Format::Csv | Format::Tbl), Some(seen)) => {
            return Err(Error::file(
                path,
                format!(
                    "has the name of a text file but is {seen:?}; rename it or give the format"
                ),
            ));
        }
        (None, Some(named), _) => named,
        (None, None, Some(seen)) => seen,
        (None, None, None) => Format::Csv,
    };
    if matches!(
        format,
        Format::Csv | Format::Tbl | Format::Text | Format::Json
    ) {
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
            return Err(Error::file(
                path,
                "is UTF-16; convert it to UTF-8 first (iconv -f utf-16 -t utf-8)",
            ));
        }
        if head.contains(&0) {
            return Err(Error::file(
                path,
                "holds zero bytes and is no text file; check the path and the format",
            ));
        }
    }
    Ok(format)
}

fn named_text(name: &str) -> bool {
    name.to_ascii_lowercase().contains(".txt")
}

/// Whether the bytes are the beginning of JSON that has rows: of an object, or of an array of them.
fn is_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(MARK).unwrap_or(head).trim_ascii_start();
    let object = match head {
        [b'{', ..] => head,
        [b'[', rest @ ..] => rest.trim_ascii_start(),
        _ => return false,
    };
    if object.first() != Some(&b'{') {
        return false;
    }
    let mut values = serde_json::Deserializer::from_slice(object).into_iter::<serde_json::Value>();
    match values.next() {
        Some(Ok(_)) => true,
        Some(Err(error)) => error.is_eof() && head.len() > HEAD / 2,
        None => false,
    }
}

/// What went wrong with Arrow in the rows of `source`.
pub(crate) fn failed(source: &Source, error: &ArrowError) -> Error {
    Error::file(source.path(), error.to_string())
}
