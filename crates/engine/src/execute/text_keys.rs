//! The texts that are keys of a join table, for scans whose rows others join with it.
//!
//! A scan looks at each text once more than without it, so what is asked must be cheap: a Bloom filter, of two bits of one
//! word for each text. A row that passes though its text is no key meets none where it is joined.

use algebra::hash::hash_bytes;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use table::Test;

use crate::vector::value::{Values, Vector};

/// Bits for each key, at least: of a hundred texts that are no keys about two pass.
const BITS: usize = 16;
const SEED: u64 = 0;

/// The rows that pass a test.
pub(super) type Tested =
    std::result::Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>>;

/// A row passes if its text may be a key.
#[derive(Debug)]
pub(crate) struct AmongTexts {
    /// A power of two of them.
    words: Vec<u64>,
}

impl AmongTexts {
    /// The texts of `keys`, NULLs left out; `None` if they are no texts.
    pub(crate) fn of(keys: &Vector) -> Option<AmongTexts> {
        let Values::Text(texts) = &keys.values else {
            return None;
        };
        let texts = texts.array().ok()?;
        let texts = texts.as_string_view_opt()?;
        let words = (texts.len() * BITS).div_ceil(64).next_power_of_two();
        let mut among = AmongTexts {
            words: vec![0; words],
        };
        for (row, text) in texts.iter().enumerate() {
            let is_there = keys.valid.as_ref().is_none_or(|valid| valid[row]);
            if let (Some(text), true) = (text, is_there) {
                let (word, bits) = among.place(text);
                among.words[word] |= bits;
            }
        }
        Some(among)
    }

    /// The word of a text, and its bits in it.
    fn place(&self, text: &str) -> (usize, u64) {
        let hash = hash_bytes(text.as_bytes(), SEED);
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63);
        ((hash >> 12) as usize & (self.words.len() - 1), bits)
    }

    fn tested(&self, texts: &StringViewArray) -> BooleanArray {
        let may_be = |row: usize| {
            let (word, bits) = self.place(texts.value(row));
            self.words[word] & bits == bits
        };
        let hits = BooleanBuffer::collect_bool(texts.len(), may_be);
        BooleanArray::new(hits, texts.logical_nulls())
    }
}

impl Test for AmongTexts {
    fn evaluate(&self, columns: &[ArrayRef], _rows: usize) -> Tested {
        if let Some(texts) = columns[0].as_string_view_opt() {
            return Ok(self.tested(texts));
        }
        let texts = cast(&columns[0], &DataType::Utf8View)?;
        Ok(self.tested(texts.as_string_view()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::strings::Strings;
    use std::sync::Arc;

    #[test]
    fn all_keys_pass_and_few_others() {
        let text = |number: usize| format!("AAAAAAAA{number:08}");
        let keys = (0..5_000).map(|number| (number % 7 != 0).then(|| text(number)));
        let keys: StringViewArray = keys.collect();
        let among = AmongTexts::of(&Vector {
            values: Values::Text(Strings::new(Arc::new(keys))),
            valid: Some((0..5_000).map(|number| number % 7 != 0).collect()),
        });
        let mut texts: Vec<Option<String>> = (0..50_000).map(|number| Some(text(number))).collect();
        texts.push(None);
        let views: ArrayRef = Arc::new(StringViewArray::from_iter(&texts));
        let plain = cast(&views, &DataType::Utf8).unwrap();
        for column in [views, plain] {
            let hits = among.as_ref().unwrap().evaluate(&[column], texts.len());
            let hits = hits.unwrap();
            assert!(hits.is_null(50_000));
            for number in (0..5_000).filter(|number| number % 7 != 0) {
                assert!(hits.value(number), "{number} is a key");
            }
            let others = (5_000..50_000).filter(|number| hits.value(*number));
            assert!(others.count() < 45_000 / 20);
        }
        let none = StringViewArray::new_null(0);
        let none = Vector {
            values: Values::Text(Strings::new(Arc::new(none))),
            valid: None,
        };
        let hits = AmongTexts::of(&none).unwrap();
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["a", ""]));
        assert_eq!(hits.evaluate(&[texts], 2).unwrap().true_count(), 0);
        let numbers = Vector {
            values: Values::Int(vec![1]),
            valid: None,
        };
        assert!(AmongTexts::of(&numbers).is_none());
    }
}
