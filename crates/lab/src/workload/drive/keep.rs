//! Keeps the threads of the program under test where a strategy puts them.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use placement::apply::{self, Keeper, Options};
use placement::{CpuSet, Placement, Site};
use serde::{Deserialize, Serialize};
use topology::Machine;

use crate::error::Result;

/// How the program's threads are placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placing {
    /// The cpus of each thread, as lists; further threads start over from the first.
    pub cpus: Vec<String>,
    /// How many threads are created first and only wait for others.
    pub skip: usize,
}

impl Placing {
    /// The placement on the machine at hand.
    ///
    /// # Errors
    ///
    /// [`Error::Placement`](crate::Error::Placement) for text that is no list of cpus, or for cpus that the machine
    /// does not have.
    pub(super) fn placement(&self) -> Result<Placement> {
        let site = Site::new(&Machine::live()?);
        let sets = self.cpus.iter().map(|cpus| cpus.parse::<CpuSet>());
        let sets = sets.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Placement::explicit(&site, sets)?)
    }
}

/// Looks for new threads of a program until dropped.
pub(super) struct Keeping {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the program on the cpus of a placement, and keeps its threads there.
///
/// # Errors
///
/// [`Error::Placement`](crate::Error::Placement) if it cannot be started, or its threads cannot be placed.
pub(super) fn start(command: &mut Command, placing: &Placing) -> Result<(Child, Keeping)> {
    let placement = placing.placement()?;
    let child = apply::start(command, &placement)?;
    let options = Options {
        skip: placing.skip,
        ..Options::default()
    };
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    let mut keeper = Keeper::attach(pid, &placement, options)?;
    let end = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&end);
    let thread = std::thread::spawn(move || {
        // A program that ends is noticed by whoever waits for its answers.
        while !ended.load(Ordering::Relaxed) && keeper.step().is_ok_and(|step| step.alive > 0) {
            std::thread::sleep(keeper.pause());
        }
    });
    Ok((
        child,
        Keeping {
            end,
            thread: Some(thread),
        },
    ))
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic has been told of already.
            let _ = thread.join();
        }
    }
}
