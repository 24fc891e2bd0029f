//! Values of one type, side by side.

use std::mem::MaybeUninit;

use crate::model::types::{DataType, Element, Scalar, with_type};

/// Values of one type, side by side, at an address that fits the type.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffer {
    data_type: DataType,
    length: usize,
    words: Vec<u64>,
}

/// Room for values of one type that have not been written yet, and are not made zero first either.
#[derive(Debug)]
pub(crate) struct Room {
    data_type: DataType,
    length: usize,
    /// Without elements, with room for all of them.
    words: Vec<u64>,
}

impl Room {
    /// Room for `length` values.
    pub fn new(data_type: DataType, length: usize) -> Room {
        let count = (length * data_type.width()).div_ceil(8);
        let mut words: Vec<u64> = Vec::with_capacity(count);
        // The last word may have bytes behind the last value.
        if let Some(last) = words.spare_capacity_mut()[..count].last_mut() {
            last.write(0);
        }
        Room {
            data_type,
            length,
            words,
        }
    }

    /// The bytes of the values.
    pub fn bytes_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        let bytes = self.length * self.data_type.width();
        let words = self.words.spare_capacity_mut();
        assert!(bytes <= words.len() * 8, "room for all values");
        let start = words.as_mut_ptr().cast::<MaybeUninit<u8>>();
        // SAFETY: the words are lent for as long, have as many bytes at least, and may be without values as bytes may.
        unsafe { std::slice::from_raw_parts_mut(start, bytes) }
    }

    /// The values.
    ///
    /// # Safety
    /// Every byte of [`bytes_mut`](Room::bytes_mut) was written.
    pub unsafe fn written(mut self) -> Buffer {
        let words = (self.length * self.data_type.width()).div_ceil(8);
        // SAFETY: there is room for as many words. All bytes of the values were written, as the caller says; and those behind
        // them in the last word, if it has any, were made zero by `new`.
        unsafe { self.words.set_len(words) };
        Buffer {
            data_type: self.data_type,
            length: self.length,
            words: self.words,
        }
    }
}

impl Buffer {
    /// `length` values that are zero.
    pub fn zeros(data_type: DataType, length: usize) -> Buffer {
        let words = (length * data_type.width()).div_ceil(8);
        Buffer {
            data_type,
            length,
            words: vec![0; words],
        }
    }

    /// `length` times `value`; null is zero.
    pub fn filled(data_type: DataType, length: usize, value: Scalar) -> Buffer {
        let mut buffer = Buffer::zeros(data_type, length);
        let bytes = value.to_bytes(data_type).unwrap_or_default();
        if bytes != [0; 8] {
            let width = data_type.width();
            let mut word = [0; 8];
            for part in word.chunks_mut(width) {
                part.copy_from_slice(&bytes[..width]);
            }
            buffer.words.fill(u64::from_le_bytes(word));
        }
        buffer
    }

    /// These values. Those of a bool are taken to be 1 where they are not 0.
    ///
    /// # Panics
    /// If `T` is not the type of `data_type`'s values.
    pub fn of<T: Element>(data_type: DataType, values: &[T]) -> Buffer {
        let mut buffer = Buffer::zeros(data_type, values.len());
        buffer.values_mut::<T>().copy_from_slice(values);
        if data_type == DataType::Bool {
            buffer
                .values_mut::<u8>()
                .iter_mut()
                .for_each(|of| *of = u8::from(*of != 0));
        }
        buffer
    }

    /// The type of the values.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The values.
    ///
    /// # Panics
    /// If `T` is not the type of the values.
    pub fn values<T: Element>(&self) -> &[T] {
        assert!(T::is_of(self.data_type), "values of {}", self.data_type);
        bytemuck::cast_slice(self.bytes())
    }

    /// The values, to be changed. A bool is 0 or 1.
    ///
    /// # Panics
    /// If `T` is not the type of the values.
    pub fn values_mut<T: Element>(&mut self) -> &mut [T] {
        assert!(T::is_of(self.data_type), "values of {}", self.data_type);
        bytemuck::cast_slice_mut(self.bytes_mut())
    }

    /// The bytes of the values, little-endian.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length * self.data_type.width()]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.length * self.data_type.width();
        &mut bytemuck::cast_slice_mut(&mut self.words)[..bytes]
    }

    /// A value.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, at: usize) -> Scalar {
        match self.data_type {
            DataType::Bool => Scalar::Bool(self.values::<u8>()[at] != 0),
            DataType::F32 => Scalar::Float(f64::from(self.values::<f32>()[at])),
            DataType::F64 => Scalar::Float(self.values::<f64>()[at]),
            of => with_type!(of, T => Scalar::Int(self.values::<T>()[at].to_i128())),
        }
    }

    /// Sets a value; one that the type does not hold becomes zero.
    pub(crate) fn set(&mut self, at: usize, value: Scalar) {
        let width = self.data_type.width();
        let bytes = value.to_bytes(self.data_type).unwrap_or_default();
        self.bytes_mut()[at * width..][..width].copy_from_slice(&bytes[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_has_what_was_written_to_it() {
        for (of, length) in [(DataType::U16, 5), (DataType::F64, 3), (DataType::U8, 0)] {
            let mut room = Room::new(of, length);
            let bytes = room.bytes_mut();
            assert_eq!(bytes.len(), length * of.width());
            bytes.iter_mut().for_each(|byte| {
                byte.write(7);
            });
            // SAFETY: every byte was written.
            let buffer = unsafe { room.written() };
            assert_eq!(buffer.bytes(), vec![7; length * of.width()]);
        }
    }

    #[test]
    fn every_type_keeps_its_values() {
        for of in DataType::ALL {
            let value = if of.is_float() {
                Scalar::Float(0.5)
            } else {
                Scalar::Int(1)
            };
            let value = value.cast(of).unwrap();
            let mut buffer = Buffer::filled(of, 5, value);
            assert!((0..5).all(|at| buffer.get(at) == value), "{of}");
            buffer.set(3, Scalar::Int(0));
            assert_eq!(buffer.get(3), Scalar::Int(0).cast(of).unwrap());
            assert_eq!(buffer.get(4), value);
            assert_eq!(buffer.bytes().len(), 5 * of.width());
        }
        assert_eq!(Buffer::of(DataType::Bool, &[0u8, 7]).bytes(), [0, 1]);
    }
}
