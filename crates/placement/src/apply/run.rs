//! Running a command on a placement.

use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::affinity;
use super::keeper::{Keeper, Options};
use crate::error::{Error, Result};
use crate::placement::Placement;

/// The result of a run.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// How the command ended.
    pub status: ExitStatus,
    /// From its start to its end.
    pub time: Duration,
    /// Processor time of it, and of its descendants that were waited for. If other children of this process end meanwhile, theirs
    /// too.
    pub cpu: Duration,
    /// Threads that were placed, those that ended included.
    pub placed: usize,
    /// The most threads that were alive at one look.
    pub most: usize,
    /// Threads at the last look that belong to somebody else and were left alone.
    pub refused: usize,
}

/// Starts a command on all cpus of a placement, so that it sees as many as it will have; attach a
/// [`Keeper`] to place its threads.
///
/// # Errors
///
/// [`Error::Start`] where the command cannot be started, or none of the cpus may be used.
pub fn start(command: &mut Command, placement: &Placement) -> Result<Child> {
    affinity::inherit(command, &placement.cpus());
    command.spawn().map_err(|source| Error::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })
}

/// Runs a command to its end and keeps its threads placed. `begun` is called with its process id once
/// it has started; as soon as `stop` returns true the command is sent SIGTERM.
///
/// # Errors
///
/// [`Error::Start`]; [`Error::Affinity`] and [`Error::Process`], after the command was killed.
pub fn run(
    command: &mut Command,
    placement: &Placement,
    options: Options,
    begun: impl FnOnce(u32),
    stop: impl Fn() -> bool,
) -> Result<Ran> {
    let (started, before) = (Instant::now(), affinity::children());
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = start(command, placement)?;
    let process = child.id() as i32;
    begun(child.id());
    let (tell, ended) = channel();
    std::thread::spawn(move || {
        let status = child.wait();
        // Nobody listens if placing has failed.
        let _ = tell.send((status, started.elapsed()));
    });
    let mut keeper = match Keeper::attach(process, placement, options) {
        Ok(keeper) => Some(keeper),
        Err(Error::NoProcess { .. }) => None,
        Err(error) => return Err(killed(process, error)),
    };
    let (mut placed, mut most, mut refused, mut asked) = (0, 0, 0, false);
    loop {
        let mut pause = Duration::from_secs(1);
        if let Some(keeper) = &mut keeper {
            let step = keeper.step().map_err(|error| killed(process, error))?;
            placed += step.placed;
            most = most.max(step.alive);
            refused = step.refused;
            pause = keeper.pause();
        }
        match ended.recv_timeout(pause) {
            Ok((status, time)) => {
                let status = status.map_err(|source| Error::Start { program, source })?;
                return Ok(Ran {
                    status,
                    time,
                    cpu: affinity::children().saturating_sub(before),
                    placed,
                    most,
                    refused,
                });
            }
            Err(RecvTimeoutError::Timeout) if stop() && !asked => {
                asked = true;
                signal(process, libc::SIGTERM);
            }
            Err(_) => {}
        }
    }
}

/// Ends a command that could not be placed.
fn killed(process: i32, error: Error) -> Error {
    signal(process, libc::SIGKILL);
    error
}

/// Sends a signal to a child, which has not been waited for.
fn signal(process: i32, signal: i32) {
    // SAFETY: kill has no preconditions.
    unsafe { libc::kill(process, signal) };
}
