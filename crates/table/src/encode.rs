//! Arrow columns into matrices: the narrowest encoding that holds a block's values (L1).

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::*;
use buffer::PageId;
use store::Kind;

use crate::block::{Encoding, Matrix, Page, Zone};
use crate::dictionary::Words;
use crate::error::{Error, Result};

/// Takes a finished page and gives its id.
pub(crate) type Sink<'a> = dyn FnMut(&[u8], Kind) -> Result<PageId> + 'a;

/// Longest single text or binary value in bytes.
pub const LONGEST_TEXT: usize = 1 << 30;

/// Encodes one column of one block.
///
/// `array` has a stored type and 1 ..= 65,536 rows; `words` is the column's dictionary (texts
/// only). Pages go to `sink` in row order.
pub(crate) fn encode(
    column: &str,
    array: &dyn Array,
    words: Option<&Words>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    let rows = array.len();
    let nulls = array.null_count();
    if nulls == rows {
        return Ok(Matrix {
            encoding: Encoding::Constant(0),
            pages: vec![],
            nulls: rows as u32,
            validity: None,
            zone: None,
        });
    }
    let mut matrix = values(column, array, words, page_size, sink)?;
    matrix.nulls = nulls as u32;
    if let (true, Some(valid)) = (nulls > 0, array.nulls()) {
        let bits = bitmap(valid);
        matrix.validity = Some(sink(&bits, Kind::Validity)?);
    }
    Ok(matrix)
}

/// The validity bits from bit 0 on, whatever offset the array had.
fn bitmap(valid: &NullBuffer) -> Vec<u8> {
    let mut bits = valid.inner().sliced().to_vec();
    bits.truncate(valid.len().div_ceil(8));
    bits
}

fn values(
    column: &str,
    array: &dyn Array,
    words: Option<&Words>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    use DataType::*;
    match array.data_type() {
        Utf8View => {
            let array = array.as_string_view().clone().to_binary_view();
            bytes(column, &array, words, page_size, sink)
        }
        BinaryView => bytes(column, array.as_binary_view(), words, page_size, sink),
        Float32 => floats(
            array.as_primitive::<Float32Type>().values(),
            array.nulls(),
            page_size,
            |v| f64::from(*v),
            sink,
        ),
        Float64 => floats(
            array.as_primitive::<Float64Type>().values(),
            array.nulls(),
            page_size,
            |v| *v,
            sink,
        ),
        _ => match whole(column, array)? {
            Whole::Narrow(values) => ints(values, array.nulls(), page_size, sink),
            Whole::Wide(values) => wide(values, array.nulls(), page_size, sink),
        },
    }
}

/// A column of whole numbers in one of two widths.
pub(crate) enum Whole {
    /// All values fit 64 bits.
    Narrow(Vec<i64>),
    /// Some do not.
    Wide(Vec<i128>),
}

/// The values of a column of whole numbers (NULL rows hold anything that fits).
fn whole(column: &str, array: &dyn Array) -> Result<Whole> {
    macro_rules! narrow {
        ($t:ty) => {
            Whole::Narrow(
                array
                    .as_primitive::<$t>()
                    .values()
                    .iter()
                    .map(|v| *v as i64)
                    .collect(),
            )
        };
    }
    use DataType::*;
    Ok(match array.data_type() {
        Boolean => Whole::Narrow(array.as_boolean().values().iter().map(i64::from).collect()),
        Int8 => narrow!(Int8Type),
        Int16 => narrow!(Int16Type),
        Int32 => narrow!(Int32Type),
        Int64 => narrow!(Int64Type),
        UInt8 => narrow!(UInt8Type),
        UInt16 => narrow!(UInt16Type),
        UInt32 => narrow!(UInt32Type),
        Date32 => narrow!(Date32Type),
        Time32(TimeUnit::Second) => narrow!(Time32SecondType),
        Time32(_) => narrow!(Time32MillisecondType),
        Time64(TimeUnit::Microsecond) => narrow!(Time64MicrosecondType),
        Time64(_) => narrow!(Time64NanosecondType),
        Timestamp(TimeUnit::Second, _) => narrow!(TimestampSecondType),
        Timestamp(TimeUnit::Millisecond, _) => narrow!(TimestampMillisecondType),
        Timestamp(TimeUnit::Microsecond, _) => narrow!(TimestampMicrosecondType),
        Timestamp(TimeUnit::Nanosecond, _) => narrow!(TimestampNanosecondType),
        UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values();
            if values.iter().all(|v| *v <= i64::MAX as u64) {
                Whole::Narrow(values.iter().map(|v| *v as i64).collect())
            } else {
                Whole::Wide(values.iter().map(|v| i128::from(*v)).collect())
            }
        }
        Decimal128(_, _) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            if values
                .iter()
                .fold(true, |all, v| all & (*v as i64 as i128 == *v))
            {
                Whole::Narrow(values.iter().map(|v| *v as i64).collect())
            } else {
                Whole::Wide(values.to_vec())
            }
        }
        other => {
            return Err(Error::Unsupported {
                column: column.to_owned(),
                data_type: other.to_string(),
            });
        }
    })
}

/// Puts `fill` where a row is NULL, so that it widens neither zone nor width.
fn fill_nulls<T: Copy>(values: &mut [T], nulls: Option<&NullBuffer>, fill: T) {
    if let Some(nulls) = nulls.filter(|n| n.null_count() > 0) {
        for (value, valid) in values.iter_mut().zip(nulls.iter()) {
            if !valid {
                *value = fill;
            }
        }
    }
}

/// The first value that is not NULL.
fn first_valid<T: Copy>(values: &[T], nulls: Option<&NullBuffer>) -> T {
    let position = nulls.and_then(|n| n.valid_indices().next()).unwrap_or(0);
    values[position]
}

fn ints(
    mut values: Vec<i64>,
    nulls: Option<&NullBuffer>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    let fill = first_valid(&values, nulls);
    fill_nulls(&mut values, nulls, fill);
    let step = page_size / 8;
    let steps: Vec<(i64, i64)> = values.chunks(step).map(min_max).collect();
    let (min, max) = cover(&steps);
    let zone = Some(Zone::Int {
        min: min.into(),
        max: max.into(),
    });
    if min == max {
        let encoding = Encoding::Constant(min.into());
        return Ok(Matrix {
            encoding,
            pages: vec![],
            nulls: 0,
            validity: None,
            zone,
        });
    }
    let width = width_of(&steps);
    let mut pages = Vec::with_capacity(values.len() * width / page_size + 1);
    let mut scratch = Vec::with_capacity(page_size);
    let rows = page_size / width;
    for (index, chunk) in values.chunks(rows).enumerate() {
        let (min, max) = min_max(chunk);
        scratch.clear();
        match width {
            1 => scratch.extend(chunk.iter().map(|v| v.wrapping_sub(min) as u8)),
            2 => narrow(chunk, &mut scratch, |v| {
                (v.wrapping_sub(min) as u16).to_le_bytes()
            }),
            4 => narrow(chunk, &mut scratch, |v| {
                (v.wrapping_sub(min) as u32).to_le_bytes()
            }),
            _ => narrow(chunk, &mut scratch, i64::to_le_bytes),
        }
        let zone = Some(Zone::Int {
            min: min.into(),
            max: max.into(),
        });
        let id = sink(&scratch, Kind::Values)?;
        pages.push(Page {
            id,
            first: (index * rows) as u32,
            zone,
            more: vec![],
            long: false,
        });
    }
    let encoding = Encoding::Int { width: width as u8 };
    Ok(Matrix {
        encoding,
        pages,
        nulls: 0,
        validity: None,
        zone,
    })
}

fn narrow<T: Copy, const N: usize>(values: &[T], into: &mut Vec<u8>, bytes: impl Fn(T) -> [u8; N]) {
    into.resize(values.len() * N, 0);
    for (slot, value) in into.as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *slot = bytes(*value);
    }
}

fn min_max(values: &[i64]) -> (i64, i64) {
    let min = values.iter().fold(i64::MAX, |a, v| a.min(*v));
    let max = values.iter().fold(i64::MIN, |a, v| a.max(*v));
    (min, max)
}

fn cover(zones: &[(i64, i64)]) -> (i64, i64) {
    zones.iter().fold((i64::MAX, i64::MIN), |(a, b), (c, d)| {
        (a.min(*c), b.max(*d))
    })
}

/// The narrowest width whose pages all hold their values, from the zones of eighths of a
/// one-byte page.
fn width_of(steps: &[(i64, i64)]) -> usize {
    let fits = |width: usize, most: u64| {
        steps.chunks(8 / width).all(|page| {
            let (min, max) = cover(page);
            max.wrapping_sub(min) as u64 <= most
        })
    };
    if fits(1, u8::MAX.into()) {
        1
    } else if fits(2, u16::MAX.into()) {
        2
    } else if fits(4, u32::MAX.into()) {
        4
    } else {
        8
    }
}

fn wide(
    mut values: Vec<i128>,
    nulls: Option<&NullBuffer>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    let fill = first_valid(&values, nulls);
    fill_nulls(&mut values, nulls, fill);
    if values.iter().all(|v| i64::try_from(*v).is_ok()) {
        // Only NULL rows were wide.
        return ints(
            values.iter().map(|v| *v as i64).collect(),
            None,
            page_size,
            sink,
        );
    }
    let rows = page_size / 16;
    let mut scratch = Vec::with_capacity(page_size);
    let mut pages = Vec::with_capacity(values.len() / rows + 1);
    let mut whole: Option<Zone> = None;
    for (index, chunk) in values.chunks(rows).enumerate() {
        let min = chunk.iter().copied().min().unwrap_or(0);
        let max = chunk.iter().copied().max().unwrap_or(0);
        let zone = Zone::Int { min, max };
        whole = whole.map_or(Some(zone), |w| w.join(zone));
        narrow(chunk, &mut scratch, i128::to_le_bytes);
        let id = sink(&scratch, Kind::Values)?;
        let first = (index * rows) as u32;
        pages.push(Page {
            id,
            first,
            zone: Some(zone),
            more: vec![],
            long: false,
        });
    }
    let encoding = Encoding::Int { width: 16 };
    Ok(Matrix {
        encoding,
        pages,
        nulls: 0,
        validity: None,
        zone: whole,
    })
}

fn floats<T: ArrowNativeType>(
    values: &[T],
    nulls: Option<&NullBuffer>,
    page_size: usize,
    widen: impl Fn(&T) -> f64,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    let mut values = values.to_vec();
    let fill = first_valid(&values, nulls);
    fill_nulls(&mut values, nulls, fill);
    let width = size_of::<T>();
    let rows = page_size / width;
    let mut pages = Vec::with_capacity(values.len() / rows + 1);
    let mut whole: Option<Zone> = None;
    for (index, chunk) in values.chunks(rows).enumerate() {
        let zone = float_zone(chunk.iter().map(&widen));
        whole = if index == 0 {
            zone
        } else {
            whole.zip(zone).and_then(|(a, b)| a.join(b))
        };
        let id = sink(
            arrow::buffer::Buffer::from_slice_ref(chunk).as_slice(),
            Kind::Values,
        )?;
        pages.push(Page {
            id,
            first: (index * rows) as u32,
            zone,
            more: vec![],
            long: false,
        });
    }
    let encoding = Encoding::Float { width: width as u8 };
    Ok(Matrix {
        encoding,
        pages,
        nulls: 0,
        validity: None,
        zone: whole,
    })
}

/// `None` where a NaN occurs: comparisons with it follow no order a zone could use.
fn float_zone(values: impl Iterator<Item = f64>) -> Option<Zone> {
    let mut zone = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        if value.is_nan() {
            return None;
        }
        zone = (zone.0.min(value), zone.1.max(value));
    }
    Some(Zone::Float {
        min: zone.0,
        max: zone.1,
    })
}

fn bytes(
    column: &str,
    array: &BinaryViewArray,
    words: Option<&Words>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    let plain = |encoding, pages| Matrix {
        encoding,
        pages,
        nulls: 0,
        validity: None,
        zone: None,
    };
    if let Some(codes) = words.and_then(|w| w.encode(array)) {
        let (width, pages) = code_pages(&codes, page_size, sink)?;
        return Ok(plain(Encoding::Code { width }, pages));
    }
    let pages = text_pages(
        column,
        array.iter().map(|v| v.unwrap_or_default()),
        page_size,
        sink,
    )?;
    Ok(plain(Encoding::Text, pages))
}

fn code_pages(codes: &[u32], page_size: usize, sink: &mut Sink<'_>) -> Result<(u8, Vec<Page>)> {
    let most = codes.iter().copied().max().unwrap_or(0);
    let width = if most <= u8::MAX.into() {
        1
    } else if most <= u16::MAX.into() {
        2
    } else {
        4
    };
    let rows = page_size / width;
    let mut pages = Vec::new();
    let mut scratch = Vec::with_capacity(page_size);
    for (index, chunk) in codes.chunks(rows).enumerate() {
        match width {
            1 => narrow(chunk, &mut scratch, |c| [c as u8]),
            2 => narrow(chunk, &mut scratch, |c| (c as u16).to_le_bytes()),
            _ => narrow(chunk, &mut scratch, u32::to_le_bytes),
        }
        let id = sink(&scratch, Kind::Values)?;
        let first = (index * rows) as u32;
        pages.push(Page {
            id,
            first,
            zone: None,
            more: vec![],
            long: false,
        });
    }
    Ok((width as u8, pages))
}

/// Texts into pages: offsets, then bytes; as many rows as fit. A text that fits no page gets
/// pages of its own.
pub(crate) fn text_pages<'a>(
    column: &str,
    texts: impl Iterator<Item = &'a [u8]>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    let mut open = TextPage::new(page_size);
    let mut row = 0u32;
    for text in texts {
        if text.len() > LONGEST_TEXT {
            let (column, bytes) = (column.to_owned(), text.len() as u64);
            return Err(Error::TooLong {
                column,
                bytes,
                limit: LONGEST_TEXT as u64,
            });
        }
        if !open.fits(text) {
            open.close(row, &mut pages, sink)?;
            if !open.fits(text) {
                pages.push(long_text(text, row, page_size, sink)?);
                row += 1;
                continue;
            }
        }
        open.push(text);
        row += 1;
    }
    open.close(row, &mut pages, sink)?;
    Ok(pages)
}

fn long_text(text: &[u8], row: u32, page_size: usize, sink: &mut Sink<'_>) -> Result<Page> {
    let mut ids = text
        .chunks(page_size)
        .map(|part| sink(part, Kind::Strings))
        .collect::<Result<Vec<_>>>()?
        .into_iter();
    let id = ids.next().unwrap_or_default();
    Ok(Page {
        id,
        first: row,
        zone: None,
        more: ids.collect(),
        long: true,
    })
}

/// A text page being filled.
struct TextPage {
    page_size: usize,
    offsets: Vec<u16>,
    heap: Vec<u8>,
    scratch: Vec<u8>,
}

impl TextPage {
    fn new(page_size: usize) -> TextPage {
        let (offsets, scratch) = (Vec::new(), Vec::with_capacity(page_size));
        TextPage {
            page_size,
            offsets,
            heap: Vec::with_capacity(page_size),
            scratch,
        }
    }

    fn fits(&self, text: &[u8]) -> bool {
        2 * (self.offsets.len() + 2) + self.heap.len() + text.len() <= self.page_size
    }

    fn push(&mut self, text: &[u8]) {
        self.offsets.push(self.heap.len() as u16);
        self.heap.extend_from_slice(text);
    }

    /// Writes the page, if it holds anything; `row` is the one after its last.
    fn close(&mut self, row: u32, pages: &mut Vec<Page>, sink: &mut Sink<'_>) -> Result<()> {
        if self.offsets.is_empty() {
            return Ok(());
        }
        let first = row - self.offsets.len() as u32;
        self.offsets.push(self.heap.len() as u16);
        self.scratch.clear();
        self.scratch
            .extend(self.offsets.iter().flat_map(|o| o.to_le_bytes()));
        self.scratch.extend_from_slice(&self.heap);
        let id = sink(&self.scratch, Kind::Strings)?;
        pages.push(Page {
            id,
            first,
            zone: None,
            more: vec![],
            long: false,
        });
        self.offsets.clear();
        self.heap.clear();
        Ok(())
    }
}
