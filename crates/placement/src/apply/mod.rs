//! Putting threads where a placement says, and back.
//!
//! The only part of this crate that changes anything, and the only place of the workspace that binds threads: all
//! others call [`bind`] (the test `raw` holds this). Three ways:
//!
//! * [`pin`]: the calling thread;
//! * [`run`]: a command, its threads in the order they are created ([`start`] and a [`Keeper`]);
//! * [`Keeper::attach`]: the threads of a process that runs already.
//!
//! Every change is recorded with what was there before, so that it can be undone. A thread that ends
//! meanwhile is no error. No privilege is needed for processes of the same user.
//!
//! A keeper looks for new threads from time to time ([`Keeper::pause`]: 1 ms while threads come, then up
//! to 20 ms) instead of stopping the process at each of them (ptrace): a thread runs where its
//! creator does until it is found, and one that lives shorter than the pause may never be.

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

/// Binds the calling thread until the returned value is dropped, on whichever thread.
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

/// The cpus that a thread, of whichever process, may run on.
///
/// # Errors
///
/// What the system says; ESRCH where the thread has ended.
pub fn cpus_of(thread: i32) -> std::io::Result<CpuSet> {
    affinity::get(thread)
}

/// Binds a thread, of whichever process, until it is bound otherwise. Nothing is recorded: whoever
/// calls this puts it back.
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
