//! Affinity and pages are changed in one place each: no other file of the workspace makes these calls itself.

use std::fs;
use std::path::{Path, PathBuf};

/// The calls, as `libc` names them.
const CALLS: [&str; 7] = [
    "sched_setaffinity",
    "sched_getaffinity",
    "SYS_mbind",
    "SYS_move_pages",
    "SYS_migrate_pages",
    "set_mempolicy",
    "get_mempolicy",
];

/// Who makes them, below `crates`.
const PLACES: [&str; 5] = [
    "placement/src/apply/affinity.rs",
    "memory/src/pages.rs",
    // Which cpus this process may use is read with the machine, below `placement`.
    "topology/src/live.rs",
    // Tests of these crates make the calls that they are checked against themselves.
    "lab/tests/numa/system.rs",
    "placement/tests/raw.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_other_file_binds_threads_or_moves_pages_by_itself() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = Vec::new();
    sources(crates, &mut all);
    let own = |path: &&PathBuf| PLACES.iter().any(|place| **path == crates.join(place));
    assert_eq!(all.iter().filter(own).count(), PLACES.len());
    for path in all.iter().filter(|path| !own(path)) {
        let text = fs::read_to_string(path).unwrap();
        for call in CALLS {
            assert!(
                !text.contains(call),
                "{} has '{call}'; call placement::apply or memory::pages",
                path.display()
            );
        }
    }
}
