//! Many keys of a join table, of which several workers build the index.

use std::collections::BTreeMap;
use std::sync::Arc;

use algebra::dot::{Divided, DividedHashes, HashPartitions, Hashed, NONE, Ranges};

use crate::error::{Error, Result};
use crate::operators::join_index::{
    CHUNK_ROWS, Form, Index, MANY, PackedIndex, SEED, divided, is_by_range,
};
use crate::vector::composite_key::CompositeKey;
use crate::vector::interner::Interner;
use crate::vector::key_encoding::{KeyEncoding, KeyWords, StringKeys};
use crate::vector::strings::Strings;
use crate::vector::value::{Type, Values, Var, Vector};

/// Many keys, by how their index is built.
#[derive(Debug)]
pub(crate) enum ManyKeys {
    /// Keys in no order, packed into one number: range by range.
    Scattered(CompositeKey, ScatteredKeys),
    /// Keys that are found by hash: partition by partition of the hashes.
    Hashed(HashedForm, HashedKeys),
}

impl ManyKeys {
    /// The keys of `rows` rows with these vectors and types, which about `expected_probes` rows will probe; `None` if they are few,
    /// or numbers near each other in some order, which one worker indexes soon.
    ///
    /// # Errors
    /// Those of [`CompositeKey::pack`] and of encoding keys.
    pub fn of(
        keys: &[Var],
        types: &[Type],
        columns: &Arc<BTreeMap<Var, Vector>>,
        rows: usize,
        expected_probes: u64,
    ) -> Result<Option<ManyKeys>> {
        let Some(key) = keys.first() else {
            return Ok(None);
        };
        if rows < MANY || rows >= NONE as usize {
            return Ok(None);
        }
        let vectors: Vec<&Vector> = keys.iter().filter_map(|key| columns.get(key)).collect();
        let Some(numbers) = CompositeKey::of(&vectors) else {
            return encoded(keys, types, columns, rows).map(Some);
        };
        let (mut scratch, mut mask) = (Vec::new(), Vec::new());
        let (values, valid) = numbers.pack(&vectors, &mut scratch, &mut mask)?;
        let form = Form::of(values, valid, expected_probes);
        let ranges = form.ranges(rows).filter(|_| is_by_range(values));
        if ranges.is_none() && form.ranked {
            return Ok(None);
        }
        let all = valid.is_none();
        let packed = match numbers {
            CompositeKey::Same => None,
            CompositeKey::Digits(_) => Some((scratch, (!all).then_some(mask))),
        };
        let own = PackedNumbers {
            columns: Arc::clone(columns),
            key: *key,
            packed,
        };
        Ok(Some(match ranges {
            Some(ranges) => {
                let keys = ScatteredKeys {
                    numbers: own,
                    rows,
                    ranges,
                    direct: form.direct,
                };
                ManyKeys::Scattered(numbers, keys)
            }
            None => {
                let keys = HashedKeys::of(Source::Numbers(own), rows);
                ManyKeys::Hashed(HashedForm::Number(numbers), keys)
            }
        }))
    }
}

/// Keys that are encoded as words. Strings that are too long for these are numbered here, by one worker.
fn encoded(
    keys: &[Var],
    types: &[Type],
    columns: &Arc<BTreeMap<Var, Vector>>,
    rows: usize,
) -> Result<ManyKeys> {
    let vectors: Vec<&Vector> = keys.iter().filter_map(|key| columns.get(key)).collect();
    let encoding = KeyEncoding::join(types.to_vec());
    let mut interners = Vec::new();
    let source = if vectors.iter().zip(types).all(|(v, ty)| is_inline(v, ty)) {
        Source::Vectors {
            columns: Arc::clone(columns),
            keys: keys.to_vec(),
            encoding: encoding.clone(),
        }
    } else {
        let (mut words, mut texts) = (KeyWords::default(), StringKeys::Adding(&mut interners));
        encoding.encode(&vectors, rows, &mut texts, &mut words)?;
        Source::Words(Box::new(words))
    };
    let keys = HashedKeys::of(source, rows);
    Ok(ManyKeys::Hashed(
        HashedForm::Words(encoding, interners),
        keys,
    ))
}

/// Whether the words of a key have all of its strings, if it is of strings.
fn is_inline(vector: &Vector, ty: &Type) -> bool {
    match (&vector.values, &ty.labels) {
        (Values::Text(texts), _) => texts.is_inline(),
        (Values::Code(_), Some(labels)) => Strings::new(labels.labels().clone()).is_inline(),
        _ => true,
    }
}

/// Keys that are packed into one number, for several workers to read.
#[derive(Debug)]
struct PackedNumbers {
    columns: Arc<BTreeMap<Var, Vector>>,
    /// The vector that is the key, unless several are packed.
    key: Var,
    packed: Option<(Vec<i64>, Option<Vec<bool>>)>,
}

impl PackedNumbers {
    /// The numbers, and which rows have one (`None`: all).
    fn values(&self) -> Result<(&[i64], Option<&[bool]>)> {
        match &self.packed {
            Some((values, valid)) => Ok((values, valid.as_deref())),
            None => match self.columns.get(&self.key) {
                Some(Vector {
                    values: Values::Int(values),
                    valid,
                }) => Ok((values, valid.as_deref())),
                _ => Err(Error::internal("a key of another kind")),
            },
        }
    }
}

/// Many keys in no order, packed into one number, of which the index is to be built range by range. Chunks and ranges may
/// each be worked on by another worker.
#[derive(Debug)]
pub(crate) struct ScatteredKeys {
    numbers: PackedNumbers,
    rows: usize,
    /// The ranges, several ones.
    pub ranges: Ranges,
    /// Whether the index is to be a [`Direct`](algebra::dot::Direct) if no key is repeated.
    pub direct: bool,
}

impl ScatteredKeys {
    /// The first rows of chunks.
    pub fn chunks(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.rows).step_by(CHUNK_ROWS)
    }

    /// Divides the chunk that begins with the row `first`.
    ///
    /// # Errors
    /// An internal error if the key is not there.
    pub fn divide(&self, first: usize) -> Result<Divided> {
        let (values, valid) = self.numbers.values()?;
        Ok(divided(self.ranges, values, valid, first))
    }
}

/// How keys become words that are found by hash.
#[derive(Debug)]
pub(crate) enum HashedForm {
    /// They are packed into one number.
    Number(CompositeKey),
    /// They are encoded, and long strings are numbered.
    Words(KeyEncoding, Vec<Interner>),
}

impl HashedForm {
    /// The index of such keys.
    pub fn index(self, hashed: Hashed) -> Index {
        match self {
            HashedForm::Number(numbers) => {
                Index::CompositeKey(numbers, PackedIndex::Hashed(hashed))
            }
            HashedForm::Words(layout, interners) => Index::KeyWords {
                hashed,
                layout,
                interners,
            },
        }
    }
}

/// Many keys that are found by hash. Chunks and partitions of hashes may each be worked on by another worker.
#[derive(Debug)]
pub(crate) struct HashedKeys {
    source: Source,
    rows: usize,
    /// How they are divided.
    pub partitions: HashPartitions,
}

/// Where the words of keys come from.
#[derive(Debug)]
enum Source {
    /// They are the numbers.
    Numbers(PackedNumbers),
    /// Each chunk of the vectors is encoded by itself.
    Vectors {
        columns: Arc<BTreeMap<Var, Vector>>,
        keys: Vec<Var>,
        encoding: KeyEncoding,
    },
    /// All have been encoded.
    Words(Box<KeyWords>),
}

impl HashedKeys {
    fn of(source: Source, rows: usize) -> HashedKeys {
        HashedKeys {
            source,
            rows,
            partitions: HashPartitions::of_rows(rows),
        }
    }

    /// Bytes of the keys as they have been encoded or packed, and of all chunks once they are divided.
    pub fn building(&self) -> usize {
        const HASH_AND_ROW: usize = 12;
        let (words, held) = match &self.source {
            Source::Numbers(numbers) => (1, if numbers.packed.is_some() { 9 } else { 0 }),
            Source::Vectors { encoding, .. } => (encoding.words(), 0),
            Source::Words(words) => {
                let words = words.columns().len();
                (words, 8 + 8 * words)
            }
        };
        self.rows * (HASH_AND_ROW + 8 * words + held)
    }

    /// The first rows of chunks.
    pub fn chunks(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.rows).step_by(CHUNK_ROWS)
    }

    /// Divides the chunk that begins with the row `first`. Rows with a NULL in their key are left out.
    ///
    /// # Errors
    /// Those of encoding keys; an internal error if a key is not there.
    pub fn divide(&self, first: usize) -> Result<DividedHashes> {
        let chunk = first..self.rows.min(first + CHUNK_ROWS);
        let mut own = KeyWords::default();
        match &self.source {
            Source::Numbers(numbers) => {
                let (values, valid) = numbers.values()?;
                own.number(&values[chunk.clone()], SEED);
                own.valid = valid.map(|valid| valid[chunk].to_vec());
            }
            Source::Vectors {
                columns,
                keys,
                encoding,
            } => {
                let vectors = keys.iter().filter_map(|key| columns.get(key));
                let runs: Vec<Vector> = vectors.map(|v| v.run(chunk.clone())).collect();
                let runs: Vec<&Vector> = runs.iter().collect();
                let mut interners = Vec::new();
                let mut texts = StringKeys::Adding(&mut interners);
                encoding.encode(&runs, chunk.len(), &mut texts, &mut own)?;
                if interners.iter().any(|own| own.len() > 0) {
                    // Each chunk would number them by itself.
                    return Err(Error::internal("long strings in a chunk of keys"));
                }
            }
            Source::Words(words) => {
                let columns: Vec<&[u64]> = words.columns();
                let columns = columns.iter().map(|column| &column[chunk.clone()]);
                let columns: Vec<&[u64]> = columns.collect();
                let valid = words.valid.as_ref().map(|valid| &valid[chunk.clone()]);
                let hashes = &words.hashes[chunk];
                return Ok(self.partitions.divide(hashes, &columns, valid, first));
            }
        }
        let (columns, valid) = (own.columns(), own.valid.as_deref());
        let divided = self.partitions.divide(&own.hashes, &columns, valid, first);
        Ok(divided)
    }
}

#[cfg(test)]
mod tests {
    use std::iter::once;

    use algebra::dot::{Direct, Filled, HashedParts, Marked, Ranked};
    use arrow::array::StringViewArray;
    use arrow::datatypes::DataType;

    use super::*;
    use crate::operators::join_table::{JoinTable, ProbeState};
    use crate::vector::batch::Batch;

    const ROWS: usize = MANY + 5_000;

    /// Keys in no order, each of so many rows.
    fn scattered(repeats: i64) -> Vec<i64> {
        let rows = ROWS as i64;
        (0..rows)
            .map(|row| row * 104_729 % rows / repeats - 77)
            .collect()
    }

    fn many(vectors: Vec<Vector>, types: &[Type]) -> Option<ManyKeys> {
        let rows = vectors[0].len();
        let keys: Vec<Var> = (0..vectors.len()).collect();
        let columns = Arc::new(vectors.into_iter().enumerate().collect());
        ManyKeys::of(&keys, types, &columns, rows, 0).unwrap()
    }

    fn scattered_keys(vectors: Vec<Vector>) -> ScatteredKeys {
        match many(vectors, &[]) {
            Some(ManyKeys::Scattered(_, keys)) => keys,
            other => panic!("{other:?}"),
        }
    }

    /// The index of `keys` as several workers make it, each step of chunks and ranges by itself, if it has ranks.
    fn by_steps(keys: &ScatteredKeys) -> Ranked {
        let ranges = keys.ranges;
        let chunks = keys.chunks().map(|first| keys.divide(first).unwrap());
        let chunks: Vec<Divided> = chunks.collect();
        assert!(chunks.len() > 1 && ranges.count() > 1);
        let marked = (0..ranges.count()).map(|range| ranges.mark(range, &chunks));
        let marked: Vec<Marked> = marked.collect();
        let ranked = ranges.ranked(&marked);
        for (range, marked) in marked.into_iter().enumerate() {
            ranked.index(range, &chunks, marked);
        }
        ranked.finish()
    }

    #[test]
    fn keys_in_no_order_are_indexed_as_others_are() {
        for (repeats, nulls) in [(1, false), (1, true), (4, false), (4, true)] {
            let values = scattered(repeats);
            let valid = nulls.then(|| (0..ROWS).map(|row| row % 7 > 0).collect::<Vec<bool>>());
            let there = |row: &usize| valid.as_ref().is_none_or(|valid| valid[*row]);
            let own = || (0..ROWS).filter(there).map(|row| values[row]);
            let (min, max) = (own().min().unwrap(), own().max().unwrap());
            let at_once = Ranked::build(&values, valid.as_deref(), min, max);
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
            let keys = scattered_keys(vec![vector]);
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
        let keys = scattered_keys(vectors.into());
        assert!(!unique && by_steps(&keys) == *ranked);
    }

    #[test]
    fn few_keys_or_keys_in_order_are_not_divided() {
        let in_order = Vector::new(Values::Int((0..ROWS as i64).collect()));
        let few = Vector::new(Values::Int(vec![7, i64::MAX, 5]));
        assert!(many(vec![in_order], &[]).is_none() && many(vec![few], &[]).is_none());
        let columns = Arc::default();
        assert!(ManyKeys::of(&[], &[], &columns, ROWS, 0).unwrap().is_none());
    }

    /// Keys of one or more vectors, each of so many rows, and some of them NULL.
    fn hashed(what: &str, repeats: i64, nulls: bool) -> (Vec<Vector>, Vec<Type>) {
        let keys = scattered(repeats);
        let far = || Values::Int(keys.iter().map(|key| key << 40).collect());
        let texts = |text: &dyn Fn(i64) -> String| {
            let texts = keys.iter().map(|key| text(*key));
            Values::Text(Strings::new(Arc::new(StringViewArray::from_iter_values(
                texts,
            ))))
        };
        let short = || texts(&|key| format!("key {key}"));
        let long = |key: i64| format!("{key}{}", if key % 3 == 0 { " of many" } else { "" });
        let wide = || Values::Wide(keys.iter().map(|key| i128::from(*key) << 70).collect());
        // Every zero and every NaN is one key.
        let float = |key: &i64| match key % 1_000 {
            0 => f64::NAN,
            1 => -0.0,
            _ => *key as f64 / 3.0,
        };
        let (int, text) = (DataType::Int64, DataType::Utf8View);
        let (values, types) = match what {
            "far" => (vec![far()], vec![int]),
            "two" => (vec![far(), far()], vec![int.clone(), int]),
            "short" => (vec![short()], vec![text]),
            "long" => (vec![texts(&long)], vec![text]),
            "both" => (vec![texts(&long), far()], vec![text, int]),
            "wide" => (vec![wide()], vec![DataType::Decimal128(38, 0)]),
            _ => {
                let floats = Values::Float(keys.iter().map(float).collect());
                (vec![floats], vec![DataType::Float64])
            }
        };
        let valid = |nth: usize| {
            nulls.then(|| {
                (0..ROWS)
                    .map(|row| !(row + nth).is_multiple_of(7))
                    .collect::<Vec<bool>>()
            })
        };
        let vectors = values.into_iter().enumerate().map(|(nth, values)| Vector {
            values,
            valid: valid(nth),
        });
        let types = types.iter().map(|data| Type::of(data, true).unwrap());
        (vectors.collect(), types.collect())
    }

    /// Which rows of the table some rows of `vectors` find, in the order in which it gives them.
    fn pairs(table: &JoinTable, vectors: &[Vector], types: &[Type]) -> (Vec<u32>, Vec<u32>) {
        let keys: Vec<Var> = (0..vectors.len()).collect();
        let run = 1_000..21_000;
        let mut batch = Batch::new(vectors.len());
        batch.restart(run.len());
        for (var, vector) in vectors.iter().enumerate() {
            batch.set(var, vector.run(run.clone()));
        }
        let mut state = ProbeState::default();
        table.find(&batch, &keys, types, &mut state).unwrap();
        let (mut left, mut right, mut all) = (vec![], vec![], (vec![], vec![]));
        while table.pairs(&mut state, &mut left, &mut right, 777) {
            all.0.extend_from_slice(&left);
            all.1.extend_from_slice(&right);
        }
        all
    }

    #[test]
    fn hashed_keys_are_found_as_those_of_one_worker() {
        let all = ["far", "two", "short", "long", "both", "wide", "floats"];
        let cases = all.into_iter().zip([1, 2].into_iter().cycle());
        let cases = cases.chain(once(("far", 2)));
        for ((what, repeats), nulls) in cases.zip([false, true, true].into_iter().cycle()) {
            let (vectors, types) = hashed(what, repeats, nulls);
            let keys: Vec<Var> = (0..vectors.len()).collect();
            let Some(ManyKeys::Hashed(form, own)) = many(vectors.clone(), &types) else {
                panic!("{what} keys that are not hashed");
            };
            let is_long = matches!(own.source, Source::Words(_));
            assert_eq!(is_long, matches!(what, "long" | "both"));
            assert!(own.building() >= 20 * ROWS);
            let chunks = own.chunks().map(|first| own.divide(first).unwrap());
            let chunks: Vec<DividedHashes> = chunks.collect();
            let partitions = own.partitions;
            assert!(chunks.len() > 1 && partitions.count() > 1);
            let parts = (0..partitions.count()).map(|part| partitions.fill(part, &chunks));
            let parts: Vec<Filled> = parts.collect();
            let joined = HashedParts::of(&parts);
            let parts = parts.into_iter().enumerate();
            let words = parts.map(|(part, filled)| joined.join(part, filled));
            let words = words.collect();
            let hashed = joined.finish(words);
            let unique = hashed.is_unique();
            let columns: BTreeMap<Var, Vector> = vectors.iter().cloned().enumerate().collect();
            let one = JoinTable::new(
                &keys,
                types.clone(),
                columns.clone(),
                ROWS,
                false,
                (0, false),
            );
            let one = one.unwrap();
            let index = (form.index(hashed), unique);
            let many = JoinTable::with_index(&keys, columns, ROWS, false, (0, false), index);
            assert_eq!(many.unique, one.unique, "{what}");
            let found = pairs(&many, &vectors, &types);
            assert!(found == pairs(&one, &vectors, &types), "{what}");
            assert!(found.0.len() >= 10_000, "{what}");
        }
    }
}
