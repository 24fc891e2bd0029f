//! HDF5 and NetCDF files that are cut or damaged: an error, or values; never a panic, a hang, or memory without bounds.

use arrayfile::{Error, ImportOptions, Job};
use futures::executor::block_on;
use fuzz::{Draw, Target};
use memory::Budget;

use crate::hdf::{data, member};
use crate::scratch::Scratch;

/// Files, and variables of them.
const FILES: [(&str, &[&str]); 8] = [
    ("types.h5", &["big/f8", "of_committed", "bool"]),
    ("earliest.h5", &["chunks/all", "holes", "described"]),
    ("latest.h5", &["grows/all", "both/lzf", "one/gzip", "holes"]),
    ("v110.h5", &["fixed", "growing", "tree", "growing_part"]),
    ("scales.h5", &["salt,warmth"]),
    ("weather4.nc", &["t2m,wind,flags"]),
    ("weather1.nc", &["t2m,wind,flags", "lat_bnds"]),
    ("weather5.nc", &["t2m"]),
];

/// Imports a file with little memory; a word for what came of it.
fn outcome(scratch: &Scratch, bytes: &[u8], name: &str) -> &'static str {
    let path = scratch.write("hostile", bytes);
    let options = ImportOptions {
        // Many small chunks would take long where a shape became large.
        chunk: None,
        ..member(name)
    };
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&stop);
    let mut told = 0u32;
    let job = Job::new(Budget::new(32 << 20))
        .stopped_by(stop)
        .telling(move |_| {
            told += 1;
            // A shape that became large has chunks without end, which is no fault: what is asked to stop stops.
            flag.store(told > 500, std::sync::atomic::Ordering::Relaxed);
        });
    match block_on(arrayfile::import(&scratch.store, "a", &path, &options, job)) {
        Ok(_) => "values",
        Err(Error::Interrupted) => "stopped",
        Err(Error::Memory { .. }) => "memory",
        Err(Error::Malformed { .. }) => "damaged",
        Err(_) => "refused",
    }
}

#[test]
fn files_that_are_cut_are_refused() {
    let scratch = Scratch::new();
    for (file, names) in FILES {
        let whole = std::fs::read(data(file)).unwrap();
        let step = (whole.len() / 40).max(1);
        for length in (0..whole.len() - 1).step_by(step) {
            for name in names {
                let path = scratch.write(file, &whole[..length]);
                let error = scratch
                    .import("a", &path, &member(name))
                    .unwrap_err()
                    .to_string();
                assert!(error.contains(file), "{file} cut to {length}: {error}");
            }
        }
        // Without its last bytes, too: the file says how long it is. A few may be there only to fill it up.
        let path = scratch.write(file, &whole[..whole.len() - 4]);
        let error = scratch
            .import("a", &path, &member(names[0]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("not written to its end"), "{file}: {error}");
    }
    assert!(array::list(&scratch.store.snapshot()).unwrap().is_empty());
}

#[test]
fn fuzzed_files_are_refused_or_read() {
    let scratch = Scratch::new();
    let files = FILES.map(|(file, names)| (std::fs::read(data(file)).unwrap(), names));
    Target::new("hdf_hostile::fuzzed_files_are_refused_or_read", 1500)
        .expects(&["values", "damaged", "refused"])
        .run(|draw: &mut Draw| {
            let (whole, names) = draw.one_of(&files);
            let mut bytes = whole.clone();
            // Structures lie close together at the front: there half of the damage is done.
            let end = if draw.one_in(2) {
                bytes.len().min(2048)
            } else {
                bytes.len()
            };
            for _ in 0..=draw.below(3) {
                let at = draw.below(end);
                let length = draw.below(8.min(bytes.len() - at)) + 1;
                draw.disturb(&mut bytes[at..at + length]);
            }
            let name = *draw.one_of(names);
            outcome(&scratch, &bytes, name)
        });
}
