//! Control groups: their processes, their processor time, and their cpus.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use placement::CpuSet;

use crate::error::{Error, Result};
use crate::group::partition;
use crate::system::opened::Opened;
use crate::system::proc;

/// The most groups below one that are handled.
const MAX_BELOW: usize = 1000;

/// The version of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Version 1: each controller has a hierarchy of its own.
    One,
    /// Version 2: one hierarchy for all controllers.
    Two,
}

/// Where the hierarchies are mounted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mounts {
    /// The hierarchy of version 2.
    pub(crate) two: Option<PathBuf>,
    /// The hierarchy of the controller `cpuset`, in version 1.
    pub(crate) cpuset: Option<PathBuf>,
    /// The hierarchy of the controller `cpuacct`, in version 1.
    pub(crate) account: Option<PathBuf>,
}

impl Mounts {
    /// The mounts of this system.
    pub(crate) fn find() -> Mounts {
        let mut mounts = Mounts::default();
        let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [_, place, kind, options, ..] = words[..] else {
                continue;
            };
            let has = |name: &str| options.split(',').any(|option| option == name);
            // The kernel writes blanks in paths as \040.
            let place = || Some(PathBuf::from(place.replace("\\040", " ")));
            match kind {
                "cgroup2" if mounts.two.is_none() => mounts.two = place(),
                "cgroup" if has("cpuset") => mounts.cpuset = place(),
                "cgroup" if has("cpuacct") => mounts.account = place(),
                _ => {}
            }
        }
        mounts
    }
}

/// A control group; in version 1, its folders in both hierarchies.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    /// The folder with `cpuset.cpus`.
    pub(crate) folder: PathBuf,
    kind: Kind,
    /// The folder in which processor time is counted.
    account: Option<Opened>,
    /// The file in which the kernel lists its cpus.
    present: Opened,
    last: Option<Duration>,
}

/// The path of a process's group in the hierarchy of a controller; "" stands for that of version 2.
fn path_of(pid: u32, controller: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        let found = names.split(',').any(|name| name == controller);
        found.then(|| path.trim_start_matches('/').to_owned())
    })
}

/// A process's group: in the cpuset hierarchy of version 1, else in that of version 2.
pub(crate) fn of_process(pid: u32, mounts: &Mounts) -> Option<(Kind, PathBuf)> {
    if let (Some(path), Some(mount)) = (path_of(pid, "cpuset"), &mounts.cpuset) {
        return Some((Kind::One, mount.join(path)));
    }
    Some((Kind::Two, mounts.two.as_ref()?.join(path_of(pid, "")?)))
}

/// The effective cpus of a group, or of the nearest group above it that lists them.
pub(crate) fn effective(folder: &Path) -> Option<CpuSet> {
    let mut at = Some(folder);
    while let Some(folder) = at {
        for name in [
            "cpuset.cpus.effective",
            "cpuset.effective_cpus",
            "cpuset.cpus",
        ] {
            if let Ok(list) = fs::read_to_string(folder.join(name))
                && let Ok(cpus) = list.trim().parse::<CpuSet>()
                && !cpus.is_empty()
            {
                return Some(cpus);
            }
        }
        at = folder.parent();
    }
    None
}

/// Writes one value to a file of a group.
pub(crate) fn write(file: &Path, value: &str) -> Result<()> {
    fs::write(file, value).map_err(|source| Error::Refused {
        what: format!("writing '{}' to {}", value.trim(), file.display()),
        source,
    })
}

/// Gives a group of version 2 the cpuset controller, which has to be enabled in all groups above it, from the top.
pub(crate) fn enable(folder: &Path) -> Result<()> {
    let above: Vec<&Path> = folder.ancestors().skip(1).collect();
    for folder in above.into_iter().rev() {
        let control = folder.join("cgroup.subtree_control");
        // What is above the hierarchy has none.
        let Ok(enabled) = fs::read_to_string(&control) else {
            continue;
        };
        if !enabled
            .split_ascii_whitespace()
            .any(|name| name == "cpuset")
        {
            write(&control, "+cpuset")?;
        }
    }
    Ok(())
}

/// Resets a group to the list of the group above it. Once a group with processes had a list of its own it may not be
/// left without one: it is then given a copy of that list.
pub(crate) fn empty(folder: &Path) -> Result<()> {
    let file = folder.join("cpuset.cpus");
    write(&file, "\n").or_else(|refused| {
        let above = folder.parent().and_then(effective);
        above.map_or(Err(refused), |above| write(&file, &above.to_string()))
    })
}

impl Tree {
    /// The group of this path: absolute, or from the root of a hierarchy.
    pub(crate) fn find(path: &Path) -> Result<Tree> {
        let mounts = Mounts::find();
        let below = path.strip_prefix("/").unwrap_or(path);
        let within = |mount: &Option<PathBuf>| -> Option<PathBuf> {
            let mount = mount.as_ref()?;
            if path.starts_with(mount) {
                Some(path.to_owned())
            } else {
                Some(mount.join(below))
            }
        };
        let there = |folder: &PathBuf| folder.join("cgroup.procs").exists();
        // In generation two the controller may not be enabled yet.
        let one = within(&mounts.cpuset).filter(|folder| there(folder));
        let two = within(&mounts.two).filter(|folder| there(folder));
        let (kind, folder) = match (one, two) {
            (Some(folder), _) => (Kind::One, folder),
            (None, Some(folder)) => (Kind::Two, folder),
            (None, None) => {
                return Err(Error::NoTarget {
                    what: format!("there is no control group {}", path.display()),
                    hint: "give its folder below /sys/fs/cgroup",
                });
            }
        };
        Ok(Tree::at(kind, folder, &mounts))
    }

    /// A group whose folder is known.
    pub(crate) fn at(kind: Kind, folder: PathBuf, mounts: &Mounts) -> Tree {
        let account = match kind {
            Kind::Two => Some(folder.clone()),
            Kind::One => {
                let below = mounts
                    .cpuset
                    .as_ref()
                    .and_then(|mount| folder.strip_prefix(mount).ok());
                let account = mounts.account.as_ref().zip(below);
                // That of the root counts the whole machine.
                account
                    .filter(|(_, below)| !below.as_os_str().is_empty())
                    .map(|(mount, below)| mount.join(below))
            }
        };
        let (counted, present) = match kind {
            Kind::Two => ("cpu.stat", "cpuset.cpus.effective"),
            Kind::One => ("cpuacct.usage", "cpuset.effective_cpus"),
        };
        let mut tree = Tree {
            account: account.map(|account| Opened::new(account.join(counted))),
            present: Opened::new(folder.join(present)),
            folder,
            kind,
            last: None,
        };
        tree.used();
        tree
    }

    /// Its present cpus.
    pub(crate) fn present(&mut self) -> Option<CpuSet> {
        let cpus = |text: &str| text.trim().parse::<CpuSet>().ok();
        let present = self.present.read(cpus).filter(|cpus| !cpus.is_empty());
        present.or_else(|| effective(&self.folder))
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it can be given cpus: in version 2 this needs the controller to be enabled.
    pub(crate) fn has_cpuset(&self) -> bool {
        self.folder.join("cpuset.cpus").exists()
    }

    /// Whether it still exists.
    pub(crate) fn exists(&self) -> bool {
        self.folder.exists()
    }

    /// All processes in it and below.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mut all = Vec::new();
        for folder in std::iter::once(self.folder.clone()).chain(below(&self.folder)) {
            let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            all.extend(list.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        all
    }

    /// Processor time since the last call; `None` if it is not counted, and at the first call.
    pub(crate) fn used(&mut self) -> Option<Duration> {
        let kind = self.kind;
        let now = self.account.as_mut()?.read(|text| match kind {
            Kind::Two => {
                let mut lines = text.lines();
                let line = lines.find_map(|line| line.strip_prefix("usage_usec "))?;
                Some(Duration::from_micros(line.trim().parse().ok()?))
            }
            Kind::One => Some(Duration::from_nanos(text.trim().parse().ok()?)),
        })?;
        let before = self.last.replace(now)?;
        Some(now.saturating_sub(before))
    }

    /// Lets it use these cpus. In version 1 the groups below may not have cpus that it has not.
    pub(crate) fn set(&self, cpus: &CpuSet, below: &[(PathBuf, CpuSet)]) -> Result<()> {
        let list = cpus.to_string();
        let file = self.folder.join("cpuset.cpus");
        if self.kind == Kind::Two || below.is_empty() {
            return write(&file, &list);
        }
        let part = |wanted: &CpuSet| -> String {
            let both: CpuSet = wanted.iter().filter(|cpu| cpus.contains(*cpu)).collect();
            if both.is_empty() {
                list.clone()
            } else {
                both.to_string()
            }
        };
        let now = effective(&self.folder).unwrap_or_default();
        let both: CpuSet = now.iter().chain(cpus.iter()).collect();
        // Room for both from the top, then what is wanted from below.
        write(&file, &both.to_string())?;
        let there = || below.iter().filter(|(folder, _)| folder.exists());
        for (folder, _) in there() {
            write(&folder.join("cpuset.cpus"), &both.to_string())?;
        }
        for (folder, wanted) in there().rev() {
            write(&folder.join("cpuset.cpus"), &part(wanted))?;
        }
        write(&file, &list)
    }

    /// The groups below it with their cpus, from the top.
    pub(crate) fn below(&self) -> Vec<(PathBuf, CpuSet)> {
        let folders = below(&self.folder).into_iter();
        let with = |folder: PathBuf| {
            let list = fs::read_to_string(folder.join("cpuset.cpus")).ok()?;
            Some((folder, list.trim().parse().ok()?))
        };
        folders.filter_map(with).collect()
    }
}

/// The folders below it, from the top.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut at = 0;
    let mut next = Some(folder.to_owned());
    while let Some(folder) = next {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && found.len() < MAX_BELOW {
                found.push(entry.path());
            }
        }
        next = found.get(at).cloned();
        at += 1;
    }
    found
}

/// A group of our own that processes are moved into, and from which they go back.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Own {
    pub(crate) kind: Kind,
    pub(crate) folder: PathBuf,
    /// The group for accounting, if that is another one.
    pub(crate) account: Option<PathBuf>,
    /// The group that the processes come from and go back to.
    pub(crate) from: PathBuf,
    /// The same for accounting.
    pub(crate) account_from: Option<PathBuf>,
}

impl Own {
    /// Chooses a group beside or below that of a process. Nothing is made before [`make`](Own::make).
    pub(crate) fn plan(pid: u32) -> Result<Own> {
        let mounts = Mounts::find();
        let nothing = || Error::NoTarget {
            what: "there are no control groups".to_owned(),
            hint: "take --actuator affinity",
        };
        let (kind, from) = of_process(pid, &mounts).ok_or_else(nothing)?;
        let name = format!("atoll-govern-{}", std::process::id());
        let (account, account_from) = match (kind, &mounts.account) {
            (Kind::One, Some(mount)) => {
                let from = mount.join(path_of(pid, "cpuacct").unwrap_or_default());
                (Some(from.join(&name)), Some(from))
            }
            _ => (None, None),
        };
        let parent = match kind {
            Kind::One => from.clone(),
            // Groups with processes in them may not have groups with controllers below.
            Kind::Two => match (&mounts.two, from.parent()) {
                (Some(mount), _) if from == *mount => from.clone(),
                (_, Some(parent)) => parent.to_owned(),
                _ => return Err(nothing()),
            },
        };
        Ok(Own {
            kind,
            folder: parent.join(name),
            account,
            from,
            account_from,
        })
    }

    /// Makes it, with all cpus and memory of the group above.
    pub(crate) fn make(&self) -> Result<()> {
        let refused = |folder: &Path| {
            let what = format!("making the control group {}", folder.display());
            move |source: io::Error| Error::Refused { what, source }
        };
        if self.kind == Kind::Two {
            enable(&self.folder)?;
        }
        fs::create_dir(&self.folder).map_err(refused(&self.folder))?;
        if self.kind == Kind::One {
            for name in ["cpuset.mems", "cpuset.cpus"] {
                let above = fs::read_to_string(self.from.join(name)).unwrap_or_default();
                if let Err(error) = write(&self.folder.join(name), above.trim()) {
                    let _ = fs::remove_dir(&self.folder);
                    return Err(error);
                }
            }
        }
        if let Some(account) = &self.account {
            let _ = fs::create_dir(account);
        }
        Ok(())
    }

    /// Whether a process can be moved in: it must be in the group that it would be put back to.
    pub(crate) fn fits(&self, pid: u32, mounts: &Mounts) -> bool {
        let account = match (&self.account_from, &mounts.account) {
            (Some(_), Some(mount)) => path_of(pid, "cpuacct").map(|path| mount.join(path)),
            _ => None,
        };
        let group = of_process(pid, mounts).map(|(_, folder)| folder);
        group.as_ref() == Some(&self.from) && account == self.account_from
    }

    /// Moves processes into it. A process that has ended meanwhile is no error.
    pub(crate) fn take(&self, processes: &[u32]) -> Result<()> {
        for pid in processes {
            moved(*pid, &self.folder)?;
            if let Some(account) = &self.account {
                moved(*pid, account)?;
            }
        }
        Ok(())
    }

    /// Moves all processes back and removes the group; returns how many were moved.
    pub(crate) fn undo(&self) -> Result<usize> {
        let mut back = 0;
        if self.kind == Kind::Two {
            // A partition that is removed as one leaves its cpus with nobody, for a while at least.
            partition::restore(&self.folder, "member");
        }
        for (folder, to) in [
            (Some(&self.folder), Some(&self.from)),
            (self.account.as_ref(), self.account_from.as_ref()),
        ] {
            let (Some(folder), Some(to)) = (folder, to) else {
                continue;
            };
            // Processes may fork meanwhile; a storm of them ends when the first has gone.
            for _ in 0..100 {
                let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
                let list: Vec<u32> = list.lines().filter_map(|line| line.parse().ok()).collect();
                if list.is_empty() {
                    break;
                }
                for pid in list {
                    moved(pid, to)?;
                    back += 1;
                }
            }
            match fs::remove_dir(folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    let what = format!("removing the control group {}", folder.display());
                    return Err(Error::Refused { what, source });
                }
            }
        }
        Ok(back)
    }
}

fn moved(pid: u32, to: &Path) -> Result<()> {
    let file = to.join("cgroup.procs");
    match fs::write(&file, pid.to_string()) {
        Ok(()) => Ok(()),
        Err(error) if proc::gone(&error) => Ok(()),
        Err(source) => Err(Error::Refused {
            what: format!("moving process {pid} to {}", to.display()),
            source,
        }),
    }
}
