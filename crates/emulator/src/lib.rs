//! An emulated NUMA machine, and a counter of its memory accesses by node.
//!
//! Few machines at hand have more than one memory node. [`Launch`] boots one in an emulator, with
//! an unmodified kernel and the files of this system, and runs a command there; [`count`] counts the
//! cache lines that each node moves from and to the memory of each. The emulation models which node
//! an access goes to, not how long it takes: times measured there mean nothing.
//!
//! Cpus are numbered node by node, siblings side by side. The sizes of caches that programs see in the
//! machine are the emulator's own (who shares them is right); those that are counted with come from
//! the description, or from `--cache-scale` and `--cache-bytes`. There are no hardware events, no
//! RAPL, no resctrl and no HMAT, and the kernel's own accesses are not counted.
//!
//! # From the command line
//!
//! ```text
//! atoll lab machine --nodes 4 --cores 4 -- numactl --hardware
//! atoll lab machine --machine opteron-8387 --count -- ./scan
//! atoll lab machine --count=marks --cache-scale 16 --share /tmp/out --json -- ./scan
//! cargo run -p emulator -- --machine 2x6 -- lscpu     # the same without the database
//! ```
//!
//! The command's exit status is passed on. `--json` prints `{"exit", "nodes", "cores",
//! "boot_seconds", ...}`, and with `--count` also `{"dram": [[by node of the core, then by node of
//! the page]], "write_backs", "llc_miss_ratio", "remote_share", "instructions", "regions": [...]}`,
//! in lines of 64 bytes; `windows` stands beside `dram` where the program names ranges of its addresses whose lines are to be
//! counted apart. What is counted is the whole command, or with `--count=marks` what lies
//! between marks: [`roi`] in Rust, `guest/atoll_roi.h` in C, and for programs that cannot be
//! changed `atoll-roi`, which is on the search path inside the machine:
//!
//! ```text
//! atoll lab machine --count=marks -- sh -c './load; atoll-roi flush start; ./query; atoll-roi stop'
//! ```
//!
//! # From a program
//!
//! ```no_run
//! use std::io::{stderr, stdout};
//! use std::sync::atomic::AtomicBool;
//!
//! use emulator::count::Counting;
//! use emulator::{Launch, Shape};
//!
//! let machine = topology::Machine::parse("opteron-8387")?;
//! let mut launch = Launch::new(Shape::of(&machine, 512, 0)?, ["./scan", "--threads", "16"]);
//! launch.counting = Some(Counting::Command);
//! let outcome = launch.run(&mut stdout(), &mut stderr(), &AtomicBool::new(false))?;
//! assert_eq!(outcome.exit, 0);
//! println!("{:?}", outcome.count.unwrap().total.dram);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it needs
//!
//! `qemu-system-x86`, a C compiler with the static C library, and Debian's kernel package, which is
//! downloaded and unpacked in the user's cache directory, not installed: `./setup --lab`. The
//! image is made at the first use and kept in `$XDG_CACHE_HOME/atoll/lab`.
//!
//! # Tests on an emulated machine
//!
//! `crates/emulator/runner` is a cargo runner; `./test-lab` runs the NUMA tests of crate `lab` with it
//! on machines of several shapes.
//!
//! # Layers
//!
//! [`Arguments`] (the command line) become a [`Launch`], which boots an `image` in `qemu` with the nodes of a [`Shape`]
//! and reads the results of the counter ([`count`]).

pub mod count;
mod error;
mod image;
mod launch;
mod options;
mod qemu;
pub mod roi;
mod shape;
mod tools;
mod variables;

pub use error::{Error, Result};
pub use launch::{Ended, INTERRUPT_STATUS, LIMIT_STATUS, Launch, Outcome};
pub use options::{Arguments, What};
pub use shape::{
    DEFAULT_MEMORY_MIB, Level, MAX_CPUS, MAX_NODES, MIN_MEMORY_MIB, MIN_TOTAL_MIB, Node, Shape,
};
pub use variables::{KERNEL_VARIABLE, MACHINE_VARIABLE, inside};
