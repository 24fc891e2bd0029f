//! Records of what running governors have changed, in files: for the guard, `undo`, other governors, and programs
//! that display them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::actuators::Undo;
use crate::error::{Error, Result};
use crate::group::target::{Group, Target};
use crate::journal::folders;
use crate::system::proc::{self, Identity};

/// One target of a governor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) target: Target,
    /// Its processes at the start.
    pub(crate) roots: Vec<Identity>,
    pub(crate) undo: Undo,
}

/// A governor, as recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) governor: Identity,
    pub(crate) entries: Vec<Entry>,
}

/// The record file of a running governor, which is removed once everything is put back.
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

/// All records in a folder of ours.
fn all(folder: &Path) -> Vec<(PathBuf, Record)> {
    let mut found = Vec::new();
    for path in folders::files(folder, "json") {
        if let Ok(text) = fs::read(&path)
            && let Ok(record) = serde_json::from_slice(&text)
        {
            found.push((path, record));
        }
    }
    found
}

/// The processes that governors of other users claim to govern.
fn foreign(own: &Path) -> Vec<Record> {
    let mut found = Vec::new();
    for (user, text) in folders::foreign(own, "json") {
        let Ok(mut record) = serde_json::from_slice::<Record>(&text) else {
            continue;
        };
        if !record.governor.alive() || proc::user_of(record.governor.pid) != Some(user) {
            continue;
        }
        if user != 0 {
            // Only root can govern what is not its own, whatever is claimed.
            for entry in &mut record.entries {
                entry.target = Target::Pid(0);
                entry
                    .roots
                    .retain(|root| proc::user_of(root.pid) == Some(user));
            }
        }
        found.push(record);
    }
    found
}

/// The process and its ancestors.
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

/// A governed process that is an ancestor or a descendant of one of `roots`.
fn conflict(entry: &Entry, target: &Target, roots: &[Identity]) -> Option<u32> {
    if let (Target::Cgroup(one), Target::Cgroup(other)) = (&entry.target, target)
        && (one.starts_with(other) || other.starts_with(one))
    {
        return Some(0);
    }
    let mut theirs: Vec<Identity> = entry.roots.clone();
    theirs.retain(|root| root.alive());
    // Those that came since.
    theirs.extend(present(&entry.target));
    let lines: Vec<(Identity, Vec<u32>)> = theirs
        .into_iter()
        .map(|root| (root, ancestors(root.pid)))
        .collect();
    for root in roots {
        let line = ancestors(root.pid);
        let above = |(theirs, _): &&(Identity, Vec<u32>)| line.contains(&theirs.pid);
        let below = |(_, line): &&(Identity, Vec<u32>)| line.contains(&root.pid);
        if let Some((theirs, _)) = lines.iter().find(|theirs| above(theirs) || below(theirs)) {
            return Some(theirs.pid);
        }
    }
    None
}

/// The present processes of a target, if it is more than one process and its descendants.
fn present(target: &Target) -> Vec<Identity> {
    match target {
        Target::Pid(_) => Vec::new(),
        _ => match Group::find(target.clone()) {
            Ok(group) => group.members.values().map(|m| m.identity).collect(),
            Err(_) => Vec::new(),
        },
    }
}

/// # Errors
///
/// [`Error::Governed`] if another governor has one of the processes.
fn apart(other: &Record, record: &Record) -> Result<()> {
    for entry in &other.entries {
        for own in &record.entries {
            if let Some(pid) = conflict(entry, &own.target, &own.roots) {
                let by = other.governor.pid;
                return Err(Error::Governed { pid, by });
            }
        }
    }
    Ok(())
}

impl Kept {
    /// Records what is about to be changed, unless another governor has one of the processes.
    pub(crate) fn new(folder: &Path, record: &Record) -> Result<Kept> {
        folders::make(folder)?;
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
            apart(&other, record)?;
        }
        for other in foreign(folder) {
            apart(&other, record)?;
        }
        let kept = Kept {
            path: folder.join(format!("{}.json", record.governor.pid)),
        };
        kept.write(record)?;
        Ok(kept)
    }

    /// Replaces the record; a reader sees either the old one or the new one.
    pub(crate) fn write(&self, record: &Record) -> Result<()> {
        let text = serde_json::to_vec(record).map_err(io::Error::from);
        replace(&self.path, &text.map_err(file(&self.path))?).map_err(file(&self.path))
    }

    /// The file of the latest decisions.
    pub(crate) fn status(&self) -> PathBuf {
        self.path.with_extension("now")
    }

    /// Removes the record, as everything is put back.
    pub(crate) fn done(&self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.status());
    }
}

/// Replaces a file atomically.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(folders::FILE)
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

/// One target that was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// The governor that had changed it.
    pub governor: u32,
    /// What it governed.
    pub target: String,
    /// Number of threads, processes or groups that were put back; `None` if the governor did it itself when it was
    /// asked to end.
    pub restored: Option<usize>,
}

/// Puts back what one governor has changed.
pub(super) fn put_back(path: &Path, record: &Record) -> Result<Vec<Undone>> {
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
        if let Undo::Affinity(_) = &entry.undo {
            processes.extend(present(&entry.target));
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

/// Puts back what governors have changed. Governors that run are asked to end first, and killed if they do not. With
/// `ended`, running governors go on, and only the changes of governors that have ended are put back.
///
/// # Errors
///
/// What the system refuses to put back.
pub fn undo(folder: &Path, ended: bool) -> Result<Vec<Undone>> {
    let mut undone = Vec::new();
    for (path, record) in all(folder) {
        let governor = record.governor;
        if ended && governor.alive() {
            continue;
        }
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
