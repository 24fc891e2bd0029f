//! The identity and the roots of a data file, and which root to start from.

use io::Device;

use crate::error::{Error, Region, Result};
use crate::format::disk::{read, read_block};
use crate::format::structures::{
    BLOCK, Bad, FIRST_EXTENT, FORMAT_VERSION, Identity, MAGIC, ROOT_OFFSETS, Root,
};
use crate::log::Found;

/// The identity of a data file.
pub(crate) fn identity(data: &dyn Device) -> Result<Identity> {
    let path = data.path().to_path_buf();
    let length = data.len()?;
    let mut head = vec![0; MAGIC.len().min(usize::try_from(length).unwrap_or(BLOCK))];
    read(data, 0, &mut head)?;
    if length < FIRST_EXTENT {
        if head.is_empty() || (length < BLOCK as u64 && !MAGIC.starts_with(&head)) {
            return Err(Error::NotAtoll { path });
        }
        if MAGIC.starts_with(&head) {
            return Err(Error::Truncated {
                path,
                needed: FIRST_EXTENT,
                found: length,
            });
        }
    }
    read_block(data, 0, &Identity::decode)?.map_err(|bad| match bad {
        Bad::Magic => Error::NotAtoll { path },
        Bad::Newer(found) => Error::NewerFormat {
            path,
            found,
            supported: FORMAT_VERSION,
        },
        bad => Error::damaged(data.path(), Region::Identity, 0, bad.to_string()),
    })
}

/// Reads one root slot.
pub(crate) fn root(
    data: &dyn Device,
    slot: u8,
    id: &[u8; 16],
) -> Result<std::result::Result<Root, Bad>> {
    let offset = ROOT_OFFSETS[usize::from(slot)];
    read_block(data, offset, &|block| Root::decode(block, slot, id))
}

/// The sequence of the newest valid root, if there is one.
pub(crate) fn newest_sequence(data: &dyn Device, id: &[u8; 16]) -> Result<Option<u64>> {
    let (first, second) = (root(data, 0, id)?, root(data, 1, id)?);
    let valid = [first, second].into_iter().flatten();
    Ok(valid.map(|root| root.sequence).max())
}

/// The newest root, and whether it is the only valid one.
///
/// Where a slot is invalid, the other root serves only if it is sure to lead to the last commit:
/// the log's header says from which version on its records are complete. A crash leaves at most
/// one slot torn, of root or log header, never one of each.
pub(super) fn choose(
    data: &dyn Device,
    roots: &[std::result::Result<Root, Bad>; 2],
    found: &Found,
) -> Result<(Root, bool)> {
    let damaged = |slot: u8, detail: String| {
        Error::damaged(
            data.path(),
            Region::Root(slot),
            ROOT_OFFSETS[usize::from(slot)],
            detail,
        )
    };
    let (root, bad) = match roots {
        [Ok(first), Ok(second)] => (
            if first.sequence > second.sequence {
                *first
            } else {
                *second
            },
            None,
        ),
        [Ok(root), Err(bad)] | [Err(bad), Ok(root)] => (*root, Some(bad)),
        [Err(bad), Err(other)] => {
            return Err(damaged(
                0,
                format!("{bad}; the other root slot is no help: {other}"),
            ));
        }
    };
    let header = found.log.header();
    if let Some(bad) = bad {
        let torn = 1 - root.slot();
        if found.bad.iter().any(Option::is_some) {
            let detail = format!("{bad}; a log header slot is damaged too");
            return Err(damaged(torn, detail));
        }
        if header.base > root.version {
            let detail = format!(
                "{bad}; the other root is of version {} and the log starts after version {}",
                root.version, header.base
            );
            return Err(damaged(torn, detail));
        }
    }
    if header.counter < root.log_counter {
        let slot = (root.log_counter % 2) as u8;
        let why = match &found.bad[usize::from(slot)] {
            Some(bad) => bad.to_string(),
            None => format!("restart {} is missing", root.log_counter),
        };
        let offset = u64::from(slot) * BLOCK as u64;
        let path = found.log.device().path();
        return Err(Error::damaged(path, Region::LogHeader(slot), offset, why));
    }
    if header.base > root.version {
        let newest = root.slot();
        let detail = format!(
            "the newest root is of version {}, the log starts after version {}",
            root.version, header.base
        );
        return Err(damaged(newest, detail));
    }
    Ok((root, bad.is_some()))
}
