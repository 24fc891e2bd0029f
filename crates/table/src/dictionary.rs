//! Dictionaries: the labels of a text column, the type of its dimension (L1, design point 2).
//!
//! A label's code never changes. The labels of the first block are sorted, so their codes are
//! in order; later labels follow in the order they came, and [`Dictionary::rank`] orders all.

use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, BinaryViewArray, make_view};
use arrow::buffer::Buffer;
use buffer::Pool;
use hashbrown::HashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::block::Page;
use crate::error::{Error, Result};
use crate::lane::{cast, pin};

/// Most labels of a dictionary; a block that would exceed it stores plain text.
pub const MOST_LABELS: usize = 65_536;

/// Most bytes of all labels of one dictionary, so that open tables stay small in memory.
const MOST_BYTES: usize = 4 << 20;

/// Rows looked at before a text column is given up as not worth a dictionary.
const SAMPLE: usize = 4_096;

/// A dictionary as the catalog keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DictionaryRecord {
    /// Labels; codes are `0 .. labels`.
    pub labels: u32,
    /// The labels below this code are in ascending order.
    pub sorted: u32,
    /// Text pages with the labels in code order.
    pub pages: Vec<Page>,
}

impl DictionaryRecord {
    /// Reads the labels, in code order.
    pub(crate) async fn labels(&self, table: &str, pool: &Pool) -> Result<Vec<Box<[u8]>>> {
        let mut labels: Vec<Box<[u8]>> = Vec::with_capacity(self.labels as usize);
        let damaged = |id| Error::Damaged {
            table: table.to_owned(),
            what: format!("page {id} of a dictionary"),
        };
        for (index, page) in self.pages.iter().enumerate() {
            let end = self
                .pages
                .get(index + 1)
                .map_or(self.labels, |next| next.first);
            let pin = pin(pool, page.id).await?;
            if page.long {
                let mut label = pin.to_vec();
                for id in &page.more {
                    label.extend_from_slice(&self::pin(pool, *id).await?);
                }
                labels.push(label.into());
                continue;
            }
            let rows = end
                .checked_sub(page.first)
                .ok_or_else(|| damaged(page.id))? as usize;
            let texts = texts(&pin, rows).ok_or_else(|| damaged(page.id))?;
            labels.extend(texts.into_iter().map(Box::from));
        }
        match labels.len() == self.labels as usize {
            true => Ok(labels),
            false => Err(damaged(self.pages.last().map_or(0, |p| p.id))),
        }
    }
}

/// The texts of a page of `rows`; `None` if it does not hold so many.
fn texts(page: &[u8], rows: usize) -> Option<Vec<&[u8]>> {
    let (offsets, heap) = page.split_at_checked(2 * (rows + 1))?;
    let offsets = cast::<u16>(offsets)?;
    offsets
        .windows(2)
        .map(|w| heap.get(w[0] as usize..w[1] as usize))
        .collect()
}

/// Labels being collected by loaders; shared by the threads that encode a column.
#[derive(Debug, Default)]
pub(crate) struct Words {
    inner: Mutex<Labels>,
}

#[derive(Debug, Default)]
struct Labels {
    codes: HashMap<Box<[u8]>, u32>,
    /// Invariant: `codes[labels[i]] == i`.
    labels: Vec<Box<[u8]>>,
    sorted: u32,
    bytes: usize,
}

impl Words {
    /// Starts with the labels of an existing dictionary, in code order.
    pub(crate) fn with(labels: impl Iterator<Item = Box<[u8]>>, sorted: u32) -> Words {
        let labels: Vec<Box<[u8]>> = labels.collect();
        let codes = labels.iter().cloned().zip(0..).collect();
        let bytes = labels.iter().map(|l| l.len()).sum();
        Words {
            inner: Mutex::new(Labels {
                codes,
                labels,
                sorted,
                bytes,
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
        let global = self.codes_of(&local)?;
        for code in &mut codes {
            *code = global[*code as usize];
        }
        Some(codes)
    }

    /// The codes of `local`, adding what is missing; `None` if that is too much.
    fn codes_of(&self, local: &[&[u8]]) -> Option<Vec<u32>> {
        let mut inner = self.inner.lock();
        let missing: Vec<&[u8]> = local
            .iter()
            .copied()
            .filter(|l| !inner.codes.contains_key(*l))
            .collect();
        let bytes = inner.bytes + missing.iter().map(|l| l.len()).sum::<usize>();
        if inner.labels.len() + missing.len() > MOST_LABELS || bytes > MOST_BYTES {
            return None;
        }
        inner.add(missing);
        Some(local.iter().map(|l| inner.codes[*l]).collect())
    }
}

impl Labels {
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

/// The labels of a column, loaded.
#[derive(Debug)]
pub struct Dictionary {
    /// Labels in code order; its views and buffers are what decoding gathers from.
    labels: ArrayRef,
    views: Vec<u128>,
    buffers: Arc<[Buffer]>,
    sorted: u32,
    rank: OnceLock<Vec<u32>>,
}

impl Dictionary {
    /// From labels in code order; `text` tells whether they are text or binary.
    ///
    /// # Errors
    /// A label that is not UTF-8 although `text`.
    pub(crate) fn new(
        labels: &[Box<[u8]>],
        sorted: u32,
        text: bool,
    ) -> std::result::Result<Dictionary, arrow::error::ArrowError> {
        let mut heap = Vec::with_capacity(labels.iter().map(|l| l.len()).sum());
        let mut views = Vec::with_capacity(labels.len());
        for label in labels {
            views.push(make_view(label, 0, heap.len() as u32));
            if label.len() > 12 {
                heap.extend_from_slice(label);
            }
        }
        let buffers: Arc<[Buffer]> = if heap.is_empty() {
            Arc::new([])
        } else {
            Arc::new([Buffer::from_vec(heap)])
        };
        let binary = BinaryViewArray::try_new(views.clone().into(), buffers.clone(), None)?;
        let labels: ArrayRef = if text {
            Arc::new(binary.to_string_view()?)
        } else {
            Arc::new(binary)
        };
        Ok(Dictionary {
            labels,
            views,
            buffers,
            sorted,
            rank: OnceLock::new(),
        })
    }

    /// Labels in code order (a text or binary view array).
    pub fn labels(&self) -> &ArrayRef {
        &self.labels
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// Whether all codes are in the order of their labels.
    pub fn is_sorted(&self) -> bool {
        self.sorted as usize == self.views.len()
    }

    /// The order vector: for each code, its label's place among all labels.
    pub fn rank(&self) -> &[u32] {
        self.rank.get_or_init(|| {
            let binary = match self.labels.as_any().downcast_ref::<BinaryViewArray>() {
                Some(binary) => binary.clone(),
                None => arrow::array::AsArray::as_string_view(&self.labels)
                    .clone()
                    .to_binary_view(),
            };
            let mut order: Vec<u32> = (0..self.views.len() as u32).collect();
            order.sort_unstable_by_key(|code| binary.value(*code as usize));
            let mut rank = vec![0; order.len()];
            for (place, code) in order.into_iter().enumerate() {
                rank[code as usize] = place as u32;
            }
            rank
        })
    }

    pub(crate) fn views(&self) -> &[u128] {
        &self.views
    }

    pub(crate) fn buffers(&self) -> &Arc<[Buffer]> {
        &self.buffers
    }
}
