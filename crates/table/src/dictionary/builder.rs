//! Building a dictionary while blocks are encoded.

use arrow::array::{Array, BinaryViewArray};
use hashbrown::HashMap;
use parking_lot::Mutex;

/// The most labels of a dictionary. A block that would add more stores its texts as they are.
pub const MOST_LABELS: usize = 524_288;

/// Most bytes of all labels of one dictionary, so that open tables stay small in memory.
const MOST_BYTES: usize = 16 << 20;

/// A dictionary of more labels or bytes than these must have so many rows for each label: it is kept in memory, and written
/// anew by each load that adds to it.
const SMALL_LABELS: usize = 65_536;
const SMALL_BYTES: usize = 4 << 20;
const ROWS_OF_LABEL: usize = 8;

/// Rows looked at before a text column is given up as not worth a dictionary.
const SAMPLE: usize = 4_096;

/// Labels being collected by loaders; shared by the threads that encode a column.
#[derive(Debug, Default)]
pub(crate) struct DictionaryBuilder {
    inner: Mutex<Labels>,
}

#[derive(Debug, Default)]
struct Labels {
    codes: HashMap<Box<[u8]>, u32>,
    /// Invariant: `codes[labels[i]] == i`.
    labels: Vec<Box<[u8]>>,
    sorted: u32,
    bytes: usize,
    /// Rows that were looked at.
    rows: usize,
}

impl DictionaryBuilder {
    /// Starts with the labels of an existing dictionary, in code order.
    pub(crate) fn with(labels: impl Iterator<Item = Box<[u8]>>, sorted: u32) -> DictionaryBuilder {
        let labels: Vec<Box<[u8]>> = labels.collect();
        let codes = labels.iter().cloned().zip(0..).collect();
        let bytes = labels.iter().map(|l| l.len()).sum();
        // It was worth its size.
        let rows = labels.len() * ROWS_OF_LABEL;
        DictionaryBuilder {
            inner: Mutex::new(Labels {
                codes,
                labels,
                sorted,
                bytes,
                rows,
            }),
        }
    }

    /// The labels in code order and how many of them are sorted.
    pub(crate) fn labels(&self) -> (Vec<Box<[u8]>>, u32) {
        let inner = self.inner.lock();
        (inner.labels.clone(), inner.sorted)
    }

    /// A code per row (0 for NULL), or `None` if the column is not worth a dictionary here.
    pub(crate) fn encode(&self, array: &BinaryViewArray) -> Option<Vec<u32>> {
        let (mut codes, local) = local_codes(array)?;
        let global = self.codes_of(&local, array.len())?;
        for code in &mut codes {
            *code = global[*code as usize];
        }
        Some(codes)
    }

    /// The codes of `local`, the labels of so many rows, adding what is missing; `None` if that is too much.
    fn codes_of(&self, local: &[&[u8]], rows: usize) -> Option<Vec<u32>> {
        let mut inner = self.inner.lock();
        inner.rows += rows;
        let missing: Vec<&[u8]> = local
            .iter()
            .copied()
            .filter(|l| !inner.codes.contains_key(*l))
            .collect();
        let bytes = inner.bytes + missing.iter().map(|l| l.len()).sum::<usize>();
        if !inner.has_room(inner.labels.len() + missing.len(), bytes) {
            return None;
        }
        inner.add(missing);
        Some(local.iter().map(|l| inner.codes[*l]).collect())
    }
}

impl Labels {
    /// Whether there may be so many labels of so many bytes.
    fn has_room(&self, labels: usize, bytes: usize) -> bool {
        let is_small = labels <= SMALL_LABELS && bytes <= SMALL_BYTES;
        let is_worth = labels * ROWS_OF_LABEL <= self.rows;
        labels <= MOST_LABELS && bytes <= MOST_BYTES && (is_small || is_worth)
    }

    fn add(&mut self, mut missing: Vec<&[u8]>) {
        missing.sort_unstable();
        let fresh = self.labels.is_empty();
        let follows = self.sorted as usize == self.labels.len()
            && missing.first() > self.labels.last().map(|l| &**l).as_ref();
        for label in &missing {
            let code = self.labels.len() as u32;
            self.codes.insert((*label).into(), code);
            self.labels.push((*label).into());
            self.bytes += label.len();
        }
        if fresh || follows {
            self.sorted = self.labels.len() as u32;
        }
    }
}

/// Codes within this block and its labels; `None` once there are too many of them.
fn local_codes(array: &BinaryViewArray) -> Option<(Vec<u32>, Vec<&[u8]>)> {
    let rows = array.len();
    let most = (rows / 4).max(256);
    let mut seen: HashMap<&[u8], u32> = HashMap::with_capacity(1024);
    let mut labels: Vec<&[u8]> = Vec::new();
    let mut codes = Vec::with_capacity(rows);
    for row in 0..rows {
        if array.is_null(row) {
            codes.push(0);
            continue;
        }
        let text = array.value(row);
        let code = *seen.entry(text).or_insert_with(|| {
            labels.push(text);
            labels.len() as u32 - 1
        });
        codes.push(code);
        if labels.len() > most || (row == SAMPLE && labels.len() > SAMPLE / 2) {
            return None;
        }
    }
    Some((codes, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = 65_536;

    /// A block of rows, `each` of them with one label, from the label of this number on.
    fn block(first: usize, each: usize) -> BinaryViewArray {
        let texts = (0..ROWS).map(|row| Some(format!("label {}", first + row / each)));
        texts.map(|text| text.map(String::into_bytes)).collect()
    }

    #[test]
    fn many_labels_need_many_rows_each() {
        let (few, many) = (DictionaryBuilder::default(), DictionaryBuilder::default());
        for number in 0..12 {
            assert!(few.encode(&block(number * 8_192, 8)).is_some());
        }
        for number in 0..8 {
            let codes = many.encode(&block(number * 16_384, 4));
            assert_eq!(codes.is_some(), number < 4, "{number}");
        }
        assert_eq!(few.labels().0.len(), 98_304);
        assert_eq!(many.labels().0.len(), 65_536);
        // What it has it goes on to find.
        let codes = many.encode(&block(1_000, 32)).unwrap();
        assert_eq!(codes.len(), ROWS);
        let (labels, sorted) = few.labels();
        let again = DictionaryBuilder::with(labels.into_iter(), sorted);
        assert!(again.encode(&block(98_304, 8)).is_some());
        assert!(again.encode(&block(106_496, 4)).is_none());
    }

    #[test]
    fn there_is_a_most_of_labels_and_of_bytes() {
        let builder = DictionaryBuilder::default();
        let inner = builder.inner.lock();
        assert!(inner.has_room(SMALL_LABELS, SMALL_BYTES));
        assert!(!inner.has_room(SMALL_LABELS + 1, 0) && !inner.has_room(1, SMALL_BYTES + 1));
        drop(inner);
        builder.inner.lock().rows = usize::MAX / 16;
        let inner = builder.inner.lock();
        assert!(inner.has_room(MOST_LABELS, MOST_BYTES));
        assert!(!inner.has_room(MOST_LABELS + 1, 0) && !inner.has_room(1, MOST_BYTES + 1));
    }
}
