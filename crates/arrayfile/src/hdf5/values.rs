//! Bytes of a file as numbers of this machine.

use array::{Buffer, DataType, Scalar};

use crate::copy::swap;
use crate::values::bytes_mut;

/// Brings values of a file into the form that buffers have: little-endian, and a bool 0 or 1.
pub(super) fn to_native(of: DataType, big_endian: bool, bytes: &mut [u8]) {
    if big_endian {
        swap(of.width(), bytes);
    }
    if of == DataType::Bool {
        bytes.iter_mut().for_each(|of| *of = u8::from(*of != 0));
    }
}

/// The numbers in bytes of a file; what is no whole one at the end is left out.
pub(super) fn scalars(of: DataType, big_endian: bool, bytes: &[u8]) -> Vec<Scalar> {
    let count = bytes.len() / of.width();
    let mut bytes = bytes[..count * of.width()].to_vec();
    to_native(of, big_endian, &mut bytes);
    let mut values = Buffer::zeros(of, count);
    bytes_mut(&mut values).copy_from_slice(&bytes);
    (0..count).map(|at| values.get(at)).collect()
}
