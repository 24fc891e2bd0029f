//! Indexes of keys: which row has a key, and that no two rows have the same.
//!
//! A key of a table that holds (a primary or unique one) has an index, in the catalog and in pages, which the transaction
//! that changes the rows changes with them. It has three parts:
//!
//! | rows | what finds them |
//! |---|---|
//! | of a block whose keys ascend one after the other, in a range that no others have | the range, in the catalog; then a search among them |
//! | other ones of blocks | runs of hashes in pages, in the order of the hashes; runs of like size are merged |
//! | of the tail | the hashes of each chunk, in the catalog |
//!
//! So what is loaded in the order of the key, or in pieces that are in order, costs a range per block or piece. A hash that is found is a hint: the row's own key is
//! compared, and whether it is deleted. Deleting rows touches nothing but ranges of blocks that go, and chunks.
//!
//! | file | holds |
//! |---|---|
//! | `keys` | keys of Arrow arrays |
//! | `stock` | blocks, deleted rows and chunks as a snapshot has them |
//! | `rows` | keys of stored rows, read page by page |
//! | `ranges`, `runs`, `chunks` | the three parts |
//! | `find` | rows by their keys |
//! | `numbered`, `seen`, `lacking` | many keys at once: which are new, which no row has |
//! | `waiting` | rows of new blocks that will be in a run, which several threads sort and write |
//! | `gather`, `settle` | blocks that are added: their keys, and whether they are new |
//! | `duplicate` | the error, in words |
//! | `maintain` | what inserts, deletes and changes of tables do to indexes |

mod chunks;
mod duplicate;
pub(crate) mod find;
pub(crate) mod gather;
mod keys;
mod lacking;
pub(crate) mod maintain;
mod numbered;
mod ranges;
mod rows;
mod runs;
mod seen;
pub(crate) mod settle;
mod stock;
mod waiting;

pub use keys::{KeyMap, Keys};
pub use seen::KeySet;
