//! Parallel operators over the raw pages of a [page store](store::PageStore): the workloads with
//! which a buffer pool is measured (rows B9, B11 and B12).
//!
//! * A [`PageFile`] is a page store that was opened with a pool of a given size, its partitions,
//!   and the pool's memory on the machine's nodes or wherever the system puts it.
//! * A [`Session`] is a number of threads that read its pages, and how many pages each prefetches.
//! * The operators: [`alloc`] fills pages with random bytes, [`scan`] counts the integers above
//!   a threshold, [`groupby`] counts each byte value, [`hashjoin`] joins the first sixteenth of the
//!   pages with the rest.
//! * [`sweep`] measures an operator over threads, partitions, prefetching and NUMA mode.
//!
//! ```
//! use pages::{Fill, Options, PageFile, Session};
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("reef.pages");
//! let file = PageFile::create(&path, 4096, 100, &Options::default())?;
//! pages::alloc(&file, 2, &Fill::default(), &|| false)?;
//!
//! let session = Session::start(&file, 2, 4)?;
//! let above = pages::scan(&session, 0)?;
//! let integers = session.bytes() / 4;
//! assert!(above > integers / 3 && above < integers / 3 * 2, "half of them are positive");
//!
//! let counts = pages::groupby(&session)?;
//! assert_eq!(counts.iter().sum::<u64>(), session.bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! Pages are dealt to the threads in runs of 256 KiB (the text on SMILE has page *p* read by thread *p* modulo the threads, which
//! makes neighbours write to the same cache lines). Page *p* lies on node *p* modulo the nodes, and so do the threads: where
//! their number is a multiple of the nodes', each thread reads pages of its own node. Each thread has results of its own, on
//! cache lines of their own; the caller puts them together. A thread pins one page at a time, so a
//! pool of as many frames as threads is enough. Prefetching is done by as many threads more, which
//! are dealt the pages round robin (row B6); or a prefetcher of the pool watches what each thread reads
//! ([`Options::prefetcher`]), and the pool loads what it names.

mod error;
mod file;
mod operators;
mod options;
mod session;
mod sweep;

pub use buffer::{Placement, Prefetching};
pub use error::{Error, Result};
pub use file::PageFile;
pub use operators::alloc::{Fill, Filled, alloc};
pub use operators::groupby::{count_values, groupby};
pub use operators::hashjoin::{Join, hashjoin};
pub use operators::scan::{count_above, scan};
pub use operators::{Answer, Operator};
pub use options::{MAX_PARTITIONS, MAX_PREFETCH, Options};
pub use session::Session;
pub use store::Access;
pub use sweep::{Sweep, Swept, Timed, sweep};
