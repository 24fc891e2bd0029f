//! A simulated disk that fails on purpose.
//!
//! A [`Disk`] holds named files in memory. Its devices behave as the contract of [`Device`](crate::Device) says
//! and no better: what is not synced may be lost, reordered and torn when the power goes, which
//! [`Disk::crash`] shows. A test of recovery runs its work once to count the operations, then once
//! for each of them with [`Disk::stop_after`], and opens what several seeds of `crash` leave:
//!
//! ```
//! use io::{Device, fault::Disk};
//!
//! fn work(disk: &Disk) -> io::Result<()> {
//!     let device = disk.device("data");
//!     device.write_at(0, &[7; 2048])?;
//!     device.sync()?;
//!     device.write_at(2048, &[8; 2048])
//! }
//!
//! let whole = Disk::new(0);
//! work(&whole)?;
//! for operation in 0..whole.operations() {
//!     let disk = Disk::new(0);
//!     disk.stop_after(operation);
//!     assert!(work(&disk).is_err());
//!     for seed in 0..8 {
//!         let left = disk.crash(seed);
//!         if operation > 1 {
//!             // The sync went through.
//!             assert_eq!(left.bytes("data")[..2048], [7; 2048]);
//!         }
//!     }
//! }
//! # Ok::<(), io::Error>(())
//! ```

mod crash;
mod device;
mod disk;
mod room;
mod state;

pub use disk::Disk;
pub use state::{Counts, Faults, SECTOR};
