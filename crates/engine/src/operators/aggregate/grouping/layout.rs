//! How grouping keys become words of a hash table.

use algebra::krao::Groups;

use crate::error::Result;
use crate::operators::aggregate::dense::{DenseKey, decode_keys, dense_keys, encode_keys};
use crate::vector::interner::Interner;
use crate::vector::key_encoding::{KeyEncoding, KeyWords, StringKeys};
use crate::vector::value::{Type, Vector};

/// How grouping keys become words of a hash table.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    /// All keys are the digits of one number, as it is known between which values each lies.
    Packed(Vec<DenseKey>),
    /// A word for each key, or two, and one that says which are NULL.
    Words(KeyEncoding),
}

impl Layout {
    /// For keys of these types: what takes fewer words.
    pub fn of(types: &[Type]) -> Layout {
        let words = KeyEncoding::groups(types.to_vec());
        match dense_keys(types, u64::MAX) {
            Some((digits, _)) if words.words() > 1 => Layout::Packed(digits),
            _ => Layout::Words(words),
        }
    }

    /// How many words a key has.
    pub fn words(&self) -> usize {
        match self {
            Layout::Packed(_) => 1,
            Layout::Words(layout) => layout.words(),
        }
    }

    /// Encodes the keys of rows. Strings that the interners do not know are added to them.
    pub fn encode(
        &self,
        vectors: &[&Vector],
        rows: usize,
        interners: &mut Vec<Interner>,
        out: &mut KeyWords,
    ) -> Result<()> {
        match self {
            Layout::Packed(digits) => out.one(|words| encode_keys(digits, vectors, rows, words)),
            Layout::Words(layout) => {
                layout.encode(vectors, rows, &mut StringKeys::Adding(interners), out)
            }
        }
    }

    /// The keys of the groups `some` as words, with strings renumbered as [`KeyEncoding::take`] does it.
    pub fn take(
        &self,
        groups: &Groups,
        some: &[u32],
        texts: &[Vec<u32>],
        out: &mut KeyWords,
    ) -> Result<()> {
        match self {
            Layout::Packed(_) => out.one(|words| {
                groups.column(0, some, words);
                Ok(())
            }),
            Layout::Words(layout) => {
                layout.take(groups, some, texts, out);
                Ok(())
            }
        }
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
        match self {
            Layout::Packed(digits) => Ok(decode_keys(digits, column(0))),
            Layout::Words(layout) => {
                let words: Vec<Vec<u64>> = (0..layout.words()).map(column).collect();
                layout.decode(&words, interners)
            }
        }
    }
}
