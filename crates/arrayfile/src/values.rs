//! The bytes of values in memory.

use array::{Buffer, DataType, Element};

/// How many times a chunk is in memory while it is written: read, as a column, laid over what was there, compressed.
pub(crate) const COPIES: u64 = 4;

/// The bytes of the values of a buffer, to be changed: a bool is 0 or 1.
pub(crate) fn bytes_mut(buffer: &mut Buffer) -> &mut [u8] {
    fn of<T: Element>(buffer: &mut Buffer) -> &mut [u8] {
        bytemuck::cast_slice_mut(buffer.values_mut::<T>())
    }
    match buffer.data_type() {
        DataType::Bool | DataType::U8 => buffer.values_mut::<u8>(),
        DataType::I8 => of::<i8>(buffer),
        DataType::I16 => of::<i16>(buffer),
        DataType::I32 => of::<i32>(buffer),
        DataType::I64 => of::<i64>(buffer),
        DataType::U16 => of::<u16>(buffer),
        DataType::U32 => of::<u32>(buffer),
        DataType::U64 => of::<u64>(buffer),
        DataType::F32 => of::<f32>(buffer),
        DataType::F64 => of::<f64>(buffer),
    }
}
