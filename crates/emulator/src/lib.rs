//! An emulated NUMA machine: nodes, cores, distances, an unmodified kernel, and the files of this
//! system. See the [crate's documentation](crate) for how it is used.

mod arguments;
mod channel;
mod cpio;
mod image;
mod kernel;
mod kvm;
mod launch;
mod process;
mod qemu;
mod shape;
mod tools;

pub use arguments::Arguments;
pub use image::KERNEL_VARIABLE;
pub use launch::{
    Ended, INTERRUPT_STATUS, LIMIT_STATUS, Launch, MACHINE_VARIABLE, Outcome, inside,
};
pub use shape::{
    DEFAULT_MEMORY_MIB, Level, MAX_CPUS, MAX_NODES, MIN_MEMORY_MIB, MIN_TOTAL_MIB, Node, Shape,
};
