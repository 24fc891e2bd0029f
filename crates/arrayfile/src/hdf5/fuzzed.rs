//! Hostile bytes behind the checksums.

use std::path::Path;

use array::Region;
use fuzz::{Draw, Target};
use memory::Budget;

use crate::error::{Error, Result};
use crate::hdf5;
use crate::hdf5::bytes::tests::TRUSTING;
use crate::job::Job;

/// The most cells of a variable that are read.
const MOST: u64 = 1 << 16;

/// Reads something of every variable of a file.
fn read(path: &Path) -> Result<()> {
    let mut container = hdf5::open(path)?;
    let job = Job::new(Budget::new(32 << 20));
    let mut said = Ok(());
    for at in 0..container.variables().len() {
        let variable = container.variables()[at].clone();
        let Ok(of) = variable.data_type else { continue };
        if let Err(error) = container.prepare(at, &job, 1 << 20) {
            said = Err(error);
            continue;
        }
        let mut left = MOST;
        let ranges = variable.extents.iter().map(|extent| {
            let length = extent.length.min(left);
            left /= length.max(1);
            (extent.length - length, extent.length)
        });
        let region = Region::new(ranges);
        let cells = region.cells("a part")?;
        let mut into = vec![0; cells * of.width()];
        said = said.and(container.read(at, &region, &mut into));
        drop(container.stored(at));
    }
    said
}

#[test]
fn structures() {
    TRUSTING.set(true);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hdf");
    let names = [
        "types.h5",
        "earliest.h5",
        "latest.h5",
        "v110.h5",
        "scales.h5",
        "weather4.nc",
        "groups.nc",
    ];
    let files = names.map(|name| std::fs::read(data.join(name)).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.h5");
    let words = &["values", "damaged", "refused"];
    Target::new("hdf5::fuzzed::structures", 3000)
        .expects(words)
        .run(|draw: &mut Draw| {
            TRUSTING.set(true);
            let mut bytes = draw.one_of(&files).clone();
            for _ in 0..=draw.below(4) {
                let at = draw.below(bytes.len());
                let length = draw.below(8.min(bytes.len() - at)) + 1;
                draw.disturb(&mut bytes[at..at + length]);
            }
            std::fs::write(&path, bytes).unwrap();
            match read(&path) {
                Ok(()) => "values",
                Err(Error::Malformed { .. }) => "damaged",
                Err(Error::Memory { .. }) => "memory",
                Err(_) => "refused",
            }
        });
}
