//! Floats, as they are.

use arrow::buffer::NullBuffer;
use arrow::datatypes::{ArrowNativeType, ToByteSlice};

use crate::error::Result;
use crate::format::block::{Encoding, Matrix, Zone};
use crate::write::encode::pages::{Sink, fill_nulls, value_pages};

/// The matrix of a column of floats; `widen` gives a value as 64 bits.
pub(super) fn floats<T: ArrowNativeType>(
    values: &[T],
    nulls: Option<&NullBuffer>,
    page_size: usize,
    widen: impl Fn(&T) -> f64,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    let mut values = values.to_vec();
    fill_nulls(&mut values, nulls);
    let width = size_of::<T>();
    // Of all pages; absent as soon as it is absent for one.
    let (mut whole, mut first) = (None, true);
    let pages = value_pages(&values, width, page_size, sink, |chunk, into| {
        let zone = float_zone(chunk.iter().map(&widen));
        whole = if first {
            zone
        } else {
            Option::zip(whole, zone).and_then(|(a, b): (Zone, Zone)| a.join(b))
        };
        first = false;
        into.extend_from_slice(chunk.to_byte_slice());
        zone
    })?;
    let encoding = Encoding::Float { width: width as u8 };
    Ok(Matrix::new(encoding, pages, whole))
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
