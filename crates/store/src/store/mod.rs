//! The store: one type, its methods by what they do.
//!
//! Every file but `hold` and `running` adds methods to [`handle::Store`], which knows none of them. `gate` is the
//! one that others are called through: a transaction enters, `commit` and `checkpoint` ask for the
//! [`gate::Gate`] as a proof, and leaving calls `reclaim`; `aside` commits beside who is in.

mod allocate;
mod aside;
mod background;
mod checkpoint;
pub(crate) mod commit;
mod durable;
pub(crate) mod gate;
pub(crate) mod handle;
mod hold;
mod open;
mod reclaim;
mod running;
mod structures;
mod survey;
mod write_back;
