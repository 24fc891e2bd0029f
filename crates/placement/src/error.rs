//! The one error type of this crate.

use std::io;
use std::path::PathBuf;

use crate::cpus::CpuSet;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why threads could not be placed. Each message says what would be accepted instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No threads, or more than [`MAX_THREADS`](crate::MAX_THREADS).
    #[error(
        "{threads} threads cannot be placed: choose 1 to {}",
        crate::MAX_THREADS
    )]
    Threads {
        /// What was asked for.
        threads: usize,
    },
    /// No group, or more groups than threads.
    #[error("{threads} threads cannot make {groups} groups: choose 1 to {threads}")]
    Groups {
        /// What was asked for.
        groups: usize,
        /// The threads they are to be made of.
        threads: usize,
    },
    /// None of the machine's cpus may be used.
    #[error("none of the machine's cpus may be used; allow some (taskset, cpuset)")]
    NoCpu,
    /// A strategy that no text names.
    #[error(
        "unknown strategy '{}': give os, compact, sparse, shared, random:SEED, exhaustive, or the path \
         of a mapping",
        .name.chars().take(60).collect::<String>()
    )]
    Strategy {
        /// What was given.
        name: String,
    },
    /// A group of threads that no last-level cache has cpus for.
    #[error(
        "a group of {threads} threads cannot share a last-level cache: the largest has {cpus} \
         cpus; make more groups, or fewer threads"
    )]
    GroupTooLarge {
        /// Threads in the group.
        threads: usize,
        /// Cpus below the largest last-level cache.
        cpus: usize,
    },
    /// Every placement is like compact or like sparse, so none can be called random.
    #[error(
        "every placement of {threads} threads on this machine is like compact or like sparse; use \
         one of these"
    )]
    NothingRandom {
        /// The number of threads.
        threads: usize,
    },
    /// `exhaustive` stands for many placements, where one was wanted.
    #[error(
        "exhaustive stands for every placement, where one is wanted; choose a strategy that makes \
         one"
    )]
    Exhaustive,
    /// A text that is not a list of cpus.
    #[error("'{text}' is no list of cpus ({why}); write 0-3,8")]
    List {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A mapping or a table that cannot be read.
    #[error("cannot read {path}: {source}; give a strategy or the path of a mapping")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A mapping or a table that makes no sense.
    #[error(
        "{from}: {why}; a mapping has one line of cpus such as 0-3,8 per thread, or is JSON such \
         as {{\"placements\": [[0], [1]]}}"
    )]
    Mapping {
        /// Where it came from: a path, or what else it is known by.
        from: String,
        /// The place and what is wrong there.
        why: String,
    },
    /// A mapping that names a cpu that does not exist or may not be used.
    #[error(
        "thread {thread} is mapped to cpu {cpu}, which is not one of those that may be used: \
         {allowed}"
    )]
    Cpu {
        /// The thread it is for.
        thread: usize,
        /// The cpu.
        cpu: u32,
        /// The cpus there are.
        allowed: CpuSet,
    },
    /// A chunk of an array on a node that does not exist.
    #[error(
        "chunk {chunk} is said to lie on node {home}, but the machine has {nodes}; number nodes from 0"
    )]
    Home {
        /// Position of the chunk.
        chunk: usize,
        /// Its node.
        home: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A metric that cannot be read, or not be computed from what was measured.
    #[error(
        "metric '{text}': {why}; give time, remote, energy, or weights such as time=0.7,energy=0.3"
    )]
    Metric {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such process, or it has ended.
    #[error("there is no process {process}, or it has ended; 'ps -e' lists those there are")]
    NoProcess {
        /// Its number.
        process: i32,
    },
    /// The threads of a process cannot be listed.
    #[error(
        "cannot list the threads of process {process}: {source}; /proc must be mounted and show \
         this user's processes"
    )]
    Process {
        /// Its number.
        process: i32,
        /// What the system said.
        source: io::Error,
    },
    /// A thread cannot be bound.
    #[error(
        "cannot bind thread {thread} of process {process} to cpus {cpus}: {source}; {}",
        unbound(.source)
    )]
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
    #[error("cannot start '{program}': {source}; {}", unstarted(.source))]
    Start {
        /// The command.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The nodes can be exchanged in more ways than are followed.
    #[error(
        "the nodes of this machine can be exchanged in more than {limit} irregular ways; its \
         placements are not enumerated"
    )]
    TooSymmetric {
        /// The limit.
        limit: usize,
    },
}

/// What may help where a thread cannot be bound.
fn unbound(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM) => "run as the user the process belongs to, or with CAP_SYS_NICE",
        Some(libc::EINVAL) => "none of them is allowed for it (cpuset)",
        _ => "the system or its container forbids it",
    }
}

/// What may help where a command cannot be started.
fn unstarted(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EINVAL) => "none of the placement's cpus is allowed",
        _ => "give a command that can be run",
    }
}
