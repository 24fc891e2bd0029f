//! The one error type of this crate.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::CpuSet;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why threads could not be placed. Each message says what would be accepted instead.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No threads, or more than [`MAX_THREADS`](crate::MAX_THREADS).
    Threads {
        /// What was asked for.
        threads: usize,
    },
    /// No group, or more groups than threads.
    Groups {
        /// What was asked for.
        groups: usize,
        /// The threads they are to be made of.
        threads: usize,
    },
    /// None of the machine's cpus may be used.
    NoCpu,
    /// A strategy that no text names.
    Strategy {
        /// What was given.
        name: String,
    },
    /// A group of threads that no last-level cache has cpus for.
    GroupTooLarge {
        /// Threads in the group.
        threads: usize,
        /// Cpus below the largest last-level cache.
        cpus: usize,
    },
    /// Every placement is like compact or like sparse, so none can be called random.
    NothingRandom {
        /// The number of threads.
        threads: usize,
    },
    /// `exhaustive` stands for many placements, where one was wanted.
    Exhaustive,
    /// A text that is not a list of cpus.
    List {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A mapping or a table that cannot be read.
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A mapping or a table that makes no sense.
    Mapping {
        /// Where it came from: a path, or what else it is known by.
        from: String,
        /// The place and what is wrong there.
        why: String,
    },
    /// A mapping that names a cpu that does not exist or may not be used.
    Cpu {
        /// The thread it is for.
        thread: usize,
        /// The cpu.
        cpu: u32,
        /// The cpus there are.
        allowed: CpuSet,
    },
    /// A metric that cannot be read, or not be computed from what was measured.
    Metric {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such process, or it has ended.
    NoProcess {
        /// Its number.
        process: i32,
    },
    /// The threads of a process cannot be listed.
    Process {
        /// Its number.
        process: i32,
        /// What the system said.
        source: io::Error,
    },
    /// A thread cannot be bound.
    Affinity {
        /// Its process.
        process: i32,
        /// Its number.
        thread: i32,
        /// The cpus it was to run on.
        cpus: CpuSet,
        /// What the system said.
        source: io::Error,
    },
    /// A command cannot be started.
    Start {
        /// The command.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The nodes can be exchanged in more ways than are followed.
    TooSymmetric {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Threads { threads } => write!(
                f,
                "{threads} threads cannot be placed: choose 1 to {}",
                crate::MAX_THREADS
            ),
            Error::Groups { groups, threads } => write!(
                f,
                "{threads} threads cannot make {groups} groups: choose 1 to {threads}"
            ),
            Error::NoCpu => write!(
                f,
                "none of the machine's cpus may be used; allow some (taskset, cpuset)"
            ),
            Error::Strategy { name } => write!(
                f,
                "unknown strategy '{}': give os, compact, sparse, shared, random:SEED, \
                 exhaustive, or the path of a mapping",
                name.chars().take(60).collect::<String>()
            ),
            Error::GroupTooLarge { threads, cpus } => write!(
                f,
                "a group of {threads} threads cannot share a last-level cache: the largest has \
                 {cpus} cpus; make more groups, or fewer threads"
            ),
            Error::NothingRandom { threads } => write!(
                f,
                "every placement of {threads} threads on this machine is like compact or like \
                 sparse; use one of these"
            ),
            Error::Exhaustive => write!(
                f,
                "exhaustive stands for every placement, where one is wanted; choose a strategy \
                 that makes one"
            ),
            Error::List { text, why } => {
                write!(f, "'{text}' is no list of cpus ({why}); write 0-3,8")
            }
            Error::File { path, source } => write!(
                f,
                "cannot read {}: {source}; give a strategy or the path of a mapping",
                path.display()
            ),
            Error::Mapping { from, why } => write!(
                f,
                "{from}: {why}; a mapping has one line of cpus such as 0-3,8 per thread, or is \
                 JSON such as {{\"placements\": [[0], [1]]}}"
            ),
            Error::Cpu {
                thread,
                cpu,
                allowed,
            } => write!(
                f,
                "thread {thread} is mapped to cpu {cpu}, which is not one of those that may be \
                 used: {allowed}"
            ),
            Error::Metric { text, why } => write!(
                f,
                "metric '{text}': {why}; give time, remote, energy, or weights such as \
                 time=0.7,energy=0.3"
            ),
            Error::NoProcess { process } => write!(
                f,
                "there is no process {process}, or it has ended; 'ps -e' lists those there are"
            ),
            Error::Process { process, source } => write!(
                f,
                "cannot list the threads of process {process}: {source}; /proc must be mounted \
                 and show this user's processes"
            ),
            Error::Affinity {
                process,
                thread,
                cpus,
                source,
            } => {
                write!(
                    f,
                    "cannot bind thread {thread} of process {process} to cpus {cpus}: {source}; "
                )?;
                match source.raw_os_error() {
                    Some(libc::EPERM) => write!(
                        f,
                        "run as the user the process belongs to, or with CAP_SYS_NICE"
                    ),
                    Some(libc::EINVAL) => write!(f, "none of them is allowed for it (cpuset)"),
                    _ => write!(f, "the system or its container forbids it"),
                }
            }
            Error::Start { program, source } => {
                write!(f, "cannot start '{program}': {source}; ")?;
                match source.raw_os_error() {
                    Some(libc::EINVAL) => write!(f, "none of the placement's cpus is allowed"),
                    _ => write!(f, "give a command that can be run"),
                }
            }
            Error::TooSymmetric { limit } => write!(
                f,
                "the nodes of this machine can be exchanged in more than {limit} irregular ways; \
                 its placements are not enumerated"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File { source, .. }
            | Error::Process { source, .. }
            | Error::Affinity { source, .. }
            | Error::Start { source, .. } => Some(source),
            _ => None,
        }
    }
}
