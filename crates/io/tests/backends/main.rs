//! Reads of files: every backend passes the same tests.

mod coalesce;
mod direct;
mod read;
mod registered;

use std::sync::Arc;

use io::{Backend, Device, Direct, Error, File, Queue, Settings};
use tempfile::TempDir;

/// Bytes that tell where they are from.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i * 31 + i / 251 + i / 65_536 * 7) as u8)
        .collect()
}

/// A file of these bytes.
pub fn file(bytes: &[u8]) -> (TempDir, Arc<dyn Device>) {
    let directory = tempfile::tempdir().unwrap();
    let file = File::create(directory.path().join("pages")).unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync().unwrap();
    (directory, Arc::new(file))
}

/// As [`file`], read past the page cache; says why where that cannot be.
pub fn direct_file(bytes: &[u8]) -> Option<(TempDir, Arc<dyn Device>)> {
    // Not in the directory for temporary files, which may be in memory.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = File::create(directory.path().join("pages")).unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync().unwrap();
    match file.direct(Direct::Always) {
        Ok(file) => Some((directory, Arc::new(file))),
        Err(Error::Direct { why, .. }) => {
            notrun::not_run(why);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A queue of the backend; says why where the system refuses it.
pub fn queue(settings: Settings) -> Option<Queue> {
    match Queue::with(settings) {
        Ok(queue) => {
            let wanted = settings.backend;
            assert!(wanted == Backend::Auto || queue.backend().backend == wanted);
            Some(queue)
        }
        Err(Error::Uring { why }) if settings.backend == Backend::Uring => {
            notrun::not_run(why);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The settings of a backend.
pub fn of(backend: Backend) -> Settings {
    Settings {
        backend,
        ..Settings::default()
    }
}

/// A test for each backend, of a function that takes one.
#[macro_export]
macro_rules! backends {
    ($($test:ident)*) => {
        mod uring {
            $(#[test] fn $test() { super::$test(io::Backend::Uring) })*
        }
        mod threads {
            $(#[test] fn $test() { super::$test(io::Backend::Threads) })*
        }
    };
}
