//! The threads of processes, from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A thread, which nothing else is mistaken for: numbers are used again, but not at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Task {
    /// When it was created, in ticks since the system started.
    pub(crate) born: u64,
    /// Its number.
    pub(crate) thread: i32,
    /// The process it belongs to.
    pub(crate) process: i32,
}

/// Whether a number is one of this process's threads.
pub(crate) fn is_own(thread: i32) -> bool {
    PathBuf::from(format!("/proc/self/task/{thread}")).exists()
}

/// The threads of a process, in the order they were created; none for one that has ended.
///
/// # Errors
///
/// What the system says, but for a process that is not there.
pub(crate) fn of_process(process: i32) -> io::Result<Vec<Task>> {
    let threads = match fs::read_dir(format!("/proc/{process}/task")) {
        Ok(threads) => threads,
        Err(error) if gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut tasks = Vec::new();
    for entry in threads {
        let name = match entry {
            Ok(entry) => entry.file_name(),
            Err(error) if gone(&error) => break,
            Err(error) => return Err(error),
        };
        let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        tasks.extend(task(process, thread));
    }
    tasks.sort_unstable();
    Ok(tasks)
}

/// One thread; `None` where it has ended.
pub(crate) fn task(process: i32, thread: i32) -> Option<Task> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    let (state, born) = state_and_birth(&stat)?;
    // A zombie has no cpus to run on.
    let alive = !matches!(state, 'Z' | 'X');
    alive.then_some(Task {
        born,
        thread,
        process,
    })
}

/// Fields 3 and 22 of a stat file. The name, field 2, is in parentheses and may contain anything.
fn state_and_birth(stat: &str) -> Option<(char, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// A process and all that descend from it, as far as can be seen.
pub(crate) fn family(process: i32) -> Vec<i32> {
    let mut found = vec![process];
    let mut known = BTreeSet::from([process]);
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        at += 1;
        for child in children(parent) {
            if known.insert(child) {
                found.push(child);
            }
        }
    }
    found
}

/// The children of all threads of a process.
fn children(process: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(
            list.split_whitespace()
                .filter_map(|child| child.parse::<i32>().ok()),
        );
    }
    children
}

/// Whether an error says that a process or thread has ended.
pub(crate) fn gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_anything() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20";
        for name in ["a", "a b", ") Z 9 (", ""] {
            let stat = format!("12 ({name}) {rest}\n");
            assert_eq!(state_and_birth(&stat), Some(('S', 777)), "{name}");
        }
        assert_eq!(state_and_birth("12 (a) S 1"), None);
        assert_eq!(state_and_birth(""), None);
    }

    #[test]
    fn own_threads_are_listed_in_order() {
        let own = std::process::id() as i32;
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = wait.recv();
        });
        let tasks = of_process(own).unwrap();
        assert!(tasks.len() >= 2 && tasks.is_sorted());
        assert_eq!(
            tasks[0].thread, own,
            "the first thread has the number of the process"
        );
        drop(stop);
        thread.join().unwrap();
        assert_eq!(of_process(0x3fff_ffff).unwrap(), []);
    }
}
