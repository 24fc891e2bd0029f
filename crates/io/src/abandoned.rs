//! What writers leave behind that were killed: files and folders beside where they were to be.

use std::fs::{self, File, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How such names end.
const PART: &str = ".part";

/// How long what has no number of a process in its name must have been left alone: its writer locks it at once.
const AGE: Duration = Duration::from_secs(60);

/// Who writes a file, by its name.
#[derive(Debug, PartialEq, Eq)]
enum Writer {
    /// The process of this number: `.NAME.PID.part`, and `.NAME.PID.` with eight hexadecimal digits.
    Process(u32),
    /// It is not said: `.NAME.`, six characters that are drawn, and `.part`.
    Unknown,
}

/// Removes what killed processes have left in a folder of files that were to appear whole: what has a name of ours, whose
/// process is gone, and on which nobody has a lock. Writers lock what they write. What cannot be removed stays and does no
/// harm.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// // No process has so high a number.
/// std::fs::write(folder.path().join(".a.csv.4194999.part"), "half")?;
/// std::fs::write(folder.path().join(".a.csv.own.part"), "another's")?;
/// io::remove_abandoned(folder.path());
/// assert_eq!(std::fs::read_dir(folder.path())?.count(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(writer) = name.to_str().and_then(writer) else {
            continue;
        };
        // Of the entry itself: what a link leads to is not ours.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let path = entry.path();
        if metadata.is_symlink() || !is_gone(&writer, &metadata) || !is_free(&path) {
            continue;
        }
        let _ = if metadata.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
    }
}

/// The writer of a file of that name; none if the name is none of ours.
fn writer(name: &str) -> Option<Writer> {
    let inner = name.strip_prefix('.')?.strip_suffix(PART)?;
    let (front, last) = inner.rsplit_once('.')?;
    let process = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).map(Writer::Process)
    };
    let drawn = |length: usize, one: fn(u8) -> bool| last.len() == length && last.bytes().all(one);
    if drawn(8, |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && let Some((name, number)) = front.rsplit_once('.')
        && let Some(found) = process(number).filter(|_| !name.is_empty())
    {
        return Some(found);
    }
    if front.is_empty() {
        return None;
    }
    let unknown = drawn(6, |byte| byte.is_ascii_alphanumeric()).then_some(Writer::Unknown);
    process(last).or(unknown)
}

/// Whether the writer is no more, as far as this process can see.
fn is_gone(writer: &Writer, metadata: &Metadata) -> bool {
    match writer {
        Writer::Process(number) => !Path::new("/proc").join(number.to_string()).exists(),
        Writer::Unknown => {
            let age = |changed| SystemTime::now().duration_since(changed).ok();
            let age = metadata.modified().ok().and_then(age);
            age.is_some_and(|age| age >= AGE)
        }
    }
}

/// Whether nobody has a lock on it. Where there are no locks, nobody knows.
fn is_free(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_writer() {
        for (name, of) in [
            (".a.csv.17.part", Some(Writer::Process(17))),
            (".a.zarr.17.0123abcd.part", Some(Writer::Process(17))),
            (".a.csv.Ab3xYz.part", Some(Writer::Unknown)),
            (".a.csv.own.part", None),
            (".a.csv.+7.part", None),
            ("a.csv.17.part", None),
            (".17.part", None),
            (".part", None),
            (".a.csv.17", None),
        ] {
            assert_eq!(writer(name), of, "{name}");
        }
    }

    #[test]
    fn what_is_locked_or_young_or_of_a_process_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let old = SystemTime::now() - 2 * AGE;
        let own = format!(".a.csv.{}.part", std::process::id());
        for name in [
            own.as_str(),
            ".b.csv.4194999.part",
            ".c.csv.4194998.part",
            ".d.csv.Ab3xYz.part",
            ".e.csv.Ab3xYz.part",
            ".f.csv.own.part",
            "g.csv",
        ] {
            fs::write(path(name), "half").unwrap();
        }
        fs::create_dir_all(path(".h.zarr.4194999.0123abcd.part/c")).unwrap();
        let locked = File::open(path(".c.csv.4194998.part")).unwrap();
        locked.try_lock().unwrap();
        let aged = File::options().write(true).open(path(".e.csv.Ab3xYz.part"));
        aged.unwrap().set_modified(old).unwrap();
        remove_abandoned(folder.path());
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut stay = [
            own.as_str(),
            ".c.csv.4194998.part",
            ".d.csv.Ab3xYz.part",
            ".f.csv.own.part",
            "g.csv",
        ];
        stay.sort_unstable();
        assert_eq!(left, stay);
    }
}
