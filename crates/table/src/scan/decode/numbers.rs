//! Numbers: distances widened, or a page lent where it holds values in full width.

use std::sync::Arc;

use algebra::encoded::{Number, Stored, widen, widen_at};
use arrow::array::*;
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::*;

use crate::error::Result;
use crate::format::block::Encoding;
use crate::scan::chunk::{PinnedChunk, Tally};
use crate::scan::decode::views::LEND_PART;
use crate::scan::rows::{BATCH_ROWS, PageRows, Rows};

/// Whole numbers, dates, times, decimals and booleans.
pub(super) fn whole(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    macro_rules! array {
        ($t:ty) => {{
            type N = <$t as ArrowPrimitiveType>::Native;
            let values = buffer::<N, N>(chunk, rows, tally)?;
            let array = PrimitiveArray::<$t>::try_new(values, nulls)?;
            Arc::new(array.with_data_type(data_type.clone()))
        }};
    }
    use DataType::*;
    Ok(match data_type {
        Boolean => {
            let values = numbers::<i8>(chunk, rows, tally)?;
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
        other => return Err(chunk.cannot_hold(other)),
    })
}

/// Values as Arrow has them: a page lent where it holds them in full width, else decoded as `B`, whose bits are those of the values.
fn buffer<N: ArrowNativeType, B: Number + ArrowNativeType>(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    tally: &mut Tally<'_>,
) -> Result<ScalarBuffer<N>> {
    const { assert!(size_of::<N>() == size_of::<B>()) };
    let Some((values, node)) = lend::<N>(chunk, rows) else {
        let decoded = Buffer::from_vec(numbers::<B>(chunk, rows, tally)?);
        return Ok(ScalarBuffer::new(decoded, 0, rows.len()));
    };
    tally(node, size_of_val(&values[..]) as u64);
    Ok(values)
}

/// A run of values that are stored as they are, borrowed from their page with its node; `None`
/// if they are narrower, on two pages or chosen, or if the pool lends no more.
fn lend<N: ArrowNativeType>(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
) -> Option<(ScalarBuffer<N>, usize)> {
    let Rows::Run(run) = rows else { return None };
    let full = match chunk.matrix.encoding {
        Encoding::Int { width } => width >= 8,
        Encoding::Float { .. } => true,
        _ => false,
    };
    if !full || chunk.matrix.width() != size_of::<N>() {
        return None;
    }
    let index = chunk
        .matrix
        .pages
        .partition_point(|p| p.first as usize <= run.start)
        .checked_sub(1)?;
    let page = chunk.page_rows(index);
    let node = chunk.page(index).ok()?.node();
    let inside = run.end <= page.end && run.len() * LEND_PART >= page.len().min(BATCH_ROWS);
    let buffer = if inside {
        chunk.lend(index)?
    } else {
        return None;
    };
    let values = ScalarBuffer::new(buffer, run.start - page.start, run.len());
    Some((values, node))
}

/// The stored numbers of `rows`; those that are NULL are any number.
fn numbers<N: Number>(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    tally: &mut Tally<'_>,
) -> Result<Vec<N>> {
    let mut out = Vec::with_capacity(rows.len());
    numbers_into(chunk, rows, tally, &mut out)?;
    Ok(out)
}

/// As [`numbers`], appended to `out`.
pub(crate) fn numbers_into<N: Number>(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    tally: &mut Tally<'_>,
    out: &mut Vec<N>,
) -> Result<()> {
    if let Encoding::Constant(value) = chunk.matrix.encoding {
        out.resize(out.len() + rows.len(), N::of(value));
        return Ok(());
    }
    let width = chunk.matrix.width();
    each_page(chunk, rows, tally, out, |index, part, first, out| {
        let base = N::of(chunk.base(index));
        match width {
            1 => distances(chunk.values::<u8>(index)?, part, first, base, out),
            2 => distances(chunk.values::<u16>(index)?, part, first, base, out),
            4 => distances(chunk.values::<u32>(index)?, part, first, base, out),
            8 => longs(chunk.values::<u64>(index)?, part, first, out),
            _ => wide(chunk, index, part, first, out)?,
        }
        Ok(())
    })
}

/// Decodes `rows` page by page: of each that has some, `decode` is given its index, these rows, its first row, and `out`, to which
/// it appends as many values. `tally` learns of what has been read.
fn each_page<N>(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    tally: &mut Tally<'_>,
    out: &mut Vec<N>,
    decode: impl Fn(usize, &PageRows<'_>, u32, &mut Vec<N>) -> Result<()>,
) -> Result<()> {
    out.reserve(rows.len());
    let width = chunk.matrix.width();
    for index in 0..chunk.matrix.pages.len() {
        let page = chunk.page_rows(index);
        let part = rows.within(&page);
        if part.is_empty() {
            continue;
        }
        let before = out.len();
        decode(index, &part, page.start as u32, out)?;
        let bytes = (out.len() - before) * width;
        tally(chunk.page(index)?.node(), bytes as u64);
    }
    Ok(())
}

fn distances<S: Stored, N: Number>(
    values: &[S],
    part: &PageRows<'_>,
    first: u32,
    base: N,
    out: &mut Vec<N>,
) {
    match part {
        PageRows::Run(run) => widen(&values[run.clone()], base, out),
        PageRows::Some(rows) => widen_at(values, rows, first, base, out),
    }
}

fn longs<N: Number>(values: &[u64], part: &PageRows<'_>, first: u32, out: &mut Vec<N>) {
    let long = |v: u64| N::of(i128::from(v as i64));
    match part {
        PageRows::Run(run) => out.extend(values[run.clone()].iter().map(|v| long(*v))),
        PageRows::Some(rows) => {
            out.extend(rows.iter().map(|r| long(values[(*r - first) as usize])))
        }
    }
}

fn wide<N: Number>(
    chunk: &PinnedChunk<'_>,
    index: usize,
    part: &PageRows<'_>,
    first: u32,
    out: &mut Vec<N>,
) -> Result<()> {
    let page = chunk.page(index)?;
    let values = page.as_chunks::<16>().0;
    let long = |v: &[u8; 16]| N::of(i128::from_le_bytes(*v));
    match part {
        PageRows::Run(run) => out.extend(values[run.clone()].iter().map(long)),
        PageRows::Some(rows) => {
            out.extend(rows.iter().map(|r| long(&values[(*r - first) as usize])))
        }
    }
    Ok(())
}

/// The floats at `rows`, in double precision, appended to `out`; those that are NULL are any number.
pub(crate) fn floats_into(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    tally: &mut Tally<'_>,
    out: &mut Vec<f64>,
) -> Result<()> {
    let single = |bits: u32| f64::from(f32::from_bits(bits));
    let width = chunk.matrix.width();
    each_page(chunk, rows, tally, out, |index, part, first, out| {
        match width {
            4 => converted(chunk.values::<u32>(index)?, part, first, single, out),
            8 => converted(
                chunk.values::<u64>(index)?,
                part,
                first,
                f64::from_bits,
                out,
            ),
            _ => return Err(chunk.cannot_hold(&DataType::Float64)),
        }
        Ok(())
    })
}

fn converted<S: Copy>(
    values: &[S],
    part: &PageRows<'_>,
    first: u32,
    convert: impl Fn(S) -> f64,
    out: &mut Vec<f64>,
) {
    match part {
        PageRows::Run(run) => out.extend(values[run.clone()].iter().map(|v| convert(*v))),
        PageRows::Some(rows) => {
            out.extend(rows.iter().map(|r| convert(values[(*r - first) as usize])));
        }
    }
}

/// Floats.
pub(super) fn floats(
    chunk: &PinnedChunk<'_>,
    rows: &Rows<'_>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    tally: &mut Tally<'_>,
) -> Result<ArrayRef> {
    match (data_type, chunk.matrix.width()) {
        (DataType::Float32, 4) => {
            let values = buffer::<f32, u32>(chunk, rows, tally)?;
            Ok(Arc::new(Float32Array::try_new(values, nulls)?))
        }
        (DataType::Float64, 8) => {
            let values = buffer::<f64, u64>(chunk, rows, tally)?;
            Ok(Arc::new(Float64Array::try_new(values, nulls)?))
        }
        (other, _) => Err(chunk.cannot_hold(other)),
    }
}
