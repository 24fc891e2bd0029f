//! The counters that governed Atoll processes publish.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use governor::runtime::published::{self, Counted};

use crate::group::target::Group;

/// How often the processes are searched for counters.
const SEARCH: Duration = Duration::from_secs(1);

/// The most processes that are searched, and the most files of one.
const PROCESSES: usize = 64;
const FILES: usize = 4096;

/// The counters of a group.
#[derive(Debug, Default)]
pub(crate) struct Own {
    found: HashMap<u32, Vec<(File, Counted)>>,
    /// Total since the first look; never falls.
    sum: Counted,
    searched: Option<Instant>,
}

impl Own {
    /// The sum of all counters since the first look, or why it is not known.
    pub(crate) fn read(&mut self, group: &Group) -> Result<Counted, String> {
        let now = Instant::now();
        if group.came || self.searched.is_none_or(|at| now - at >= SEARCH) {
            self.searched = Some(now);
            self.search(group);
        }
        for (file, last) in self.found.values_mut().flatten() {
            // One that is just being written is read next time.
            if let Some(new) = published::read(file) {
                self.sum.statements += new.statements.saturating_sub(last.statements);
                self.sum.bytes += new.bytes.saturating_sub(last.bytes);
                *last = new;
            }
        }
        if self.found.is_empty() {
            Err("no process of it publishes one, or its files may not be seen".to_owned())
        } else {
            Ok(self.sum)
        }
    }

    /// Finds processes that came or ended.
    fn search(&mut self, group: &Group) {
        self.found.retain(|pid, _| group.members.contains_key(pid));
        for pid in group.members.keys().take(PROCESSES) {
            // One that has none yet may open a database later.
            let known = self.found.entry(*pid).or_default();
            if known.is_empty() {
                *known = counters_of(*pid);
            }
        }
        self.found.retain(|_, files| !files.is_empty());
    }
}

/// The counters among a process's open files, with their values; each once, however often it is open.
///
/// A process that looks at itself has every counter open twice: as its own and to read it.
fn counters_of(pid: u32) -> Vec<(File, Counted)> {
    let Ok(folder) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let named = folder.flatten().take(FILES).filter(|entry| {
        fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == published::NAME)
    });
    let mut seen = HashSet::new();
    let opened = named.filter_map(|entry| {
        let file = File::open(entry.path()).ok()?;
        let new = seen.insert(file.metadata().ok()?.ino());
        let counted = new.then(|| published::read(&file))??;
        Some((file, counted))
    });
    opened.collect()
}

#[cfg(test)]
mod tests {
    use governor::runtime::published::Published;

    use super::*;
    use crate::group::target::Target;

    #[test]
    fn the_own_process_is_read_as_another_one_would_be() {
        let group = Group::find(Target::Pid(std::process::id())).unwrap();
        let mut own = Own::default();
        let mut published = Published::new().unwrap();
        let mut other = Published::new().unwrap();
        assert_eq!(own.read(&group), Ok(Counted::default()));
        let count = |statements, bytes| Counted { statements, bytes };
        published.write(count(2, 1000)).unwrap();
        other.write(count(1, 50)).unwrap();
        assert_eq!(own.read(&group), Ok(count(3, 1050)), "both databases");
        published.write(count(4, 1000)).unwrap();
        assert_eq!(own.read(&group), Ok(count(5, 1050)));
        // The files that the first holds open to read are no databases of their own.
        let mut second = Own::default();
        assert_eq!(second.read(&group), Ok(Counted::default()));
        published.write(count(7, 1000)).unwrap();
        assert_eq!(second.read(&group), Ok(count(3, 0)));
    }
}
