//! Filters on encoded values.
//!
//! A comparison of whole numbers with constants becomes ranges, tested in the stored width. Any
//! test of one text column is made once per label of its dictionary. Everything else is tested
//! on the decoded values of the rows that are left.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::{concat, prep_null_mask_filter};
use buffer::Pool;
use memory::Traffic;

use crate::block::{Block, Encoding, Zone};
use crate::catalog::Table;
use crate::decode::{Rows, decode};
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::kernel::{Stored, in_range, in_table};
use crate::lane::Lane;
use crate::mask::Mask;

/// Rows tested at a time where values must be decoded.
const TEST_ROWS: usize = 8_192;

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

/// How many rows an optional filter saw and let through; shared by all who apply it.
#[derive(Debug, Default)]
pub struct Gauge {
    tested: AtomicU64,
    passed: AtomicU64,
    /// The filter must not be skipped.
    counts_only: bool,
}

/// Rows after which a gauge is believed.
const GAUGE_ROWS: u64 = 65_536;

impl Gauge {
    /// For a filter that must not be skipped, of which somebody wants to know what it does.
    pub fn counting() -> Gauge {
        Gauge {
            counts_only: true,
            ..Gauge::default()
        }
    }

    /// Rows that the filter was tested on, and those that passed.
    pub fn counts(&self) -> (u64, u64) {
        let tested = self.tested.load(Ordering::Relaxed);
        (tested, self.passed.load(Ordering::Relaxed))
    }

    fn add(&self, tested: usize, passed: usize) {
        self.tested.fetch_add(tested as u64, Ordering::Relaxed);
        self.passed.fetch_add(passed as u64, Ordering::Relaxed);
    }

    /// Whether testing costs more than it saves: three of four rows passed.
    pub fn is_useless(&self) -> bool {
        if self.counts_only {
            return false;
        }
        let tested = self.tested.load(Ordering::Relaxed);
        tested >= GAUGE_ROWS && self.passed.load(Ordering::Relaxed) * 4 >= tested * 3
    }
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
struct Answers {
    hits: Vec<bool>,
    null: bool,
    /// Runs of hits as (first code, span), if they are few.
    runs: Option<Vec<(u32, u32)>>,
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

/// A block during its filters: the lanes held so far.
pub(crate) struct Seen<'p> {
    pub table: &'p Table,
    pub pool: &'p Arc<Pool>,
    pub block: &'p Block,
    pub traffic: &'p Traffic,
    pub here: fn() -> usize,
    pub lanes: Vec<(usize, Lane<'p>)>,
}

impl<'p> Seen<'p> {
    fn new_lane(&self, column: usize) -> Lane<'p> {
        let name = &self.table.body.definition.name;
        Lane::new(
            name,
            self.pool,
            &self.block.columns[column],
            self.block.rows,
        )
    }

    /// The lane of `column`, with the pages of the `wanted` rows.
    async fn lane(&mut self, column: usize, wanted: &Mask) -> Result<usize> {
        let index = match self.lanes.iter().position(|(c, _)| *c == column) {
            Some(index) => index,
            None => {
                self.lanes.push((column, self.new_lane(column)));
                self.lanes.len() - 1
            }
        };
        let lane = &mut self.lanes[index].1;
        let missing = lane.missing(wanted);
        if missing.len() > 1 {
            self.pool.prefetch(&missing);
        }
        lane.hold(wanted).await?;
        Ok(index)
    }

    /// The lane of `column` as far as it is held, for good.
    pub(crate) fn take_lane(&mut self, column: usize) -> (usize, Lane<'p>) {
        match self.lanes.iter().position(|(c, _)| *c == column) {
            Some(index) => self.lanes.swap_remove(index),
            None => (column, self.new_lane(column)),
        }
    }
}

/// Removes from `wanted` the rows that are no hits of `filter`.
pub(crate) async fn apply(filter: &Filter, seen: &mut Seen<'_>, wanted: &mut Mask) -> Result<()> {
    let Some(gauge) = &filter.gauge else {
        return refine(filter, seen, wanted).await;
    };
    if gauge.is_useless() {
        return Ok(());
    }
    let before = wanted.count();
    refine(filter, seen, wanted).await?;
    gauge.add(before, wanted.count());
    Ok(())
}

async fn refine(filter: &Filter, seen: &mut Seen<'_>, wanted: &mut Mask) -> Result<()> {
    match &filter.form {
        Form::Ranges(ranges) => {
            let lane = seen.lane(filter.columns[0], wanted).await?;
            let mut hits = Mask::none(wanted.rows());
            by_ranges(seen, lane, ranges, wanted, &mut hits)?;
            wanted.and(&hits);
            Ok(())
        }
        Form::Labels(labels) => {
            let column = filter.columns[0];
            let matrix = &seen.block.columns[column];
            if !matches!(matrix.encoding, Encoding::Code { .. }) {
                return by_test(filter, seen, wanted).await;
            }
            let lane = seen.lane(column, wanted).await?;
            let Some(dictionary) = seen.table.dictionary(column).await? else {
                return by_test(filter, seen, wanted).await;
            };
            let answers = labels.answers(filter, &dictionary)?;
            let mut hits = Mask::none(wanted.rows());
            by_labels(seen, lane, answers, wanted, &mut hits)?;
            wanted.and(&hits);
            Ok(())
        }
        Form::Within { .. } | Form::Any => by_test(filter, seen, wanted).await,
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

    fn answers(&self, filter: &Filter, dictionary: &Dictionary) -> Result<&Answers> {
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

fn by_ranges(
    seen: &Seen<'_>,
    lane: usize,
    ranges: &[(i128, i128)],
    wanted: &Mask,
    hits: &mut Mask,
) -> Result<()> {
    let lane = &seen.lanes[lane].1;
    let inside = |value: i128| ranges.iter().any(|(a, b)| *a <= value && value <= *b);
    if lane.all_null() {
        return Ok(());
    }
    if matches!(lane.matrix.encoding, Encoding::Constant(value) if inside(value)) {
        *hits = Mask::all(hits.rows());
    }
    for (index, page) in lane.matrix.pages.iter().enumerate() {
        let rows = lane.page_rows(index);
        let Some(Zone::Int { min, max }) = page.zone else {
            return Err(lane.damaged(page.id, "has no zone"));
        };
        if !wanted.any_in(rows.clone()) {
            continue;
        }
        for (low, high) in ranges {
            let (low, high) = ((*low).max(min), (*high).min(max));
            if low > high {
                continue;
            }
            if (low, high) == (min, max) {
                hits.set_range(rows.clone());
                break;
            }
            compare(lane, index, low, high, hits)?;
            count(seen, lane, index)?;
        }
    }
    if let Some(valid) = lane.validity() {
        hits.and_bytes(valid);
    }
    Ok(())
}

/// Adds a page's bytes, all of which a kernel just consumed.
fn count(seen: &Seen<'_>, lane: &Lane<'_>, index: usize) -> Result<()> {
    let bytes = (lane.page_rows(index).len() * lane.matrix.width()) as u64;
    seen.traffic
        .add((seen.here)(), lane.page(index)?.node(), bytes);
    Ok(())
}

/// Marks the rows of a page with `low <= value <= high`, both within the page's zone.
fn compare(lane: &Lane<'_>, index: usize, low: i128, high: i128, hits: &mut Mask) -> Result<()> {
    let rows = lane.page_rows(index);
    let base = lane.base(index);
    let (first, span) = ((low - base) as u64, (high - low) as u64);
    let into = hits.words_mut(rows.clone());
    match lane.matrix.width() {
        1 => in_range(
            lane.values::<u8>(index)?,
            u8::narrow(first),
            u8::narrow(span),
            into,
        ),
        2 => in_range(
            lane.values::<u16>(index)?,
            u16::narrow(first),
            u16::narrow(span),
            into,
        ),
        4 => in_range(
            lane.values::<u32>(index)?,
            u32::narrow(first),
            u32::narrow(span),
            into,
        ),
        8 => in_range(lane.values::<u64>(index)?, first, span, into),
        _ => {
            let values = lane.page(index)?.as_chunks::<16>().0;
            for (row, value) in rows.zip(values) {
                if (low..=high).contains(&i128::from_le_bytes(*value)) {
                    hits.set(row, true);
                }
            }
        }
    }
    Ok(())
}

fn by_labels(
    seen: &Seen<'_>,
    lane: usize,
    answers: &Answers,
    wanted: &Mask,
    hits: &mut Mask,
) -> Result<()> {
    let lane = &seen.lanes[lane].1;
    for index in 0..lane.matrix.pages.len() {
        let rows = lane.page_rows(index);
        if !wanted.any_in(rows.clone()) {
            continue;
        }
        let into = hits.words_mut(rows);
        match lane.matrix.width() {
            1 => codes(lane.values::<u8>(index)?, answers, into),
            2 => codes(lane.values::<u16>(index)?, answers, into),
            _ => codes(lane.values::<u32>(index)?, answers, into),
        }
        count(seen, lane, index)?;
    }
    match lane.validity() {
        Some(valid) if answers.null => hits.or_not_bytes(valid),
        Some(valid) => hits.and_bytes(valid),
        None => {}
    }
    Ok(())
}

fn codes<T: Stored>(values: &[T], answers: &Answers, into: &mut [u64]) {
    match &answers.runs {
        Some(runs) => {
            let most = T::narrow(u64::MAX).wide();
            // A code beyond the width cannot occur in this page.
            for (first, span) in runs.iter().filter(|(first, _)| u64::from(*first) <= most) {
                let span = u64::from(*span).min(most - u64::from(*first));
                in_range(values, T::narrow(u64::from(*first)), T::narrow(span), into);
            }
        }
        None => in_table(values, &answers.hits, into),
    }
}

/// Tests decoded values of the rows that are left.
async fn by_test(filter: &Filter, seen: &mut Seen<'_>, wanted: &mut Mask) -> Result<()> {
    let mut lanes = Vec::with_capacity(filter.columns.len());
    let mut dictionaries = Vec::with_capacity(filter.columns.len());
    for column in &filter.columns {
        lanes.push(seen.lane(*column, wanted).await?);
        dictionaries.push(seen.table.dictionary(*column).await?);
    }
    let picks = (wanted.count() < wanted.rows()).then(|| wanted.positions());
    let total = picks.as_ref().map_or(wanted.rows(), Vec::len);
    let (reader, traffic) = ((seen.here)(), seen.traffic);
    let mut tally = |node, bytes| traffic.add(reader, node, bytes);
    for start in (0..total).step_by(TEST_ROWS) {
        let range = start..(start + TEST_ROWS).min(total);
        let rows = match &picks {
            Some(picks) => Rows::Some(&picks[range.clone()]),
            None => Rows::Run(range.clone()),
        };
        let mut columns = Vec::with_capacity(lanes.len());
        for (position, lane) in lanes.iter().enumerate() {
            let data_type = seen
                .table
                .body
                .schema
                .field(filter.columns[position])
                .data_type();
            let dictionary = dictionaries[position].as_deref();
            columns.push(decode(
                &seen.lanes[*lane].1,
                &rows,
                data_type,
                dictionary,
                &mut tally,
            )?);
        }
        let hits = filter
            .test
            .evaluate(&columns, range.len())
            .map_err(Error::Test)?;
        let hits = if hits.null_count() == 0 {
            hits
        } else {
            prep_null_mask_filter(&hits)
        };
        for (position, hit) in hits.values().iter().enumerate() {
            if !hit {
                let row = range.start + position;
                wanted.set(picks.as_ref().map_or(row, |p| p[row] as usize), false);
            }
        }
    }
    Ok(())
}
