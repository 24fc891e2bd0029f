//! Partitions of control groups of version 2: cpus that nobody outside of a group may use.

use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = "cpuset.cpus.partition";

/// The file by which a group becomes a partition.
const EXCLUSIVE: &str = "cpuset.cpus.exclusive";

/// Makes a group's cpus exclusive, and shared again.
#[derive(Debug)]
pub(crate) struct Partition {
    folder: PathBuf,
    /// What the group was before, for putting it back.
    pub(crate) before: String,
    /// The cpus that are exclusive now, or for which that was refused.
    cpus: Option<String>,
    /// Why it was refused, which is reported once.
    refused: bool,
    note: Option<String>,
}

impl Partition {
    /// The partition of a group; `None` if the kernel has no partitions.
    pub(crate) fn of(folder: &Path) -> Option<Partition> {
        let before = fs::read_to_string(folder.join(FILE)).ok()?;
        Some(Partition {
            folder: folder.to_owned(),
            before: kind(&before).to_owned(),
            cpus: None,
            refused: false,
            note: None,
        })
    }

    /// Whether these cpus were the last for which it was tried.
    pub(crate) fn is_for(&self, cpus: &str) -> bool {
        self.cpus.as_deref() == Some(cpus)
    }

    /// To be called before the group's cpus change, so that exclusive cpus are not taken from others by mistake.
    pub(crate) fn open(&self) {
        let now = fs::read_to_string(self.folder.join(FILE)).unwrap_or_default();
        if kind(&now) != "member" {
            let _ = fs::write(self.folder.join(FILE), "member");
        }
    }

    /// To be called after they have changed: makes `cpus` exclusive. If that is refused they stay shared.
    pub(crate) fn close(&mut self, cpus: &str) {
        self.cpus = Some(cpus.to_owned());
        // Kernels before 6.7 do not have it, and groups below the top one want it first.
        let _ = fs::write(self.folder.join(EXCLUSIVE), cpus);
        let file = self.folder.join(FILE);
        let written = fs::write(&file, "root").map_err(|error| error.to_string());
        let state = fs::read_to_string(&file).unwrap_or_default();
        let done = written.and_then(|()| {
            if valid(&state) {
                Ok(())
            } else {
                Err(reason(&state))
            }
        });
        if let Err(why) = done {
            let _ = fs::write(&file, "member");
            if !self.refused {
                self.refused = true;
                self.note = Some(format!(
                    "cpus {cpus} of {} stay shared with others: {why}",
                    self.folder.display()
                ));
            }
        }
    }

    /// A note for the user, returned once.
    pub(crate) fn note(&mut self) -> Option<String> {
        self.note.take()
    }
}

/// Makes a group what it was before.
pub(crate) fn restore(folder: &Path, before: &str) {
    if let Ok(now) = fs::read_to_string(folder.join(FILE))
        && kind(&now) != before
    {
        let _ = fs::write(folder.join(FILE), before);
    }
    if before == "member" {
        let _ = fs::write(folder.join(EXCLUSIVE), "\n");
    }
}

/// `root` of `root invalid (Parent is not a partition root)`.
fn kind(state: &str) -> &str {
    state.split_whitespace().next().unwrap_or("member")
}

fn valid(state: &str) -> bool {
    state.trim() == "root"
}

/// What is in brackets.
fn reason(state: &str) -> String {
    let inside = state.split_once('(').map(|(_, rest)| rest.trim());
    match inside.and_then(|rest| rest.strip_suffix(')')) {
        Some(reason) => reason.to_owned(),
        None => format!("the kernel says '{}'", state.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(state: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), state).unwrap();
        folder
    }

    fn said(folder: &tempfile::TempDir) -> String {
        fs::read_to_string(folder.path().join(FILE)).unwrap()
    }

    #[test]
    fn what_the_kernel_says_is_understood() {
        assert!(valid("root\n") && !valid("root invalid (x)\n") && !valid("member\n"));
        assert_eq!(
            kind("root invalid (Parent is not a partition root)\n"),
            "root"
        );
        assert_eq!(kind(""), "member");
        assert_eq!(
            reason("root invalid (Parent is not a partition root)\n"),
            "Parent is not a partition root"
        );
        assert_eq!(reason("isolated\n"), "the kernel says 'isolated'");
    }

    #[test]
    fn a_group_is_closed_opened_and_put_back() {
        let folder = group("member\n");
        let mut partition = Partition::of(folder.path()).unwrap();
        partition.close("0-1");
        assert_eq!((said(&folder), partition.note()), ("root".to_owned(), None));
        let exclusive = fs::read_to_string(folder.path().join(EXCLUSIVE)).unwrap();
        assert_eq!(exclusive, "0-1");
        partition.open();
        assert_eq!(said(&folder), "member");
        partition.close("0");
        restore(folder.path(), &partition.before);
        assert_eq!(said(&folder), "member");
        // One that somebody else has made stays one.
        let other = group("root\n");
        let partition = Partition::of(other.path()).unwrap();
        restore(other.path(), &partition.before);
        assert_eq!(said(&other), "root\n");
    }

    #[test]
    fn what_is_refused_is_told_once() {
        let folder = group("member\n");
        let mut partition = Partition::of(folder.path()).unwrap();
        // A folder in its place cannot be written.
        fs::remove_file(folder.path().join(FILE)).unwrap();
        fs::create_dir(folder.path().join(FILE)).unwrap();
        partition.close("0-3");
        let note = partition.note().unwrap();
        assert!(
            note.contains("cpus 0-3") && note.contains("stay shared"),
            "{note}"
        );
        partition.close("0-2");
        assert_eq!(partition.note(), None);
        assert!(Partition::of(Path::new("/no/group")).is_none());
    }
}
