//! Decoding vectors from the bytes that `write` makes of them.

use std::sync::Arc;

use arrow::array::StringViewBuilder;

use crate::vector::strings::Strings;
use crate::vector::value::{Kind, Values, Vector};

/// Decodes the next vector, of `rows` values; `None` if the bytes are too few or invalid.
pub(crate) fn vector(kind: Kind, rows: usize, bytes: &mut &[u8]) -> Option<Vector> {
    let valid = match take(bytes, 1)? {
        [0] => None,
        _ => Some(truths(take(bytes, rows)?)),
    };
    macro_rules! whole {
        ($type:ty) => {{
            let own = take(bytes, rows * size_of::<$type>())?;
            let (values, _) = own.as_chunks::<{ size_of::<$type>() }>();
            values.iter().map(|v| <$type>::from_le_bytes(*v)).collect()
        }};
    }
    let values = match kind {
        Kind::Int => Values::Int(whole!(i64)),
        Kind::Wide => Values::Wide(whole!(i128)),
        Kind::Float => Values::Float(whole!(f64)),
        Kind::Code => Values::Code(whole!(u32)),
        Kind::Bool => Values::Bool(truths(take(bytes, rows)?)),
        Kind::Text => {
            let lengths: Vec<u32> = whole!(u32);
            let mut texts = StringViewBuilder::with_capacity(rows);
            for length in lengths {
                texts.append_value(std::str::from_utf8(take(bytes, length as usize)?).ok()?);
            }
            Values::Text(Strings::new(Arc::new(texts.finish())))
        }
    };
    Some(Vector { values, valid })
}

fn truths(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().map(|v| *v != 0).collect()
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (own, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(own)
}
