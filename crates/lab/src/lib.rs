//! The laboratory: an emulated NUMA machine, counts of where its memory accesses go, experiments on
//! where the accesses of a database go, and their reports.
//!
//! The database under test is another program: nothing here depends on Atoll's engine, but for the experiments
//! `laq` and `plans` (feature `laq`), which measure it in their own process.
//!
//! Few machines at hand have more than one memory node. [`machine`] boots one in an emulator, with
//! an unmodified kernel and the files of this system, and runs a command there; [`count`] tells
//! which node read how much from which. What is emulated is where accesses go, never how long
//! they take: no time measured there means anything.
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
//! cargo run -p lab --bin lab-machine -- --machine 2x6 -- lscpu     # the same without the database
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
//! # Experiments
//!
//! Each prints a table and writes an HTML report and the raw numbers; `--quick` says within a minute
//! or two whether it works. See [`experiment`].
//!
//! ```text
//! atoll lab placement --workload chunks,stream,join,atoll,duckdb,postgres
//! atoll lab exhaustive --from bench/placements      # or run all 462 placements again, with --record
//! atoll lab q1-nodes
//! atoll lab pages
//! atoll lab plans --machine 4x4 --query 6,1,3 --runs 10
//! atoll lab laq STORE --query 6 --blocks 32Ki..2Mi --threads 1..N   # on the machine at hand
//! ```
//!
//! # From a program
//!
//! ```no_run
//! use std::io::{stderr, stdout};
//! use std::sync::atomic::AtomicBool;
//!
//! use lab::count::Counting;
//! use lab::machine::{Launch, Shape};
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
//! `crates/lab/runner` is a cargo runner; `./test-lab` runs the NUMA tests of this crate with it
//! on machines of several shapes.

pub mod count;
mod error;
pub mod experiment;
pub mod kernel;
pub mod machine;
pub mod record;
pub mod report;
pub mod roi;

pub use error::{Error, Result};
