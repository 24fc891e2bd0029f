//! The files of the store, which somebody may remove or replace while they are served: what is written then is gone when
//! the server ends.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use atoll::script;
use parking_lot::Mutex;

use crate::wire::backend::Report;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// How statements begin that change nothing that outlives the session.
const HARMLESS: [&str; 15] = [
    "abort",
    "begin",
    "close",
    "deallocate",
    "declare",
    "discard",
    "fetch",
    "move",
    "release",
    "reset",
    "rollback",
    "savepoint",
    "set",
    "show",
    "start",
];

/// By what the system tells a file from others: its device, and its number there.
type Number = (u64, u64);

/// The data file and its log.
#[derive(Debug)]
pub(crate) struct Files {
    all: Vec<(PathBuf, Number)>,
    looked: Mutex<Instant>,
    /// What has become of one of them.
    lost: OnceLock<String>,
}

fn number(path: &Path) -> Option<Number> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

impl Files {
    /// Those of the store whose data file this is, which is open.
    pub(crate) fn of(data: &Path) -> Files {
        let mut log = data.as_os_str().to_owned();
        log.push(".log");
        let all = [data.to_owned(), log.into()].into_iter();
        Files {
            all: all
                .filter_map(|path| Some((path.clone(), number(&path)?)))
                .collect(),
            looked: Mutex::new(Instant::now()),
            lost: OnceLock::new(),
        }
    }

    /// Looks whether they are there, if that was not done a moment ago.
    fn look(&self) {
        let mut looked = self.looked.lock();
        if looked.elapsed() < EVERY || self.lost.get().is_some() {
            return;
        }
        *looked = Instant::now();
        let gone = |(path, own): &&(PathBuf, Number)| number(path) != Some(*own);
        if let Some((path, _)) = self.all.iter().find(gone) {
            let message = format!(
                "\"{}\" was removed or replaced while it is served: what is written now would be lost when the server ends. Copy what there is by `select` and `copy ... to stdout`, and end the server",
                path.display()
            );
            let _ = self.lost.set(message);
        }
    }

    /// That the statement `text` may run: one that writes may not once a file is gone.
    ///
    /// # Errors
    /// With the file that is.
    pub(crate) fn check(&self, text: &str) -> Result<(), Report> {
        self.look();
        let Some(lost) = self.lost.get() else {
            return Ok(());
        };
        let first = script::first_word(text).unwrap_or_default();
        if HARMLESS.contains(&first.as_str()) || script::only_reads(text) {
            return Ok(());
        }
        Err(Report::error("58P01", lost.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("reef.atoll");
        let log = folder.path().join("reef.atoll.log");
        for path in [&data, &log] {
            fs::write(path, "1").unwrap();
        }
        let files = Files::of(&data);
        let again = || {
            *files.looked.lock() = Instant::now().checked_sub(2 * EVERY).unwrap();
        };
        again();
        assert!(files.check("insert into t values (1)").is_ok());
        // Another in its place is not it.
        let other = folder.path().join("other");
        fs::write(&other, "1").unwrap();
        fs::rename(&other, &log).unwrap();
        again();
        for text in [
            "insert into t values (1)",
            "commit",
            "create table t (a int)",
        ] {
            let report = files.check(text).unwrap_err();
            assert_eq!(report.code, "58P01");
            assert!(report.message.contains("reef.atoll.log"), "{report:?}");
        }
        for text in ["select 1", "rollback", "set a = 1"] {
            assert!(files.check(text).is_ok(), "{text}");
        }
    }
}
