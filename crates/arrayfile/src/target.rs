//! Where the cells of an export go.

use array::Region;

use crate::error::Result;

/// A file that is being written. It appears with [`finish`](Target::finish); dropped before, it leaves nothing.
pub(crate) trait Target {
    /// Writes the values of an attribute, of those that are exported, in a region in row-major order, little-endian. Each
    /// cell is written once.
    ///
    /// # Errors
    /// A full disk, for one.
    fn write(&mut self, field: usize, region: &Region, values: &[u8]) -> Result<()>;

    /// Makes it durable and puts it in its place; the bytes of its files.
    ///
    /// # Errors
    /// As [`write`](Target::write).
    fn finish(self: Box<Self>) -> Result<u64>;
}
