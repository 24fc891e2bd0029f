//! What statements return, and whether that is all that becomes of them.

use std::sync::Arc;

use arrow::datatypes::Schema;

/// What a statement returns.
pub(crate) trait Outcome {
    /// Whether the statement has ended: outside of a transaction what it wrote is committed then, so that nobody may be told
    /// that it was cancelled.
    fn is_over(&self) -> bool {
        true
    }
}

impl Outcome for atoll::Rows {
    fn is_over(&self) -> bool {
        atoll::Rows::is_over(self)
    }
}

impl Outcome for () {}
impl Outcome for bool {}
impl Outcome for u64 {}
impl Outcome for Vec<atoll::Answer> {}
impl Outcome for Option<atoll::PreparedStatement> {}
impl Outcome for Arc<Schema> {}

/// Anything else that is there when it is returned.
pub(crate) struct There<T>(pub T);

impl<T> Outcome for There<T> {}
