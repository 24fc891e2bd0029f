//! Threads on the cpus that they are given, and where those of a process are.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use placement::apply::{self, Keeper};
use placement::{CpuSet, Error, Placement, Site, Strategy, Threads};
use pyo3::prelude::*;
use topology::Machine;

use crate::error::{InterfaceError, OperationalError};
use crate::wait::detached;

/// Which cpus threads get.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PinOptions {
    /// All of these, in the kernel's form: "0-3,8".
    cpus: Option<String>,
    /// All of these nodes, by the numbers that [`topology`] gives them.
    nodes: Option<Vec<usize>>,
    /// Those that a strategy gives each of so many threads.
    strategy: Option<String>,
    threads: Option<usize>,
    /// The process whose threads are meant; the calling thread if there is none.
    pid: Option<i32>,
}

impl PinOptions {
    /// The cpus of each thread.
    fn placement(&self) -> PyResult<Placement> {
        let machine = Machine::live().map_err(|e| OperationalError::new_err(e.to_string()))?;
        let site = Site::new(&machine);
        let site = Site::within(site.machine(), &site.allowed()).map_err(refused)?;
        match (&self.cpus, &self.nodes, &self.strategy) {
            (Some(cpus), None, None) => {
                let cpus: CpuSet = cpus.parse().map_err(refused)?;
                Placement::explicit(&site, vec![cpus]).map_err(refused)
            }
            (None, Some(nodes), None) => {
                let cpus = cpus_of(&machine, &site, nodes)?;
                Placement::explicit(&site, vec![cpus]).map_err(refused)
            }
            (None, None, Some(strategy)) => {
                let strategy: Strategy = strategy.parse().map_err(refused)?;
                let threads = self.threads.unwrap_or(site.cpus());
                let threads = Threads::in_groups(threads, 1).map_err(refused)?;
                strategy.place(&site, &threads).map_err(refused)
            }
            _ => Err(InterfaceError::new_err(
                "say where, once: cpus, nodes or strategy",
            )),
        }
    }
}

/// The cpus of some nodes that this process may use.
fn cpus_of(machine: &Machine, site: &Site, nodes: &[usize]) -> PyResult<CpuSet> {
    let allowed = site.allowed();
    let mut cpus = Vec::new();
    for node in nodes {
        let Some(found) = machine.nodes().get(*node) else {
            return Err(InterfaceError::new_err(format!(
                "there is no node {node}: this machine has {}, from 0 on",
                machine.nodes().len()
            )));
        };
        let own = found
            .cores
            .iter()
            .flat_map(|core| core.cpus.iter().copied());
        cpus.extend(own.filter(|cpu| allowed.contains(*cpu)));
    }
    if cpus.is_empty() {
        let text = format!("nodes {nodes:?} have no cpus that this process may use");
        return Err(InterfaceError::new_err(text));
    }
    Ok(cpus.into())
}

fn refused(error: Error) -> PyErr {
    match error {
        Error::Affinity { .. } | Error::Process { .. } | Error::NoProcess { .. } => {
            OperationalError::new_err(error.to_string())
        }
        error => InterfaceError::new_err(error.to_string()),
    }
}

/// Threads that are where they were put until they are let go.
#[pyclass(frozen, module = "atoll._atoll")]
pub(crate) struct Pinned {
    /// In which process they were.
    own: u32,
    cpus: Vec<Vec<u32>>,
    what: Mutex<Option<What>>,
}

enum What {
    /// The thread that asked.
    Thread(#[expect(dead_code, reason = "puts the thread back when it is dropped")] apply::Pinned),
    /// Those of a process, and those that come.
    Process(Kept),
}

/// A keeper on a thread of its own.
struct Kept {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    stop: Mutex<bool>,
    woken: Condvar,
}

#[pymethods]
impl Pinned {
    /// Puts threads there.
    #[new]
    fn pin(py: Python<'_>, options: PinOptions) -> PyResult<Pinned> {
        let placement = options.placement()?;
        let sets = placement.sets();
        let cpus = sets.iter().map(|set| set.iter().collect()).collect();
        let what = match options.pid {
            None if sets.len() == 1 => What::Thread(apply::pin(&sets[0]).map_err(refused)?),
            None => {
                let text = "a strategy places the threads of a process: give its pid, or nodes or cpus for this thread";
                return Err(InterfaceError::new_err(text));
            }
            Some(pid) => What::Process(detached(py, || kept(pid, &placement))?.map_err(refused)?),
        };
        Ok(Pinned {
            own: std::process::id(),
            cpus,
            what: Mutex::new(Some(what)),
        })
    }

    /// The cpus of each thread.
    #[getter]
    fn cpus(&self) -> Vec<Vec<u32>> {
        self.cpus.clone()
    }

    /// Puts the threads back.
    fn undo(&self, py: Python<'_>) {
        if self.own != std::process::id() {
            return;
        }
        let what = self.what.lock().take();
        py.detach(|| match what {
            Some(What::Process(kept)) => kept.end(),
            other => drop(other),
        });
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let kept = self.what.get_mut().take();
        if self.own != std::process::id() {
            // The threads of another process are not here, and its own are not this one's to put back.
            std::mem::forget(kept);
            return;
        }
        if let Some(What::Process(kept)) = kept {
            // Its thread puts all back by itself: nobody waits for it with the interpreter.
            *kept.shared.stop.lock() = true;
            kept.shared.woken.notify_all();
        }
    }
}

impl Kept {
    fn end(self) {
        *self.shared.stop.lock() = true;
        self.shared.woken.notify_all();
        let _ = self.thread.join();
    }
}

/// Places the threads of a process, and goes on to.
fn kept(pid: i32, placement: &Placement) -> Result<Kept, Error> {
    let options = apply::Options {
        settle: std::time::Duration::ZERO,
        ..apply::Options::default()
    };
    let mut keeper = Keeper::attach(pid, placement, options)?;
    keeper.step()?;
    let shared = Arc::new(Shared::default());
    let own = Arc::clone(&shared);
    let thread = std::thread::spawn(move || {
        let mut stop = own.stop.lock();
        while !*stop {
            own.woken.wait_for(&mut stop, keeper.pause());
            // A process that has ended, or is somebody else's by now, needs nothing any more.
            match keeper.step() {
                Ok(step) if step.alive > 0 => {}
                _ => break,
            }
        }
        drop(stop);
        keeper.undo();
    });
    Ok(Kept { shared, thread })
}

/// Where the memory and the threads of a process are, as JSON: what `atoll where --pid` tells.
///
/// # Errors
/// [`OperationalError`] if there is no such process, or it may not be looked at.
#[pyfunction]
pub(crate) fn locate(py: Python<'_>, pid: u32, addresses: Option<u64>) -> PyResult<String> {
    let told = detached(py, || cli::where_process(pid, addresses))?;
    told.map_err(|error| OperationalError::new_err(format!("{error:#}")))
}
