//! Binding threads to the cpus of a placement, and undoing it.
//!
//! This is the only place in the workspace that sets the affinity of threads; all other crates call [`bind`] (the
//! test `raw` checks this). There are three ways to bind:
//!
//! * [`pin`]: the calling thread;
//! * [`run`]: a command, its threads in the order they are created ([`start`] and a [`Keeper`]);
//! * [`Keeper::attach`]: the threads of a process that is already running.
//!
//! The former affinity of each changed thread is recorded, so that the change can be undone. A thread that
//! ends meanwhile is no error. Processes of the same user need no privilege.
//!
//! A keeper polls for new threads ([`Keeper::pause`]: every 1 ms while threads are being created, then
//! up to every 20 ms) instead of stopping the process whenever it creates one (ptrace). Until it is found, a new
//! thread runs on the cpus of its creator; one that lives shorter than the pause may never be found.

mod affinity;
mod keeper;
mod run;
mod tasks;

use crate::cpus::CpuSet;
use crate::error::{Error, Result};

pub use keeper::{Change, Keeper, Options, Step, Undone};
pub use run::{Ran, run, start};

/// A thread that was bound by [`pin`]; dropping it puts the thread back.
#[derive(Debug)]
pub struct Pinned {
    thread: i32,
    before: CpuSet,
}

/// Binds the calling thread to `cpus` until the returned value is dropped, which may happen on any thread.
///
/// # Errors
///
/// [`Error::Affinity`] where none of the cpus may be used, or the system forbids the call.
pub fn pin(cpus: &CpuSet) -> Result<Pinned> {
    let thread = affinity::current();
    let process = std::process::id() as i32;
    let failed = |source| Error::Affinity {
        process,
        thread,
        cpus: cpus.clone(),
        source,
    };
    let before = affinity::get(thread).map_err(failed)?;
    affinity::set(thread, cpus).map_err(failed)?;
    Ok(Pinned { thread, before })
}

/// The cpus that a thread of any process may run on.
///
/// # Errors
///
/// What the system says; ESRCH where the thread has ended.
pub fn cpus_of(thread: i32) -> std::io::Result<CpuSet> {
    affinity::get(thread)
}

/// Binds a thread of any process to `cpus`. The former affinity is not recorded: the caller restores it.
///
/// # Errors
///
/// What the system says; ESRCH where the thread has ended.
pub fn bind(thread: i32, cpus: &CpuSet) -> std::io::Result<()> {
    affinity::set(thread, cpus)
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Only if it is still a thread of this process: numbers are used again.
        if tasks::is_own(self.thread) {
            let _ = affinity::set(self.thread, &self.before);
        }
    }
}
