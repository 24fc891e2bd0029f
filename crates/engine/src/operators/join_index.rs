//! The index of a join table: how its rows are found by their keys.
//!
//! That of [many keys](crate::operators::many_keys::ManyKeys) is built by all workers.

use std::sync::Arc;

use algebra::dot::{Direct, Divided, Hashed, Marked, NONE, Ranges, Ranked, is_scattered};
use algebra::lift::Bounds;

use crate::error::Result;
use crate::vector::composite_key::CompositeKey;
use crate::vector::interner::Interner;
use crate::vector::key_encoding::{KeyEncoding, KeyWords, StringKeys};
use crate::vector::value::{Type, Vector};

/// The index is an array by key if there are at most this many integers for each row between the least and the
/// greatest key.
const DENSE: u64 = 2;
/// It is a bitmap with ranks if there are at most this many: 48 bytes per row.
const SPARSE: u64 = 256;
/// Or at most this many for each expected probe: a byte and a half for each, where hashing takes twice the time.
const PER_PROBE: u64 = 8;
/// Ranges up to this size always get a bitmap: 768 KiB.
const SMALL_RANGE: u64 = 1 << 22;

/// From so many rows on, keys in no order are indexed range by range, and hashed ones partition by partition.
pub(super) const MANY: usize = 1 << 18;
/// Rows that are divided at once by the ranges or the hashes of their keys: 1 MiB of keys.
pub(super) const CHUNK_ROWS: usize = 1 << 17;

pub(super) const SEED: u64 = 0x5EED_A702;

/// How rows are found by their keys.
#[derive(Debug)]
pub(crate) enum Index {
    /// The key is packed into one whole number.
    CompositeKey(CompositeKey, PackedIndex),
    /// The key is encoded as words.
    KeyWords {
        hashed: Hashed,
        layout: KeyEncoding,
        interners: Vec<Interner>,
    },
    /// No key: every row matches.
    All,
}

/// The index of keys that are packed into a number.
#[derive(Debug)]
pub(crate) enum PackedIndex {
    Direct(Arc<Direct>),
    Ranked(Arc<Ranked>),
    Hashed(Hashed),
}

impl Index {
    /// The index of `rows` rows with these keys, of which `vectors` has the values, and whether no two rows have the same.
    /// About `expected_probes` rows will probe it.
    ///
    /// # Errors
    /// Those of encoding keys.
    pub fn of(
        vectors: &[&Vector],
        types: Vec<Type>,
        rows: usize,
        expected_probes: u64,
    ) -> Result<(Index, bool)> {
        if vectors.is_empty() {
            return Ok((Index::All, rows <= 1));
        }
        let Some(numbers) = CompositeKey::of(vectors) else {
            return encoded_index(types, vectors, rows);
        };
        let (index, unique) = packed_index(&numbers, vectors, expected_probes)?;
        Ok((Index::CompositeKey(numbers, index), unique))
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        match self {
            Index::CompositeKey(_, PackedIndex::Direct(direct)) => direct.memory(),
            Index::CompositeKey(_, PackedIndex::Ranked(ranked)) => ranked.memory(),
            Index::CompositeKey(_, PackedIndex::Hashed(hashed)) => hashed.memory(),
            Index::KeyWords {
                hashed, interners, ..
            } => hashed.memory() + interners.iter().map(Interner::memory).sum::<usize>(),
            Index::All => 0,
        }
    }
}

/// Which indexes are small enough for keys that are packed into one number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    min: i64,
    max: i64,
    /// Whether a [`Direct`] is, which keys that are NULL or repeated do not fit into.
    pub direct: bool,
    /// Whether a [`Ranked`] is. Invariant: it is if a [`Direct`] is.
    pub ranked: bool,
}

impl Form {
    pub fn of(values: &[i64], valid: Option<&[bool]>, expected_probes: u64) -> Form {
        let (min, max) = extremes(values, valid).unwrap_or((0, 0));
        let span = max.wrapping_sub(min) as u64;
        let many = values.len() as u64;
        let dense = span < many.saturating_mul(DENSE) && span < u64::from(NONE);
        let wide = many
            .saturating_mul(SPARSE)
            .max(expected_probes.saturating_mul(PER_PROBE));
        Form {
            min,
            max,
            direct: valid.is_none() && dense,
            ranked: span < wide.max(SMALL_RANGE) && span < 1 << 40,
        }
    }

    /// The ranges by which `rows` rows are indexed; `None` if there would be one or no such index.
    pub fn ranges(&self, rows: usize) -> Option<Ranges> {
        if !self.ranked {
            return None;
        }
        let ranges = Ranges::of_rows(self.min, self.max, rows);
        (ranges.count() > 1).then_some(ranges)
    }
}

/// Whether there are many keys, in no order: then it takes less time to index them range by range.
pub(super) fn is_by_range(values: &[i64]) -> bool {
    values.len() >= MANY && is_scattered(values)
}

/// The chunk of rows that begins with the row `first`, divided.
pub(super) fn divided(
    ranges: Ranges,
    values: &[i64],
    valid: Option<&[bool]>,
    first: usize,
) -> Divided {
    let rows = first..values.len().min(first + CHUNK_ROWS);
    ranges.divide(
        &values[rows.clone()],
        valid.map(|valid| &valid[rows]),
        first,
    )
}

/// Builds the index of keys packed into one number. Also returns whether the keys are distinct.
fn packed_index(
    numbers: &CompositeKey,
    vectors: &[&Vector],
    expected_probes: u64,
) -> Result<(PackedIndex, bool)> {
    let (mut scratch, mut mask) = (Vec::new(), Vec::new());
    let (values, valid) = numbers.pack(vectors, &mut scratch, &mut mask)?;
    let rows = values.len();
    let form = Form::of(values, valid, expected_probes);
    if is_by_range(values)
        && let Some(ranges) = form.ranges(rows)
    {
        return Ok(index_of_ranges(ranges, values, valid, form.direct));
    }
    if form.direct {
        let mut direct = Direct::new(form.min, form.max);
        let all: Vec<u32> = (0..rows as u32).collect();
        if !direct.set(values, &all) {
            return Ok((PackedIndex::Direct(direct.into()), true));
        }
    }
    if form.ranked {
        let ranked = Ranked::build(values, valid, form.min, form.max);
        let unique = ranked.is_unique();
        return Ok((PackedIndex::Ranked(ranked.into()), unique));
    }
    let mut words = KeyWords::default();
    words.number(values, SEED);
    let hashed = hashed(&words, valid, rows);
    let unique = hashed.is_unique();
    Ok((PackedIndex::Hashed(hashed), unique))
}

/// The index of many keys in no order, range by range on this thread. `direct` says whether it is to be a [`Direct`] if no key is
/// repeated.
fn index_of_ranges(
    ranges: Ranges,
    values: &[i64],
    valid: Option<&[bool]>,
    direct: bool,
) -> (PackedIndex, bool) {
    let firsts = (0..values.len()).step_by(CHUNK_ROWS);
    let chunks = firsts.map(|first| divided(ranges, values, valid, first));
    let chunks: Vec<Divided> = chunks.collect();
    let all = 0..ranges.count();
    let marked = all.clone().map(|range| ranges.mark(range, &chunks));
    let marked: Vec<Marked> = marked.collect();
    let repeated = marked.iter().any(Marked::is_repeated);
    if direct && !repeated {
        let direct = ranges.direct();
        all.for_each(|range| direct.fill(range, &chunks));
        return (PackedIndex::Direct(direct.finish().into()), true);
    }
    let ranked = ranges.ranked(&marked);
    for (range, marked) in marked.into_iter().enumerate() {
        ranked.index(range, &chunks, marked);
    }
    (PackedIndex::Ranked(ranked.finish().into()), !repeated)
}

/// The least and the greatest valid value.
fn extremes(values: &[i64], valid: Option<&[bool]>) -> Option<(i64, i64)> {
    let Some(valid) = valid else {
        return Bounds::of(values).map(|all| (all.min as i64, all.max as i64));
    };
    let there = || values.iter().zip(valid).filter(|(_, valid)| **valid);
    let min = there().map(|(value, _)| *value).min()?;
    Some((min, there().map(|(value, _)| *value).max()?))
}

fn encoded_index(types: Vec<Type>, vectors: &[&Vector], rows: usize) -> Result<(Index, bool)> {
    let layout = KeyEncoding::join(types);
    let (mut words, mut interners) = (KeyWords::default(), Vec::new());
    layout.encode(
        vectors,
        rows,
        &mut StringKeys::Adding(&mut interners),
        &mut words,
    )?;
    let hashed = hashed(&words, words.valid.as_deref(), rows);
    let unique = hashed.is_unique();
    let index = Index::KeyWords {
        hashed,
        layout,
        interners,
    };
    Ok((index, unique))
}

/// The hash index of the rows whose keys are valid.
fn hashed(words: &KeyWords, valid: Option<&[bool]>, rows: usize) -> Hashed {
    let columns = words.columns();
    let Some(valid) = valid else {
        return Hashed::build(&words.hashes, &columns);
    };
    let picks: Vec<u32> = (0..rows as u32)
        .filter(|row| valid[*row as usize])
        .collect();
    let at = |from: &[u64]| -> Vec<u64> { picks.iter().map(|row| from[*row as usize]).collect() };
    let hashes = at(&words.hashes);
    let columns: Vec<Vec<u64>> = columns.iter().map(|column| at(column)).collect();
    let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
    let mut part = algebra::dot::Part::with_capacity(columns.len(), picks.len());
    part.add(&hashes, &columns, &picks);
    Hashed::new(vec![part.finish()])
}
