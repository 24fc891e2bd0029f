//! What bounds a statement: admission control, the memory limit and its spilling, the depth of recursion, cancelling,
//! the width of work.

pub(crate) mod admission;
pub(crate) mod budget;
pub(crate) mod guard;
pub(crate) mod spill;
pub(crate) mod stop;
pub(crate) mod work;
