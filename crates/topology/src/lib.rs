//! What the machine looks like: NUMA nodes, cores and their hardware threads, caches,
//! memory, and how far the nodes are from each other.
//!
//! A [`Machine`] comes from one of four sources, and looks the same from all of them:
//!
//! | source | `Machine::parse` | for |
//! |---|---|---|
//! | the running system | `live` | pinning real threads; only the cpus this process may use |
//! | a shipped description | `opteron-8387`, ... ([`SHIPPED`]) | the machines of the papers |
//! | an hwloc XML file | `path/to/file.xml` | a machine recorded elsewhere (`lstopo file.xml`) |
//! | a synthetic string | `node:4 l3:1 core:4 pu:2`, or `4x4` | tests, emulation |
//!
//! This is the only crate of the workspace that reads the system's topology (hwloc, sysfs).
//!
//! # System packages
//!
//! hwloc is a C library: building needs `libhwloc-dev`, `libudev-dev` and `pkg-config`
//! (`apt-get install libhwloc-dev libudev-dev pkg-config`). Where they are missing the build
//! script of `hwlocality-sys` fails with pkg-config's message before this crate is reached.
//!
//! # Example
//!
//! ```
//! use topology::Machine;
//!
//! let machine = Machine::parse("opteron-8387")?;
//! assert_eq!(machine.nodes().len(), 4);
//! assert_eq!(machine.cpus(), 16);
//! assert_eq!(machine.distance(0, 0), 10);
//! assert_eq!(machine.nearest(0)[0], 0);
//! println!("{}", machine.render());
//! # Ok::<(), topology::Error>(())
//! ```

mod error;
mod hwloc;
mod live;
mod machine;
mod parts;
mod rates;
mod render;
mod shipped;
mod spec;
mod synthetic;
mod xml;

pub use error::{Error, Result};
pub use live::live_nodes;
pub use machine::{Cache, CacheKind, Core, MAX_CPUS, MAX_NODES, Machine, Node, Source};
pub use rates::Rates;
pub use shipped::SHIPPED;
