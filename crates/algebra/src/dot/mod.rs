//! Dot: composition of matrices, which is also the join. The types here are join tables: built from the keys of one
//! side, probed with those of the other.
//!
//! | table | keys | probe |
//! |---|---|---|
//! | [`crate::filter::gather`] | none: rows are known by position | an array access |
//! | [`Direct`] | unique integers of a small range | an array access |
//! | [`Ranked`] | integers of a larger range, also repeated ones | counts the bits before the key's (rank) |
//! | [`Bits`] | integers, for a semi-join: is the key there? | a bit test |
//! | [`Keys`] | those of one of these, for a scan: is the stored value a key? | as that table |
//! | [`Hashed`] | any number of words, also repeated ones | a hash table look-up |
//!
//! [`Ranges`] builds a large [`Direct`] or [`Ranked`] with several threads, [`HashPartitions`] a [`Hashed`].

mod bits;
mod direct;
mod found;
mod hash_partitions;
mod hashed;
mod keys;
mod parted;
mod ranges;
mod rank;
mod ranked;

pub use bits::Bits;
pub use direct::Direct;
pub use found::{NONE, exclude, found};
pub use hash_partitions::{DividedHashes, HashPartitions};
pub use hashed::{Filled, Hashed, HashedParts, Part, Probe};
pub use keys::Keys;
pub use ranges::{DirectParts, Divided, Marked, Ranges, RankedParts, is_scattered};
pub use ranked::Ranked;
