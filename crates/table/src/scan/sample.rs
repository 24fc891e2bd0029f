//! Reading a sample of a table's rows, a column at a time.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_empty_array};
use arrow::compute::{concat, take};
use arrow::datatypes::DataType;

use crate::catalog::sample::{Piece, Sample, SampledColumn, distinct_values};
use crate::catalog::table::Table;
use crate::error::Result;
use crate::format::block::Encoding;
use crate::scan::chunk::PinnedChunk;
use crate::scan::decode::{decode, numbers_into};
use crate::scan::integers::{ints_of, wides_of};
use crate::scan::mask::Mask;
use crate::scan::rows::Rows;

/// Texts are read of so many pieces.
const TEXT_PIECES: usize = 4;

/// Pages are asked for ahead if they take at most one of so many frames.
const MOST_AHEAD: usize = 8;

/// What was read of a piece: its values, and their codes if it is stored so.
type Values = (ArrayRef, Option<Vec<u32>>);

impl Table {
    /// The number of rows in a sample of this table, and whether these are all rows.
    pub fn sampled_rows(&self) -> (usize, bool) {
        let sample = self.body.sample();
        (sample.rows(), sample.complete)
    }

    /// A column of a sample of the table's rows, from blocks spread over the table: read on the first call, and kept with this
    /// version of the table. The same rows come of each column, in the same order.
    ///
    /// # Errors
    /// Those of reading pages.
    pub async fn sampled(&self, column: usize) -> Result<Arc<SampledColumn>> {
        let sample = self.body.sample();
        let read = || async { self.read_sample(sample, column).await.map(Arc::new) };
        Ok(sample.columns[column].get_or_try_init(read).await?.clone())
    }

    async fn read_sample(&self, sample: &Sample, column: usize) -> Result<SampledColumn> {
        let data_type = self.schema().field(column).data_type().clone();
        let is_plain =
            data_type.is_primitive() || matches!(data_type, DataType::Utf8View | DataType::Boolean);
        let pieces = if is_plain { &sample.pieces[..] } else { &[] };
        self.read_ahead(pieces, column);
        let mut arrays = Vec::with_capacity(sample.pieces.len());
        let mut codes = Some(Vec::new());
        for (number, piece) in pieces.iter().enumerate() {
            if number >= TEXT_PIECES && !sample.complete && self.is_text(piece, column) {
                break;
            }
            let (values, own) = self.read_piece(piece, column).await?;
            arrays.push(values);
            codes = codes.zip(own).map(|(mut all, own)| {
                all.extend(own);
                all
            });
        }
        let values = if arrays.is_empty() {
            new_empty_array(&data_type)
        } else {
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            unpinned(concat(&arrays)?)
        };
        let codes = match (codes, self.dictionary(column).await?) {
            (Some(codes), Some(dictionary)) => Some((dictionary, codes)),
            _ => None,
        };
        let nulls = values.logical_nulls().filter(|n| n.null_count() > 0);
        let valid: Option<Vec<bool>> = nulls.map(|nulls| nulls.iter().collect());
        let keys = keys_of(&values);
        let distinct = keys.as_ref().map(|keys| {
            let is_valid = |row: &usize| valid.as_ref().is_none_or(|valid| valid[*row]);
            let known = (0..keys.len()).filter(is_valid).map(|row| keys[row]);
            let known: Vec<u64> = known.collect();
            let share = known.len() as f64 / keys.len().max(1) as f64;
            distinct_values(known, share * self.rows() as f64)
        });
        Ok(SampledColumn {
            values,
            codes,
            keys,
            valid,
            distinct,
        })
    }

    /// Whether a piece has the column's values as texts of their own, on as many pages as these take.
    fn is_text(&self, piece: &Piece, column: usize) -> bool {
        let block = || &self.body.blocks[piece.index].value.columns[column];
        !piece.tail && matches!(block().encoding, Encoding::Text)
    }

    /// Asks for the pages of a column that hold rows of `pieces`.
    fn read_ahead(&self, pieces: &[Piece], column: usize) {
        let (pool, name) = (self.snapshot().pool(), &self.definition().name);
        let mut missing = Vec::new();
        for (number, piece) in pieces.iter().enumerate().filter(|(_, piece)| !piece.tail) {
            if number >= TEXT_PIECES && self.is_text(piece, column) {
                break;
            }
            let block = &*self.body.blocks[piece.index].value;
            let chunk = PinnedChunk::new(name, pool, &block.columns[column], block.rows);
            let pages = chunk.missing(&wanted(piece, block.rows));
            missing.extend(pages.into_iter().filter(|page| !pool.is_resident(*page)));
        }
        if missing.len() > 1 && missing.len() * MOST_AHEAD <= pool.frames() {
            pool.prefetch(&missing);
        }
    }

    async fn read_piece(&self, piece: &Piece, column: usize) -> Result<Values> {
        if piece.tail {
            let rows = UInt32Array::from(piece.rows.clone());
            let batch = &self.body.tail[piece.index].value.rows;
            return Ok((take(batch.column(column), &rows, None)?, None));
        }
        let block = &*self.body.blocks[piece.index].value;
        let pool = self.snapshot().pool();
        let name = &self.definition().name;
        let mut chunk = PinnedChunk::new(name, pool, &block.columns[column], block.rows);
        let wanted = wanted(piece, block.rows);
        chunk.hold(&wanted).await?;
        let dictionary = self.dictionary(column).await?;
        let schema = self.schema();
        let data_type = schema.field(column).data_type();
        let rows = Rows::Some(&piece.rows);
        let mut tally = |_, _| {};
        let values = decode(&chunk, &rows, data_type, dictionary.as_deref(), &mut tally)?;
        let codes = match chunk.matrix.encoding {
            _ if chunk.all_null() => Some(vec![0; piece.rows.len()]),
            Encoding::Code { .. } => {
                let mut codes = Vec::with_capacity(piece.rows.len());
                numbers_into::<u32>(&chunk, &rows, &mut tally, &mut codes)?;
                Some(codes)
            }
            _ => None,
        };
        Ok((values, codes))
    }
}

/// The rows of a piece, a block of `rows` rows.
fn wanted(piece: &Piece, rows: u32) -> Mask {
    let mut wanted = Mask::none(rows as usize);
    let all = piece.rows.iter();
    all.for_each(|row| wanted.set(*row as usize, true));
    wanted
}

/// The same values in buffers of their own: texts may be borrowed from pages.
fn unpinned(values: ArrayRef) -> ArrayRef {
    match values.as_string_view_opt() {
        Some(texts) => Arc::new(texts.gc()),
        None => values,
    }
}

/// A number for each value that is the same for equal ones.
fn keys_of(values: &ArrayRef) -> Option<Vec<u64>> {
    let hashing = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
    match values.data_type() {
        DataType::Utf8View => {
            let texts = values.as_string_view();
            // The bytes of a NULL are empty.
            let texts = (0..texts.len()).map(|row| texts.value(row));
            Some(texts.map(|text| hashing.hash_one(text)).collect())
        }
        DataType::Decimal128(..) | DataType::UInt64 => {
            let mut wides = Vec::with_capacity(values.len());
            wides_of(values, &mut wides).ok()?;
            let number = |wide: i128| match i64::try_from(wide) {
                Ok(narrow) => narrow as u64,
                Err(_) => {
                    let mut hasher = hashing.build_hasher();
                    hasher.write_i128(wide);
                    hasher.finish()
                }
            };
            Some(wides.into_iter().map(number).collect())
        }
        _ => {
            let mut ints = Vec::with_capacity(values.len());
            ints_of(values, &mut ints).ok()?;
            Some(ints.into_iter().map(|int| int as u64).collect())
        }
    }
}
