//! Where governors are recorded: the folder of this user, and those of others, who may govern the same processes.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Root's folder.
const ROOT: &str = "/run/atoll-govern";

/// The mode of record files. The folder of a user other than root is closed to others.
pub(super) const FILE: u32 = 0o644;

/// The longest record, in bytes.
const LONGEST: u64 = 4 << 20;

/// The most users whose folders are looked at, and the most files of one.
const USERS: usize = 1000;
const FILES: usize = 100;

/// Where running governors are recorded: for root `/run/atoll-govern`, where everybody can read it; for others in the
/// folder that the system gives each user, or in `/tmp`.
pub fn own() -> PathBuf {
    if user() == 0 {
        return PathBuf::from(ROOT);
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("atoll-govern"),
        None => std::env::temp_dir().join(format!("atoll-govern-{}", user())),
    }
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    user() == 0
}

fn user() -> u32 {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() }
}

/// Makes a folder that only we may write to, because what its records say is carried out.
pub(super) fn make(folder: &Path) -> Result<()> {
    let file = |source| Error::File {
        path: folder.to_owned(),
        source,
    };
    let mode = if user() == 0 { 0o755 } else { 0o700 };
    let made = fs::DirBuilder::new()
        .mode(mode)
        .recursive(true)
        .create(folder);
    made.map_err(file)?;
    let about = fs::metadata(folder).map_err(file)?;
    if about.uid() != user() || about.mode() & 0o022 != 0 {
        return Err(Error::Command {
            what: folder.display().to_string(),
            why: "it belongs to somebody else, or others may write to it; give --state".to_owned(),
        });
    }
    Ok(())
}

/// The files of a folder with this ending, in order.
pub(super) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == ending))
        .collect();
    found.sort();
    found
}

/// The files with this ending in the folders of other users, as far as they are readable, with their owners. Their
/// contents are only claims.
pub(super) fn foreign(own: &Path, ending: &str) -> Vec<(u32, Vec<u8>)> {
    let mut folders = vec![PathBuf::from(ROOT)];
    for (parent, start, below) in [
        ("/run/user", "", "atoll-govern"),
        ("/tmp", "atoll-govern-", ""),
    ] {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let named = entries.filter(|entry| {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(start));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        });
        folders.extend(named.take(USERS).map(|entry| entry.path().join(below)));
    }
    let own = fs::canonicalize(own).unwrap_or_else(|_| own.to_owned());
    folders.retain(|folder| fs::canonicalize(folder).is_ok_and(|folder| folder != own));
    let files = |folder: &PathBuf| files(folder, ending).into_iter().take(FILES);
    let all = folders.iter().flat_map(files);
    all.filter_map(|path| read(&path)).collect()
}

/// Reads a file that anybody may have made: only if it is a plain file, and without waiting.
fn read(path: &Path) -> Option<(u32, Vec<u8>)> {
    let mut options = OpenOptions::new();
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file: File = options.read(true).open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > LONGEST {
        return None;
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some((about.uid(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_anybody_may_have_made_is_read_with_care() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("plain"), "text").unwrap();
        assert_eq!(read(&path("plain")), Some((user(), b"text".to_vec())));
        std::os::unix::fs::symlink(path("plain"), path("link")).unwrap();
        let fifo = std::ffi::CString::new(path("fifo").to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        let long = File::create(path("long")).unwrap();
        long.set_len(LONGEST + 1).unwrap();
        for name in ["link", "fifo", "long", "missing", "."] {
            assert_eq!(read(&path(name)), None, "{name}");
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("a/b");
        make(&own).unwrap();
        make(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        let error = make(&own).unwrap_err().to_string();
        assert!(error.contains("--state"), "{error}");
        fs::write(own.join("2.json"), "").unwrap();
        fs::write(own.join("1.json"), "").unwrap();
        fs::write(own.join("1.now"), "").unwrap();
        assert_eq!(
            files(&own, "json"),
            [own.join("1.json"), own.join("2.json")]
        );
        assert!(files(&own.join("none"), "json").is_empty());
    }
}
