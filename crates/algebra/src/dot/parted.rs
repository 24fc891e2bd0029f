//! A vector that several threads fill, each of them other parts.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

/// A vector of which each part is written once, by any thread. What has not been written is zero, and takes no memory yet.
///
/// Invariant: `starts` ascends from 0 to the number of values, and has an entry more than there are parts; part `p` has the values
/// from `starts[p]` until `starts[p + 1]`.
#[derive(Debug)]
pub(super) struct PartedVec<T> {
    values: Vec<UnsafeCell<T>>,
    starts: Vec<usize>,
    written: Vec<AtomicBool>,
}

// SAFETY: a shared vector reaches its values only in `write`, which gives each part to a single caller.
unsafe impl<T: Send> Sync for PartedVec<T> {}

impl<T: Copy + Default> PartedVec<T> {
    /// With parts of these lengths.
    pub fn new(lengths: impl IntoIterator<Item = usize>) -> PartedVec<T> {
        let mut all = 0;
        let mut starts = vec![all];
        for length in lengths {
            all += length;
            starts.push(all);
        }
        let written = starts[1..].iter().map(|_| AtomicBool::new(false));
        let written = written.collect();
        let mut zeros = ManuallyDrop::new(vec![T::default(); all]);
        let (length, capacity) = (zeros.len(), zeros.capacity());
        // SAFETY: the memory is that of a vector which is not dropped, and a cell of a value is laid out as the value.
        let values = unsafe { Vec::from_raw_parts(zeros.as_mut_ptr().cast(), length, capacity) };
        PartedVec {
            values,
            starts,
            written,
        }
    }

    /// Writes a part, of which `write` is given the zeros.
    ///
    /// # Panics
    /// When there is no such part, or it has been written.
    pub fn write<R>(&self, part: usize, write: impl FnOnce(&mut [T]) -> R) -> R {
        let again = self.written[part].swap(true, Ordering::AcqRel);
        assert!(!again, "a part is written once");
        let cells = &self.values[self.starts[part]..self.starts[part + 1]];
        // SAFETY: parts do not overlap, and as asserted nobody else has been given this one. Whoever takes the values out owns
        // the vector, so that this borrow of it has ended.
        let values = unsafe {
            std::slice::from_raw_parts_mut(UnsafeCell::raw_get(cells.as_ptr()), cells.len())
        };
        write(values)
    }

    /// The values of all parts.
    ///
    /// # Panics
    /// When one of them has not been written.
    pub fn into_vec(self) -> Vec<T> {
        let mut written = self.written.iter();
        assert!(
            written.all(|part| part.load(Ordering::Acquire)),
            "each part is written"
        );
        let mut values = ManuallyDrop::new(self.values);
        let (length, capacity) = (values.len(), values.capacity());
        // SAFETY: as in `new`, the other way round.
        unsafe { Vec::from_raw_parts(values.as_mut_ptr().cast(), length, capacity) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_write_parts_of_any_length() {
        let lengths = [3, 0, 1, 500, 0, 64];
        let parts: PartedVec<u32> = PartedVec::new(lengths);
        std::thread::scope(|scope| {
            for part in (0..lengths.len()).rev() {
                let parts = &parts;
                scope.spawn(move || {
                    parts.write(part, |values| {
                        assert!(values.len() == lengths[part] && values.iter().all(|v| *v == 0));
                        values.fill(part as u32);
                    });
                });
            }
        });
        let of = |(part, length): (usize, usize)| std::iter::repeat_n(part as u32, length);
        let wanted: Vec<u32> = lengths.into_iter().enumerate().flat_map(of).collect();
        assert_eq!(parts.into_vec(), wanted);
        assert!(PartedVec::<u64>::new([]).into_vec().is_empty());
    }

    #[test]
    #[should_panic(expected = "a part is written once")]
    fn a_part_is_not_given_out_again() {
        let parts: PartedVec<u64> = PartedVec::new([2]);
        parts.write(0, |values| values.fill(1));
        parts.write(0, |values| values.fill(2));
    }

    #[test]
    #[should_panic(expected = "each part is written")]
    fn a_part_is_not_left_out() {
        let parts: PartedVec<u64> = PartedVec::new([2, 2]);
        parts.write(1, |values| values.fill(1));
        parts.into_vec();
    }
}
