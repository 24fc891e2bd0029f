//! The processes of a name, as someone wants to see them who is about to govern them.

use std::fs;

use crate::error::Result;
use crate::group::target::{Group, Target};
use crate::system::proc::user_of;

/// Characters of a command line that are shown.
const SHOWN: usize = 70;

/// A process of a name that descends from no other one of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its number.
    pub pid: u32,
    /// The user that it belongs to.
    pub user: String,
    /// The beginning of its command line.
    pub command: String,
    /// How many processes it stands for: itself and its descendants.
    pub processes: usize,
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} of user {}", self.pid, self.user)?;
        if self.processes > 1 {
            write!(f, ", with {} more", self.processes - 1)?;
        }
        write!(f, ": {}", self.command)
    }
}

/// The processes whose command has this name, without those that descend from another.
///
/// # Errors
///
/// [`Error::NoTarget`](crate::Error::NoTarget) if there are none.
pub fn named(name: &str) -> Result<Vec<Named>> {
    let group = Group::find(Target::Name(name.to_owned()))?;
    let names = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let roots = group.roots().map(|root| {
        let pid = root.identity.pid;
        Named {
            pid,
            user: user_of(pid).map_or("?".to_owned(), |user| called(user, &names)),
            command: command(pid),
            processes: group.family(pid),
        }
    });
    Ok(roots.collect())
}

/// The name of a user in a file such as `/etc/passwd`, else the number.
fn called(user: u32, names: &str) -> String {
    let number = user.to_string();
    let mut lines = names.lines().map(|line| line.split(':'));
    let found = lines.find_map(|mut parts| {
        let name = parts.next()?;
        (parts.nth(1)? == number).then(|| name.to_owned())
    });
    found.unwrap_or(number)
}

/// The command line of a process, without what a terminal would take for an order.
fn command(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let shown = text.trim().chars().filter(|char| !char.is_control());
    let short: String = shown.take(SHOWN).collect();
    if text.trim().chars().count() > SHOWN {
        return format!("{short}...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names_where_the_system_knows_them() {
        let names = "root:x:0:0:root:/root:/bin/bash\npostgres:x:105:110::/var/lib:/bin/sh\nbad\n";
        assert_eq!(called(105, names), "postgres");
        assert_eq!(called(7, names), "7");
    }

    #[test]
    fn a_process_is_shown_with_what_descends_from_it() {
        let mut child = std::process::Command::new("sleep")
            .arg("5")
            .spawn()
            .unwrap();
        let own = std::process::id();
        let started = |one: &Named| one.pid == child.id() && !one.command.is_empty();
        // Until it is another program it has our name, and then for a moment no arguments.
        let found = loop {
            match named("sleep") {
                Ok(found) if found.iter().any(started) => break found,
                _ => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        let one = found.iter().find(|one| one.pid == child.id()).unwrap();
        assert_eq!((one.command.as_str(), one.processes), ("sleep 5", 1));
        assert!(found.iter().all(|one| one.pid != own));
    }
}
