//! What a filter is.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::concat;

use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::format::block::{Block, Zone};
use crate::scan::filter::gauge::Gauge;

/// A test of whole columns, as SQL means it: NULL is not a hit.
pub trait Test: Send + Sync + Debug {
    /// One answer per row. `columns` are those of the filter, in its order, `rows` long.
    ///
    /// # Errors
    /// Whatever evaluating the values gives (overflow, division by zero, ...).
    fn evaluate(
        &self,
        columns: &[ArrayRef],
        rows: usize,
    ) -> std::result::Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>>;
}

/// One conjunct of a scan's predicate.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Positions (in the table) of the columns it reads.
    pub columns: Vec<usize>,
    /// What it means; used wherever the encoded form has no shorter way.
    pub test: Arc<dyn Test>,
    /// The shorter way.
    pub form: Form,
    /// For a filter that may be skipped (somebody tests again later): how useful it was so far.
    pub gauge: Option<Arc<Gauge>>,
}

/// What is known of a filter beside its test.
#[derive(Clone, Debug)]
pub enum Form {
    /// Its one column, of whole numbers, lies in one of these ranges (both ends belong to them;
    /// ascending, apart). Exactly these rows are hits.
    Ranges(Arc<[(i128, i128)]>),
    /// It reads one text column and depends on nothing but its value.
    Labels(Arc<LabelHits>),
    /// Rows outside these ranges of `column` are no hits, but those inside need the test.
    Within {
        /// Position of the column in the table.
        column: usize,
        /// As in [`Form::Ranges`].
        ranges: Arc<[(i128, i128)]>,
    },
    /// Nothing.
    Any,
}

/// Answers per label of a dictionary, found on first use.
#[derive(Debug, Default)]
pub struct LabelHits {
    answers: OnceLock<Answers>,
}

#[derive(Debug)]
pub(crate) struct Answers {
    /// Whether each label is a hit.
    pub hits: Vec<bool>,
    /// Whether NULL is one.
    pub null: bool,
    /// Runs of hits as (first code, span), if they are few.
    pub runs: Option<Vec<(u32, u32)>>,
}

/// Code runs up to this many are compared instead of looked up.
const FEW_RUNS: usize = 4;

impl Answers {
    fn new(hits: Vec<bool>, null: bool) -> Answers {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for (code, _) in hits.iter().enumerate().filter(|(_, hit)| **hit) {
            let code = code as u32;
            match runs.last_mut() {
                Some((first, span)) if *first + *span + 1 == code => *span += 1,
                _ => runs.push((code, 0)),
            }
        }
        Answers {
            hits,
            null,
            runs: Some(runs).filter(|r| r.len() <= FEW_RUNS),
        }
    }
}

impl Filter {
    /// Whether the zones of `block` show that no row can be a hit.
    pub fn excludes(&self, block: &Block) -> bool {
        let (column, ranges) = match &self.form {
            Form::Ranges(ranges) => (self.columns[0], ranges),
            Form::Within { column, ranges } => (*column, ranges),
            _ => return false,
        };
        let matrix = &block.columns[column];
        match matrix.zone {
            _ if matrix.nulls == block.rows => true,
            Some(Zone::Int { min, max }) => !ranges.iter().any(|(a, b)| *a <= max && min <= *b),
            _ => ranges.is_empty(),
        }
    }
}

impl LabelHits {
    /// Share of the labels that are hits; for estimates.
    ///
    /// # Errors
    /// What the filter's test reports.
    pub fn share(&self, filter: &Filter, dictionary: &Dictionary) -> Result<f64> {
        let answers = self.answers(filter, dictionary)?;
        let hits = answers.hits.iter().filter(|hit| **hit).count();
        Ok(hits as f64 / answers.hits.len().max(1) as f64)
    }

    /// The answers for the labels of `dictionary`, found on the first call.
    pub(crate) fn answers(&self, filter: &Filter, dictionary: &Dictionary) -> Result<&Answers> {
        if let Some(answers) = self.answers.get() {
            return Ok(answers);
        }
        let labels = dictionary.labels();
        let null = arrow::array::new_null_array(labels.data_type(), 1);
        let values = concat(&[labels.as_ref(), null.as_ref()])?;
        let rows = values.len();
        let hits = filter.test.evaluate(&[values], rows).map_err(Error::Test)?;
        let mut hits: Vec<bool> = hits.iter().map(|hit| hit == Some(true)).collect();
        let null = hits.pop().unwrap_or(false);
        Ok(self.answers.get_or_init(|| Answers::new(hits, null)))
    }
}
