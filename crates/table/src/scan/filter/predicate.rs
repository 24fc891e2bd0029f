//! Filters: predicates on columns of one table.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use algebra::dot::Keys;
use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::concat;

use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::format::block::{Block, Zone};
use crate::scan::filter::gauge::Gauge;

/// A predicate over columns. As in a WHERE of SQL a row passes only where the answer is true, not
/// where it is NULL.
pub trait Test: Send + Sync + Debug {
    /// The answer for each row. `columns` are the columns of the filter, in its order; each has
    /// `rows` values.
    ///
    /// # Errors
    /// Those of evaluating the predicate (overflow, division by zero, ...).
    fn evaluate(
        &self,
        columns: &[ArrayRef],
        rows: usize,
    ) -> std::result::Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>>;

    /// The answers for an empty text and for any other one, if it reads one text column and these are all of its answers: then no
    /// text is looked at. That for NULL is NULL.
    fn of_emptiness(&self) -> Option<[bool; 2]> {
        None
    }
}

/// One conjunct of a scan's predicate: a row passes the scan if it passes all of its filters.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The columns that it reads, by their positions in the table.
    pub columns: Vec<usize>,
    /// The predicate. It is evaluated on decoded values unless `form` offers something cheaper.
    pub test: Arc<dyn Test>,
    /// How it can be tested on encoded values.
    pub form: Form,
    /// How many rows passed so far. A filter whose rows are tested again later, such as a dynamic
    /// one, is skipped once this says that it is [useless](Gauge::is_useless).
    pub gauge: Option<Arc<Gauge>>,
}

/// How a filter can be tested without decoding values.
#[derive(Clone, Debug)]
pub enum Form {
    /// It reads one column of whole numbers, and a row passes exactly if its value is in one of
    /// these ranges. Both ends belong to a range; ranges ascend and do not overlap.
    Ranges(Arc<[(i128, i128)]>),
    /// It reads one text column and depends on nothing but its value, so it can be tested once for
    /// each label of the dictionary.
    Labels(Arc<LabelHits>),
    /// A row cannot pass if its value of `column` is outside these ranges; if it is inside, the row
    /// must be tested.
    Within {
        /// Position of the column in the table.
        column: usize,
        /// As in [`Form::Ranges`].
        ranges: Arc<[(i128, i128)]>,
    },
    /// It reads one column of whole numbers, and a row passes exactly if its value is one of the keys of a join table:
    /// a filter that comes from the other side of a join (sideways information passing).
    Keys(Keys),
    /// There is no way but to evaluate the test.
    Any,
}

/// Which labels of a dictionary pass a filter; found out when they are first asked for.
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
    /// Whether the least and greatest values of `block` (its zone map) show that no row of it can
    /// pass.
    pub fn excludes(&self, block: &Block) -> bool {
        let (column, none) = match &self.form {
            Form::Ranges(ranges) => (self.columns[0], ranges.is_empty()),
            Form::Within { column, ranges } => (*column, ranges.is_empty()),
            Form::Keys(_) => (self.columns[0], false),
            Form::Labels(_) | Form::Any => return false,
        };
        let matrix = &block.columns[column];
        match matrix.zone {
            _ if matrix.nulls == block.rows => true,
            Some(Zone::Int { min, max }) => !self.form.may_pass(min, max),
            _ => none,
        }
    }
}

impl Form {
    /// Whether a whole number of `min..=max` may pass, as far as the form tells.
    pub(crate) fn may_pass(&self, min: i128, max: i128) -> bool {
        match self {
            Form::Ranges(ranges) | Form::Within { ranges, .. } => {
                ranges.iter().any(|(a, b)| *a <= max && min <= *b)
            }
            Form::Keys(keys) => {
                // Keys are of 64 bits: beyond them there is none.
                let most = i128::from(i64::MAX);
                let (low, high) = (min.max(-most - 1), max.min(most));
                low <= high && keys.any_within(low as i64, high as i64)
            }
            Form::Labels(_) | Form::Any => true,
        }
    }
}

impl LabelHits {
    /// The share of the labels that pass, 0 to 1: an estimate of the filter's selectivity.
    ///
    /// # Errors
    /// Those of the filter's test.
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
