//! A process, and what `/proc` says about it and its threads.

mod sched;
mod stat;

use std::cell::RefCell;

use crate::system::Folder;
use crate::{Error, Result, System};

pub use sched::{Schedstat, migrations};
pub use stat::Stat;

/// A process that is looked at. It stays the same one: once it has ended every look is
/// [`Error::Ended`], even where its number is in use again.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    start: u64,
    name: String,
    folder: Folder,
    /// What is read is short lived: one buffer serves all.
    buffer: RefCell<Vec<u8>>,
}

impl Process {
    /// The process with this number.
    ///
    /// # Errors
    ///
    /// [`Error::NoProcess`], [`Error::Thread`] where it is a thread's number, or what its files
    /// make of it.
    pub fn open(system: &System, pid: u32) -> Result<Process> {
        let gone = |error| match Error::of_process(pid, "folder", error) {
            Error::Ended { pid } => Error::NoProcess { pid },
            other => other,
        };
        let folder = Folder::open(&system.path(&format!("/proc/{pid}"))).map_err(gone)?;
        let mut process = Process {
            pid,
            start: 0,
            name: String::new(),
            folder,
            buffer: RefCell::default(),
        };
        let stat = process.read_stat().map_err(|error| match error {
            Error::Ended { pid } => Error::NoProcess { pid },
            other => other,
        })?;
        process.start = stat.start;
        process.name = stat.name;
        match process.group() {
            Some(group) if group != pid => Err(Error::Thread {
                pid,
                process: group,
            }),
            _ => Ok(process),
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When it started, in clock ticks since the machine did.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The name of its command when it was opened, at most 15 bytes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is doing now. One that has ended and waits to be collected still answers.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], or what its file makes of it.
    pub fn stat(&self) -> Result<Stat> {
        let stat = self.read_stat()?;
        // Only where the folder is not the kernel's: there it would not have been found.
        if stat.start != self.start {
            return Err(Error::Ended { pid: self.pid });
        }
        Ok(stat)
    }

    fn read_stat(&self) -> Result<Stat> {
        let buffer = &mut self.buffer.borrow_mut();
        let text = self.record("stat", buffer)?;
        if text.is_empty() {
            return Err(Error::Ended { pid: self.pid });
        }
        Stat::parse(text, &format!("/proc/{}/stat", self.pid))
    }

    /// The process that this number is a thread of; `None` where its status does not say.
    fn group(&self) -> Option<u32> {
        let buffer = &mut self.buffer.borrow_mut();
        let text = self.folder.read("status", buffer).ok()?;
        let text = String::from_utf8_lossy(text);
        let line = text.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
        line.trim().parse().ok()
    }

    /// The numbers of its threads, ascending.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], or what the folder makes of it.
    pub fn threads(&self) -> Result<Vec<u32>> {
        let threads = self
            .folder
            .numbers("task")
            .map_err(|error| Error::of_process(self.pid, "task", error))?;
        if threads.is_empty() {
            return Err(Error::Ended { pid: self.pid });
        }
        Ok(threads)
    }

    /// What one of its threads is doing now; `None` where there is no such thread any more.
    ///
    /// # Errors
    ///
    /// What its file makes of it.
    pub fn thread(&self, thread: u32) -> Result<Option<Stat>> {
        let name = format!("task/{thread}/stat");
        self.of_thread(&name, Stat::parse)
    }

    /// Time of a thread on a cpu; `None` where there is no such thread any more, or the kernel
    /// does not count.
    ///
    /// # Errors
    ///
    /// What its file makes of it.
    pub fn schedstat(&self, thread: u32) -> Result<Option<Schedstat>> {
        let name = format!("task/{thread}/schedstat");
        let read = self.of_thread(&name, Schedstat::parse)?;
        Ok(read.filter(Schedstat::counted))
    }

    /// How often a thread was moved to another cpu since it started; `None` where there is no
    /// such thread any more, or the kernel does not say.
    pub fn migrations(&self, thread: u32) -> Option<u64> {
        let buffer = &mut self.buffer.borrow_mut();
        let text = self
            .folder
            .read(&format!("task/{thread}/sched"), buffer)
            .ok()?;
        migrations(text)
    }

    /// A file of a thread, read in one go; `None` where there is none.
    fn of_thread<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&[u8], &str) -> Result<T>,
    ) -> Result<Option<T>> {
        let buffer = &mut self.buffer.borrow_mut();
        match self.record(name, buffer) {
            // A thread that ends between opening and reading leaves nothing to read.
            Err(Error::Ended { .. }) | Ok([]) => Ok(None),
            Ok(text) => parse(text, &format!("/proc/{}/{name}", self.pid)).map(Some),
            Err(error) => Err(error),
        }
    }

    fn record<'a>(&self, name: &str, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.folder
            .record(name, buffer)
            .map_err(|error| Error::of_process(self.pid, name, error))
    }

    /// A whole file of it, as text; names in it that are not UTF-8 are replaced.
    pub(crate) fn text(&self, name: &str) -> Result<String> {
        let mut bytes = Vec::new();
        self.folder
            .read(name, &mut bytes)
            .map_err(|error| Error::of_process(self.pid, name, error))?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Fails where it has no memory to look at, so that nothing read is not taken for none.
    pub(crate) fn with_memory(&self) -> Result<Stat> {
        let stat = self.stat()?;
        let none = |why| Err(Error::NoMemory { pid: self.pid, why });
        if stat.of_kernel() {
            return none("a thread of the kernel");
        }
        if stat.ended() {
            return none("ended, and its parent has not yet asked for its exit status");
        }
        if stat.main_ended() {
            // The kernel shows a process's memory by its main thread.
            return none("going on without its main thread, by which the kernel shows it");
        }
        if stat.virtual_bytes == 0 {
            return none("ending, and has given it back");
        }
        Ok(stat)
    }

    /// Its children that are alive, ascending; empty where the kernel does not list them.
    pub fn children(&self) -> Result<Vec<u32>> {
        let mut children = Vec::new();
        for thread in self.threads()? {
            let buffer = &mut self.buffer.borrow_mut();
            let name = format!("task/{thread}/children");
            let Ok(text) = self.folder.read(&name, buffer) else {
                continue;
            };
            let text = String::from_utf8_lossy(text);
            children.extend(
                text.split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
        children.sort_unstable();
        Ok(children)
    }
}
