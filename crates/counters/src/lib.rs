//! Sensors for a machine and its processes; each reading says which source it came from.
//!
//! A [`Reading`] is a value with unit, source, scope and age; what cannot be read is
//! [`Value::Unavailable`] with the reason, never a zero. A [`Sensor`] gives readings, a
//! [`Board`] reads many sensors:
//!
//! | sensor | reads | from |
//! |---|---|---|
//! | [`EngineBytes`] | bytes per node pair | what the engine counted |
//! | [`EmulatorFile`] | memory accesses per node pair | an emulated machine's counter |
//! | [`ProcessMemory`] | bytes in memory per node | `numa_maps`, or a sample with `move_pages` |
//! | [`Tasks`] | load, faults, migrations, switches of a process and its threads | `/proc`, perf |
//! | [`CpuLoad`] | load of cpus and nodes | `/proc/stat` |
//! | [`Pressure`] | share of time that work waits | `/proc/pressure` |
//! | [`CoreEvents`], [`Uncore`] | remote loads, memory and link traffic, energy | perf; never run on hardware |
//! | [`LoadSamples`] | where loads got their data, sampled | perf (IBS, PEBS); never run on hardware |
//! | [`Resctrl`] | memory bandwidth by cache domain | resctrl; never run on hardware |
//! | [`Powercap`] | energy | powercap; never run on hardware |
//!
//! Besides the sensors, [`Looker`] lists the mappings of a process with the nodes their pages are on,
//! and [`Watch`] follows a process, its threads and its children over time.
//!
//! Files are read below a root that can be a folder ([`System::at`]). Everything works
//! unprivileged for the user's own processes, and says what is refused.
//!
//! ```
//! use counters::{Looker, Nodes, Process, System};
//!
//! let system = System::real();
//! let nodes = Nodes::new(&topology::Machine::live().unwrap());
//! let process = Process::open(&system, std::process::id())?;
//! let residency = Looker::new(&system, &nodes).look(&process)?;
//! assert!(residency.total() > 0);
//! # Ok::<(), counters::Error>(())
//! ```

pub mod clock;
mod error;
mod hardware;
mod load;
mod nodes;
mod perf;
mod pressure;
mod process;
mod reading;
mod residency;
mod sensor;
mod system;
mod tasks;
mod traffic;
mod watch;

pub use error::{Error, Result};
pub use hardware::{CoreEvents, LoadSamples, Powercap, Resctrl, Uncore};
pub use load::CpuLoad;
pub use nodes::Nodes;
pub use pressure::Pressure;
pub use process::{Process, Schedstat, Stat};
pub use reading::{Reading, Reason, Scope, Source, Standing, Unit, Value, Why};
pub use residency::{Depth, Group, Holds, Look, Looker, ProcessMemory, Region, Residency};
pub use sensor::{Board, Sensor};
pub use system::System;
pub use tasks::{Activity, Measured, Tasks, ThreadActivity};
pub use traffic::{EmulatorCounts, EmulatorFile, EngineBytes};
pub use watch::{Memory, Sample, Seen, Summary, ThreadSummary, Watch};
