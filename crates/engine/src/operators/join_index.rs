//! The index of a join table: how its rows are found by their keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use algebra::dot::{Direct, Divided, Hashed, Marked, NONE, Ranges, Ranked, is_scattered};
use algebra::lift::Bounds;

use crate::error::{Error, Result};
use crate::vector::composite_key::CompositeKey;
use crate::vector::interner::Interner;
use crate::vector::key_encoding::{KeyEncoding, KeyWords, StringKeys};
use crate::vector::value::{Type, Values, Var, Vector};

/// The index is an array by key if there are at most this many integers for each row between the least and the
/// greatest key.
const DENSE: u64 = 2;
/// It is a bitmap with ranks if there are at most this many: 48 bytes per row.
const SPARSE: u64 = 256;
/// Or at most this many for each expected probe: a byte and a half for each, where hashing takes twice the time.
const PER_PROBE: u64 = 8;
/// Ranges up to this size always get a bitmap: 768 KiB.
const SMALL_RANGE: u64 = 1 << 22;

/// From so many rows on, keys in no order are indexed range by range.
const MANY: usize = 1 << 18;
/// Rows that are divided by the ranges of their keys at once: 1 MiB of keys.
const CHUNK_ROWS: usize = 1 << 17;

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
struct Form {
    min: i64,
    max: i64,
    /// Whether a [`Direct`] is, which keys that are NULL or repeated do not fit into.
    direct: bool,
    /// Whether a [`Ranked`] is. Invariant: it is if a [`Direct`] is.
    ranked: bool,
}

impl Form {
    fn of(values: &[i64], valid: Option<&[bool]>, expected_probes: u64) -> Form {
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
    fn ranges(&self, rows: usize) -> Option<Ranges> {
        if !self.ranked {
            return None;
        }
        let ranges = Ranges::of_rows(self.min, self.max, rows);
        (ranges.count() > 1).then_some(ranges)
    }
}

/// Whether there are many keys, in no order: then it takes less time to index them range by range.
fn is_by_range(values: &[i64]) -> bool {
    values.len() >= MANY && is_scattered(values)
}

/// Many keys in no order, packed into one number, of which the index is to be built range by range. Chunks and ranges may
/// each be worked on by another worker.
#[derive(Debug)]
pub(crate) struct ScatteredKeys {
    columns: Arc<BTreeMap<Var, Vector>>,
    /// The vector that is the key, unless several are packed.
    key: Var,
    packed: Option<(Vec<i64>, Option<Vec<bool>>)>,
    rows: usize,
    /// The ranges, several ones.
    pub ranges: Ranges,
    /// Whether the index is to be a [`Direct`] if no key is repeated.
    pub direct: bool,
}

impl ScatteredKeys {
    /// How the keys of `rows` rows with these vectors are packed, and they themselves; `None` if they are few, in some order,
    /// or too far apart.
    ///
    /// # Errors
    /// Those of [`CompositeKey::pack`].
    pub fn of(
        keys: &[Var],
        columns: &Arc<BTreeMap<Var, Vector>>,
        rows: usize,
        expected_probes: u64,
    ) -> Result<Option<(CompositeKey, ScatteredKeys)>> {
        let Some(key) = keys.first() else {
            return Ok(None);
        };
        if rows < MANY || rows >= NONE as usize {
            return Ok(None);
        }
        let vectors: Vec<&Vector> = keys.iter().filter_map(|key| columns.get(key)).collect();
        let Some(numbers) = CompositeKey::of(&vectors) else {
            return Ok(None);
        };
        let (mut scratch, mut mask) = (Vec::new(), Vec::new());
        let (values, valid) = numbers.pack(&vectors, &mut scratch, &mut mask)?;
        if !is_by_range(values) {
            return Ok(None);
        }
        let form = Form::of(values, valid, expected_probes);
        let Some(ranges) = form.ranges(rows) else {
            return Ok(None);
        };
        let all = valid.is_none();
        let packed = match numbers {
            CompositeKey::Same => None,
            CompositeKey::Digits(_) => Some((scratch, (!all).then_some(mask))),
        };
        let scattered = ScatteredKeys {
            columns: Arc::clone(columns),
            key: *key,
            packed,
            rows,
            ranges,
            direct: form.direct,
        };
        Ok(Some((numbers, scattered)))
    }

    /// The first rows of chunks.
    pub fn chunks(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.rows).step_by(CHUNK_ROWS)
    }

    /// Divides the chunk that begins with the row `first`.
    ///
    /// # Errors
    /// An internal error if the key is not there.
    pub fn divide(&self, first: usize) -> Result<Divided> {
        let (values, valid) = match &self.packed {
            Some((values, valid)) => (&values[..], valid.as_deref()),
            None => match self.columns.get(&self.key) {
                Some(Vector {
                    values: Values::Int(values),
                    valid,
                }) => (&values[..], valid.as_deref()),
                _ => return Err(Error::internal("a key of another kind")),
            },
        };
        Ok(divided(self.ranges, values, valid, first))
    }
}

/// The chunk of rows that begins with the row `first`, divided.
fn divided(ranges: Ranges, values: &[i64], valid: Option<&[bool]>, first: usize) -> Divided {
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

/// The index of many keys in no order, range by range on this thread. `direct` is as in [`ScatteredKeys`].
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
        let parts = all.map(|range| ranges.fill(range, &chunks));
        let direct = ranges.direct(parts.collect());
        return (PackedIndex::Direct(direct.into()), true);
    }
    let parts = marked.into_iter().enumerate();
    let parts = parts.map(|(range, marked)| ranges.index(range, &chunks, marked, repeated));
    let ranked = ranges.ranked(parts.collect());
    (PackedIndex::Ranked(ranked.into()), !repeated)
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

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = MANY + 5_000;

    /// Keys in no order, each of so many rows.
    fn scattered(repeats: i64) -> Vec<i64> {
        let rows = ROWS as i64;
        (0..rows)
            .map(|row| row * 104_729 % rows / repeats - 77)
            .collect()
    }

    /// The index of `keys` as several workers make it, each step of chunks and ranges by itself, if it has ranks.
    fn by_steps(keys: &ScatteredKeys) -> Ranked {
        let ranges = keys.ranges;
        let chunks: Vec<Divided> = keys
            .chunks()
            .map(|first| keys.divide(first).unwrap())
            .collect();
        assert!(chunks.len() > 1 && ranges.count() > 1);
        let marked = (0..ranges.count()).map(|range| ranges.mark(range, &chunks));
        let marked: Vec<Marked> = marked.collect();
        let repeated = marked.iter().any(Marked::is_repeated);
        let parts = marked.into_iter().enumerate();
        let parts = parts.map(|(range, marked)| ranges.index(range, &chunks, marked, repeated));
        ranges.ranked(parts.collect())
    }

    #[test]
    fn keys_in_no_order_are_indexed_as_others_are() {
        for (repeats, nulls) in [(1, false), (1, true), (4, false), (4, true)] {
            let values = scattered(repeats);
            let valid = nulls.then(|| (0..ROWS).map(|row| row % 7 > 0).collect::<Vec<bool>>());
            let there = valid.as_deref();
            let (min, max) = extremes(&values, there).unwrap();
            let at_once = Ranked::build(&values, there, min, max);
            let vector = Vector {
                values: Values::Int(values.clone()),
                valid: valid.clone(),
            };
            let (index, unique) = Index::of(&[&vector], vec![], ROWS, 0).unwrap();
            assert_eq!(unique, repeats == 1);
            match index {
                Index::CompositeKey(_, PackedIndex::Direct(direct)) => {
                    let mut wanted = Direct::new(min, max);
                    let rows: Vec<u32> = (0..ROWS as u32).collect();
                    assert!(unique && !nulls && !wanted.set(&values, &rows));
                    assert!(*direct == wanted);
                }
                Index::CompositeKey(_, PackedIndex::Ranked(ranked)) => {
                    assert!((!unique || nulls) && *ranked == at_once);
                }
                _ => panic!("an index of another kind"),
            }
            let columns = Arc::new(BTreeMap::from([(3, vector)]));
            let (_, keys) = ScatteredKeys::of(&[3], &columns, ROWS, 0).unwrap().unwrap();
            assert_eq!(keys.direct, !nulls);
            assert!(by_steps(&keys) == at_once);
        }
    }

    #[test]
    fn packed_keys_in_no_order_are_indexed_as_others_are() {
        let values = scattered(2);
        let high = values.iter().map(|value| (value + 77) / 1_000).collect();
        let low = values.iter().map(|value| (value + 77) % 1_000).collect();
        let vectors = [high, low].map(|values| Vector::new(Values::Int(values)));
        let (index, unique) = Index::of(&[&vectors[0], &vectors[1]], vec![], ROWS, 0).unwrap();
        let Index::CompositeKey(_, PackedIndex::Ranked(ranked)) = index else {
            panic!("an index without ranks");
        };
        let columns = Arc::new(BTreeMap::from_iter([5, 2].into_iter().zip(vectors)));
        let (_, keys) = ScatteredKeys::of(&[5, 2], &columns, ROWS, 0)
            .unwrap()
            .unwrap();
        assert!(!unique && by_steps(&keys) == *ranked);
    }

    #[test]
    fn few_keys_or_keys_in_order_are_not_divided() {
        let in_order = Vector::new(Values::Int((0..ROWS as i64).collect()));
        let few = Vector::new(Values::Int(vec![7, 3_000_000, 5]));
        let columns = Arc::new(BTreeMap::from([(0, in_order), (1, few)]));
        for (key, rows) in [(0, ROWS), (1, 3)] {
            let found = ScatteredKeys::of(&[key], &columns, rows, 0).unwrap();
            assert!(found.is_none());
        }
        let none = ScatteredKeys::of(&[], &columns, ROWS, 0).unwrap();
        assert!(none.is_none());
    }
}
