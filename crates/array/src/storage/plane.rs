//! Bytes in pages: written in long runs, read page by page into where they are wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use algebra::copy::Target;
use buffer::{Pin, Pool};
use store::{Kind, Transaction};

use crate::data::runs::{Runs, Stores};
use crate::error::Result;
use crate::model::schema::Compression;
use crate::storage::codec::{self, BLOCK};
use crate::storage::keys::damaged;
use crate::storage::record::Plane;

/// Pages that are written in one go, and are so one after the other in the file.
const WRITTEN: usize = 64;

/// Pages that are loaded ahead where one is missing.
const AHEAD: u64 = 32;

/// What an array has read since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub chunks: AtomicU64,
    pub pages: AtomicU64,
}

/// Writes bytes into pages of a transaction, compressed by up to so many threads.
pub(crate) fn write(
    transaction: &Transaction,
    bucket: u8,
    (bytes, width): (&[u8], usize),
    (compression, threads): (Compression, usize),
    kind: Kind,
) -> Result<Plane> {
    let mut plane = Plane {
        bytes: bytes.len() as u64,
        width: width as u8,
        compression,
        blocks: Vec::new(),
        pages: Vec::new(),
    };
    let mut packed = Vec::new();
    let stored = match compression {
        Compression::None => bytes,
        _ => {
            for block in codec::pack(compression, threads, width, bytes) {
                plane.blocks.push(block.len() as u32);
                packed.extend_from_slice(&block);
            }
            &packed
        }
    };
    let page_size = transaction.base().store().page_size();
    for run in stored.chunks(page_size * WRITTEN) {
        let pages: Vec<&[u8]> = run.chunks(page_size).collect();
        for page in transaction.write_pages(&pages, bucket, kind)? {
            match plane.pages.last_mut() {
                Some((first, count)) if first.checked_add(*count) == Some(page) => *count += 1,
                _ => plane.pages.push((page, 1)),
            }
        }
    }
    Ok(plane)
}

/// What bytes are read through, and for which array.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub array: &'a str,
    pub pool: &'a Arc<Pool>,
    pub counters: &'a Counters,
}

impl<'a> Reader<'a> {
    /// Copies runs out of a plane. When it returns, all bytes of the target that they lead to are written.
    ///
    /// # Errors
    /// [`Error::Buffer`](crate::Error::Buffer), [`Error::Damaged`](crate::Error::Damaged).
    pub async fn copy(
        &self,
        plane: &Plane,
        runs: &mut Runs,
        target: Target<'_>,
        stores: Stores,
    ) -> Result<()> {
        match plane.compression {
            Compression::None => self.copy_pages(plane, runs, target, stores).await,
            _ => self.copy_blocks(plane, runs, target, stores).await,
        }
    }

    /// All bytes of a plane.
    ///
    /// # Errors
    /// As [`copy`](Reader::copy).
    pub async fn all(&self, plane: &Plane) -> Result<Vec<u8>> {
        // As long as what is read: a record may say more than its pages have.
        let mut bytes = Vec::new();
        let mut add = |part: &[u8]| bytes.extend_from_slice(part);
        self.each(plane, &mut add).await?;
        if bytes.len() as u64 != plane.bytes {
            return Err(self.wrong("the list of its pages"));
        }
        Ok(bytes)
    }

    /// Hands all bytes of a plane to `each`, page by page, or block by block where they are compressed.
    ///
    /// # Errors
    /// As [`copy`](Reader::copy).
    pub async fn each(&self, plane: &Plane, each: &mut (dyn FnMut(&[u8]) + Send)) -> Result<()> {
        if plane.compression == Compression::None {
            let count = plane.bytes.div_ceil(self.pool.page_size() as u64);
            for number in 0..count {
                each(&self.pin(plane, number, true).await?);
            }
            // Relaxed: a figure, which guards nothing.
            self.counters.pages.fetch_add(count, Ordering::Relaxed);
            return Ok(());
        }
        if plane.blocks.len() as u64 != plane.bytes.div_ceil(BLOCK as u64) {
            return Err(self.wrong("the list of its blocks"));
        }
        let mut start = 0;
        for (number, &length) in plane.blocks.iter().enumerate() {
            each(&self.block(plane, (number, start), length as usize).await?);
            start += u64::from(length);
        }
        Ok(())
    }

    /// A block of a plane, decompressed: its number, where it begins, and how many bytes are stored.
    async fn block(
        &self,
        plane: &Plane,
        (number, start): (usize, u64),
        length: usize,
    ) -> Result<Vec<u8>> {
        let packed = self.bytes(plane, start, length).await?;
        let left = (plane.bytes as usize).saturating_sub(number * BLOCK);
        let block = codec::unpack(
            plane.compression,
            plane.width.into(),
            &packed,
            left.min(BLOCK),
        );
        block.ok_or_else(|| self.wrong("a compressed block"))
    }

    async fn copy_pages(
        &self,
        plane: &Plane,
        runs: &mut Runs,
        mut target: Target<'_>,
        stores: Stores,
    ) -> Result<()> {
        let page_size = self.pool.page_size() as u64;
        let onwards = runs.stride() as u64 <= page_size;
        let mut count = 0;
        let mut held: Option<(u64, Pin<'a>)> = None;
        while let Some(next) = runs.next() {
            let number = next as u64 / page_size;
            // Another page is let go before this one is waited for.
            let pin = match held.take().filter(|&(of, _)| of == number) {
                Some((_, pin)) => pin,
                None => self.pin(plane, number, onwards).await?,
            };
            // The page after it, if it is there: nothing is waited for.
            if onwards && let Some(after) = self.resident(plane, number + 1) {
                runs.expect(((number + 1) * page_size) as usize, &after);
                held = Some((number + 1, after));
            }
            let start = (number * page_size) as usize;
            runs.copy(start, &pin, target.reborrow(), stores);
            count += 1;
        }
        // Relaxed: a figure, which guards nothing.
        self.counters.pages.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    async fn copy_blocks(
        &self,
        plane: &Plane,
        runs: &mut Runs,
        mut target: Target<'_>,
        stores: Stores,
    ) -> Result<()> {
        let (mut before, mut start) = (0, 0u64);
        while let Some(next) = runs.next() {
            let number = next / BLOCK;
            let lengths = plane.blocks.get(before..=number).unwrap_or_default();
            let Some((&length, skipped)) = lengths.split_last() else {
                return Err(self.wrong("the list of its blocks"));
            };
            start += skipped.iter().map(|&length| u64::from(length)).sum::<u64>();
            let block = self.block(plane, (number, start), length as usize).await?;
            start += u64::from(length);
            before = number + 1;
            runs.copy(number * BLOCK, &block, target.reborrow(), stores);
        }
        Ok(())
    }

    /// Some of the stored bytes.
    async fn bytes(&self, plane: &Plane, start: u64, length: usize) -> Result<Vec<u8>> {
        let page_size = self.pool.page_size() as u64;
        let mut bytes = Vec::with_capacity(length);
        let mut at = start;
        while bytes.len() < length {
            let number = at / page_size;
            let pin = self.pin(plane, number, true).await?;
            let rest = &pin[(at % page_size) as usize..];
            let part = &rest[..rest.len().min(length - bytes.len())];
            if part.is_empty() {
                return Err(self.wrong("a compressed block"));
            }
            bytes.extend_from_slice(part);
            at += part.len() as u64;
            self.counters.pages.fetch_add(1, Ordering::Relaxed);
        }
        Ok(bytes)
    }

    /// Pins a page, and has those after it loaded if it was not there and they are wanted, too.
    async fn pin(&self, plane: &Plane, number: u64, onwards: bool) -> Result<Pin<'a>> {
        let page = plane
            .page(number)
            .ok_or_else(|| self.wrong("the list of its pages"))?;
        let pin = match self.pool.try_pin(page) {
            Some(pin) => pin,
            None => {
                let after = (number + 1..number + 1 + AHEAD).map_while(|at| plane.page(at));
                let after: Vec<_> = after
                    .take(if onwards { AHEAD as usize } else { 0 })
                    .collect();
                self.pool.prefetch(&after);
                self.pool.pin(page).await?
            }
        };
        if pin.len() as u64 != self.length(plane, number) {
            return Err(self.wrong(&format!("page {page}, which is too short or too long,")));
        }
        Ok(pin)
    }

    /// Pins a page of a plane if it has one of this number, of the right length, that is in the pool.
    fn resident(&self, plane: &Plane, number: u64) -> Option<Pin<'a>> {
        let pin = self.pool.try_pin(plane.page(number)?)?;
        (pin.len() as u64 == self.length(plane, number)).then_some(pin)
    }

    /// Bytes that a page of a plane has.
    fn length(&self, plane: &Plane, number: u64) -> u64 {
        let page_size = self.pool.page_size() as u64;
        let left = plane.stored().saturating_sub(number * page_size);
        left.min(page_size)
    }

    fn wrong(&self, what: &str) -> crate::error::Error {
        damaged(self.array, what)
    }
}
