//! Arrow columns into matrices: the narrowest encoding that holds a block's values (L1).

mod floats;
mod integers;
mod pages;
pub(crate) mod shreds;
mod texts;

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::*;
use store::Kind;

use crate::dictionary::DictionaryBuilder;
use crate::error::Result;
use crate::format::block::{Encoding, Matrix};
use crate::format::nested::{to_storage, zone};

pub(crate) use self::pages::Sink;
pub use self::texts::LONGEST_TEXT;
pub(crate) use self::texts::text_pages;

/// Encodes one column of one block.
///
/// `array` has a stored type and 1 ..= 65,536 rows; `dictionary` collects the labels of the column
/// (texts only). Pages go to `sink` in row order.
pub(crate) fn encode(
    column: &str,
    array: &ArrayRef,
    dictionary: Option<&DictionaryBuilder>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    let zone = zone(array);
    let array = &to_storage(array)?;
    let rows = array.len();
    let nulls = array.null_count();
    if nulls == rows {
        return Ok(Matrix {
            nulls: rows as u32,
            ..Matrix::new(Encoding::Constant(0), vec![], None)
        });
    }
    let mut matrix = values(column, array, dictionary, page_size, sink)?;
    matrix.nulls = nulls as u32;
    matrix.zone = matrix.zone.or(zone);
    if let Some(valid) = array.nulls().filter(|_| nulls > 0) {
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

/// The matrix of the values, without its NULLs.
fn values(
    column: &str,
    array: &dyn Array,
    dictionary: Option<&DictionaryBuilder>,
    page_size: usize,
    sink: &mut Sink<'_>,
) -> Result<Matrix> {
    use self::floats::floats;
    use self::texts::texts;
    use DataType::*;
    match array.data_type() {
        Utf8View => {
            let array = array.as_string_view().clone().to_binary_view();
            texts(column, &array, dictionary, page_size, sink)
        }
        BinaryView => texts(column, array.as_binary_view(), dictionary, page_size, sink),
        Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            floats(values, array.nulls(), page_size, |v| f64::from(*v), sink)
        }
        Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            floats(values, array.nulls(), page_size, |v| *v, sink)
        }
        _ => self::integers::integers(column, array, page_size, sink),
    }
}
