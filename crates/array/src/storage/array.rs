//! An array of a snapshot.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use algebra::copy::Target;
use store::Snapshot;

use crate::data::block::Block;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::model::schema::Schema;
use crate::storage::cells::Cells;
use crate::storage::dense;
use crate::storage::keys::{AT, Catalog, Entry, entries, of_chunk_key, unpack};
use crate::storage::plane::Counters;
use crate::storage::read::read;
use crate::storage::record::{Record, Statistics};

/// An array as one snapshot has it. Later commits do not change it. Positions count from 0 along each dimension, whatever
/// its coordinates are.
#[derive(Debug)]
pub struct Array {
    name: String,
    snapshot: Snapshot,
    entry: Entry,
    grid: Grid,
    counters: Counters,
}

/// What an array has read since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reads {
    /// Chunks that were read, or found never to have been written; each time.
    pub chunks: u64,
    /// Pages that were pinned.
    pub pages: u64,
}

/// What is known of an array without reading its cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// Its dimensions and attributes.
    pub schema: Schema,
    /// Chunks that it could have.
    pub chunks: u64,
    /// Chunks that were written.
    pub written: u64,
    /// Pages of its chunks.
    pub pages: u64,
    /// Bytes of its chunks' values, before compression.
    pub bytes: u64,
    /// Bytes of its chunks as they are stored, before the store compresses pages.
    pub stored: u64,
    /// Its named versions; a version has none.
    pub versions: Vec<String>,
    /// Pages that are there for versions only: of an array, those of all of its versions that it has no more; of a
    /// version, those of it that the array has no more.
    pub kept: u64,
}

impl Array {
    /// The array `name` of a snapshot, or a named version of one: `temperature@monday`. Reads no page.
    ///
    /// # Errors
    /// [`Error::NoArray`], [`Error::NoVersion`], [`Error::Damaged`].
    pub fn open(snapshot: &Snapshot, name: &str) -> Result<Arc<Array>> {
        let entry = Catalog::Snapshot(snapshot).readable(name)?;
        Ok(Arc::new(Array {
            name: name.to_owned(),
            snapshot: snapshot.clone(),
            grid: Grid::of(&entry.schema),
            entry,
            counters: Counters::default(),
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its dimensions and attributes.
    pub fn schema(&self) -> &Schema {
        &self.entry.schema
    }

    /// Its chunks.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The snapshot that it is of.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// All of it.
    pub fn region(&self) -> Region {
        Region::of_shape(&self.entry.schema.shape())
    }

    /// What was read since it was opened.
    pub fn reads(&self) -> Reads {
        Reads {
            chunks: self.counters.chunks.load(Ordering::Relaxed),
            pages: self.counters.pages.load(Ordering::Relaxed),
        }
    }

    fn cells(&self) -> Cells<'_> {
        Cells {
            name: &self.name,
            space: self.entry.space,
            schema: &self.entry.schema,
            catalog: Catalog::Snapshot(&self.snapshot),
            counters: &self.counters,
        }
    }

    fn check(&self, region: &Region) -> Result<()> {
        if region.rank() == self.grid.axes().len() && self.region().contains(region) {
            return Ok(());
        }
        Err(Error::OutOfRange {
            what: format!("array '{}'", self.name),
            dimension: "all".to_owned(),
            coordinate: format!("the box {:?}", region.ranges()),
            range: format!("the shape {:?}", self.entry.schema.shape()),
        })
    }

    /// The cells of a region, with the attributes that are wanted: `wanted` has a flag for each. Only chunks that overlap
    /// the region are read.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the region is not within the array; [`Error::TooLarge`]; [`Error::Buffer`],
    /// [`Error::Damaged`].
    pub async fn read(&self, region: &Region, wanted: &[bool]) -> Result<Block> {
        self.check(region)?;
        read(&self.cells(), region, wanted).await
    }

    /// Copies the values of an attribute in a region into `values`, in row-major order. Of a null, and of a cell that does
    /// not exist, the bytes are zeros.
    ///
    /// # Errors
    /// As [`read`](Array::read), and [`Error::Operator`] if `values` has not the length of the region's values.
    pub async fn read_into(
        &self,
        region: &Region,
        attribute: usize,
        values: &mut [u8],
    ) -> Result<()> {
        self.read_to(region, attribute, values.into()).await
    }

    /// The same to bytes that may have no value yet; they have when it returns without an error.
    pub(crate) async fn read_to(
        &self,
        region: &Region,
        attribute: usize,
        mut values: Target<'_>,
    ) -> Result<()> {
        self.check(region)?;
        let wrong = |what: String| Error::Operator {
            operator: "read_into",
            what,
        };
        let attributes = self.entry.schema.attributes();
        let of = attributes.get(attribute);
        let of = of.ok_or_else(|| wrong(format!("there is no attribute number {attribute}")))?;
        let expected = region.cells("a region")? * of.data_type().width();
        if values.len() != expected {
            return Err(wrong(format!(
                "{} bytes are given, {expected} are needed",
                values.len()
            )));
        }
        let plain =
            self.schema().layout() == crate::model::schema::Layout::Dense && !of.is_nullable();
        if !plain {
            let wanted: Vec<bool> = (0..attributes.len()).map(|at| at == attribute).collect();
            let block = read(&self.cells(), region, &wanted).await?;
            let column = block.column(attribute);
            let bytes = column.map(|of| of.values().bytes()).unwrap_or_default();
            assert_eq!(bytes.len(), values.len(), "a column of the region");
            values.copy_from(bytes);
            return Ok(());
        }
        dense::read_into(&self.cells(), region, attribute, values).await
    }

    /// Counts the chunks that overlap a region, which were read for whatever attributes.
    pub(crate) fn count_read(&self, region: &Region) {
        let count = self.grid.overlapping(region).count();
        // Relaxed: a figure, which guards nothing.
        self.counters
            .chunks
            .fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Hands the bytes of an attribute's values to `each`, piece by piece, if the region is all that is stored of one dense
    /// chunk, without nulls. If not, it returns false and has handed out nothing.
    ///
    /// # Errors
    /// As [`read`](Array::read).
    pub(crate) async fn visit(
        &self,
        region: &Region,
        attribute: usize,
        each: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<bool> {
        self.check(region)?;
        dense::visit(&self.cells(), region, attribute, each).await
    }

    /// What is known of an attribute in the chunks that overlap a region; `None` if it is empty. Reads no page.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Damaged`].
    pub fn statistics(&self, region: &Region, attribute: usize) -> Result<Option<Statistics>> {
        self.check(region)?;
        self.cells().statistics(region, attribute)
    }

    /// The logical node on whose memory the pages of a chunk are put, of those of the pool.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn home(&self, chunk: &[u64]) -> Result<usize> {
        let record = self.cells().record(chunk, 0)?;
        Ok(record.map_or(0, |record| self.snapshot.pool().node_of(record.bucket)))
    }

    /// What is known of it without reading its cells. Looks at the record of each chunk.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn summary(&self) -> Result<Summary> {
        summary(&self.snapshot, &self.name, &self.entry)
    }
}

/// Of an array, with what is kept for its versions; or of a version.
fn summary(snapshot: &Snapshot, name: &str, entry: &Entry) -> Result<Summary> {
    let catalog = Catalog::Snapshot(snapshot);
    let mut summary = plain_summary(snapshot, name, entry)?;
    let versions = catalog.versions(name)?;
    let of_version = name.rsplit_once(AT).filter(|_| versions.is_empty());
    let array = of_version.and_then(|(array, _)| catalog.entry(array).ok());
    if versions.is_empty() && array.is_none() {
        return Ok(summary);
    }
    let now = planes(snapshot, array.as_ref().unwrap_or(entry));
    let mut before: HashMap<u32, u64> = HashMap::new();
    match array {
        Some(_) => before.extend(planes(snapshot, entry)),
        None => versions
            .iter()
            .for_each(|(_, of)| before.extend(planes(snapshot, of))),
    }
    let only = before.iter().filter(|(page, _)| !now.contains_key(page));
    summary.kept = only.map(|(_, pages)| pages).sum();
    summary.versions = versions.into_iter().map(|(version, _)| version).collect();
    Ok(summary)
}

/// The first page of each plane, and how many pages it has. Planes are shared as a whole, or not at all.
fn planes(snapshot: &Snapshot, entry: &Entry) -> HashMap<u32, u64> {
    let mut found = HashMap::new();
    for (_, value) in snapshot.prefix(entry.space, b"") {
        let record = unpack::<Record>(&value);
        for plane in record.iter().flat_map(Record::planes) {
            if let Some(first) = plane.page(0) {
                found.insert(first, plane.page_count());
            }
        }
    }
    found
}

fn plain_summary(snapshot: &Snapshot, name: &str, entry: &Entry) -> Result<Summary> {
    let schema = &entry.schema;
    let mut summary = Summary {
        name: name.to_owned(),
        chunks: Grid::of(schema).chunks(),
        written: 0,
        pages: 0,
        bytes: 0,
        stored: 0,
        versions: Vec::new(),
        kept: 0,
        schema: schema.clone(),
    };
    let mut last = None;
    let page_size = snapshot.pool().page_size();
    for (key, value) in snapshot.prefix(entry.space, b"") {
        let sound = |of: &Record| of.planes().all(|plane| plane.has_its_pages(page_size));
        let record = unpack::<Record>(&value).filter(sound);
        let decoded = of_chunk_key(&key, schema.dimensions().len()).zip(record);
        let wrong = || crate::storage::keys::damaged(name, "the record of a chunk");
        let ((chunk, _), record) = decoded.ok_or_else(wrong)?;
        summary.written += u64::from(last.as_ref() != Some(&chunk));
        last = Some(chunk);
        for plane in record.planes() {
            summary.pages += plane.page_count();
            summary.bytes += plane.bytes;
            summary.stored += plane.stored();
        }
    }
    Ok(summary)
}

/// The names of the arrays of a snapshot, in order.
///
/// # Errors
/// [`Error::Damaged`].
pub fn names(snapshot: &Snapshot) -> Result<Vec<String>> {
    Ok(entries(snapshot)?
        .into_iter()
        .map(|(name, _)| name)
        .collect())
}

/// The arrays of a snapshot, by name. Looks at the record of each chunk.
///
/// # Errors
/// [`Error::Damaged`].
pub fn list(snapshot: &Snapshot) -> Result<Vec<Summary>> {
    let all = entries(snapshot)?;
    all.iter()
        .map(|(name, entry)| summary(snapshot, name, entry))
        .collect()
}

/// The named versions of an array of a snapshot, by name. Looks at the record of each chunk.
///
/// # Errors
/// [`Error::NoArray`], [`Error::Damaged`].
pub fn versions(snapshot: &Snapshot, array: &str) -> Result<Vec<Summary>> {
    let catalog = Catalog::Snapshot(snapshot);
    catalog.entry(array)?;
    let all = catalog.versions(array)?;
    all.iter()
        .map(|(version, entry)| summary(snapshot, &format!("{array}{AT}{version}"), entry))
        .collect()
}
