//! Key encoding: keys of any types as 64-bit words, for hash tables of joins and groups.
//!
//! A string of up to 12 bytes is two words, those of its Arrow view: its length and all its bytes. A longer one is a number that an
//! [`Interner`] gives it, marked by a length that no string has, and the hash of its bytes. So short strings are the same words
//! wherever they come from, and need no table of strings; and the hash of a key is the same whatever numbers its strings have.

mod strings;
#[cfg(test)]
mod tests;

pub(crate) use strings::StringKeys;

use std::ops::Range;

use algebra::hash::{combine_u64, hash_u64};
use algebra::krao::Groups;

use crate::error::{Error, Result};
use crate::vector::interner::{INLINE, Interner};
use crate::vector::key_encoding::strings::{Scratch, number_in, numbered, renumber, text_words};
use crate::vector::strings::Strings;
use crate::vector::value::{Kind, Type, Values, Vector};

const SEED: u64 = 0x5EED_A703;

/// The encoded keys of some rows. Reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct KeyWords {
    words: Vec<Vec<u64>>,
    /// Which words are first words of strings some of which are long: a bit for each.
    long: u64,
    scratch: Scratch,
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
    /// Words behind these that the caller writes.
    more: usize,
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
            more: 0,
        }
    }

    /// The encoding for groups: NULLs are equal, and the vectors always have the same dictionaries.
    pub fn groups(types: Vec<Type>) -> KeyEncoding {
        let nulls = types.iter().any(|ty| ty.nullable);
        KeyEncoding {
            types,
            nulls,
            codes: true,
            more: 0,
        }
    }

    /// With so many words behind its own that the caller writes, with [`KeyWords::append`].
    pub fn with_more(self, more: usize) -> KeyEncoding {
        KeyEncoding { more, ..self }
    }

    /// How many words a key has, without those that the caller writes.
    pub fn words(&self) -> usize {
        let own = self.types.iter().map(|ty| self.words_of(ty)).sum::<usize>();
        (own + usize::from(self.nulls)).max(1)
    }

    fn words_of(&self, ty: &Type) -> usize {
        if ty.kind == Kind::Wide || self.is_text(ty) {
            2
        } else {
            1
        }
    }

    /// Whether values of this type are compared as strings.
    fn is_text(&self, ty: &Type) -> bool {
        ty.kind == Kind::Text || ty.kind == Kind::Code && !self.codes
    }

    /// Encodes the rows of `vectors` into `out`. Long strings that `texts` does not know are added to it; if it is
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
        let count = self.words();
        out.words.resize_with(count + self.more, Vec::new);
        (out.valid, out.long) = (None, 0);
        let mut mask: Option<Vec<u64>> = None;
        let mut word = 0;
        for (position, (vector, ty)) in vectors.iter().zip(types).enumerate() {
            let (low, high) = out.words.split_at_mut(word + 1);
            let high = high.first_mut();
            if self.is_text(ty) {
                let high = high.ok_or_else(|| Error::internal("no room for a text"))?;
                let own = (&mut low[word], high);
                let strings = (*vector, *ty);
                let long = text_words(strings, (texts, position), &mut out.scratch, own)?;
                out.long |= u64::from(long) << word;
            } else {
                plain_words(&vector.values, &mut low[word], high)?;
            }
            if let Some(valid) = &vector.valid {
                if self.nulls {
                    let mask = mask.get_or_insert_with(|| vec![0; rows]);
                    for (row, there) in valid.iter().enumerate() {
                        if !there {
                            mask[row] |= 1 << (position % 64);
                            out.words[word][row] = 0;
                            if self.words_of(ty) > 1 {
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
            word += self.words_of(ty);
        }
        if self.nulls {
            out.words[word] = mask.unwrap_or_else(|| vec![0; rows]);
        } else if vectors.is_empty() {
            out.words[0].clear();
            out.words[0].resize(rows, 0);
        }
        out.hash(count);
        Ok(())
    }

    /// The keys of the groups `some` as words, those of the caller included, with long strings renumbered: `texts[position]` maps
    /// the old numbers to the new.
    pub fn take(&self, groups: &Groups, some: &[u32], texts: &[Vec<u32>], out: &mut KeyWords) {
        let count = self.words() + self.more;
        out.words.resize_with(count, Vec::new);
        for (word, column) in out.words.iter_mut().enumerate() {
            groups.column(word, some, column);
        }
        out.long = 0;
        for (position, word) in self.strings() {
            let Some(numbers) = texts.get(position).filter(|own| !own.is_empty()) else {
                continue;
            };
            out.long |= 1 << word;
            for low in &mut out.words[word] {
                let own = number_in(*low).and_then(|number| numbers.get(number as usize));
                *low = own.map_or(*low, |number| numbered(*number));
            }
        }
        out.hash(count);
    }

    /// The strings of a key: the place of the vector, and the first word.
    fn strings(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut next = 0;
        self.types
            .iter()
            .enumerate()
            .filter_map(move |(position, ty)| {
                let word = next;
                next += self.words_of(ty);
                self.is_text(ty).then_some((position, word))
            })
    }

    /// The keys that are the strings `some` of an interner, for keys of one string.
    pub fn interned(&self, texts: &Interner, some: Range<u32>, out: &mut KeyWords) {
        let count = self.words();
        out.words.resize_with(count, Vec::new);
        out.words.iter_mut().for_each(Vec::clear);
        (out.valid, out.long) = (None, 1);
        for number in some {
            let view = texts.view(number);
            let (low, high) = if view as u32 > INLINE {
                (numbered(number), texts.hash(number))
            } else {
                (view as u64, (view >> 64) as u64)
            };
            let null = u64::from(texts.is_null(number));
            for (words, own) in out.words.iter_mut().zip([low, high, null]) {
                words.push(own);
            }
        }
        out.hash(count);
    }

    /// The interners `mine` made ready for keys of another table, whose long strings `theirs` numbered. `sharers` tables divide
    /// that one's keys.
    pub fn share(
        &self,
        mine: &mut Vec<Interner>,
        theirs: &[Interner],
        sharers: usize,
    ) -> Vec<SharedStrings> {
        if mine.len() < theirs.len() {
            mine.resize_with(theirs.len(), Interner::default);
        }
        let there = |(position, _): &(usize, usize)| {
            let own = theirs.get(*position);
            own.is_some_and(|own| own.len() > 0)
        };
        let strings = self.strings().filter(there);
        let shared = strings.map(|(position, word)| SharedStrings {
            position,
            word,
            first: mine[position].share(&theirs[position], sharers),
            renumbered: vec![],
        });
        shared.collect()
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
                    let nothing = Interner::default();
                    // Without any long string so far, there may be no interner.
                    let interner = interners.get(position).unwrap_or(&nothing);
                    let view = |(low, high): (&u64, &u64)| match number_in(*low) {
                        Some(number) => interner.view(number),
                        None => u128::from(*high) << 64 | u128::from(*low),
                    };
                    let views = own.iter().zip(&words[word + 1]).map(view).collect();
                    // SAFETY: the words of a string that has no number are those of a view that holds it whole.
                    Values::Text(Strings::new(unsafe { interner.of_views(views) }))
                }
            };
            word += self.words_of(ty);
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

/// A string of the keys of another table, whose blocks an interner shares.
#[derive(Debug)]
pub(crate) struct SharedStrings {
    /// The place of its vector in the key, and its first word.
    position: usize,
    word: usize,
    /// The first of the shared blocks.
    first: u32,
    /// The first words of some keys, with the numbers of the interner that shares.
    renumbered: Vec<u64>,
}

impl SharedStrings {
    /// Renumbers the strings of some keys, which are columns, from `theirs` to `mine`.
    pub fn renumber(&mut self, mine: &mut [Interner], theirs: &[Interner], keys: &[&[u64]]) {
        let interners = (&mut mine[self.position], &theirs[self.position], self.first);
        let words = (keys[self.word], keys[self.word + 1]);
        renumber(interners, words, &mut self.renumbered);
    }

    /// Puts the renumbered words into the columns of the keys.
    pub fn put<'a>(&'a self, keys: &mut [&'a [u64]]) {
        keys[self.word] = &self.renumbered;
    }
}

impl KeyWords {
    /// Hashes the first `count` words.
    fn hash(&mut self, count: usize) {
        for (place, words) in self.words[..count].iter().enumerate() {
            let words = match self.long >> place & 1 {
                0 => words.as_slice(),
                _ => self.scratch.without_numbers(words),
            };
            if place == 0 {
                hash_u64(words, SEED, &mut self.hashes);
            } else {
                combine_u64(words, &mut self.hashes);
            }
        }
    }

    /// Writes the last word of encoded keys, by `fill`: the one that they were made [with](KeyEncoding::with_more).
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn append(&mut self, fill: impl FnOnce(&mut Vec<u64>) -> Result<()>) -> Result<()> {
        let last = self.words.last_mut();
        let last = last.ok_or_else(|| Error::internal("keys without words"))?;
        fill(last)?;
        combine_u64(last, &mut self.hashes);
        Ok(())
    }

    /// Encodes keys that are one whole number each.
    pub fn number(&mut self, values: &[i64], seed: u64) {
        self.words.resize_with(1, Vec::new);
        self.words[0].clear();
        self.words[0].extend(values.iter().map(|value| *value as u64));
        (self.valid, self.long) = (None, 0);
        hash_u64(&self.words[0], seed, &mut self.hashes);
    }

    /// Encodes keys that are one word each, which `fill` writes.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn one(&mut self, fill: impl FnOnce(&mut Vec<u64>) -> Result<()>) -> Result<()> {
        self.words.resize_with(1, Vec::new);
        (self.valid, self.long) = (None, 0);
        fill(&mut self.words[0])?;
        self.hash(1);
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
