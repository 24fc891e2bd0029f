//! Which keys were seen before.

use arrow::array::ArrayRef;

use crate::error::Result;
use crate::index::numbered::Numbered;

/// The keys of rows that were seen: which of more rows have one of them.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    seen: Numbered,
}

impl KeySet {
    /// Takes in the keys of rows, whose `columns` have stored types, each time the same. Says for each row whether its key is
    /// new; none for a row with a NULL in one of the columns, which has no key.
    ///
    /// # Errors
    /// [`Error::Kind`](crate::Error::Kind) for a column of another type.
    pub fn take(&mut self, columns: &[ArrayRef]) -> Result<Vec<Option<bool>>> {
        let mut next = self.seen.len();
        let numbers = self.seen.put(columns)?.into_iter();
        let mut is_new = |number: usize| {
            let is_new = number == next;
            next += usize::from(is_new);
            is_new
        };
        Ok(numbers.map(|number| number.map(&mut is_new)).collect())
    }

    /// About the bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.seen.bytes()
    }
}
