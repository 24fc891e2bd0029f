//! Every byte to disk passes through this crate.
//!
//! * [`Device`] is a range of bytes with positioned reads and writes and an explicit
//!   [`sync`](Device::sync).
//! * [`File`] is the device that is a file; [`Lock`] says who may write it.
//! * [`Map`] is a part of a file in the address space, paged by the operating system (row M1).
//! * [`fault::Disk`] is a simulated disk that fails on purpose and shows what a loss of power may
//!   leave behind.
//! * [`Queue`] takes reads from tasks that must not sleep, and answers through futures. It orders what
//!   waits by position, joins neighbours, and hands over many reads at once to io_uring, or, where the
//!   system refuses that, to a few threads ([`Settings`]). A read owns the memory it fills, its
//!   [`Room`]; [`Direct`] reads go past the page cache.
//!
//! ```
//! use std::sync::Arc;
//! use io::{Device, Queue, fault::Disk};
//!
//! let disk = Disk::new(1);
//! let device = disk.device("pages");
//! device.write_at(0, b"an atoll is a ring of islands")?;
//! device.sync()?;
//!
//! let queue = Queue::new(2)?;
//! let bytes = futures::executor::block_on(queue.read(&device, 3, 5))?;
//! assert_eq!(bytes, b"atoll");
//! # Ok::<(), io::Error>(())
//! ```

mod abandoned;
mod device;
mod direct;
mod error;
pub mod fault;
mod file;
mod holder;
mod lock;
mod map;
mod queue;
mod room;
mod temporary;

pub use abandoned::remove_abandoned;
pub use device::{Alignment, Descriptor, Device};
pub use direct::Direct;
pub use error::{Error, Result};
pub use file::{Access, File};
pub use holder::Holder;
pub use lock::{Lock, Roots};
pub use map::{Map, Mapping, Pattern};
pub use queue::{Backend, Chosen, Filling, Queue, Reading, Settings, Statistics};
pub use room::{Aligned, Room};
