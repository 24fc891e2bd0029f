//! The laboratory: experiments on where the memory accesses of a database go, and what cores that follow the load cost it.
//!
//! The database under test is another program: nothing here depends on Atoll's engine, but for the experiments
//! `laq` and `plans` (feature `laq`), which measure it in their own process, as `pool` does with raw pages and the buffer
//! pool. Most experiments boot an emulated NUMA
//! machine, which is crate [`emulator`], and write a page, which is crate [`report`].
//!
//! # Experiments
//!
//! Each prints a table and writes an HTML report and the raw numbers; `--quick` says within a minute
//! or two whether it works. See [`experiment`].
//!
//! ```text
//! atoll lab figures T --run all --quick             # all figures of a text on one page
//! atoll lab placement --workload chunks,stream,join,atoll,duckdb,postgres
//! atoll lab arrays --figure 4..9                    # by a model, on any machine
//! atoll lab exhaustive --from bench/placements      # or run all 462 placements again, with --record
//! atoll lab q1-nodes
//! atoll lab pages
//! atoll lab pool --figure 4.1..4.6                  # on the machine at hand
//! atoll lab plans --machine 4x4 --query 6,1,3 --runs 10
//! atoll lab laq STORE --query 6 --blocks 32Ki..2Mi --threads 1..N   # on the machine at hand
//! ```
//!
//! # Layers
//!
//! From top to bottom; a file uses what stands below it, never above.
//!
//! * [`experiment`]: one file or folder each;
//! * `result`: tables of results that several experiments have in common;
//! * `guest`: the emulated machine of an experiment;
//! * [`workload`]: compute kernels, and databases that answer statements;
//! * [`Desk`] and [`Options`]: an experiment's environment and options; `json`: messages between processes of the
//!   lab.
//!
//! # Tests on an emulated machine
//!
//! `./test-lab` runs `tests/numa`, which checks the crates below on a NUMA machine from inside, on machines of several
//! shapes.

mod desk;
mod error;
pub mod experiment;
mod guest;
mod json;
mod options;
mod result;
pub mod workload;

pub use desk::Desk;
pub use error::{Error, Result};
#[cfg(feature = "laq")]
pub use experiment::time_line;
pub use options::Options;
