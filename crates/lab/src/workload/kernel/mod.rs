//! Programs of threads that read, write and look up data of known size: what placements are
//! compared with.
//!
//! A [`Plan`] says which thread puts which data into memory, and which data each thread then goes
//! through; [`perform`] carries it out under one placement after the other, in one process, each
//! as a region of interest of its own. The data is put into memory anew under every placement, so
//! that it lies where its loader ran, as it does in a database that leaves it to first touch.

mod patterns;
mod perform;
mod plan;

pub use patterns::{KERNELS, Kernel};
pub use perform::{Ran, perform};
pub use plan::{Job, LINE, Piece, Plan, Step};
