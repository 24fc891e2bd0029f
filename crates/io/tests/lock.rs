//! Locks, within a process and between processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use io::{Access, Error, Lock};

struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        std::fs::write(&path, "").unwrap();
        Place {
            _directory: directory,
            path,
        }
    }

    fn lock(&self) -> Lock {
        Lock::open(&self.path, Access::Write).unwrap()
    }

    fn writer(&self) -> Lock {
        let lock = self.lock();
        eventually(|| lock.write().is_ok());
        lock
    }

    fn reader(&self) -> Lock {
        let lock = Lock::open(&self.path, Access::Read).unwrap();
        lock.read().unwrap();
        lock
    }
}

/// Waits: a process that another test starts has copies of all descriptors, and so of their locks,
/// until it runs its own program.
fn eventually(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "still locked");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn there_is_one_writer() {
    let place = Place::new();
    let writer = place.writer();
    let other = place.lock();
    let error = other.write().unwrap_err();
    assert!(matches!(&error, Error::Busy { path, .. } if *path == place.path));
    writer.stop_writing();
    eventually(|| other.write().is_ok());
    assert!(writer.write().is_err());
    drop(other);
    eventually(|| writer.write().is_ok());
}

#[test]
fn readers_and_the_writer_know_of_each_other() {
    let place = Place::new();
    let writer = place.writer();
    assert!(!writer.is_read().unwrap() && !writer.is_written().unwrap());
    let readers = [place.reader(), place.reader()];
    assert!(writer.is_read().unwrap() && readers[0].is_written().unwrap());
    drop(readers);
    eventually(|| !writer.is_read().unwrap());
    let reader = place.reader();
    writer.stop_writing();
    eventually(|| !reader.is_written().unwrap());
    assert!(matches!(reader.write(), Err(Error::Denied { .. })));
    // What came of that attempt keeps nobody from writing.
    eventually(|| writer.write().is_ok());
}

#[test]
fn roots_do_not_change_while_somebody_opens() {
    let place = Place::new();
    let (writer, reader, other) = (place.writer(), place.reader(), place.reader());
    let none = Duration::ZERO;
    let kept = reader
        .keep_roots(none)
        .unwrap()
        .expect("nobody changes them");
    let too = other.keep_roots(none).unwrap().expect("readers share");
    assert!(
        writer
            .change_roots(Duration::from_millis(5))
            .unwrap()
            .is_none()
    );
    drop((kept, too));
    let mut changed = None;
    eventually(|| {
        changed = writer.change_roots(none).unwrap();
        changed.is_some()
    });
    assert!(reader.keep_roots(none).unwrap().is_none());
    drop(changed);
    eventually(|| reader.keep_roots(none).unwrap().is_some());
}

#[test]
fn a_program_that_knows_only_of_flock_excludes_and_is_excluded() {
    let place = Place::new();
    let old = std::fs::File::open(&place.path).unwrap();
    old.try_lock().unwrap();
    let lock = place.lock();
    assert!(matches!(lock.read(), Err(Error::Busy { .. })));
    assert!(matches!(lock.write(), Err(Error::Busy { .. })));
    old.unlock().unwrap();
    eventually(|| lock.write().is_ok());
    assert!(old.try_lock_shared().is_err());
    lock.stop_writing();
    old.try_lock_shared().unwrap();
    lock.read().unwrap();
    assert!(lock.write().is_err());
}

/// The test that follows, in a process of its own, told to hold the lock; it has it by now.
fn elsewhere(path: &Path) -> Child {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold_for_another_process"])
        .env("ATOLL_TEST_HOLD", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lock = Lock::open(path, Access::Read).unwrap();
    eventually(|| lock.is_written().unwrap());
    child
}

/// Does its work only when the test below starts it: holds the lock until its input ends.
#[test]
fn hold_for_another_process() {
    if let Some(path) = std::env::var_os("ATOLL_TEST_HOLD") {
        let lock = Lock::open(path, Access::Write).unwrap();
        lock.write().unwrap();
        let _ = std::io::stdin().read_line(&mut String::new());
    }
}

#[test]
fn the_process_that_writes_is_named_and_its_death_frees() {
    let place = Place::new();
    let mut child = elsewhere(&place.path);
    let lock = place.lock();
    let error = lock.write().unwrap_err();
    let Error::Busy { holder, .. } = &error else {
        panic!("{error}")
    };
    // Some sandboxes show no locks of processes; then it is only said that there is one.
    match holder {
        Some(holder) => {
            assert_eq!(holder.process, child.id());
            let text = error.to_string();
            let process = format!("process {}", child.id());
            assert!(
                text.contains(&process) && text.contains("hold_for_another"),
                "{text}"
            );
        }
        None => assert!(!Path::new("/proc/locks").exists(), "{error}"),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    eventually(|| lock.write().is_ok());
}
