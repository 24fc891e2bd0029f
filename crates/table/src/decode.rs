//! Matrices back into Arrow arrays, for the rows a scan wants.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::*;

use crate::block::Encoding;
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::kernel::{Number, Stored, widen, widen_some};
use crate::lane::{Lane, cast};
use crate::scan::BATCH_ROWS;

/// The rows of one batch, by their positions in a morsel: a run of rows, or some of them in ascending order.
#[derive(Clone, Debug)]
pub enum Rows<'a> {
    /// From one position up to another.
    Run(std::ops::Range<usize>),
    /// These positions, ascending.
    Some(&'a [u32]),
}

impl Rows<'_> {
    /// How many they are.
    pub fn len(&self) -> usize {
        match self {
            Rows::Run(run) => run.len(),
            Rows::Some(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part that lies in `page`.
    fn within(&self, page: &std::ops::Range<usize>) -> Part<'_> {
        match self {
            Rows::Run(run) => {
                let (start, end) = (run.start.max(page.start), run.end.min(page.end));
                Part::Run(start - page.start..end.max(start) - page.start)
            }
            Rows::Some(rows) => {
                let from = rows.partition_point(|r| (*r as usize) < page.start);
                let to = rows.partition_point(|r| (*r as usize) < page.end);
                Part::Some(&rows[from..to])
            }
        }
    }
}

/// Rows in one page: a run counts from the first row of the page, positions from that of the block.
enum Part<'a> {
    Run(std::ops::Range<usize>),
    Some(&'a [u32]),
}

impl Part<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Part::Run(run) => run.is_empty(),
            Part::Some(rows) => rows.is_empty(),
        }
    }
}

/// What reading cost: bytes that kernels consumed, by node of the page.
pub(crate) type Tally<'a> = dyn FnMut(usize, u64) + 'a;

/// Decodes `rows` of a lane into an array of `data_type`.
pub(crate) fn decode(
    lane: &Lane<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    dictionary: Option<&Dictionary>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    if lane.all_null() {
        return Ok(new_null_array(data_type, rows.len()));
    }
    let nulls = nulls(lane, rows);
    match lane.matrix.encoding {
        Encoding::Text => texts(lane, rows, data_type, nulls, tally),
        Encoding::Code { .. } => labels(lane, rows, data_type, dictionary, nulls, tally),
        Encoding::Float { .. } => floats(lane, rows, data_type, nulls, tally),
        Encoding::Int { .. } | Encoding::Constant(_) => whole(lane, rows, data_type, nulls, tally),
    }
}

/// Which of `rows` are not NULL; absent if all are.
pub(crate) fn nulls(lane: &Lane<'_>, rows: &Rows<'_>) -> Option<NullBuffer> {
    let bits = lane.validity()?;
    let valid = |row: usize| bits[row / 8] >> (row % 8) & 1 == 1;
    let buffer = match rows {
        Rows::Run(run) => BooleanBuffer::collect_bool(run.len(), |i| valid(run.start + i)),
        Rows::Some(rows) => BooleanBuffer::collect_bool(rows.len(), |i| valid(rows[i] as usize)),
    };
    Some(NullBuffer::new(buffer)).filter(|n| n.null_count() > 0)
}

fn whole(
    lane: &Lane<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    macro_rules! array {
        ($t:ty) => {{
            type N = <$t as ArrowPrimitiveType>::Native;
            let values = buffer::<N, N>(lane, rows, |v| v, tally)?;
            let array = PrimitiveArray::<$t>::try_new(values, nulls)?;
            Arc::new(array.with_data_type(data_type.clone()))
        }};
    }
    use DataType::*;
    Ok(match data_type {
        Boolean => {
            let values = numbers::<i8>(lane, rows, tally)?;
            let bits = BooleanBuffer::collect_bool(values.len(), |i| values[i] != 0);
            Arc::new(BooleanArray::new(bits, nulls))
        }
        Int8 => array!(Int8Type),
        Int16 => array!(Int16Type),
        Int32 => array!(Int32Type),
        Int64 => array!(Int64Type),
        UInt8 => array!(UInt8Type),
        UInt16 => array!(UInt16Type),
        UInt32 => array!(UInt32Type),
        UInt64 => array!(UInt64Type),
        Date32 => array!(Date32Type),
        Time32(TimeUnit::Second) => array!(Time32SecondType),
        Time32(_) => array!(Time32MillisecondType),
        Time64(TimeUnit::Microsecond) => array!(Time64MicrosecondType),
        Time64(_) => array!(Time64NanosecondType),
        Timestamp(TimeUnit::Second, _) => array!(TimestampSecondType),
        Timestamp(TimeUnit::Millisecond, _) => array!(TimestampMillisecondType),
        Timestamp(TimeUnit::Microsecond, _) => array!(TimestampMicrosecondType),
        Timestamp(TimeUnit::Nanosecond, _) => array!(TimestampNanosecondType),
        Decimal128(_, _) => array!(Decimal128Type),
        other => return Err(stored_as(lane, other)),
    })
}

fn stored_as(lane: &Lane<'_>, data_type: &DataType) -> Error {
    let page = lane.matrix.pages.first().map_or(0, |p| p.id);
    lane.damaged(page, &format!("cannot hold values of type {data_type}"))
}

/// Values as Arrow has them: a page lent where it holds them in full width, else decoded by way
/// of `B`.
fn buffer<N: ArrowNativeType, B: Number>(
    lane: &Lane<'_>,
    rows: &Rows<'_>,
    from: fn(B) -> N,
    tally: &mut Tally<'_>,
) -> Result<ScalarBuffer<N>> {
    let Some((values, node)) = lend::<N>(lane, rows) else {
        return Ok(numbers::<B>(lane, rows, tally)?
            .into_iter()
            .map(from)
            .collect());
    };
    tally(node, size_of_val(&values[..]) as u64);
    Ok(values)
}

/// A run of values that are stored as they are, borrowed from their page with its node; `None`
/// if they are narrower, on two pages or chosen, or if the pool lends no more.
fn lend<N: ArrowNativeType>(lane: &Lane<'_>, rows: &Rows<'_>) -> Option<(ScalarBuffer<N>, usize)> {
    let Rows::Run(run) = rows else { return None };
    let full = match lane.matrix.encoding {
        Encoding::Int { width } => width >= 8,
        Encoding::Float { .. } => true,
        _ => false,
    };
    if !full || lane.matrix.width() != size_of::<N>() {
        return None;
    }
    let index = lane
        .matrix
        .pages
        .partition_point(|p| p.first as usize <= run.start)
        .checked_sub(1)?;
    let page = lane.page_rows(index);
    let node = lane.page(index).ok()?.node();
    let inside = run.end <= page.end && run.len() * LEND_PART >= page.len().min(BATCH_ROWS);
    let buffer = if inside {
        lane.lend(index)?
    } else {
        return None;
    };
    Some((
        ScalarBuffer::new(buffer, run.start - page.start, run.len()),
        node,
    ))
}

/// The stored numbers of `rows`; those that are NULL are any number.
pub(crate) fn numbers<N: Number>(
    lane: &Lane<'_>,
    rows: &Rows<'_>,
    tally: &mut Tally<'_>,
) -> Result<Vec<N>> {
    let mut out = Vec::with_capacity(rows.len());
    numbers_into(lane, rows, tally, &mut out)?;
    Ok(out)
}

/// As [`numbers`], appended to `out`.
pub(crate) fn numbers_into<N: Number>(
    lane: &Lane<'_>,
    rows: &Rows<'_>,
    tally: &mut Tally<'_>,
    out: &mut Vec<N>,
) -> Result<()> {
    if let Encoding::Constant(value) = lane.matrix.encoding {
        out.resize(out.len() + rows.len(), N::of(value));
        return Ok(());
    }
    out.reserve(rows.len());
    let width = lane.matrix.width();
    for index in 0..lane.matrix.pages.len() {
        let page = lane.page_rows(index);
        let part = rows.within(&page);
        if part.is_empty() {
            continue;
        }
        let first = page.start as u32;
        let (before, base) = (out.len(), N::of(lane.base(index)));
        match width {
            1 => distances(lane.values::<u8>(index)?, &part, first, base, out),
            2 => distances(lane.values::<u16>(index)?, &part, first, base, out),
            4 => distances(lane.values::<u32>(index)?, &part, first, base, out),
            8 => longs(lane.values::<u64>(index)?, &part, first, out),
            _ => wide(lane, index, &part, first, out)?,
        }
        tally(
            lane.page(index)?.node(),
            ((out.len() - before) * width) as u64,
        );
    }
    Ok(())
}

fn distances<S: Stored, N: Number>(
    values: &[S],
    part: &Part<'_>,
    first: u32,
    base: N,
    out: &mut Vec<N>,
) {
    match part {
        Part::Run(run) => widen(&values[run.clone()], base, out),
        Part::Some(rows) => widen_some(values, rows, first, base, out),
    }
}

fn longs<N: Number>(values: &[u64], part: &Part<'_>, first: u32, out: &mut Vec<N>) {
    let long = |v: u64| N::of(i128::from(v as i64));
    match part {
        Part::Run(run) => out.extend(values[run.clone()].iter().map(|v| long(*v))),
        Part::Some(rows) => out.extend(rows.iter().map(|r| long(values[(*r - first) as usize]))),
    }
}

fn wide<N: Number>(
    lane: &Lane<'_>,
    index: usize,
    part: &Part<'_>,
    first: u32,
    out: &mut Vec<N>,
) -> Result<()> {
    let page = lane.page(index)?;
    let values = page.as_chunks::<16>().0;
    let long = |v: &[u8; 16]| N::of(i128::from_le_bytes(*v));
    match part {
        Part::Run(run) => out.extend(values[run.clone()].iter().map(long)),
        Part::Some(rows) => out.extend(rows.iter().map(|r| long(&values[(*r - first) as usize]))),
    }
    Ok(())
}

fn floats(
    lane: &Lane<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    match (data_type, lane.matrix.width()) {
        (DataType::Float32, 4) => {
            let values = buffer(lane, rows, f32::from_bits, tally)?;
            Ok(Arc::new(Float32Array::try_new(values, nulls)?))
        }
        (DataType::Float64, 8) => {
            let values = buffer(lane, rows, f64::from_bits, tally)?;
            Ok(Arc::new(Float64Array::try_new(values, nulls)?))
        }
        (other, _) => Err(stored_as(lane, other)),
    }
}

fn labels(
    lane: &Lane<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    dictionary: Option<&Dictionary>,
    nulls: Option<NullBuffer>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    let Some(dictionary) = dictionary else {
        return Err(stored_as(lane, data_type));
    };
    let mut views = Vec::with_capacity(rows.len());
    let (all, width) = (dictionary.views(), lane.matrix.width());
    for index in 0..lane.matrix.pages.len() {
        let page = lane.page_rows(index);
        let part = rows.within(&page);
        if part.is_empty() {
            continue;
        }
        let (before, first) = (views.len(), page.start as u32);
        let known = match width {
            1 => lookup(lane.values::<u8>(index)?, &part, first, all, &mut views),
            2 => lookup(lane.values::<u16>(index)?, &part, first, all, &mut views),
            _ => lookup(lane.values::<u32>(index)?, &part, first, all, &mut views),
        };
        if !known {
            return Err(lane.damaged(lane.matrix.pages[index].id, "holds an unknown code"));
        }
        tally(
            lane.page(index)?.node(),
            ((views.len() - before) * width) as u64,
        );
    }
    finish(views, dictionary.buffers().clone(), nulls, data_type)
}

/// Appends the views of codes; false if a code has no label.
fn lookup<S: Stored>(
    codes: &[S],
    part: &Part<'_>,
    first: u32,
    views: &[u128],
    out: &mut Vec<u128>,
) -> bool {
    let mut most = 0;
    let last = views.len().saturating_sub(1);
    let mut view = |code: S| {
        most = most.max(code.wide() as usize);
        views[(code.wide() as usize).min(last)]
    };
    if views.is_empty() {
        return false;
    }
    match part {
        Part::Run(run) => out.extend(codes[run.clone()].iter().map(|c| view(*c))),
        Part::Some(rows) => out.extend(rows.iter().map(|r| view(codes[(*r - first) as usize]))),
    }
    most <= last
}

fn finish(
    views: Vec<u128>,
    buffers: impl Into<Arc<[Buffer]>>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let views = ScalarBuffer::from(views);
    let buffers = buffers.into();
    if *data_type == DataType::BinaryView {
        return Ok(Arc::new(BinaryViewArray::try_new(views, buffers, nulls)?));
    }
    // SAFETY: the views were made from these buffers within their bounds, and text entered the
    // table as UTF-8; pages are verified by checksum when they are loaded.
    Ok(Arc::new(unsafe {
        StringViewArray::new_unchecked(views, buffers, nulls)
    }))
}

fn texts(
    lane: &Lane<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    let mut out = Texts {
        views: Vec::with_capacity(rows.len()),
        buffers: vec![],
        heap: vec![],
    };
    for index in 0..lane.matrix.pages.len() {
        let page = lane.page_rows(index);
        let part = rows.within(&page);
        if part.is_empty() {
            continue;
        }
        out.page(lane, index, &part, tally)?;
    }
    let Texts { views, buffers, .. } = out.close();
    finish(views, buffers, nulls, data_type)
}

/// A text array being built.
struct Texts {
    views: Vec<u128>,
    /// Lent pages and full heaps. Views of copied texts point at `buffers.len()`, where `heap`
    /// will stand: a page is lent only while `heap` is empty.
    buffers: Vec<Buffer>,
    heap: Vec<u8>,
}

/// A run is lent rather than copied when it covers at least one part in this many of its page:
/// lending few rows would keep a whole frame pinned, and its bytes accounted, for them.
const LEND_PART: usize = 2;

impl Texts {
    fn page(
        &mut self,
        lane: &Lane<'_>,
        index: usize,
        part: &Part<'_>,
        tally: &mut Tally<'_>,
    ) -> Result<()> {
        let pin = lane.page(index)?;
        let id = lane.matrix.pages[index].id;
        if lane.matrix.pages[index].long {
            let text = lane.long_text(index)?;
            tally(pin.node(), text.len() as u64);
            self.copy(text);
            return Ok(());
        }
        let rows = lane.page_rows(index).len();
        let (offsets, heap) = pin.split_at(2 * (rows + 1));
        let offsets = cast::<u16>(offsets).ok_or_else(|| lane.damaged(id, "is not aligned"))?;
        let text = |row: usize| heap.get(offsets[row] as usize..offsets[row + 1] as usize);
        let bad = || lane.damaged(id, "holds a text outside its bounds");
        let mut read = 0;
        match part {
            Part::Run(run) if run.len() * LEND_PART >= rows && self.lend(lane, index) => {
                let (buffer, start) = (self.buffers.len() as u32 - 1, 2 * (rows + 1) as u32);
                for row in run.clone() {
                    let text = text(row).ok_or_else(bad)?;
                    let offset = start + u32::from(offsets[row]);
                    self.views.push(make_view(text, buffer, offset));
                    read += text.len() + 2;
                }
            }
            Part::Run(run) => {
                for row in run.clone() {
                    let text = text(row).ok_or_else(bad)?;
                    self.copy(text);
                    read += text.len() + 2;
                }
            }
            Part::Some(picks) => {
                let first = lane.page_rows(index).start;
                for row in *picks {
                    let text = text(*row as usize - first).ok_or_else(bad)?;
                    self.copy(text);
                    read += text.len() + 2;
                }
            }
        }
        tally(pin.node(), read as u64);
        Ok(())
    }

    /// Borrows the page for as long as the array lives, if the pool still lends.
    fn lend(&mut self, lane: &Lane<'_>, index: usize) -> bool {
        let Some(buffer) = lane.lend(index) else {
            return false;
        };
        self.seal();
        self.buffers.push(buffer);
        true
    }

    fn copy(&mut self, text: &[u8]) {
        if self.heap.len() + text.len() > u32::MAX as usize / 2 {
            self.seal();
        }
        let (buffer, offset) = (self.buffers.len() as u32, self.heap.len() as u32);
        self.views.push(make_view(text, buffer, offset));
        if text.len() > 12 {
            self.heap.extend_from_slice(text);
        }
    }

    fn seal(&mut self) {
        if !self.heap.is_empty() {
            self.buffers
                .push(Buffer::from_vec(std::mem::take(&mut self.heap)));
        }
    }

    fn close(mut self) -> Texts {
        self.seal();
        self
    }
}
