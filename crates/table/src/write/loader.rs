//! Bulk loading: many threads encode and write blocks, in any order.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, SchemaRef};
use buffer::PageId;
use parking_lot::Mutex;
use store::{Kind, Transaction};

use crate::catalog::space::{self, changed};
use crate::dictionary::DictionaryBuilder;
use crate::error::{Error, Result};
use crate::format::block::{BLOCK_ROWS, Block, Matrix, Shred};
use crate::format::dictionary::DictionaryRecord;
use crate::format::key;
use crate::format::record::{damaged, decode};
use crate::index::gather::Gather;
use crate::index::maintain;
use crate::index::settle::{Place, settle};
use crate::schema::{Definition, normalise};
use crate::write::co_partition::CoPartitioning;
use crate::write::encode::shreds::{self, documents};
use crate::write::encode::{self, Sink};

/// Appends blocks to one table, within one transaction, from many threads at once.
#[derive(Debug)]
pub struct Loader {
    tx: Transaction,
    definition: Definition,
    schema: SchemaRef,
    space: u32,
    page_size: usize,
    /// One per text column.
    dictionaries: Vec<Option<DictionaryBuilder>>,
    /// Number of the first new block.
    next: u32,
    /// Chooses the bucket of a block by its foreign key; blocks for which it chooses none get buckets in turn.
    co_partitioning: Option<CoPartitioning>,
    /// One for each key that holds.
    keys: Vec<Gather>,
    /// Blocks by their numbers.
    done: Mutex<Vec<(u32, Block)>>,
    rows: AtomicU64,
}

/// A block of a load whose columns are being written.
#[derive(Debug)]
pub struct OpenBlock {
    number: u32,
    bucket: u8,
    batch: RecordBatch,
    /// Where the batches end that it came in.
    cuts: Vec<usize>,
    /// Those that were written.
    columns: Mutex<Vec<Option<Matrix>>>,
    /// What was written of their documents.
    shreds: Mutex<Vec<Shred>>,
}

impl OpenBlock {
    /// How many columns it has.
    pub fn columns(&self) -> usize {
        self.batch.num_columns()
    }
}

impl Loader {
    /// Starts to load into table `name`. The rows are visible once the transaction that
    /// [`Loader::finish`] gives back is committed.
    ///
    /// # Errors
    /// [`Error::NoTable`]; [`Error::Key`] if a key of the table cannot be checked; those of reading its dictionaries.
    pub async fn new(tx: Transaction, name: &str) -> Result<Loader> {
        let definition = space::definition(&tx, name)?;
        let space = space::space(&tx, name)?;
        maintain::current(&tx.view(), space, &definition)?;
        let last = tx.prefix(space, key::BLOCK).last();
        let next = last
            .and_then(|(entry, _)| key::number(&entry))
            .map_or(0, |n| n + 1);
        let mut dictionaries = Vec::with_capacity(definition.columns.len());
        for (position, column) in definition.columns.iter().enumerate() {
            let text = matches!(column.data_type, DataType::Utf8View | DataType::BinaryView);
            dictionaries.push(if text {
                Some(existing(&tx, space, position, name).await?)
            } else {
                None
            });
        }
        let page_size = tx.base().pool().page_size();
        Ok(Loader {
            co_partitioning: CoPartitioning::of(&tx, &definition)?,
            schema: definition.schema(),
            keys: definition.keys.iter().cloned().map(Gather::new).collect(),
            definition,
            space,
            page_size,
            dictionaries,
            next,
            done: Mutex::default(),
            rows: AtomicU64::new(0),
            tx,
        })
    }

    /// How many rows more than there may be anyway may wait in memory for their place in the index of a key, at
    /// [`Loader::WAITING_BYTES`] each for each key that holds: what is sorted in memory at once is written once.
    pub fn keep_waiting(&self, rows: usize) {
        self.keys.iter().for_each(|key| key.keep(rows));
    }

    /// Bytes of memory that a row takes which waits for its place in the index of a key.
    pub const WAITING_BYTES: u64 = 17;

    /// Sorts and writes a part of the indexes of the keys, once all blocks have [ended](Loader::end), and says whether there was
    /// one. To be called by several threads until there is none; [`finish`](Loader::finish) does what is left.
    ///
    /// # Errors
    /// Those of the store; then the whole load must be given up.
    pub fn index_some(&self) -> Result<bool> {
        for key in &self.keys {
            if key.write_some(&self.tx)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The table's definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Encodes and writes one block of up to [`BLOCK_ROWS`] rows. The blocks of a load will stand in
    /// the order of their `ordinal`, whatever the order of the calls.
    ///
    /// # Errors
    /// Those of [`normalise`] and of the store; then the whole load must be given up.
    pub fn block(&self, ordinal: u64, rows: &[RecordBatch]) -> Result<()> {
        let Some(block) = self.begin(ordinal, rows)? else {
            return Ok(());
        };
        for position in 0..block.columns() {
            self.column(&block, position)?;
        }
        self.end(&block)
    }

    /// Begins a block as [`block`](Loader::block) writes it, whose columns are written one by one, maybe from several
    /// threads: each with [`column`](Loader::column), once, and then [`end`](Loader::end). None without rows.
    ///
    /// # Errors
    /// As for [`block`](Loader::block).
    pub fn begin(&self, ordinal: u64, rows: &[RecordBatch]) -> Result<Option<OpenBlock>> {
        let rows = rows
            .iter()
            .map(|b| normalise(b, &self.definition))
            .collect::<Result<Vec<_>>>()?;
        let mut end = 0;
        let cuts = rows.iter().map(|rows| {
            end += rows.num_rows();
            end
        });
        let cuts: Vec<usize> = cuts.collect();
        let batch = concat_batches(&self.schema, &rows)?;
        if batch.num_rows() == 0 {
            return Ok(None);
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
        let number = u32::try_from(u64::from(self.next) + ordinal).map_err(|_| {
            let what = format!("block number {ordinal} of a load is beyond what a table has");
            Error::Mismatch {
                table: self.definition.name.clone(),
                what,
            }
        })?;
        let beside = self.co_partitioning.as_ref();
        let bucket = beside
            .and_then(|parent| parent.bucket(&batch))
            .unwrap_or(number as u8);
        Ok(Some(OpenBlock {
            number,
            bucket,
            columns: Mutex::new(vec![None; batch.num_columns()]),
            shreds: Mutex::default(),
            batch,
            cuts,
        }))
    }

    /// Encodes and writes a column of a block.
    ///
    /// # Errors
    /// As for [`block`](Loader::block).
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, block: &OpenBlock, position: usize) -> Result<()> {
        let column = block.batch.column(position);
        let name = &self.definition.columns[position].name;
        let dictionary = self.dictionaries[position].as_ref();
        let matrix = write_matrix(&self.tx, block.bucket, |sink| {
            encode::encode(name, column, dictionary, self.page_size, sink)
        })?;
        block.columns.lock()[position] = Some(matrix);
        self.shreds(block, position)
    }

    /// Encodes and writes the paths that most matter of the documents of a column, if it has documents.
    fn shreds(&self, block: &OpenBlock, position: usize) -> Result<()> {
        let Some(documents) = documents(block.batch.column(position))? else {
            return Ok(());
        };
        let name = &self.definition.columns[position].name;
        for paths in shreds::paths(&documents).chunks(shreds::AT_ONCE) {
            for (keys, values) in paths.iter().zip(shreds::values(&documents, paths)?) {
                let (form, values) = shreds::column(&values);
                let matrix = write_matrix(&self.tx, block.bucket, |sink| {
                    encode::encode(name, &values, None, self.page_size, sink)
                })?;
                block.shreds.lock().push(Shred {
                    column: position as u32,
                    keys: keys.clone(),
                    form,
                    matrix,
                });
            }
        }
        Ok(())
    }

    /// Adds a block to the load whose columns have all been written.
    ///
    /// # Errors
    /// As for [`block`](Loader::block); [`Error::Mismatch`] if a column is missing.
    pub fn end(&self, block: &OpenBlock) -> Result<()> {
        let columns = std::mem::take(&mut *block.columns.lock());
        let columns: Option<Vec<Matrix>> = columns.into_iter().collect();
        let columns = columns.filter(|columns| columns.len() == block.columns());
        let Some(columns) = columns else {
            return Err(Error::Mismatch {
                table: self.definition.name.clone(),
                what: "a block some columns of which were not written".into(),
            });
        };
        let mut shreds = std::mem::take(&mut *block.shreds.lock());
        shreds.sort_by(|a, b| (a.column, &a.keys).cmp(&(b.column, &b.keys)));
        let record = Block {
            rows: block.batch.num_rows() as u32,
            bucket: block.bucket,
            columns,
            shreds,
        };
        self.rows
            .fetch_add(u64::from(record.rows), Ordering::Relaxed);
        for key in &self.keys {
            key.block(&self.tx, block.number, &block.batch, &block.cuts)?;
        }
        self.done.lock().push((block.number, record));
        Ok(())
    }

    /// The transaction that it loads in, for changes of other rows of the table before the load is
    /// [finished](Loader::finish): of those that the new ones replace.
    pub fn transaction(&mut self) -> &mut Transaction {
        &mut self.tx
    }

    /// The number of rows appended so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Records the blocks and dictionaries, and looks whether all keys are new; gives back the transaction, to be
    /// committed, and the number of rows.
    ///
    /// # Errors
    /// [`Error::Duplicate`] for a key that another row has; those of the store. Then the transaction is undone.
    pub async fn finish(self) -> Result<(Transaction, u64)> {
        let Loader {
            mut tx,
            definition,
            space,
            page_size,
            dictionaries,
            keys,
            done,
            rows,
            ..
        } = self;
        for (number, block) in done.into_inner() {
            let bytes = block.encode(&definition.name)?;
            tx.put(space, &key::numbered(key::BLOCK, number), &bytes);
        }
        for (position, dictionary) in dictionaries.iter().enumerate() {
            if let Some(dictionary) = dictionary {
                save(&mut tx, space, position, &definition, dictionary, page_size)?;
            }
        }
        let place = Place {
            space,
            definition: &definition,
        };
        for key in keys {
            let (key, new) = key.into_inner();
            settle(&mut tx, place, &key, new).await?;
        }
        changed(&mut tx, &definition.name, space)?;
        Ok((tx, rows.into_inner()))
    }
}

/// Writes the pages of the matrix that `encode` makes, neighbours of one kind in one go.
pub(super) fn write_matrix(
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

/// The column's dictionary, to be added to.
async fn existing(
    tx: &Transaction,
    space: u32,
    column: usize,
    name: &str,
) -> Result<DictionaryBuilder> {
    let Some(bytes) = tx.get(space, &key::dictionary(column)) else {
        return Ok(DictionaryBuilder::default());
    };
    let record: DictionaryRecord = decode(&bytes, name)?;
    let labels = record.labels(name, tx.base().pool()).await?;
    Ok(DictionaryBuilder::with(labels.into_iter(), record.sorted))
}

/// Writes a dictionary anew if it grew.
pub(super) fn save(
    tx: &mut Transaction,
    space: u32,
    column: usize,
    definition: &Definition,
    dictionary: &DictionaryBuilder,
    page_size: usize,
) -> Result<()> {
    let entry = key::dictionary(column);
    let before: Option<DictionaryRecord> = match tx.get(space, &entry) {
        Some(bytes) => Some(decode(&bytes, &definition.name)?),
        None => None,
    };
    let (labels, sorted) = dictionary.labels();
    if labels.len() == before.as_ref().map_or(0, |b| b.labels as usize) {
        return Ok(());
    }
    let name = &definition.columns[column].name;
    let mut sink = |page: &[u8], kind| Ok(tx.write_page(page, 0, kind)?);
    let texts = labels.iter().map(|label| &**label);
    let pages = encode::text_pages(name, texts, page_size, &mut sink)?;
    if let Some(before) = before {
        before.page_ids().for_each(|page| tx.free_page(page));
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
