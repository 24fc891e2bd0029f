//! Rows of an opened morsel as plain vectors: what the query engine's kernels work on.
//!
//! A [`Cursor`] hands out the rows that its filters left ([`Cursor::next_rows`]); their columns are then read
//! one by one, each only when somebody needs it and for the rows that are left by then.

use std::ops::Range;

use algebra::encoded::greatest;
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Float32Type, Float64Type, UInt64Type};

use crate::error::{Error, Result};
use crate::format::block::Encoding;
use crate::format::row_id::RowId;
use crate::scan::cursor::{Cursor, OpenBlock, State};
use crate::scan::decode::{decode, floats_into, numbers_into};
use crate::scan::integers::{ints_of, wides_of};
use crate::scan::parts::PartValues;
use crate::scan::rows::Rows;

impl<'p> Cursor<'p> {
    /// Takes the next rows that the filters left, at most `most`. Gives `Some(Some(range))` if they follow one
    /// another in the morsel, `range` being their positions; otherwise `Some(None)`, and their positions, ascending,
    /// are in `rows`. `None` at the end.
    pub fn next_rows(&mut self, most: usize, rows: &mut Vec<u32>) -> Option<Option<Range<usize>>> {
        let take = self.rows().min(most);
        if take == 0 {
            return None;
        }
        let block = match &mut self.state {
            State::Tail(_, next) => {
                *next += take;
                return Some(Some(*next - take..*next));
            }
            State::Block(block) => block,
        };
        let range = block.next..block.next + take;
        block.next = range.end;
        let Some(picks) = &block.picks else {
            return Some(Some(range));
        };
        let picks = &picks[range];
        let first = picks[0] as usize;
        if picks[take - 1] as usize - first + 1 == take {
            return Some(Some(first..first + take));
        }
        rows.clear();
        rows.extend_from_slice(picks);
        Some(None)
    }

    /// Appends the whole numbers of column `column` of the scan at `rows` to `out`. Dates and times are numbers of
    /// their unit, booleans 0 and 1, decimals are without their point. What a NULL gives is not specified. Decimals
    /// must fit 64 bits, which [`crate::Table::statistics`] tells.
    ///
    /// # Errors
    /// [`Error::Damaged`]; a column of another kind.
    pub fn ints(&self, column: usize, rows: &Rows<'_>, out: &mut Vec<i64>) -> Result<()> {
        match &self.state {
            State::Tail(batch, _) => ints_of(&at(batch.column(column), rows)?, out),
            State::Block(block) => {
                let chunk = &block.chunks[column];
                if chunk.all_null() {
                    out.resize(out.len() + rows.len(), 0);
                    return Ok(());
                }
                let mut tally = block.tally();
                numbers_into::<i64>(chunk, rows, &mut tally, out)
            }
        }
    }

    /// As [`Cursor::ints`], for numbers of up to 128 bits.
    ///
    /// # Errors
    /// Those of [`Cursor::ints`].
    pub fn wides(&self, column: usize, rows: &Rows<'_>, out: &mut Vec<i128>) -> Result<()> {
        match &self.state {
            State::Tail(batch, _) => wides_of(&at(batch.column(column), rows)?, out),
            State::Block(block) => {
                let chunk = &block.chunks[column];
                if chunk.all_null() {
                    out.resize(out.len() + rows.len(), 0);
                    return Ok(());
                }
                let mut tally = block.tally();
                numbers_into::<i128>(chunk, rows, &mut tally, out)
            }
        }
    }

    /// Appends the floats of column `column` of the scan at `rows` to `out`, in double precision. What a NULL gives is not specified.
    ///
    /// # Errors
    /// [`Error::Damaged`]; a column of another kind.
    pub fn floats(&self, column: usize, rows: &Rows<'_>, out: &mut Vec<f64>) -> Result<()> {
        match &self.state {
            State::Tail(batch, _) => floats_of(&at(batch.column(column), rows)?, out),
            State::Block(block) => {
                let chunk = &block.chunks[column];
                if chunk.all_null() {
                    out.resize(out.len() + rows.len(), 0.0);
                    return Ok(());
                }
                let mut tally = block.tally();
                floats_into(chunk, rows, &mut tally, out)
            }
        }
    }

    /// Appends the codes of text column `column` at `rows`, which [`crate::Table::dictionary`] explains, to `out`.
    /// Only for blocks that store codes ([`crate::Table::is_coded`]), never for the tail. What a NULL gives is some
    /// code of the dictionary.
    ///
    /// # Errors
    /// [`Error::Damaged`]; a column that is stored otherwise.
    pub fn codes(&self, column: usize, rows: &Rows<'_>, out: &mut Vec<u32>) -> Result<()> {
        let State::Block(block) = &self.state else {
            return Err(Error::Kind("codes of rows in the tail".into()));
        };
        let chunk = &block.chunks[column];
        if chunk.all_null() {
            out.resize(out.len() + rows.len(), 0);
            return Ok(());
        }
        if !matches!(chunk.matrix.encoding, Encoding::Code { .. }) {
            return Err(Error::Kind("codes of a column without".into()));
        }
        let from = out.len();
        let mut tally = block.tally();
        numbers_into::<u32>(chunk, rows, &mut tally, out)?;
        let labels = block.dictionaries[column].as_ref().map_or(0, |d| d.len()) as u32;
        if out.len() > from && greatest(&out[from..]) >= labels {
            return Err(chunk.damaged(chunk.matrix.pages[0].id, "holds an unknown code"));
        }
        Ok(())
    }

    /// Appends to `out` for each of `rows` whether its value is not NULL. Where no value is NULL it returns false
    /// instead, and appends nothing.
    pub fn valid(&self, column: usize, rows: &Rows<'_>, out: &mut Vec<bool>) -> bool {
        let found = match &self.state {
            State::Tail(batch, _) => {
                let Some(all) = batch.column(column).logical_nulls() else {
                    return false;
                };
                match rows {
                    Rows::Run(run) => out.extend(run.clone().map(|row| all.is_valid(row))),
                    Rows::Some(rows) => {
                        out.extend(rows.iter().map(|row| all.is_valid(*row as usize)))
                    }
                }
                return true;
            }
            State::Block(block) => {
                let chunk = &block.chunks[column];
                if chunk.all_null() {
                    out.resize(out.len() + rows.len(), false);
                    return true;
                }
                chunk.nulls(rows)
            }
        };
        let Some(found) = found else { return false };
        out.extend(found.iter());
        true
    }

    /// The values of column `column` at `rows`, as an Arrow array of the column's type.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn array(&self, column: usize, rows: &Rows<'_>) -> Result<ArrayRef> {
        match &self.state {
            State::Tail(batch, _) => at(batch.column(column), rows),
            State::Block(block) => {
                let data_type = self.schema.field(column).data_type().clone();
                let dictionary = block.dictionaries[column].as_deref();
                let mut tally = block.tally();
                decode(
                    &block.chunks[column],
                    rows,
                    &data_type,
                    dictionary,
                    &mut tally,
                )
            }
        }
    }

    /// The values of part `number` of the scan at `rows`, or their documents where no values are kept.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn part(&self, number: usize, rows: &Rows<'_>) -> Result<PartValues> {
        match &self.state {
            State::Tail(batch, _) => {
                let documents = at(batch.column(self.columns + number), rows)?;
                Ok(PartValues::Documents(documents))
            }
            State::Block(block) => {
                let documents = self.schema.field(self.columns + number).data_type();
                let mut tally = block.tally();
                block.parts[number].values(rows, documents, &mut tally)
            }
        }
    }

    /// Appends the row ids of `rows`, the values of [`crate::ROW_COLUMN`], to `out`. Only for scans that have row ids.
    ///
    /// # Errors
    /// If the scan has none.
    pub fn row_ids(&self, rows: &Rows<'_>, out: &mut Vec<u64>) -> Result<()> {
        let none = || Error::Kind("row ids of a scan without".into());
        if !self.row_ids {
            return Err(none());
        }
        match &self.state {
            // Rows of a chunk that filters left are counted anew: their ids came with them.
            State::Tail(batch, _) => {
                let ids = batch.columns().last().ok_or_else(none)?;
                let ids = ids.as_primitive_opt::<UInt64Type>().ok_or_else(none)?;
                match rows {
                    Rows::Run(run) => out.extend(run.clone().map(|row| ids.value(row))),
                    Rows::Some(rows) => out.extend(rows.iter().map(|row| ids.value(*row as usize))),
                }
            }
            State::Block(block) => {
                let first = RowId::Block {
                    key: block.key,
                    row: 0,
                };
                let first = first.number();
                match rows {
                    Rows::Run(run) => out.extend(run.clone().map(|row| first + row as u64)),
                    Rows::Some(rows) => out.extend(rows.iter().map(|row| first + u64::from(*row))),
                }
            }
        }
        Ok(())
    }
}

impl<'p> OpenBlock<'p> {
    fn tally(&self) -> impl FnMut(usize, u64) + use<'p> {
        let (reader, traffic) = ((self.here)(), self.traffic);
        move |node, bytes| traffic.add(reader, node, bytes)
    }
}

/// Appends the floats of an Arrow array, in double precision.
fn floats_of(array: &ArrayRef, out: &mut Vec<f64>) -> Result<()> {
    match array.data_type() {
        DataType::Float64 => {
            out.extend_from_slice(array.as_primitive::<Float64Type>().values());
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            out.extend(values.iter().map(|value| f64::from(*value)));
        }
        other => return Err(Error::Kind(format!("{other} as floats"))),
    }
    Ok(())
}

/// Some rows of an array of the tail.
fn at(array: &ArrayRef, rows: &Rows<'_>) -> Result<ArrayRef> {
    Ok(match rows {
        Rows::Run(run) => array.slice(run.start, run.len()),
        Rows::Some(rows) => take(array, &UInt32Array::from(rows.to_vec()), None)?,
    })
}
