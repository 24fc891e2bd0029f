//! Key encoding: keys of any types as 64-bit words, for hash tables of joins and groups.

use algebra::hash::{combine_u64, hash_u64};
use algebra::krao::Groups;
use arrow::array::AsArray;

use crate::error::{Error, Result};
use crate::vector::interner::{Interner, NOBODY};
use crate::vector::value::{Kind, Type, Values, Vector};

const SEED: u64 = 0x5EED_A703;

/// The word of a string that the interner does not know. No known string has it.
const UNKNOWN: u64 = u64::MAX;

/// The encoded keys of some rows. Reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct KeyWords {
    words: Vec<Vec<u64>>,
    /// Scratch: interned numbers of strings.
    numbers: Vec<u32>,
    pub hashes: Vec<u64>,
    /// Which rows have no NULL in their key; `None` if none of them has.
    pub valid: Option<Vec<bool>>,
}

/// How the vectors of a key become words.
#[derive(Clone, Debug)]
pub(crate) struct KeyEncoding {
    /// The type of each vector of the key.
    types: Vec<Type>,
    /// Whether NULL is a key of its own. If so, a last word has a bit for each vector that is NULL.
    nulls: bool,
    /// Whether dictionary codes stand for themselves, because all keys share the same dictionaries.
    codes: bool,
}

/// Checks that keys of these types have no more words than hash tables of keys hold.
///
/// # Errors
/// [`Error::Unsupported`] if they have more.
pub(crate) fn check<'t>(types: impl Iterator<Item = &'t Type>) -> Result<()> {
    let layout = KeyEncoding::groups(types.cloned().collect());
    if layout.words() <= algebra::krao::MAX_WORDS {
        Ok(())
    } else {
        Err(Error::unsupported("keys of so many columns"))
    }
}

impl KeyEncoding {
    /// The encoding for a join: a row with a NULL has no key, and strings of different dictionaries may be equal.
    pub fn join(types: Vec<Type>) -> KeyEncoding {
        KeyEncoding {
            types,
            nulls: false,
            codes: false,
        }
    }

    /// The encoding for groups: NULLs are equal, and the vectors always have the same dictionaries.
    pub fn groups(types: Vec<Type>) -> KeyEncoding {
        let nulls = types.iter().any(|ty| ty.nullable);
        KeyEncoding {
            types,
            nulls,
            codes: true,
        }
    }

    /// How many words a key has.
    pub fn words(&self) -> usize {
        let wide = self.types.iter().filter(|ty| ty.kind == Kind::Wide).count();
        (self.types.len() + wide + usize::from(self.nulls)).max(1)
    }

    /// Whether values of this type must be interned.
    fn is_text(&self, ty: &Type) -> bool {
        ty.kind == Kind::Text || ty.kind == Kind::Code && !self.codes
    }

    /// Encodes the rows of `vectors` into `out`. Strings that `texts` does not know are added to it; if it is
    /// `Known`, they get a word that matches no key.
    pub fn encode(
        &self,
        vectors: &[&Vector],
        rows: usize,
        texts: &mut StringKeys<'_>,
        out: &mut KeyWords,
    ) -> Result<()> {
        let own: Vec<&Type> = self.types.iter().collect();
        self.encode_as(&own, vectors, rows, texts, out)
    }

    /// Like [`encode`](Self::encode), for vectors of other types whose values may be equal: strings may have other
    /// dictionaries, or none.
    pub fn encode_as(
        &self,
        types: &[&Type],
        vectors: &[&Vector],
        rows: usize,
        texts: &mut StringKeys<'_>,
        out: &mut KeyWords,
    ) -> Result<()> {
        out.words.resize_with(self.words(), Vec::new);
        out.valid = None;
        let mut mask: Option<Vec<u64>> = None;
        let mut word = 0;
        for (position, (vector, ty)) in vectors.iter().zip(types).enumerate() {
            if self.is_text(ty) {
                let (numbers, own) = (&mut out.numbers, &mut out.words[word]);
                text_words(vector, ty, texts, position, numbers, own)?;
            } else {
                let (low, high) = out.words.split_at_mut(word + 1);
                plain_words(&vector.values, &mut low[word], high.first_mut())?;
            }
            if let Some(valid) = &vector.valid {
                if self.nulls {
                    let mask = mask.get_or_insert_with(|| vec![0; rows]);
                    for (row, there) in valid.iter().enumerate() {
                        if !there {
                            mask[row] |= 1 << (position % 64);
                            out.words[word][row] = 0;
                            if ty.kind == Kind::Wide {
                                out.words[word + 1][row] = 0;
                            }
                        }
                    }
                } else {
                    let all = out.valid.get_or_insert_with(|| vec![true; rows]);
                    all.iter_mut()
                        .zip(valid)
                        .for_each(|(all, valid)| *all &= valid);
                }
            }
            word += if ty.kind == Kind::Wide { 2 } else { 1 };
        }
        if self.nulls {
            out.words[word] = mask.unwrap_or_else(|| vec![0; rows]);
        } else if vectors.is_empty() {
            out.words[0].clear();
            out.words[0].resize(rows, 0);
        }
        out.hash();
        Ok(())
    }

    /// The keys of the groups `some` as words, with strings renumbered: `texts[position]` maps the old numbers to
    /// the new.
    pub fn take(&self, groups: &Groups, some: &[u32], texts: &[Vec<u32>], out: &mut KeyWords) {
        out.words.resize_with(self.words(), Vec::new);
        for (word, column) in out.words.iter_mut().enumerate() {
            groups.column(word, some, column);
        }
        let mut word = 0;
        for (position, ty) in self.types.iter().enumerate() {
            if self.is_text(ty)
                && let Some(numbers) = texts.get(position)
            {
                let (own, after) = out.words.split_at_mut(word + 1);
                let mask = after.last().filter(|_| self.nulls);
                for (row, number) in own[word].iter_mut().enumerate() {
                    // The word of a NULL is no string number.
                    let null = mask.is_some_and(|mask| mask[row] >> (position % 64) & 1 == 1);
                    if !null {
                        let own = numbers.get(*number as usize).copied();
                        *number = own.map_or(*number, u64::from);
                    }
                }
            }
            word += if ty.kind == Kind::Wide { 2 } else { 1 };
        }
        out.hash();
    }

    /// Decodes keys, given as one vector per word, into their vectors.
    pub fn decode(&self, words: &[Vec<u64>], interners: &[Interner]) -> Result<Vec<Vector>> {
        let rows = words.first().map_or(0, Vec::len);
        let mut vectors = Vec::with_capacity(self.types.len());
        let mut word = 0;
        for (position, ty) in self.types.iter().enumerate() {
            let own = &words[word];
            let values = match ty.kind {
                Kind::Int => Values::Int(own.iter().map(|w| *w as i64).collect()),
                Kind::Wide => {
                    let pairs = own.iter().zip(&words[word + 1]);
                    Values::Wide(
                        pairs
                            .map(|(low, high)| (u128::from(*high) << 64 | u128::from(*low)) as i128)
                            .collect(),
                    )
                }
                Kind::Float => Values::Float(own.iter().map(|w| f64::from_bits(*w)).collect()),
                Kind::Bool => Values::Bool(own.iter().map(|w| *w != 0).collect()),
                Kind::Code => Values::Code(own.iter().map(|w| *w as u32).collect()),
                Kind::Text => {
                    let numbers = own.iter().map(|word| *word as u32);
                    let nothing = Interner::default();
                    // Without any string so far, there may be no interner.
                    let interner = interners.get(position).unwrap_or(&nothing);
                    Values::Text(crate::vector::strings::Strings::new(
                        interner.array(numbers),
                    ))
                }
            };
            word += if ty.kind == Kind::Wide { 2 } else { 1 };
            let valid = ty.nullable.then(|| {
                let mask = &words[words.len() - 1];
                (0..rows)
                    .map(|row| mask[row] >> (position % 64) & 1 == 0)
                    .collect::<Vec<bool>>()
            });
            vectors.push(Vector {
                values,
                valid: valid.filter(|valid| valid.contains(&false)),
            });
        }
        Ok(vectors)
    }
}

impl KeyWords {
    fn hash(&mut self) {
        hash_u64(&self.words[0], SEED, &mut self.hashes);
        for words in &self.words[1..] {
            combine_u64(words, &mut self.hashes);
        }
    }

    /// Encodes keys that are one whole number each.
    pub fn number(&mut self, values: &[i64], seed: u64) {
        self.words.resize_with(1, Vec::new);
        self.words[0].clear();
        self.words[0].extend(values.iter().map(|value| *value as u64));
        self.valid = None;
        hash_u64(&self.words[0], seed, &mut self.hashes);
    }

    /// Encodes keys that are one word each, which `fill` writes.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn one(&mut self, fill: impl FnOnce(&mut Vec<u64>) -> Result<()>) -> Result<()> {
        self.words.resize_with(1, Vec::new);
        self.valid = None;
        fill(&mut self.words[0])?;
        self.hash();
        Ok(())
    }

    /// The words, one slice per word of the key.
    pub fn columns(&self) -> Vec<&[u64]> {
        self.words.iter().map(Vec::as_slice).collect()
    }
}

fn plain_words(values: &Values, out: &mut Vec<u64>, high: Option<&mut Vec<u64>>) -> Result<()> {
    out.clear();
    match values {
        Values::Int(v) => out.extend(v.iter().map(|v| *v as u64)),
        Values::Wide(v) => {
            out.extend(v.iter().map(|v| *v as u64));
            let high = high.ok_or_else(|| Error::internal("no room for a wide key"))?;
            high.clear();
            high.extend(v.iter().map(|v| (*v >> 64) as u64));
        }
        Values::Float(v) => out.extend(v.iter().map(|v| word_of(*v))),
        Values::Bool(v) => out.extend(v.iter().map(|v| u64::from(*v))),
        Values::Code(v) => out.extend(v.iter().map(|v| u64::from(*v))),
        Values::Text(_) => return Err(Error::internal("a string as a number")),
    }
    Ok(())
}

/// The word of a float: both zeros have the same, and so have all NaNs.
pub(crate) fn word_of(v: f64) -> u64 {
    match v {
        v if v.is_nan() => f64::NAN.to_bits(),
        v => (v + 0.0).to_bits(),
    }
}

/// The interners of a key's strings, by the position of the vector in the key.
pub(crate) enum StringKeys<'a> {
    /// New strings are added.
    Adding(&'a mut Vec<Interner>),
    /// New strings match no key.
    Known(&'a [Interner]),
}

/// The interned numbers of strings, as words.
fn text_words(
    vector: &Vector,
    ty: &Type,
    texts: &mut StringKeys<'_>,
    position: usize,
    numbers: &mut Vec<u32>,
    out: &mut Vec<u64>,
) -> Result<()> {
    out.clear();
    let word = |number: &u32| match *number {
        NOBODY => UNKNOWN,
        number => u64::from(number),
    };
    if let (Values::Code(codes), Some(labels)) = (&vector.values, &ty.labels) {
        // Interns each label once, if there are fewer labels than rows.
        if labels.len() <= codes.len() {
            let labels = crate::vector::strings::Strings::new(labels.labels().clone());
            texts.number(&labels, None, position, numbers)?;
            let of = |code: &u32| numbers.get(*code as usize).map_or(UNKNOWN, word);
            out.extend(codes.iter().map(of));
            return Ok(());
        }
    }
    let valid = vector.valid.as_deref();
    match &vector.values {
        Values::Text(some) => texts.number(some, valid, position, numbers)?,
        _ => {
            let array = vector.to_arrow(&Type {
                data: arrow::datatypes::DataType::Utf8View,
                ..ty.clone()
            })?;
            texts.number(
                &crate::vector::strings::Strings::new(array),
                valid,
                position,
                numbers,
            )?;
        }
    }
    out.extend(numbers.iter().map(word));
    Ok(())
}

impl StringKeys<'_> {
    /// The interned numbers of `texts`.
    fn number(
        &mut self,
        texts: &crate::vector::strings::Strings,
        valid: Option<&[bool]>,
        position: usize,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        match self {
            StringKeys::Adding(interners) => {
                if interners.len() <= position {
                    interners.resize_with(position + 1, Interner::default);
                }
                interners[position].add(texts, valid, out);
            }
            StringKeys::Known(interners) => match interners.get(position) {
                Some(interner) => interner.find(texts.array()?.as_string_view(), out),
                None => {
                    out.clear();
                    out.resize(texts.len(), NOBODY);
                }
            },
        }
        Ok(())
    }
}
