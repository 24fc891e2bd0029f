//! The file, read ahead by a thread of its own in blocks of whole lines, and unpacked where it is gzip.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Result};

/// Bytes of a block; no line may be longer.
pub(crate) const BLOCK: usize = 1 << 20;
/// Bytes behind a block, so that numbers can be read in words.
pub(crate) const PAD: usize = 16;
/// Blocks that are on the way, and so memory of the reading.
pub(crate) const BLOCKS: usize = 4;
/// What a gzip file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whole lines of the file: each ends with a line feed, also the last one of the file.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    len: usize,
}

impl Block {
    /// The lines, and at least [`PAD`] bytes behind them.
    pub fn padded(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of the lines.
    pub fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    pub fn of(text: &[u8]) -> Block {
        let mut bytes = text.to_vec();
        bytes.resize(text.len() + PAD, 0);
        Block {
            bytes,
            len: text.len(),
        }
    }
}

/// What the reading thread sends.
type Sent = std::io::Result<Block>;

/// A file whose blocks are on the way.
pub(crate) struct Input {
    /// Bytes of the file; 0 where it does not say.
    pub total: u64,
    read: Arc<AtomicU64>,
    blocks: Receiver<Sent>,
    used: SyncSender<Block>,
}

impl Input {
    /// Opens the file and reads ahead in a thread of `scope`, which ends when this is dropped.
    pub fn open<'s>(path: &Path, scope: &'s std::thread::Scope<'s, '_>) -> Result<Input> {
        let failed = |source| Error::File {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(failed(std::io::ErrorKind::IsADirectory.into()));
        }
        let read = Arc::new(AtomicU64::new(0));
        let mut file = BufReader::with_capacity(
            256 << 10,
            Counted {
                file,
                read: read.clone(),
            },
        );
        let head = file.fill_buf().map_err(failed)?;
        let source: Box<dyn Read + Send> = if head.starts_with(&GZIP) {
            Box::new(Unpacked(MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        };
        let (send, blocks) = sync_channel(BLOCKS - 2);
        let (used, recycled) = sync_channel(BLOCKS);
        scope.spawn(move || read_ahead(source, &send, &recycled));
        Ok(Input {
            total: about.len(),
            read,
            blocks,
            used,
        })
    }

    /// The next lines; `None` at the end.
    pub fn next(&mut self) -> std::io::Result<Option<Block>> {
        // An error here is the end: the thread is through.
        self.blocks.recv().ok().transpose()
    }

    /// Gives back a block that is no longer needed.
    pub fn done(&self, block: Block) {
        // If it is full, or nobody reads any more, the block is freed.
        let _ = self.used.try_send(block);
    }

    /// Bytes of the file that were read so far, as they lie on disk.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// Counts the bytes that are read from the file.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let got = self.file.read(into)?;
        self.read.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// Says in errors that the file is gzip.
struct Unpacked<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into).map_err(|error| match error.kind() {
            std::io::ErrorKind::Interrupted => error,
            kind => std::io::Error::new(
                kind,
                format!("as gzip it is cut short or damaged ({error})"),
            ),
        })
    }
}

/// Sends blocks until the end, an error, or nobody wants more.
fn read_ahead(mut source: impl Read, send: &SyncSender<Sent>, recycled: &Receiver<Block>) {
    let mut rest = Vec::new();
    loop {
        let old = recycled.try_recv().map(|block| block.bytes);
        let block = fill(&mut source, &mut rest, old.unwrap_or_default());
        let last = !matches!(&block, Ok(block) if block.len > 0);
        if let Ok(Block { len: 0, .. }) = block {
            return;
        }
        if send.send(block).is_err() || last {
            return;
        }
    }
}

/// The next block, of length 0 at the end. What was read of a line that is not whole is in `rest` before and after.
fn fill(source: &mut impl Read, rest: &mut Vec<u8>, mut bytes: Vec<u8>) -> Sent {
    bytes.resize(BLOCK + 1 + PAD, 0);
    bytes[..rest.len()].copy_from_slice(rest);
    let mut len = rest.len();
    rest.clear();
    while len < BLOCK {
        match source.read(&mut bytes[len..BLOCK]) {
            Ok(0) => {
                if len > 0 && bytes[len - 1] != b'\n' {
                    bytes[len] = b'\n';
                    len += 1;
                }
                return Ok(Block { bytes, len });
            }
            Ok(got) => len += got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // A line without end in a whole block is left to the parser, which says so.
    let end = memchr::memrchr(b'\n', &bytes[..len]).map_or(len, |at| at + 1);
    rest.extend_from_slice(&bytes[end..len]);
    Ok(Block { bytes, len: end })
}
