//! An opened morsel, and batches of it.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::SchemaRef;
use memory::Traffic;

use crate::dictionary::Dictionary;
use crate::error::Result;
use crate::format::row_id::RowId;
use crate::scan::chunk::PinnedChunk;
use crate::scan::decode::decode;
use crate::scan::parts::PartChunk;
use crate::scan::rows::{BATCH_ROWS, Rows};

/// An opened morsel, which hands out the rows that its filters left: as batches ([`Cursor::next`]), or
/// as positions whose columns are then read one by one ([`Cursor::next_rows`]).
#[derive(Debug)]
pub struct Cursor<'p> {
    /// The schema of the batches.
    pub(crate) schema: &'p SchemaRef,
    /// Whether row ids are their last column.
    pub(crate) row_ids: bool,
    /// How many columns of the table stand before the documents of parts and the row ids.
    pub(crate) columns: usize,
    pub(crate) state: State<'p>,
}

/// The rows that were opened: those of a block, or of a chunk of the tail.
#[derive(Debug)]
pub(crate) enum State<'p> {
    Block(OpenBlock<'p>),
    /// A chunk of the tail, and how many of its rows were handed out.
    Tail(RecordBatch, usize),
}

/// A block, filtered, with the pages pinned that hold the rows that are left.
#[derive(Debug)]
pub(crate) struct OpenBlock<'p> {
    pub key: u32,
    /// One per column of the scan.
    pub chunks: Vec<PinnedChunk<'p>>,
    /// One per part of documents.
    pub parts: Vec<PartChunk<'p>>,
    pub dictionaries: Vec<Option<Arc<Dictionary>>>,
    /// Rows that are left after the filters.
    pub rows: usize,
    /// Their positions in the block; absent if all rows are left.
    pub picks: Option<Vec<u32>>,
    /// How many of them were handed out.
    pub next: usize,
    pub traffic: &'p Traffic,
    pub here: fn() -> usize,
}

impl Cursor<'_> {
    /// How many rows are still to be handed out.
    pub fn rows(&self) -> usize {
        match &self.state {
            State::Block(block) => block.rows - block.next,
            State::Tail(batch, next) => batch.num_rows() - next,
        }
    }

    /// The next batch of at most `most` and at most [`BATCH_ROWS`] rows; `None` at the end.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] if a page does not hold what its record says.
    pub fn next(&mut self, most: usize) -> Result<Option<RecordBatch>> {
        let take = self.rows().min(most).min(BATCH_ROWS);
        if take == 0 {
            return Ok(None);
        }
        match &mut self.state {
            State::Tail(batch, next) => {
                *next += take;
                Ok(Some(batch.slice(*next - take, take)))
            }
            State::Block(block) => {
                let columns = block.decode(self.schema, self.row_ids, take)?;
                batch(self.schema, columns, take).map(Some)
            }
        }
    }
}

impl OpenBlock<'_> {
    /// The columns of the next `take` rows, then their row ids if these are wanted.
    fn decode(&mut self, schema: &SchemaRef, row_ids: bool, take: usize) -> Result<Vec<ArrayRef>> {
        let range = self.next..self.next + take;
        let rows = match &self.picks {
            Some(picks) => {
                let picks = &picks[range.clone()];
                let first = picks[0] as usize;
                if picks[take - 1] as usize - first + 1 == take {
                    Rows::Run(first..first + take)
                } else {
                    Rows::Some(picks)
                }
            }
            None => Rows::Run(range.clone()),
        };
        let (reader, traffic) = ((self.here)(), self.traffic);
        let mut tally = |node, bytes| traffic.add(reader, node, bytes);
        let mut columns = Vec::with_capacity(self.chunks.len() + 1);
        for (position, chunk) in self.chunks.iter().enumerate() {
            let data_type = schema.field(position).data_type();
            let dictionary = self.dictionaries[position].as_deref();
            columns.push(decode(chunk, &rows, data_type, dictionary, &mut tally)?);
        }
        if row_ids {
            let id = |row: usize| {
                RowId::Block {
                    key: self.key,
                    row: row as u16,
                }
                .number()
            };
            let ids: Vec<u64> = match &rows {
                Rows::Run(run) => run.clone().map(id).collect(),
                Rows::Some(picks) => picks.iter().map(|row| id(*row as usize)).collect(),
            };
            columns.push(Arc::new(UInt64Array::from(ids)));
        }
        self.next = range.end;
        Ok(columns)
    }
}

/// A batch of `rows` rows, also without columns.
pub(crate) fn batch(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
    Ok(batch)
}
