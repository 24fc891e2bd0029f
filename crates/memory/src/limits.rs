//! The memory this process may use: of the machine, and of the control groups that limit it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Bytes this process may still use: what the system has available, or what is left of the
/// control group's limit (v1 and v2, the group's ancestors included), whichever is less.
/// Memory of the group that is only a cache of files counts as left, as the system takes it back.
///
/// # Errors
///
/// [`Error::Read`] or [`Error::Parse`] where `/proc/meminfo` does not say. Control groups that
/// cannot be read do not limit.
pub fn available() -> Result<u64> {
    System::real().available()
}

/// Bytes this process may use at most: physical memory or the control group's limit,
/// whichever is less.
///
/// # Errors
///
/// As [`available`].
pub fn total() -> Result<u64> {
    System::real().total()
}

/// The files of a system, below a root that tests choose.
struct System {
    root: PathBuf,
}

/// A control group's limit and what counts against it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    limit: u64,
    used: u64,
}

/// Which files a control group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl System {
    fn real() -> System {
        System {
            root: PathBuf::from("/"),
        }
    }

    /// The file of this absolute path.
    fn text(&self, path: &Path) -> std::io::Result<String> {
        fs::read_to_string(self.root.join(path.strip_prefix("/").unwrap_or(path)))
    }

    fn available(&self) -> Result<u64> {
        let system = self.meminfo("MemAvailable:")?;
        let groups = self.groups();
        let left = groups
            .iter()
            .map(|group| group.limit.saturating_sub(group.used));
        Ok(left.fold(system, u64::min))
    }

    fn total(&self) -> Result<u64> {
        let system = self.meminfo("MemTotal:")?;
        Ok(self
            .groups()
            .iter()
            .map(|group| group.limit)
            .fold(system, u64::min))
    }

    /// A value of `/proc/meminfo`, in bytes.
    fn meminfo(&self, key: &str) -> Result<u64> {
        let path = PathBuf::from("/proc/meminfo");
        let text = match self.text(&path) {
            Ok(text) => text,
            Err(source) => return Err(Error::Read { path, source }),
        };
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.and_then(|kib| kib.checked_mul(1024))
            .ok_or_else(|| Error::Parse {
                what: path.display().to_string(),
                line: 0,
                why: format!("it does not say {key} in kB"),
            })
    }

    /// The groups that limit this process: its own and their ancestors, as far as visible.
    fn groups(&self) -> Vec<Group> {
        let own = self
            .text(Path::new("/proc/self/cgroup"))
            .unwrap_or_default();
        let mounts = self
            .text(Path::new("/proc/self/mountinfo"))
            .unwrap_or_default();
        let mut groups = Vec::new();
        for line in mounts.lines() {
            let Some(mount) = Mount::parse(line) else {
                continue;
            };
            let Some(path) = membership(&own, mount.version) else {
                continue;
            };
            for folder in mount.folders(path) {
                groups.extend(self.group(&folder, mount.version));
            }
        }
        groups
    }

    /// The group in this folder; `None` where it does not limit.
    fn group(&self, folder: &Path, version: Version) -> Option<Group> {
        let value = |name: &str| {
            let text = self.text(&folder.join(name)).ok()?;
            // "max" is not a number: no limit.
            text.trim().parse::<u64>().ok()
        };
        let stat = self.text(&folder.join("memory.stat")).unwrap_or_default();
        let stat = |key: &str| {
            let line = stat
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.and_then(|number| number.trim().parse::<u64>().ok())
        };
        let (limits, used, cache) = match version {
            // The hierarchical limit covers ancestors that a container does not show.
            Version::V1 => (
                [
                    value("memory.limit_in_bytes"),
                    stat("hierarchical_memory_limit"),
                ],
                value("memory.usage_in_bytes"),
                stat("total_inactive_file"),
            ),
            // Above "high" the system slows the group down instead of giving it more.
            Version::V2 => (
                [value("memory.max"), value("memory.high")],
                value("memory.current"),
                stat("inactive_file"),
            ),
        };
        let limit = limits.into_iter().flatten().min()?;
        let used = used.unwrap_or(0).saturating_sub(cache.unwrap_or(0));
        Some(Group { limit, used })
    }
}

/// This process's group in the hierarchy that has the memory controller.
fn membership(own: &str, version: Version) -> Option<&str> {
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let ours = match version {
            Version::V1 => controllers.split(',').any(|name| name == "memory"),
            Version::V2 => controllers.is_empty(),
        };
        ours.then_some(path)
    })
}

/// Where a control group hierarchy is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    version: Version,
    /// The group that is mounted: in a container often not the root group.
    root: String,
    folder: PathBuf,
}

impl Mount {
    /// A line of `/proc/self/mountinfo`: id, parent, device, root, mount point, options, optional
    /// fields up to `-`, type, source, options of the file system.
    fn parse(line: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, folder) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let version = match (after.next()?, after.nth(1).unwrap_or_default()) {
            ("cgroup2", _) => Version::V2,
            ("cgroup", options) if options.split(',').any(|o| o == "memory") => Version::V1,
            _ => return None,
        };
        Some(Mount {
            version,
            root: root.to_owned(),
            folder: PathBuf::from(folder),
        })
    }

    /// The folders of `group` and its ancestors, as far as they are mounted.
    fn folders(&self, group: &str) -> Vec<PathBuf> {
        // A group outside of what is mounted (a container that shows its own group as the
        // root) leaves the mounted one.
        let inside = Path::new(group)
            .strip_prefix(&self.root)
            .unwrap_or(Path::new(""));
        let inside = inside.strip_prefix("/").unwrap_or(inside);
        // The ancestors of a relative path end in the empty one: the mount point.
        inside
            .ancestors()
            .map(|part| self.folder.join(part))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const MIB: u64 = 1 << 20;

    /// A system with 1000 MiB, 600 MiB of them available, and these files.
    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let folder = tempfile::tempdir().unwrap();
        let meminfo = "MemTotal: 1024000 kB\nMemFree: 1 kB\nMemAvailable:  614400 kB\n";
        let mut all = BTreeMap::from([("/proc/meminfo", meminfo)]);
        all.extend(files.iter().copied());
        for (path, text) in all {
            let path = folder.path().join(&path[1..]);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = folder.path().to_owned();
        (folder, System { root })
    }

    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

    #[test]
    fn this_system_says_something_sensible() {
        let (available, total) = (available().unwrap(), total().unwrap());
        assert!(
            available > 0 && available <= total,
            "{available} of {total}"
        );
    }

    #[test]
    fn without_groups_the_system_counts() {
        let (_folder, system) = system(&[]);
        assert_eq!(
            (system.available().unwrap(), system.total().unwrap()),
            (600 * MIB, 1000 * MIB)
        );
    }

    #[test]
    fn version_2_with_a_tighter_ancestor() {
        let (_folder, system) = system(&[
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/proc/self/mountinfo", V2),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "1048576\n"),
            ("/sys/fs/cgroup/a/memory.max", "209715200\n"),
            ("/sys/fs/cgroup/a/memory.current", "157286400\n"),
            (
                "/sys/fs/cgroup/a/memory.stat",
                "anon 1\ninactive_file 52428800\nactive_file 9\n",
            ),
        ]);
        assert_eq!(
            (system.available().unwrap(), system.total().unwrap()),
            (100 * MIB, 200 * MIB)
        );
    }

    #[test]
    fn version_2_in_a_container_and_a_high_mark() {
        let (_folder, system) = system(&[
            ("/proc/self/cgroup", "0::/\n"),
            ("/proc/self/mountinfo", V2),
            ("/sys/fs/cgroup/memory.max", "524288000\n"),
            ("/sys/fs/cgroup/memory.high", "314572800\n"),
            ("/sys/fs/cgroup/memory.current", "419430400\n"),
        ]);
        assert_eq!(
            (system.available().unwrap(), system.total().unwrap()),
            (0, 300 * MIB)
        );
    }

    #[test]
    fn version_1_unlimited_and_limited_by_what_is_not_visible() {
        let unlimited = "9223372036854771712\n";
        let (_folder, system) = system(&[
            ("/proc/self/cgroup", "5:cpu:/\n4:memory:/job/1\n0::/\n"),
            ("/proc/self/mountinfo", V1),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited),
            (
                "/sys/fs/cgroup/memory/job/1/memory.limit_in_bytes",
                unlimited,
            ),
            (
                "/sys/fs/cgroup/memory/job/1/memory.usage_in_bytes",
                "104857600\n",
            ),
        ]);
        assert_eq!(
            (system.available().unwrap(), system.total().unwrap()),
            (600 * MIB, 1000 * MIB)
        );
        let stat = "hierarchical_memory_limit 209715200\ntotal_inactive_file 0\n";
        fs::write(
            system.root.join("sys/fs/cgroup/memory/job/1/memory.stat"),
            stat,
        )
        .unwrap();
        assert_eq!(
            (system.available().unwrap(), system.total().unwrap()),
            (100 * MIB, 200 * MIB)
        );
    }

    #[test]
    fn version_1_in_a_container_that_mounts_its_own_group() {
        let mount = "35 31 0:32 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        for own in ["4:memory:/docker/x\n", "4:memory:/somewhere/else\n"] {
            let (_folder, system) = system(&[
                ("/proc/self/cgroup", own),
                ("/proc/self/mountinfo", mount),
                ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200\n"),
            ]);
            assert_eq!(system.total().unwrap(), 200 * MIB, "{own}");
        }
    }

    #[test]
    fn a_system_that_does_not_say_is_an_error() {
        let (_folder, system) = system(&[("/proc/meminfo", "MemTotal: lots\n")]);
        let error = system.total().unwrap_err();
        assert!(error.to_string().contains("/proc/meminfo"), "{error}");
        fs::remove_file(system.root.join("proc/meminfo")).unwrap();
        assert!(matches!(system.available(), Err(Error::Read { .. })));
    }
}
