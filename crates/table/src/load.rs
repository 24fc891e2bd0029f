//! Bulk loading: blocks encoded and written by many threads, in an order of their own.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, SchemaRef};
use buffer::PageId;
use parking_lot::Mutex;
use store::{Kind, Transaction};

use crate::block::{BLOCK_ROWS, Block, Matrix};
use crate::dictionary::{DictionaryRecord, Words};
use crate::encode::{self, Sink};
use crate::error::{Error, Result};
use crate::key;
use crate::near::Near;
use crate::schema::{Definition, normalise};
use crate::write::{self, changed, damaged};

/// Appends blocks to one table within one transaction, from many threads at once.
#[derive(Debug)]
pub struct Loader {
    tx: Transaction,
    definition: Definition,
    schema: SchemaRef,
    space: u32,
    page_size: usize,
    /// One per text column.
    words: Vec<Option<Words>>,
    /// Number of the first new block.
    next: u32,
    /// Where blocks go that do not go in turn.
    near: Option<Near>,
    done: Mutex<Vec<(u64, Block)>>,
    rows: AtomicU64,
}

impl Loader {
    /// Starts loading into table `name`.
    ///
    /// # Errors
    /// [`Error::NoTable`]; those of reading its dictionaries.
    pub async fn new(tx: Transaction, name: &str) -> Result<Loader> {
        let definition = write::definition(&tx, name)?;
        let space = write::space(&tx, name)?;
        let last = tx.prefix(space, key::BLOCK).last();
        let next = last
            .and_then(|(entry, _)| key::number(&entry))
            .map_or(0, |n| n + 1);
        let mut words = Vec::with_capacity(definition.columns.len());
        for (position, column) in definition.columns.iter().enumerate() {
            let text = matches!(column.data_type, DataType::Utf8View | DataType::BinaryView);
            words.push(match text {
                true => Some(existing_words(&tx, space, position, name).await?),
                false => None,
            });
        }
        let page_size = tx.base().pool().page_size();
        Ok(Loader {
            near: Near::of(&tx, &definition)?,
            schema: definition.schema(),
            definition,
            space,
            page_size,
            words,
            next,
            done: Mutex::default(),
            rows: AtomicU64::new(0),
            tx,
        })
    }

    /// The table's definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Encodes and writes one block of up to 65,536 rows. Blocks end up in the order of
    /// `ordinal`, which callers choose; calls may come in any order and from any thread.
    ///
    /// # Errors
    /// Those of [`normalise`] and of the store; then the whole load must be given up.
    pub fn block(&self, ordinal: u64, rows: &[RecordBatch]) -> Result<()> {
        let rows = rows
            .iter()
            .map(|b| normalise(b, &self.definition))
            .collect::<Result<Vec<_>>>()?;
        let batch = concat_batches(&self.schema, &rows)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if batch.num_rows() > BLOCK_ROWS {
            let what = format!(
                "{} rows for one block of at most {BLOCK_ROWS}",
                batch.num_rows()
            );
            return Err(Error::Mismatch {
                table: self.definition.name.clone(),
                what,
            });
        }
        let near = self.near.as_ref().and_then(|near| near.bucket(&batch));
        let bucket = near.unwrap_or((u64::from(self.next) + ordinal) as u8);
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (position, column) in batch.columns().iter().enumerate() {
            let (name, words) = (
                &self.definition.columns[position].name,
                &self.words[position],
            );
            columns.push(write_matrix(&self.tx, bucket, |sink| {
                encode::encode(name, column, words.as_ref(), self.page_size, sink)
            })?);
        }
        let block = Block {
            rows: batch.num_rows() as u32,
            bucket,
            columns,
        };
        self.rows
            .fetch_add(u64::from(block.rows), Ordering::Relaxed);
        self.done.lock().push((ordinal, block));
        Ok(())
    }

    /// Rows appended so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Records the blocks and dictionaries; gives back the transaction, to be committed, and the
    /// number of rows.
    ///
    /// # Errors
    /// Those of the store.
    pub fn finish(self) -> Result<(Transaction, u64)> {
        let Loader {
            mut tx,
            definition,
            space,
            page_size,
            words,
            next,
            done,
            rows,
            ..
        } = self;
        let mut done = done.into_inner();
        done.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        for (number, (_, block)) in (next..).zip(&done) {
            let bytes = write::encode(block, &definition.name)?;
            tx.put(space, &key::numbered(key::BLOCK, number), &bytes);
        }
        for (position, words) in words.iter().enumerate() {
            if let Some(words) = words {
                save_words(&mut tx, space, position, &definition, words, page_size)?;
            }
        }
        changed(&mut tx, &definition.name, space)?;
        Ok((tx, rows.into_inner()))
    }
}

/// Writes the pages of the matrix that `encode` makes, neighbours of one kind in one go.
pub(crate) fn write_matrix(
    tx: &Transaction,
    bucket: u8,
    encode: impl FnOnce(&mut Sink<'_>) -> Result<Matrix>,
) -> Result<Matrix> {
    let mut pages: Vec<(Vec<u8>, Kind)> = Vec::new();
    let mut matrix = encode(&mut |page, kind| {
        pages.push((page.to_vec(), kind));
        Ok(pages.len() as PageId - 1)
    })?;
    let mut ids = Vec::with_capacity(pages.len());
    for run in pages.chunk_by(|(_, a), (_, b)| a == b) {
        let bytes: Vec<&[u8]> = run.iter().map(|(bytes, _)| &bytes[..]).collect();
        ids.extend(tx.write_pages(&bytes, bucket, run[0].1)?);
    }
    matrix.renumber(&ids);
    Ok(matrix)
}

async fn existing_words(tx: &Transaction, space: u32, column: usize, name: &str) -> Result<Words> {
    let Some(bytes) = tx.get(space, &key::dictionary(column)) else {
        return Ok(Words::default());
    };
    let record: DictionaryRecord = write::decode(&bytes, name)?;
    let labels = record.labels(name, tx.base().pool()).await?;
    Ok(Words::with(labels.into_iter(), record.sorted))
}

/// Writes a dictionary anew if it grew.
fn save_words(
    tx: &mut Transaction,
    space: u32,
    column: usize,
    definition: &Definition,
    words: &Words,
    page_size: usize,
) -> Result<()> {
    let entry = key::dictionary(column);
    let before: Option<DictionaryRecord> = match tx.get(space, &entry) {
        Some(bytes) => Some(write::decode(&bytes, &definition.name)?),
        None => None,
    };
    let (labels, sorted) = words.labels();
    if labels.len() == before.as_ref().map_or(0, |b| b.labels as usize) {
        return Ok(());
    }
    let name = &definition.columns[column].name;
    let mut sink = |page: &[u8], kind| Ok(tx.write_page(page, 0, kind)?);
    let texts = labels.iter().map(|label| &**label);
    let pages = encode::text_pages(name, texts, page_size, &mut sink)?;
    if let Some(before) = before {
        write::free_dictionary(tx, &before)?;
    }
    let record = DictionaryRecord {
        labels: labels.len() as u32,
        sorted,
        pages,
    };
    let bytes = postcard::to_stdvec(&record)
        .map_err(|_| damaged(&definition.name, "the record of a dictionary"))?;
    tx.put(space, &entry, &bytes);
    Ok(())
}

/// Cuts a stream of batches into pieces of 65,536 rows.
#[derive(Debug, Default)]
pub struct Chunker {
    open: Vec<RecordBatch>,
    rows: usize,
}

impl Chunker {
    /// Takes a batch; gives the blocks that became full.
    pub fn push(&mut self, batch: RecordBatch) -> Vec<Vec<RecordBatch>> {
        let mut full = Vec::new();
        let mut batch = batch;
        while self.rows + batch.num_rows() >= BLOCK_ROWS {
            let take = BLOCK_ROWS - self.rows;
            self.open.push(batch.slice(0, take));
            batch = batch.slice(take, batch.num_rows() - take);
            full.push(std::mem::take(&mut self.open));
            self.rows = 0;
        }
        if batch.num_rows() > 0 {
            self.rows += batch.num_rows();
            self.open.push(batch);
        }
        full
    }

    /// What is left, if anything.
    pub fn rest(&mut self) -> Option<Vec<RecordBatch>> {
        self.rows = 0;
        let open = std::mem::take(&mut self.open);
        (!open.is_empty()).then_some(open)
    }
}
