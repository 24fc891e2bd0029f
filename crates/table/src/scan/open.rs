//! Scans: a block at a time, filters first on encoded values, other columns only for the rows
//! that are left.
//!
//! A scan opens a block ([`Scan::open`]), which pins the pages of the filtered columns, tests
//! them, pins the pages of the wanted columns where rows are left, and then hands out batches
//! ([`Cursor::next`]).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use buffer::Pool;
use memory::Traffic;

use crate::catalog::table::{Stored, Table};
use crate::error::{Error, Result};
use crate::format::block::{Block, Zone};
use crate::format::row_id::ROW_COLUMN;
use crate::scan::ahead::Ahead;
use crate::scan::cursor::{Cursor, OpenBlock, State, batch};
use crate::scan::filter::Filter;
use crate::scan::filter::apply::{FilteredBlock, apply};
use crate::scan::mask::Mask;
use crate::scan::parts::{DocumentPart, PartChunk};

/// What to read of a table: some of its columns, in pieces ([`Scan::morsels`]) that may be opened
/// in any order and by any thread.
#[derive(Clone, Debug)]
pub struct Scan {
    table: Arc<Table>,
    columns: Vec<usize>,
    /// Parts of documents that it reads besides.
    parts: Vec<DocumentPart>,
    /// Absent if it reads nothing ahead.
    ahead: Option<Arc<Ahead>>,
    row_ids: bool,
    schema: SchemaRef,
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
    /// The number of its rows in `table`, the table of the scan. Deleted rows count.
    pub fn rows(self, table: &Table) -> usize {
        match self {
            Morsel::Block(index) => table.body.blocks[index].value.rows as usize,
            Morsel::Tail(index) => table.body.tail[index].value.len(),
        }
    }

    /// The least and the greatest stored number of `column`, or a wider range; `None` if nothing is known.
    pub fn zone(self, table: &Table, column: usize) -> Option<(i128, i128)> {
        let Morsel::Block(index) = self else {
            return None;
        };
        match table.body.blocks[index].value.columns.get(column)?.zone {
            Some(Zone::Int { min, max }) => Some((min, max)),
            _ => None,
        }
    }
}

impl Scan {
    /// A scan of `columns`, given by their positions in the table. If `row_ids`, [`ROW_COLUMN`] is
    /// the last column of each batch.
    pub fn new(table: Arc<Table>, columns: Vec<usize>, row_ids: bool) -> Scan {
        let mut fields: Vec<Arc<Field>> = columns
            .iter()
            .map(|c| table.schema().fields()[*c].clone())
            .collect();
        if row_ids {
            fields.push(Arc::new(Field::new(ROW_COLUMN, DataType::UInt64, false)));
        }
        let schema = Arc::new(Schema::new(fields));
        // What comes behind a row that was chosen is not needed.
        let ahead = table.chosen.is_none().then(Arc::default);
        Scan {
            table,
            columns,
            parts: vec![],
            ahead,
            row_ids,
            schema,
        }
    }

    /// The same scan, which reads parts of documents, too: see [`Cursor::part`]. Its rows come as positions only
    /// ([`Cursor::next_rows`]).
    #[must_use]
    pub fn with_parts(mut self, parts: Vec<DocumentPart>) -> Scan {
        let stored = self.table.schema();
        let documents = parts
            .iter()
            .map(|part| stored.fields()[part.column].clone());
        let (own, row_ids) = self.schema.fields().split_at(self.columns.len());
        let all = own.iter().cloned().chain(documents);
        let all: Vec<_> = all.chain(row_ids.iter().cloned()).collect();
        self.schema = Arc::new(Schema::new(all));
        self.parts = parts;
        self
    }

    /// The rows of a piece that the scan may deliver; `None` if all may be.
    fn allowed(&self, (tail, number): (bool, u32)) -> Option<&[u16]> {
        let chosen = self.table.chosen.as_ref()?;
        Some(chosen.of(tail, number))
    }

    /// The same scan, which reads a page no earlier than when its block is opened: to measure what
    /// reading ahead is worth.
    #[must_use]
    pub fn without_read_ahead(mut self) -> Scan {
        self.ahead = None;
        self
    }

    /// The schema of the batches that it delivers.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The table that it reads.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The columns that it reads, by their positions in the table, in the order of the batches.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// All its pieces, each with its placement bucket: the node of the rows is the bucket modulo
    /// the number of nodes.
    pub fn morsels(&self) -> impl Iterator<Item = (u8, Morsel)> + '_ {
        let body = &self.table.body;
        let wanted = move |tail: bool, key: u32| {
            self.allowed((tail, key))
                .is_none_or(|rows| !rows.is_empty())
        };
        let blocks = body.blocks.iter().enumerate();
        let blocks = blocks.filter(move |(_, block)| wanted(false, block.key));
        let blocks = blocks.map(|(i, b)| (b.value.bucket, Morsel::Block(i)));
        let tail = body.tail.iter().enumerate();
        let tail = tail.filter(move |(_, chunk)| wanted(true, chunk.key));
        blocks.chain(tail.map(|(i, _)| (0, Morsel::Tail(i))))
    }

    /// Opens a morsel: applies `filters`, and pins the pages that hold the rows that are left.
    /// `None` if no row is left.
    ///
    /// The bytes that kernels read are counted in `traffic`, by the node of the page and the node of
    /// the calling worker. `here` returns the latter; it is called each time, as a task may move
    /// to another worker.
    ///
    /// # Errors
    /// Those of reading pages; those of a filter's test.
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
        let batch = &chunk.value.rows;
        let mut keep: Option<BooleanArray> = self.allowed((true, chunk.key)).map(|rows| {
            let wanted = |row: usize| rows.binary_search(&(row as u16)).is_ok();
            (0..batch.num_rows()).map(|row| Some(wanted(row))).collect()
        });
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
        let documents = self.parts.iter().map(|part| &part.column);
        let columns = self.columns.iter().chain(documents);
        let mut columns: Vec<ArrayRef> = columns.map(|c| batch.column(*c).clone()).collect();
        if self.row_ids {
            columns.push(Arc::new(chunk.value.ids(chunk.key)));
        }
        let mut batch = self::batch(&self.schema, columns, batch.num_rows())?;
        if let Some(keep) = keep {
            batch = filter_record_batch(&batch, &keep)?;
        }
        Ok((batch.num_rows() > 0).then(|| self.cursor(State::Tail(batch, 0))))
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
        if let Some(ahead) = &self.ahead {
            ahead.read(
                pool,
                &self.table,
                index,
                filters,
                (&self.columns, &self.parts),
            );
        }
        let mut wanted = self.wanted(stored);
        if wanted.is_none() {
            return Ok(None);
        }
        let mut filtered = FilteredBlock {
            table: &self.table,
            pool,
            record: block,
            traffic,
            here,
            chunks: vec![],
            waits: false,
        };
        for filter in filters {
            apply(filter, &mut filtered, &mut wanted).await?;
            if wanted.is_none() {
                self.opened(block, filtered.waits, 0);
                return Ok(None);
            }
        }
        let mut chunks = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            chunks.push(filtered.take_chunk(*column));
        }
        let mut parts = self.part_chunks(pool, block);
        let needed = chunks.iter().map(|(_, chunk)| chunk);
        let needed = needed.chain(parts.iter().map(|part| &part.chunk));
        let missing: Vec<_> = needed.flat_map(|chunk| chunk.missing(&wanted)).collect();
        let waits = filtered.waits || missing.iter().any(|page| !pool.is_resident(*page));
        let held: usize = chunks.iter().map(|(_, chunk)| chunk.held()).sum();
        self.opened(block, waits, held + missing.len());
        pool.prefetch(&missing);
        let mut dictionaries = Vec::with_capacity(chunks.len());
        for (column, chunk) in &mut chunks {
            chunk.hold(&wanted).await?;
            dictionaries.push(self.table.dictionary(*column).await?);
        }
        for part in &mut parts {
            part.chunk.hold(&wanted).await?;
        }
        let rows = wanted.count();
        let open = OpenBlock {
            key: stored.key,
            chunks: chunks.into_iter().map(|(_, chunk)| chunk).collect(),
            parts,
            dictionaries,
            rows,
            picks: (rows < block.rows as usize).then(|| wanted.positions()),
            next: 0,
            traffic,
            here,
        };
        Ok(Some(self.cursor(State::Block(open))))
    }

    /// The chunks of the parts of documents, of which nothing is pinned yet.
    fn part_chunks<'p>(&'p self, pool: &'p Arc<Pool>, block: &'p Block) -> Vec<PartChunk<'p>> {
        let table = &self.table.body.definition.name;
        let parts = self.parts.iter();
        parts.map(|part| part.chunk(table, pool, block)).collect()
    }

    /// The rows of a block that are not deleted, and that it may deliver.
    fn wanted(&self, stored: &Stored<Block>) -> Mask {
        let rows = stored.value.rows as usize;
        let mut wanted = match self.allowed((false, stored.key)) {
            None => Mask::all(rows),
            Some(only) => {
                let mut mask = Mask::none(rows);
                let only = only.iter().map(|row| usize::from(*row));
                only.filter(|row| *row < rows)
                    .for_each(|row| mask.set(row, true));
                mask
            }
        };
        if let Some(deleted) = self.table.body.deleted.get(&stored.key) {
            for row in deleted.value.iter() {
                wanted.set(row as usize, false);
            }
        }
        wanted
    }

    /// Notes, for reading ahead, how many pages of the wanted columns of a block were needed, and
    /// whether one had to be waited for.
    fn opened(&self, block: &Block, waits: bool, needed: usize) {
        let Some(ahead) = &self.ahead else { return };
        if waits {
            ahead.waited();
        }
        let columns = self.columns.iter().map(|column| &block.columns[*column]);
        let parts = self.parts.iter().map(|part| part.place(block).matrix);
        let offered = columns.chain(parts).map(|matrix| matrix.pages.len());
        ahead.needed(needed, offered.sum());
    }

    fn cursor<'p>(&'p self, state: State<'p>) -> Cursor<'p> {
        Cursor {
            schema: &self.schema,
            row_ids: self.row_ids,
            columns: self.columns.len(),
            state,
        }
    }
}
