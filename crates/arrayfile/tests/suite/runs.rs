//! Progress, Ctrl-C, memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrayfile::{Error, ExportOptions, ImportOptions, Job};
use futures::executor::block_on;
use memory::Budget;

use crate::scratch::{Scratch, job, npy};

/// A file of 100 x 100 doubles.
fn square(scratch: &Scratch) -> std::path::PathBuf {
    let header = "{'descr': '<f8', 'fortran_order': True, 'shape': (100, 100), }\n";
    let values: Vec<u8> = (0..10_000u32)
        .flat_map(|at| f64::from(at).to_le_bytes())
        .collect();
    scratch.write("square.npy", npy(header, &values))
}

fn chunked(chunk: u64) -> ImportOptions {
    ImportOptions {
        chunk: Some(vec![chunk, chunk]),
        ..ImportOptions::default()
    }
}

#[test]
fn a_run_tells_how_far_it_is_and_stops_when_asked_to() {
    let scratch = Scratch::new();
    let path = square(&scratch);
    let told = AtomicU64::new(0);
    let stop = Arc::new(AtomicBool::new(false));
    let halfway = || {
        let (told, stop) = (&told, Arc::clone(&stop));
        job(64 << 20)
            .stopped_by(Arc::clone(&stop))
            .telling(move |at| {
                assert!(at.total == 80_000 && at.done >= told.swap(at.done, Ordering::Relaxed));
                stop.store(at.done >= 40_000, Ordering::Relaxed);
            })
    };
    let stopped = block_on(arrayfile::import(
        &scratch.store,
        "a",
        &path,
        &chunked(10),
        halfway(),
    ));
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert!((40_000..50_000).contains(&told.swap(0, Ordering::Relaxed)));
    assert!(
        array::list(&scratch.store.snapshot()).unwrap().is_empty(),
        "nothing is left"
    );

    scratch.import("a", &path, &chunked(10)).unwrap();
    for name in ["a.npy", "a.zarr", "a.h5", "a.nc"] {
        stop.store(false, Ordering::Relaxed);
        told.store(0, Ordering::Relaxed);
        let mut told = Vec::new();
        let file = scratch.path(name);
        let options = ExportOptions::default();
        let snapshot = scratch.store.snapshot();
        let run = job(1 << 20).stopped_by(Arc::clone(&stop)).telling(|at| {
            told.push(at.done);
            stop.store(at.done > 0, Ordering::Relaxed);
        });
        let stopped = block_on(arrayfile::export(&snapshot, "a", &file, &options, run));
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
        assert!(told.len() == 2 && told[1] > 0, "{told:?}");
        assert_eq!(scratch.files(), ["square.npy"], "no part of {name} is left");
    }
}

#[test]
fn a_chunk_at_a_time_is_in_memory() {
    let scratch = Scratch::new();
    let path = square(&scratch);
    let import = |chunk, bytes| {
        let budget = Budget::new(bytes);
        let options = ImportOptions {
            replace: true,
            ..chunked(chunk)
        };
        let made = block_on(arrayfile::import(
            &scratch.store,
            "a",
            &path,
            &options,
            Job::new(Arc::clone(&budget)),
        ));
        assert_eq!(budget.used(), 0, "all is given back");
        made
    };
    import(10, 4 << 10).unwrap();
    let error = import(100, 4 << 10).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
    assert!(error.to_string().contains("shorter chunks"), "{error}");
    let read = |bytes| {
        let options = ExportOptions::default();
        let file = scratch.path("out.npy");
        let _ = std::fs::remove_file(&file);
        block_on(arrayfile::export(
            &scratch.store.snapshot(),
            "a",
            &file,
            &options,
            job(bytes),
        ))
    };
    assert!(read(100).is_err());
    for bytes in [4 << 10, 40 << 10, 1 << 20] {
        assert_eq!(read(bytes).unwrap().bytes, 80_000);
        scratch
            .import(
                "b",
                &scratch.path("out.npy"),
                &ImportOptions {
                    replace: true,
                    ..ImportOptions::default()
                },
            )
            .unwrap();
        assert_eq!(
            scratch.values("b").1,
            scratch.values("a").1,
            "with {bytes} bytes"
        );
    }
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    let path = square(&scratch);
    let names = |names: &[&str]| ImportOptions {
        dimensions: Some(names.iter().map(|&name| name.to_owned()).collect()),
        ..ImportOptions::default()
    };
    for (options, said) in [
        (names(&["x"]), "2 dimensions, but 1 names"),
        (names(&["x", "x"]), "'x' names two things"),
        (names(&["x", "value"]), "'value' names two things"),
        (chunked(0), "at least one cell"),
        (
            ImportOptions {
                chunk: Some(vec![1]),
                ..ImportOptions::default()
            },
            "1 lengths of a chunk",
        ),
    ] {
        let error = scratch
            .import("a", &path, &options)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
    scratch.import("a", &path, &names(&["x", "y"])).unwrap();
    let again = scratch
        .import("a", &path, &ImportOptions::default())
        .unwrap_err()
        .to_string();
    assert!(again.contains("'a' exists already"), "{again}");
}
