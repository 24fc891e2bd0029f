//! QEMU: its command line, its process, what the guest's first process tells through it, and whether the host's
//! processors can run a guest.

pub(crate) mod arguments;
pub(crate) mod channel;
pub(crate) mod kvm;
pub(crate) mod process;
