//! Encoding vectors as bytes: a flag, the validity mask if there is one, then the values. Only the process that
//! wrote them reads them.

use arrow::array::{Array, AsArray};

use crate::error::{Error, Result};
use crate::vector::value::{Values, Vector};

/// Appends `vector` to `out`.
///
/// # Errors
/// An internal error if the vector does not have `rows` rows.
pub(crate) fn vector(vector: &Vector, rows: usize, out: &mut Vec<u8>) -> Result<()> {
    if vector.len() != rows {
        return Err(Error::internal("columns of different lengths"));
    }
    out.push(u8::from(vector.valid.is_some()));
    if let Some(valid) = &vector.valid {
        out.extend(valid.iter().map(|valid| u8::from(*valid)));
    }
    macro_rules! whole {
        ($values:expr) => {
            $values
                .iter()
                .for_each(|v| out.extend_from_slice(&v.to_le_bytes()))
        };
    }
    match &vector.values {
        Values::Int(v) => whole!(v),
        Values::Wide(v) => whole!(v),
        Values::Float(v) => whole!(v),
        Values::Code(v) => whole!(v),
        Values::Bool(v) => out.extend(v.iter().map(|v| u8::from(*v))),
        Values::Text(texts) => {
            let array = texts.array()?;
            let array = array.as_string_view();
            let text = |row| {
                if array.is_null(row) {
                    ""
                } else {
                    array.value(row)
                }
            };
            for row in 0..rows {
                let length = u32::try_from(text(row).len());
                let length = length.map_err(|_| Error::internal("a string of 4 GiB"))?;
                out.extend_from_slice(&length.to_le_bytes());
            }
            (0..rows).for_each(|row| out.extend_from_slice(text(row).as_bytes()));
        }
    }
    Ok(())
}
