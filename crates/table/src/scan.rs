//! Scans: a block at a time, filters first on encoded values, other columns only for the rows
//! that are left.
//!
//! A scan opens a block ([`Scan::open`]), which pins the pages of the filtered columns, tests
//! them, pins the pages of the wanted columns where rows are left, and then hands out batches
//! ([`Cursor::next`]).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use buffer::Pool;
use memory::Traffic;

use crate::catalog::Table;
use crate::decode::{Rows, decode};
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::filter::{Filter, Seen, apply};
use crate::lane::Lane;
use crate::mask::Mask;
use crate::tail::RowId;

/// Most rows of a batch that a scan delivers; no batch straddles more pages than it must.
pub const BATCH_ROWS: usize = 8_192;

/// The hidden column that numbers rows, for deleting and updating them.
pub const ROW_COLUMN: &str = "__row";

/// What to read from a table.
#[derive(Clone, Debug)]
pub struct Scan {
    table: Arc<Table>,
    columns: Vec<usize>,
    row_ids: bool,
    schema: SchemaRef,
    batch_rows: usize,
}

/// One piece of work of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Morsel {
    /// Block number `index`.
    Block(usize),
    /// Chunk number `index` of the tail.
    Tail(usize),
}

impl Morsel {
    /// How many rows of `table`, whose scan it is a piece of, it has, deleted ones included.
    pub fn rows(self, table: &Table) -> usize {
        match self {
            Morsel::Block(index) => table.body.blocks[index].value.rows as usize,
            Morsel::Tail(index) => table.body.tail[index].value.num_rows(),
        }
    }
}

impl Scan {
    /// Reads `columns` (positions in the table) and, if `row_ids`, [`ROW_COLUMN`] after them.
    pub fn new(table: Arc<Table>, columns: Vec<usize>, row_ids: bool) -> Scan {
        let mut fields: Vec<Arc<Field>> = columns
            .iter()
            .map(|c| table.schema().fields()[*c].clone())
            .collect();
        if row_ids {
            fields.push(Arc::new(Field::new(ROW_COLUMN, DataType::UInt64, false)));
        }
        let schema = Arc::new(Schema::new(fields));
        Scan {
            table,
            columns,
            row_ids,
            schema,
            batch_rows: BATCH_ROWS,
        }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Positions of the columns read, in order.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// All pieces of work, each with its placement bucket.
    pub fn morsels(&self) -> impl Iterator<Item = (u8, Morsel)> + '_ {
        let body = &self.table.body;
        let blocks = body
            .blocks
            .iter()
            .enumerate()
            .map(|(i, b)| (b.value.bucket, Morsel::Block(i)));
        blocks.chain((0..body.tail.len()).map(|i| (0, Morsel::Tail(i))))
    }

    /// Opens a morsel: applies `filters`, reads what the rest needs. `None` if no row is left.
    ///
    /// Bytes that kernels consume are added to `traffic`, the reader being the node of the
    /// calling worker as `here` tells it at each step.
    ///
    /// # Errors
    /// Those of reading pages; what a filter's test reports.
    pub async fn open<'p>(
        &'p self,
        pool: &'p Arc<Pool>,
        morsel: Morsel,
        filters: &[Filter],
        traffic: &'p Traffic,
        here: fn() -> usize,
    ) -> Result<Option<Cursor<'p>>> {
        match morsel {
            Morsel::Tail(index) => self.open_tail(index, filters),
            Morsel::Block(index) => self.open_block(pool, index, filters, traffic, here).await,
        }
    }

    fn open_tail<'p>(&'p self, index: usize, filters: &[Filter]) -> Result<Option<Cursor<'p>>> {
        let chunk = &self.table.body.tail[index];
        let batch = &chunk.value;
        let mut keep: Option<BooleanArray> = None;
        for filter in filters {
            let columns: Vec<ArrayRef> = filter
                .columns
                .iter()
                .map(|c| batch.column(*c).clone())
                .collect();
            let hits = filter
                .test
                .evaluate(&columns, batch.num_rows())
                .map_err(Error::Test)?;
            let hits = if hits.null_count() == 0 {
                hits
            } else {
                prep_null_mask_filter(&hits)
            };
            keep = Some(match keep {
                None => hits,
                Some(keep) => arrow::compute::and(&keep, &hits)?,
            });
        }
        let mut columns: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|c| batch.column(*c).clone())
            .collect();
        if self.row_ids {
            let id = |row| {
                RowId::Tail {
                    key: chunk.key,
                    row,
                }
                .number()
            };
            let ids = (0..batch.num_rows()).map(|row| id(row as u16));
            columns.push(Arc::new(UInt64Array::from_iter_values(ids)));
        }
        let mut batch = self.batch(columns, batch.num_rows())?;
        if let Some(keep) = keep {
            batch = filter_record_batch(&batch, &keep)?;
        }
        Ok((batch.num_rows() > 0).then(|| Cursor {
            scan: self,
            state: State::Tail(batch, 0),
        }))
    }

    async fn open_block<'p>(
        &'p self,
        pool: &'p Arc<Pool>,
        index: usize,
        filters: &[Filter],
        traffic: &'p Traffic,
        here: fn() -> usize,
    ) -> Result<Option<Cursor<'p>>> {
        let stored = &self.table.body.blocks[index];
        let block = &*stored.value;
        if filters.iter().any(|f| f.excludes(block)) {
            return Ok(None);
        }
        let mut wanted = Mask::all(block.rows as usize);
        if let Some(deleted) = self.table.body.deleted.get(&stored.key) {
            for row in deleted.value.iter() {
                wanted.set(row as usize, false);
            }
        }
        let mut seen = Seen {
            table: &self.table,
            pool,
            block,
            traffic,
            here,
            lanes: vec![],
        };
        for filter in filters {
            apply(filter, &mut seen, &mut wanted).await?;
            if wanted.is_none() {
                return Ok(None);
            }
        }
        let mut lanes = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            lanes.push(seen.take_lane(*column));
        }
        let missing: Vec<_> = lanes
            .iter()
            .flat_map(|(_, lane)| lane.missing(&wanted))
            .collect();
        pool.prefetch(&missing);
        let mut dictionaries = Vec::with_capacity(lanes.len());
        for (column, lane) in &mut lanes {
            lane.hold(&wanted).await?;
            dictionaries.push(self.table.dictionary(*column).await?);
        }
        let rows = wanted.count();
        let open = OpenBlock {
            key: stored.key,
            lanes: lanes.into_iter().map(|(_, lane)| lane).collect(),
            dictionaries,
            rows,
            picks: (rows < block.rows as usize).then(|| wanted.positions()),
            next: 0,
            traffic,
            here,
        };
        Ok(Some(Cursor {
            scan: self,
            state: State::Block(open),
        }))
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            self.schema.clone(),
            columns,
            &options,
        )?)
    }
}

/// An opened morsel that hands out batches.
#[derive(Debug)]
pub struct Cursor<'p> {
    pub(crate) scan: &'p Scan,
    pub(crate) state: State<'p>,
}

#[derive(Debug)]
pub(crate) enum State<'p> {
    Block(OpenBlock<'p>),
    Tail(RecordBatch, usize),
}

#[derive(Debug)]
pub(crate) struct OpenBlock<'p> {
    pub key: u32,
    /// One per column of the scan.
    pub lanes: Vec<Lane<'p>>,
    pub dictionaries: Vec<Option<Arc<Dictionary>>>,
    /// Rows that are left after the filters.
    rows: usize,
    /// Their positions in the block; absent if all rows are left.
    pub picks: Option<Vec<u32>>,
    /// How many of them were handed out.
    pub next: usize,
    pub traffic: &'p Traffic,
    pub here: fn() -> usize,
}

impl Cursor<'_> {
    /// Rows that are still to be handed out.
    pub fn rows(&self) -> usize {
        match &self.state {
            State::Block(block) => block.rows - block.next,
            State::Tail(batch, next) => batch.num_rows() - next,
        }
    }

    /// The next batch of at most `most` and at most [`BATCH_ROWS`] rows; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a page does not hold what its record says.
    pub fn next(&mut self, most: usize) -> Result<Option<RecordBatch>> {
        let take = self.rows().min(most).min(self.scan.batch_rows);
        if take == 0 {
            return Ok(None);
        }
        match &mut self.state {
            State::Tail(batch, next) => {
                *next += take;
                Ok(Some(batch.slice(*next - take, take)))
            }
            State::Block(block) => {
                let (columns, rows) = block.decode(self.scan, take)?;
                self.scan.batch(columns, rows).map(Some)
            }
        }
    }
}

impl OpenBlock<'_> {
    fn decode(&mut self, scan: &Scan, take: usize) -> Result<(Vec<ArrayRef>, usize)> {
        let range = self.next..self.next + take;
        let rows = match &self.picks {
            Some(picks) => {
                let picks = &picks[range.clone()];
                match picks[take - 1] as usize - picks[0] as usize + 1 == take {
                    true => Rows::Run(picks[0] as usize..picks[0] as usize + take),
                    false => Rows::Some(picks),
                }
            }
            None => Rows::Run(range.clone()),
        };
        let (reader, traffic) = ((self.here)(), self.traffic);
        let mut tally = |node, bytes| traffic.add(reader, node, bytes);
        let mut columns = Vec::with_capacity(self.lanes.len() + 1);
        for (position, lane) in self.lanes.iter().enumerate() {
            let data_type = scan.schema.field(position).data_type();
            let dictionary = self.dictionaries[position].as_deref();
            columns.push(decode(lane, &rows, data_type, dictionary, &mut tally)?);
        }
        if scan.row_ids {
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
        Ok((columns, take))
    }
}

impl Table {
    /// Reads `columns` of every row: for tests and small tables. Order: blocks, then the tail.
    ///
    /// # Errors
    /// Those of [`Scan::open`].
    pub async fn read(self: &Arc<Self>, columns: &[usize]) -> Result<Vec<RecordBatch>> {
        let scan = Scan::new(self.clone(), columns.to_vec(), false);
        let pool = self.snapshot().pool().clone();
        let traffic = Traffic::new(pool.nodes());
        let mut batches = Vec::new();
        for (_, morsel) in scan.morsels() {
            let Some(mut cursor) = scan.open(&pool, morsel, &[], &traffic, || 0).await? else {
                continue;
            };
            while let Some(batch) = cursor.next(BATCH_ROWS)? {
                batches.push(batch);
            }
        }
        Ok(batches)
    }
}
