//! What running governors have changed, in files: for the guard, for `undo`, for other governors,
//! and for those who look on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::actuate::Undo;
use super::proc::{self, Identity};
use super::target::{Group, Target};
use crate::{Error, Result};

/// Where running governors are recorded: for root `/run/atoll-govern`, for others in the folder that
/// the system gives each user, or in `/tmp`.
pub fn state_folder() -> PathBuf {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    if user == 0 {
        return PathBuf::from("/run/atoll-govern");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("atoll-govern"),
        None => std::env::temp_dir().join(format!("atoll-govern-{user}")),
    }
}

/// One target of a governor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) target: Target,
    /// The processes it was at the start.
    pub(crate) roots: Vec<Identity>,
    pub(crate) undo: Undo,
}

/// A governor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) governor: Identity,
    pub(crate) entries: Vec<Entry>,
}

/// The file of a running governor. It goes when everything is as before.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
}

fn file(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::File {
        path: path.to_owned(),
        source,
    }
}

/// Makes the folder, which nobody else may write to: what stands in it is carried out.
fn own_folder(folder: &Path) -> Result<()> {
    let made = fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(folder);
    made.map_err(file(folder))?;
    let about = fs::metadata(folder).map_err(file(folder))?;
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    if about.uid() != user || about.mode() & 0o022 != 0 {
        return Err(Error::Command {
            what: folder.display().to_string(),
            why: "it belongs to somebody else, or others may write to it; give --state".to_owned(),
        });
    }
    Ok(())
}

/// All records of a folder.
fn all(folder: &Path) -> Vec<(PathBuf, Record)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "json")
            && let Ok(text) = fs::read(&path)
            && let Ok(record) = serde_json::from_slice(&text)
        {
            found.push((path, record));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// The process and those it descends from.
fn ancestors(pid: u32) -> Vec<u32> {
    let mut line = vec![pid];
    while let Some(stat) = line.last().and_then(|pid| proc::stat(*pid)) {
        if stat.parent <= 1 || line.len() > 100 {
            break;
        }
        line.push(stat.parent);
    }
    line
}

/// The governed process that stands above or below one of `roots`.
fn conflict(entry: &Entry, target: &Target, roots: &[Identity]) -> Option<u32> {
    if let (Target::Cgroup(one), Target::Cgroup(other)) = (&entry.target, target)
        && (one.starts_with(other) || other.starts_with(one))
    {
        return Some(0);
    }
    let alive = || entry.roots.iter().filter(|root| root.alive());
    for root in roots {
        let line = ancestors(root.pid);
        if let Some(theirs) = alive().find(|theirs| line.contains(&theirs.pid)) {
            return Some(theirs.pid);
        }
    }
    let below = |theirs: &&Identity| {
        let line = ancestors(theirs.pid);
        roots.iter().any(|root| line.contains(&root.pid))
    };
    alive().find(below).map(|theirs| theirs.pid)
}

impl Kept {
    /// Records what is about to be changed, unless another governor has one of the processes.
    pub(crate) fn new(folder: &Path, record: &Record) -> Result<Kept> {
        own_folder(folder)?;
        let lock_path = folder.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(file(&lock_path))?;
        lock_whole(&lock).map_err(file(&lock_path))?;
        for (path, other) in all(folder) {
            if !other.governor.alive() {
                // Its guard ended as well, or is at work: what it left is put right first.
                put_back(&path, &other)?;
                continue;
            }
            for entry in &other.entries {
                for own in &record.entries {
                    if let Some(pid) = conflict(entry, &own.target, &own.roots) {
                        let by = other.governor.pid;
                        return Err(Error::Governed { pid, by });
                    }
                }
            }
        }
        let kept = Kept {
            path: folder.join(format!("{}.json", record.governor.pid)),
        };
        kept.write(record)?;
        Ok(kept)
    }

    /// Writes it anew; a reader sees the old one or the new one.
    pub(crate) fn write(&self, record: &Record) -> Result<()> {
        let text = serde_json::to_vec(record).map_err(io::Error::from);
        replace(&self.path, &text.map_err(file(&self.path))?).map_err(file(&self.path))
    }

    /// Where the latest decisions stand.
    pub(crate) fn status(&self) -> PathBuf {
        self.path.with_extension("now")
    }

    /// Everything is as before.
    pub(crate) fn done(&self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.status());
    }
}

/// Puts a file in the place of another.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(text)?;
    fs::rename(&new, path)
}

fn lock_whole(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `file` is.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// The governor that had changed it.
    pub governor: u32,
    /// What it governed.
    pub target: String,
    /// Threads, processes or groups that were put back; `None` where the governor did it when it
    /// was asked to end.
    pub restored: Option<usize>,
}

/// Puts back what one governor has changed.
fn put_back(path: &Path, record: &Record) -> Result<Vec<Undone>> {
    let mut undone = Vec::new();
    let mut failed = None;
    for entry in &record.entries {
        let mut processes: Vec<Identity> = Vec::new();
        let alive = entry.roots.iter().filter(|root| root.alive());
        for root in alive {
            if let Ok(group) = Group::find(Target::Pid(root.pid)) {
                processes.extend(group.members.values().map(|member| member.identity));
            }
        }
        if let Target::Name(_) = &entry.target
            && let Ok(group) = Group::find(entry.target.clone())
        {
            processes.extend(group.members.values().map(|member| member.identity));
        }
        processes.sort_unstable();
        processes.dedup();
        match entry.undo.run(processes.into_iter()) {
            Ok(restored) => undone.push(Undone {
                governor: record.governor.pid,
                target: entry.target.to_string(),
                restored: Some(restored),
            }),
            Err(error) => failed = Some(error),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    Kept {
        path: path.to_owned(),
    }
    .done();
    Ok(undone)
}

/// Puts back what governors have changed: those that run are asked to end first, and ended where
/// they do not.
///
/// # Errors
///
/// What the system refuses.
pub fn undo(folder: &Path) -> Result<Vec<Undone>> {
    let mut undone = Vec::new();
    for (path, record) in all(folder) {
        let governor = record.governor;
        for signal in [libc::SIGTERM, libc::SIGKILL] {
            if governor.alive() {
                // SAFETY: sends a signal; the number was its a moment ago.
                unsafe { libc::kill(governor.pid.cast_signed(), signal) };
            }
            let until = Instant::now() + Duration::from_secs(5);
            while governor.alive() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        if path.exists() {
            undone.extend(put_back(&path, &record)?);
        } else {
            let done = |entry: &Entry| Undone {
                governor: governor.pid,
                target: entry.target.to_string(),
                restored: None,
            };
            undone.extend(record.entries.iter().map(done));
        }
    }
    Ok(undone)
}

/// Waits until the governor that started this process has ended, however, and puts back what it
/// has left: `from` is the other end of a pipe that only the governor holds.
///
/// # Errors
///
/// What the system refuses.
pub fn guard(path: &Path, mut from: impl Read) -> Result<Vec<Undone>> {
    let mut rest = [0; 64];
    loop {
        match from.read(&mut rest) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    match fs::read(path) {
        Ok(text) => match serde_json::from_slice::<Record>(&text) {
            Ok(record) => {
                // Its files are closed a little before it has ended.
                let until = Instant::now() + Duration::from_secs(10);
                while record.governor.alive() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(5));
                }
                put_back(path, &record)
            }
            // Another version's, which its own `undo` understands.
            Err(_) => Ok(Vec::new()),
        },
        Err(_) => Ok(Vec::new()),
    }
}

/// Starts the guard of this process: `command` with the record's path as its last argument.
pub(crate) fn start_guard(command: &[std::ffi::OsString], path: &Path) -> Result<Option<Child>> {
    use std::os::unix::process::CommandExt;
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let mut guard = Command::new(program);
    guard.args(arguments).arg(path);
    guard
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A group of its own: Ctrl-C is not for it.
    guard.process_group(0);
    let child = guard.spawn().map_err(|error| Error::Command {
        what: format!("starting {}", program.to_string_lossy()),
        why: error.to_string(),
    })?;
    Ok(Some(child))
}

/// The latest state of a running governor.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Status {
    /// The governor's number.
    pub governor: u32,
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
    /// Seconds between two decisions.
    pub period: f64,
    /// Whether it only says what it would do.
    pub dry_run: bool,
    /// By target.
    pub targets: Vec<Standing>,
}

/// The latest state of a target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Standing {
    /// What is governed.
    pub target: String,
    /// How it is given its cpus.
    pub actuator: String,
    /// How many processes there are.
    pub processes: usize,
    /// How many decisions were made.
    pub decisions: u64,
    /// The last one.
    pub last: Option<crate::Decision>,
    /// The last ones that changed something, in words; the newest is last.
    pub changes: Vec<String>,
    /// What it has used up to then.
    #[serde(default)]
    pub spent: Option<crate::Spent>,
}

/// The state of all governors that run.
pub fn statuses(folder: &Path) -> Vec<Status> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "now")
            && let Ok(text) = fs::read(&path)
            && let Ok(status) = serde_json::from_slice::<Status>(&text)
            && Identity::of(status.governor).is_some_and(|own| own.start == status.start)
        {
            found.push(status);
        }
    }
    found.sort_by_key(|status| status.governor);
    found
}
