//! Loss of power on a disk that tears sectors.

use std::collections::BTreeSet;

use io::fault::Disk;

use crate::crash::{recovers, work};
use crate::model::small;

#[test]
fn a_sector_may_be_torn_at_every_operation() {
    let seed = 8;
    let whole = Disk::new(seed);
    let history = work(&whole, &small(), seed, 24);
    assert!(history.acknowledged.unwrap() > 8, "the workload commits");
    let (mut images, mut torn) = (BTreeSet::new(), 0);
    for operation in 0..whole.operations() {
        let disk = Disk::new(seed);
        disk.stop_after(operation);
        let history = work(&disk, &small(), seed, 24);
        for image in 0..6 {
            let seed = operation * 6 * 31 + image;
            let left = disk.crash_torn(seed);
            let bytes = (left.bytes("data"), left.bytes("log"));
            torn += usize::from(!has_whole_sectors(&disk, &left));
            images.insert(bytes);
            let of = format!("operation {operation}, image {image}");
            recovers(&left, &history, &of);
        }
    }
    assert!(images.len() > 300, "{} distinct images", images.len());
    assert!(torn > 50, "{torn} images with a torn sector");
}

/// Whether each sector is all as it was when last synced, or all as it was when the power went.
/// Sectors written twice in between may be neither, and count as torn; there are few.
fn has_whole_sectors(disk: &Disk, left: &Disk) -> bool {
    ["data", "log"].into_iter().all(|name| {
        let [old, new] = [0, 1].map(|seed| disk.crash(seed).bytes(name));
        let sector = |bytes: &[u8], at: usize| {
            let end = (at + 512).min(bytes.len());
            let mut sector = bytes.get(at..end).unwrap_or_default().to_vec();
            sector.resize(512, 0);
            sector
        };
        let left = left.bytes(name);
        (0..left.len()).step_by(512).all(|at| {
            let left = sector(&left, at);
            left == sector(&old, at) || left == sector(&new, at)
        })
    })
}
