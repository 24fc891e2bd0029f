//! How grouping keys become words of a hash table.

use std::ops::Range;

use algebra::krao::Groups;

use crate::error::Result;
use crate::operators::aggregate::dense::{DenseKey, decode_keys, dense_keys, encode_keys};
use crate::vector::interner::Interner;
use crate::vector::key_encoding::{KeyEncoding, KeyWords, SharedStrings, StringKeys};
use crate::vector::value::{Kind, Type, Vector};

/// How grouping keys become words of a hash table.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The number of keys.
    keys: usize,
    /// The keys of which it is known between which values they lie, if that takes fewer words: the digits of one number, which is
    /// the last word. Each with its place among the keys.
    packed: Vec<usize>,
    digits: Vec<DenseKey>,
    /// The other keys: their places, and how they become the first words; `None` if all are digits.
    others: Vec<usize>,
    words: Option<KeyEncoding>,
    /// The type of the only key, if it is a string.
    text: Option<Type>,
}

impl Layout {
    /// For keys of these types: what takes the fewest words.
    pub fn of(types: &[Type]) -> Layout {
        let at = |places: &[usize]| -> Vec<Type> {
            places.iter().map(|place| types[*place].clone()).collect()
        };
        let (mut packed, mut digits) = (Vec::new(), Vec::new());
        for place in 0..types.len() {
            packed.push(place);
            match dense_keys(&at(&packed), u64::MAX) {
                Some((all, _)) => digits = all,
                None => _ = packed.pop(),
            }
        }
        let all: Vec<usize> = (0..types.len()).collect();
        let others: Vec<usize> = all
            .iter()
            .copied()
            .filter(|at| !packed.contains(at))
            .collect();
        let words = KeyEncoding::groups(types.to_vec());
        let left = (!others.is_empty()).then(|| KeyEncoding::groups(at(&others)).with_more(1));
        let is_shorter = words.words() > 1 + left.as_ref().map_or(0, KeyEncoding::words);
        let text = match types {
            [ty] if ty.kind == Kind::Text => Some(ty.clone()),
            _ => None,
        };
        let keys = types.len();
        if is_shorter && !packed.is_empty() {
            return Layout {
                keys,
                packed,
                digits,
                others,
                words: left,
                text,
            };
        }
        Layout {
            keys,
            packed: vec![],
            digits: vec![],
            others: all,
            words: Some(words),
            text,
        }
    }

    /// How many words a key has.
    pub fn words(&self) -> usize {
        let others = self.words.as_ref().map_or(0, KeyEncoding::words);
        others + usize::from(!self.packed.is_empty())
    }

    /// The type of the only key, if it is a string.
    pub fn text(&self) -> Option<&Type> {
        self.text.as_ref()
    }

    /// Encodes the keys of rows. Long strings that the interners do not know are added to them.
    pub fn encode(
        &self,
        vectors: &[&Vector],
        rows: usize,
        interners: &mut Vec<Interner>,
        out: &mut KeyWords,
    ) -> Result<()> {
        let mut texts = StringKeys::Adding(interners);
        if let (Some(words), true) = (&self.words, self.packed.is_empty()) {
            return words.encode(vectors, rows, &mut texts, out);
        }
        let at = |places: &[usize]| -> Vec<&Vector> {
            places.iter().map(|place| vectors[*place]).collect()
        };
        let packed = at(&self.packed);
        let pack = |word: &mut Vec<u64>| encode_keys(&self.digits, &packed, rows, word);
        match &self.words {
            None => out.one(pack),
            Some(words) => {
                words.encode(&at(&self.others), rows, &mut texts, out)?;
                out.append(pack)
            }
        }
    }

    /// The keys of the groups `some` as words, with long strings renumbered as [`KeyEncoding::take`] does it.
    fn take(
        &self,
        groups: &Groups,
        some: &[u32],
        texts: &[Vec<u32>],
        out: &mut KeyWords,
    ) -> Result<()> {
        match &self.words {
            None => out.one(|words| {
                groups.column(0, some, words);
                Ok(())
            }),
            Some(layout) => {
                layout.take(groups, some, texts, out);
                Ok(())
            }
        }
    }

    /// Adds groups of another worker, none of them loose; returns the number of each here.
    pub fn adopt(
        &self,
        (groups, interners): (&mut Groups, &mut Vec<Interner>),
        (theirs, their_texts): (&Groups, &[Interner]),
    ) -> Result<Vec<u32>> {
        if interners.len() < their_texts.len() {
            interners.resize_with(their_texts.len(), Interner::default);
        }
        let renumbered: Vec<Vec<u32>> = interners
            .iter_mut()
            .zip(their_texts)
            .map(|(mine, other)| mine.adopt(other))
            .collect();
        let mut to = Vec::with_capacity(theirs.len());
        let all: Vec<u32> = (0..theirs.len() as u32).collect();
        let (mut out, mut words) = (Vec::new(), KeyWords::default());
        for some in all.chunks(algebra::VECTOR_ROWS) {
            self.take(theirs, some, &renumbered, &mut words)?;
            groups.insert(&words.hashes, &words.columns(), &mut out);
            to.extend_from_slice(&out);
        }
        Ok(to)
    }

    /// The keys that are the strings `some` of an interner, if the only key is a string.
    pub fn interned(&self, texts: &Interner, some: Range<u32>, out: &mut KeyWords) {
        if let Some(words) = &self.words {
            words.interned(texts, some, out);
        }
    }

    /// As [`KeyEncoding::share`].
    pub fn share(
        &self,
        mine: &mut Vec<Interner>,
        theirs: &[Interner],
        sharers: usize,
    ) -> Vec<SharedStrings> {
        let words = self.words.as_ref();
        words.map_or_else(Vec::new, |words| words.share(mine, theirs, sharers))
    }

    /// The keys of the groups `some`.
    pub fn decode(
        &self,
        groups: &Groups,
        some: &[u32],
        interners: &[Interner],
    ) -> Result<Vec<Vector>> {
        let column = |word| {
            let mut out = Vec::new();
            groups.column(word, some, &mut out);
            out
        };
        let others = self.words.as_ref().map_or(0, KeyEncoding::words);
        let mut vectors: Vec<(usize, Vector)> = Vec::with_capacity(self.keys);
        if let Some(layout) = &self.words {
            let words: Vec<Vec<u64>> = (0..others).map(column).collect();
            let decoded = layout.decode(&words, interners)?;
            vectors.extend(self.others.iter().copied().zip(decoded));
        }
        if !self.packed.is_empty() {
            let decoded = decode_keys(&self.digits, column(others));
            vectors.extend(self.packed.iter().copied().zip(decoded));
        }
        vectors.sort_by_key(|(place, _)| *place);
        Ok(vectors.into_iter().map(|(_, vector)| vector).collect())
    }
}
