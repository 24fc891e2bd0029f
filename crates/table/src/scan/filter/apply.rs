//! Applying a filter to a block.

use std::sync::Arc;

use algebra::dot::Keys;
use algebra::encoded::{Stored, in_range, in_table};
use arrow::array::Array;
use arrow::compute::prep_null_mask_filter;
use buffer::Pool;
use memory::Traffic;

use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::format::block::{Block, Encoding, Matrix, Zone};
use crate::format::page::cast;
use crate::scan::chunk::PinnedChunk;
use crate::scan::decode::decode;
use crate::scan::filter::few::by_rows;
use crate::scan::filter::predicate::{Answers, Filter, Form};
use crate::scan::mask::{Mask, set_bits};
use crate::scan::rows::Rows;

/// Rows tested at a time where values must be decoded.
const TEST_ROWS: usize = 8_192;

/// Of fewer rows than one in so many, the values are picked before they are looked up.
const FEW: usize = 4;

/// A block while filters are applied to it: the chunks that are pinned so far.
pub(crate) struct FilteredBlock<'p> {
    pub table: &'p Table,
    pub pool: &'p Arc<Pool>,
    pub record: &'p Block,
    pub traffic: &'p Traffic,
    pub here: fn() -> usize,
    pub chunks: Vec<(usize, PinnedChunk<'p>)>,
    /// Whether a page was not resident when it was wanted.
    pub waits: bool,
}

impl<'p> FilteredBlock<'p> {
    fn new_chunk(&self, column: usize) -> PinnedChunk<'p> {
        let name = &self.table.body.definition.name;
        PinnedChunk::new(
            name,
            self.pool,
            &self.record.columns[column],
            self.record.rows,
        )
    }

    /// The chunk of `column`, with the pages of the `wanted` rows.
    async fn chunk(&mut self, column: usize, wanted: &Mask) -> Result<usize> {
        let index = match self.chunks.iter().position(|(c, _)| *c == column) {
            Some(index) => index,
            None => {
                self.chunks.push((column, self.new_chunk(column)));
                self.chunks.len() - 1
            }
        };
        let chunk = &mut self.chunks[index].1;
        let missing = chunk.missing(wanted);
        self.waits |= missing.iter().any(|page| !self.pool.is_resident(*page));
        if missing.len() > 1 {
            self.pool.prefetch(&missing);
        }
        chunk.hold(wanted).await?;
        Ok(index)
    }

    /// The chunk of `column` as far as it is held, for good.
    pub(crate) fn take_chunk(&mut self, column: usize) -> (usize, PinnedChunk<'p>) {
        match self.chunks.iter().position(|(c, _)| *c == column) {
            Some(index) => self.chunks.swap_remove(index),
            None => (column, self.new_chunk(column)),
        }
    }
}

/// Removes from `wanted` the rows that do not pass `filter`.
pub(crate) async fn apply(
    filter: &Filter,
    block: &mut FilteredBlock<'_>,
    wanted: &mut Mask,
) -> Result<()> {
    let Some(gauge) = &filter.gauge else {
        return refine(filter, block, wanted).await;
    };
    if gauge.is_useless() {
        return Ok(());
    }
    let before = wanted.count();
    refine(filter, block, wanted).await?;
    gauge.add(before, wanted.count());
    Ok(())
}

async fn refine(filter: &Filter, block: &mut FilteredBlock<'_>, wanted: &mut Mask) -> Result<()> {
    match &filter.form {
        Form::Ranges(ranges) => {
            let column = filter.columns[0];
            by_pages(&filter.form, &block.record.columns[column], wanted);
            let chunk = block.chunk(column, wanted).await?;
            let mut hits = Mask::none(wanted.rows());
            by_ranges(block, chunk, ranges, wanted, &mut hits)?;
            wanted.and(&hits);
            Ok(())
        }
        Form::Keys(keys) => {
            let column = filter.columns[0];
            by_pages(&filter.form, &block.record.columns[column], wanted);
            let chunk = block.chunk(column, wanted).await?;
            let mut hits = Mask::none(wanted.rows());
            by_keys(block, chunk, keys, wanted, &mut hits)?;
            wanted.and(&hits);
            Ok(())
        }
        Form::Labels(labels) => {
            let column = filter.columns[0];
            match (
                &block.record.columns[column].encoding,
                filter.test.of_emptiness(),
            ) {
                (Encoding::Code { .. }, _) => {}
                (Encoding::Text, Some(answers)) => {
                    let chunk = block.chunk(column, wanted).await?;
                    let mut hits = Mask::none(wanted.rows());
                    by_emptiness(block, chunk, answers, wanted, &mut hits)?;
                    wanted.and(&hits);
                    return Ok(());
                }
                _ => return by_test(filter, block, wanted).await,
            }
            let chunk = block.chunk(column, wanted).await?;
            let Some(dictionary) = block.table.dictionary(column).await? else {
                return by_test(filter, block, wanted).await;
            };
            let answers = labels.answers(filter, &dictionary)?;
            let mut hits = Mask::none(wanted.rows());
            by_labels(block, chunk, answers, wanted, &mut hits)?;
            wanted.and(&hits);
            Ok(())
        }
        Form::Within { .. } | Form::Any => by_test(filter, block, wanted).await,
    }
}

/// Removes the rows of pages whose zones show that no row can pass: such pages are not even read.
fn by_pages(form: &Form, matrix: &Matrix, wanted: &mut Mask) {
    let rows = wanted.rows() as u32;
    for (index, page) in matrix.pages.iter().enumerate() {
        if matches!(page.zone, Some(Zone::Int { min, max }) if !form.may_pass(min, max)) {
            wanted.clear_range(matrix.page_rows(index, rows));
        }
    }
}

/// Marks the rows whose values are keys of a join table.
fn by_keys(
    block: &FilteredBlock<'_>,
    chunk: usize,
    keys: &Keys,
    wanted: &Mask,
    hits: &mut Mask,
) -> Result<()> {
    let chunk = &block.chunks[chunk].1;
    let key = |value: i128| i64::try_from(value).is_ok_and(|value| keys.any_within(value, value));
    if chunk.all_null() {
        return Ok(());
    }
    if matches!(chunk.matrix.encoding, Encoding::Constant(value) if key(value)) {
        *hits = Mask::all(hits.rows());
    }
    for index in 0..chunk.matrix.pages.len() {
        let rows = chunk.page_rows(index);
        if !wanted.any_in(rows.clone()) {
            continue;
        }
        if let Some(read) = by_rows((chunk, index), wanted, hits, key)? {
            count(block, chunk, index, read)?;
            continue;
        }
        // Keys are of 64 bits.
        let Ok(base) = i64::try_from(chunk.base(index)) else {
            continue;
        };
        let (wanted, into) = (wanted.words(rows.clone()), hits.words_mut(rows.clone()));
        match chunk.matrix.width() {
            1 => test_keys(keys, chunk.values::<u8>(index)?, base, wanted, into),
            2 => test_keys(keys, chunk.values::<u16>(index)?, base, wanted, into),
            4 => test_keys(keys, chunk.values::<u32>(index)?, base, wanted, into),
            8 => test_keys(keys, chunk.values::<u64>(index)?, base, wanted, into),
            _ => {
                let values = chunk.page(index)?.as_chunks::<16>().0;
                for (row, value) in rows.zip(values) {
                    hits.set(row, key(i128::from_le_bytes(*value)));
                }
            }
        }
        count(block, chunk, index, chunk.page_rows(index).len())?;
    }
    if let Some(valid) = chunk.validity() {
        hits.and_bytes(valid);
    }
    Ok(())
}

/// Sets bit `i` of `into` where row `i` is wanted and `base + values[i]` is a key; it may set that of other rows whose value is one.
fn test_keys<T: Stored>(keys: &Keys, values: &[T], base: i64, wanted: &[u64], into: &mut [u64]) {
    let count: usize = wanted.iter().map(|word| word.count_ones() as usize).sum();
    if count * FEW >= values.len() {
        return keys.test(values, base, into);
    }
    let picked: Vec<T> = set_bits(wanted).map(|row| values[row]).collect();
    let mut found = vec![0; picked.len().div_ceil(64)];
    keys.test(&picked, base, &mut found);
    for (at, row) in set_bits(wanted).enumerate() {
        into[row / 64] |= (found[at / 64] >> (at % 64) & 1) << (row % 64);
    }
}

fn by_ranges(
    block: &FilteredBlock<'_>,
    chunk: usize,
    ranges: &[(i128, i128)],
    wanted: &Mask,
    hits: &mut Mask,
) -> Result<()> {
    let chunk = &block.chunks[chunk].1;
    let inside = |value: i128| ranges.iter().any(|(a, b)| *a <= value && value <= *b);
    if chunk.all_null() {
        return Ok(());
    }
    if matches!(chunk.matrix.encoding, Encoding::Constant(value) if inside(value)) {
        *hits = Mask::all(hits.rows());
    }
    for (index, page) in chunk.matrix.pages.iter().enumerate() {
        let rows = chunk.page_rows(index);
        let Some(Zone::Int { min, max }) = page.zone else {
            return Err(chunk.damaged(page.id, "has no zone"));
        };
        if !wanted.any_in(rows.clone()) {
            continue;
        }
        if let Some(read) = by_rows((chunk, index), wanted, hits, inside)? {
            count(block, chunk, index, read)?;
            continue;
        }
        for (low, high) in ranges {
            let (low, high) = ((*low).max(min), (*high).min(max));
            if low > high {
                continue;
            }
            if (low, high) == (min, max) {
                hits.set_range(rows.clone());
                break;
            }
            compare(chunk, index, low, high, hits)?;
            count(block, chunk, index, chunk.page_rows(index).len())?;
        }
    }
    if let Some(valid) = chunk.validity() {
        hits.and_bytes(valid);
    }
    Ok(())
}

/// Adds the bytes of so many rows of a page that were just read.
fn count(
    block: &FilteredBlock<'_>,
    chunk: &PinnedChunk<'_>,
    index: usize,
    rows: usize,
) -> Result<()> {
    let bytes = (rows * chunk.matrix.width()) as u64;
    block
        .traffic
        .add((block.here)(), chunk.page(index)?.node(), bytes);
    Ok(())
}

/// Marks the rows of a page with `low <= value <= high`, both within the page's zone.
fn compare(
    chunk: &PinnedChunk<'_>,
    index: usize,
    low: i128,
    high: i128,
    hits: &mut Mask,
) -> Result<()> {
    let rows = chunk.page_rows(index);
    let base = chunk.base(index);
    let (first, span) = ((low - base) as u64, (high - low) as u64);
    let into = hits.words_mut(rows.clone());
    match chunk.matrix.width() {
        1 => in_range(
            chunk.values::<u8>(index)?,
            u8::narrow(first),
            u8::narrow(span),
            into,
        ),
        2 => in_range(
            chunk.values::<u16>(index)?,
            u16::narrow(first),
            u16::narrow(span),
            into,
        ),
        4 => in_range(
            chunk.values::<u32>(index)?,
            u32::narrow(first),
            u32::narrow(span),
            into,
        ),
        8 => in_range(chunk.values::<u64>(index)?, first, span, into),
        _ => {
            let values = chunk.page(index)?.as_chunks::<16>().0;
            for (row, value) in rows.zip(values) {
                if (low..=high).contains(&i128::from_le_bytes(*value)) {
                    hits.set(row, true);
                }
            }
        }
    }
    Ok(())
}

fn by_labels(
    block: &FilteredBlock<'_>,
    chunk: usize,
    answers: &Answers,
    wanted: &Mask,
    hits: &mut Mask,
) -> Result<()> {
    let chunk = &block.chunks[chunk].1;
    for index in 0..chunk.matrix.pages.len() {
        let rows = chunk.page_rows(index);
        let hit = |code: i128| answers.hits.get(code as usize).copied().unwrap_or(false);
        if !wanted.any_in(rows.clone()) {
            continue;
        }
        if let Some(read) = by_rows((chunk, index), wanted, hits, hit)? {
            count(block, chunk, index, read)?;
            continue;
        }
        let into = hits.words_mut(rows);
        match chunk.matrix.width() {
            1 => codes(chunk.values::<u8>(index)?, answers, into),
            2 => codes(chunk.values::<u16>(index)?, answers, into),
            _ => codes(chunk.values::<u32>(index)?, answers, into),
        }
        count(block, chunk, index, chunk.page_rows(index).len())?;
    }
    match chunk.validity() {
        Some(valid) if answers.null => hits.or_not_bytes(valid),
        Some(valid) => hits.and_bytes(valid),
        None => {}
    }
    Ok(())
}

/// Marks the rows whose texts are empty or not, as `answers` say: where a text ends tells that.
fn by_emptiness(
    block: &FilteredBlock<'_>,
    chunk: usize,
    answers: [bool; 2],
    wanted: &Mask,
    hits: &mut Mask,
) -> Result<()> {
    let chunk = &block.chunks[chunk].1;
    for index in 0..chunk.matrix.pages.len() {
        let rows = chunk.page_rows(index);
        if !wanted.any_in(rows.clone()) {
            continue;
        }
        let page = &chunk.matrix.pages[index];
        if page.long {
            rows.for_each(|row| hits.set(row, answers[1]));
            continue;
        }
        let pin = chunk.page(index)?;
        let ends = pin.get(..2 * (rows.len() + 1)).and_then(cast::<u16>);
        let ends = ends.ok_or_else(|| chunk.damaged(page.id, "is not aligned"))?;
        let bytes = 2 * rows.len() as u64;
        for (row, (start, end)) in rows.zip(ends.iter().zip(&ends[1..])) {
            hits.set(row, answers[usize::from(start != end)]);
        }
        block.traffic.add((block.here)(), pin.node(), bytes);
    }
    if let Some(valid) = chunk.validity() {
        hits.and_bytes(valid);
    }
    Ok(())
}

fn codes<T: Stored>(values: &[T], answers: &Answers, into: &mut [u64]) {
    match &answers.runs {
        Some(runs) => {
            let most = T::narrow(u64::MAX).wide();
            // A code beyond the width cannot occur in this page.
            for (first, span) in runs.iter().filter(|(first, _)| u64::from(*first) <= most) {
                let span = u64::from(*span).min(most - u64::from(*first));
                in_range(values, T::narrow(u64::from(*first)), T::narrow(span), into);
            }
        }
        None => in_table(values, &answers.hits, into),
    }
}

/// Tests decoded values of the rows that are left.
async fn by_test(filter: &Filter, block: &mut FilteredBlock<'_>, wanted: &mut Mask) -> Result<()> {
    let mut chunks = Vec::with_capacity(filter.columns.len());
    let mut dictionaries = Vec::with_capacity(filter.columns.len());
    for column in &filter.columns {
        chunks.push(block.chunk(*column, wanted).await?);
        dictionaries.push(block.table.dictionary(*column).await?);
    }
    let picks = (wanted.count() < wanted.rows()).then(|| wanted.positions());
    let total = picks.as_ref().map_or(wanted.rows(), Vec::len);
    let (reader, traffic) = ((block.here)(), block.traffic);
    let mut tally = |node, bytes| traffic.add(reader, node, bytes);
    for start in (0..total).step_by(TEST_ROWS) {
        let range = start..(start + TEST_ROWS).min(total);
        let rows = match &picks {
            Some(picks) => Rows::Some(&picks[range.clone()]),
            None => Rows::Run(range.clone()),
        };
        let mut columns = Vec::with_capacity(chunks.len());
        for (position, chunk) in chunks.iter().enumerate() {
            let data_type = block
                .table
                .body
                .schema
                .field(filter.columns[position])
                .data_type();
            let dictionary = dictionaries[position].as_deref();
            columns.push(decode(
                &block.chunks[*chunk].1,
                &rows,
                data_type,
                dictionary,
                &mut tally,
            )?);
        }
        let hits = filter
            .test
            .evaluate(&columns, range.len())
            .map_err(Error::Test)?;
        let hits = if hits.null_count() == 0 {
            hits
        } else {
            prep_null_mask_filter(&hits)
        };
        for (position, hit) in hits.values().iter().enumerate() {
            if !hit {
                let row = range.start + position;
                wanted.set(picks.as_ref().map_or(row, |p| p[row] as usize), false);
            }
        }
    }
    Ok(())
}
