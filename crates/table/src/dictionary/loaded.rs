//! A dictionary in memory.

use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, BinaryViewArray, make_view};
use arrow::buffer::Buffer;

/// The dictionary of a text column, in memory: the label of each code.
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

    /// The labels in the order of their codes: a text or binary view array.
    pub fn labels(&self) -> &ArrayRef {
        &self.labels
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// Whether codes compare as their labels do.
    pub fn is_sorted(&self) -> bool {
        self.sorted as usize == self.views.len()
    }

    /// For each code, the place of its label among all labels in order; computed on the first call.
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
