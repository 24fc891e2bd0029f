//! What a loss of power leaves.
//!
//! The operating system writes unsynced data back when and in the order it likes, so a sector may
//! hold its durable bytes or those after any later write to it, each sector for itself. The length
//! is metadata of its own, written back in order, so it may be that after any of the operations.

use std::collections::BTreeMap;
use std::ops::Range;

use fastrand::Rng;

use super::state::{Change, FileState, Pending, SECTOR};

/// Which of the unsynced operations reach the disk.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// None.
    Everything,
    /// All.
    Nothing,
    /// Those before a moment, and a part of the one at that moment.
    After(u64),
    /// Any, whole.
    Operations,
    /// Any sectors of any.
    Sectors,
}

/// Whether a sector may be written in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tearing {
    Never,
    /// About one in four of those written when the power went.
    Sometimes,
}

pub(super) fn image(
    files: &BTreeMap<String, FileState>,
    seed: u64,
    tearing: Tearing,
) -> BTreeMap<String, FileState> {
    let mut random = Rng::with_seed(seed ^ 0x6372_6173_6800);
    let operations: Vec<u64> = {
        let pending = files.values().flat_map(|file| &file.pending);
        let mut numbers: Vec<u64> = pending.map(|p| p.operation).collect();
        numbers.sort_unstable();
        numbers
    };
    // Where all or nothing is lost there is no sector to tear.
    let kind = match tearing {
        Tearing::Never => seed % 5,
        Tearing::Sometimes => 2 + seed % 3,
    };
    let loss = match kind {
        0 => Loss::Everything,
        1 => Loss::Nothing,
        2 => match operations.as_slice() {
            [] => Loss::Nothing,
            some => Loss::After(some[random.usize(..some.len())]),
        },
        3 => Loss::Operations,
        _ => Loss::Sectors,
    };
    files
        .iter()
        .map(|(name, file)| {
            let bytes = left_of(file, loss, tearing, &mut random);
            (name.clone(), FileState::holding(bytes))
        })
        .collect()
}

/// How many of the pending operations have their change of length on the disk.
fn lengths(pending: &[Pending], loss: Loss, random: &mut Rng) -> usize {
    match loss {
        Loss::Everything => 0,
        Loss::Nothing => pending.len(),
        Loss::After(moment) => pending.partition_point(|p| p.operation <= moment),
        Loss::Operations | Loss::Sectors => random.usize(..=pending.len()),
    }
}

fn left_of(file: &FileState, loss: Loss, tearing: Tearing, random: &mut Rng) -> Vec<u8> {
    let known = lengths(&file.pending, loss, random);
    // What memory held, operation by operation; sectors are taken from it when they are kept, so
    // that a sector never mixes a later write with the lack of an earlier one.
    let mut memory = file.durable.clone();
    let mut image = file.durable.clone();
    for (index, pending) in file.pending.iter().enumerate() {
        pending.change.apply(&mut memory);
        match &pending.change {
            Change::Resize { bytes } => {
                if index < known {
                    image.resize(*bytes, 0);
                }
            }
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if index < known && image.len() < end {
                    image.resize(end, 0);
                }
                let whole = random.bool();
                // What was written before the moment is on the disk whole.
                let settled = matches!(loss, Loss::After(moment) if pending.operation < moment);
                for sector in offset / SECTOR..end.div_ceil(SECTOR) {
                    let kept = match loss {
                        Loss::Everything => false,
                        Loss::Nothing => true,
                        Loss::After(moment) if pending.operation == moment => random.bool(),
                        Loss::After(moment) => pending.operation < moment,
                        Loss::Operations => whole,
                        Loss::Sectors => random.bool(),
                    };
                    let torn = tearing == Tearing::Sometimes && !settled && random.u8(..4) == 0;
                    if kept {
                        let bytes = sector * SECTOR..(sector + 1) * SECTOR;
                        keep(
                            &mut image,
                            &memory,
                            if torn { part(bytes, random) } else { bytes },
                        );
                    }
                }
            }
        }
    }
    image
}

/// The bytes of a torn sector that are written: those up to a place, or from it on.
fn part(sector: Range<usize>, random: &mut Rng) -> Range<usize> {
    let place = random.usize(sector.clone());
    if random.bool() {
        sector.start..place
    } else {
        place..sector.end
    }
}

/// Copies bytes, as far as both have them.
fn keep(image: &mut [u8], memory: &[u8], bytes: Range<usize>) {
    let end = bytes.end.min(image.len()).min(memory.len());
    if bytes.start < end {
        image[bytes.start..end].copy_from_slice(&memory[bytes.start..end]);
    }
}
