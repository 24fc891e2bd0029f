//! What is read of the system: `/proc`, and files of the kernel that are read again and again.

pub(crate) mod opened;
pub(crate) mod proc;
