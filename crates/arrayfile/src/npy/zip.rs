//! The members of a zip, as `numpy.savez` and `numpy.savez_compressed` write them.

use io::Device;

use crate::error::{Error, Result};

/// Bytes of the end record, without its comment.
const END: usize = 22;
/// Bytes of the end record's locator in large zips.
const LOCATOR: u64 = 20;
/// The most bytes of a list of members that are read.
const MOST_LIST: u64 = 16 << 20;

/// A member of a zip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name, without `.npy`.
    pub name: String,
    /// How it is stored.
    pub packing: Packing,
    /// Its bytes.
    pub bytes: u64,
    /// Where its header lies.
    at: u64,
    /// Its bytes as they are stored.
    pub length: u64,
}

/// How a member is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// As it is.
    Plain,
    /// Deflated.
    Deflate,
    /// In a way that is not read.
    Other,
}

fn u16_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u16_at(bytes, at) | u16_at(bytes, at + 2) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u32_at(bytes, at) | u32_at(bytes, at + 4) << 32
}

fn damaged(device: &dyn Device, what: &str) -> Error {
    Error::malformed(
        device.path(),
        format!("{what}; it is no zip that was written to its end"),
    )
}

/// The members of a zip, in its order.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Io`].
pub(super) fn members(device: &dyn Device) -> Result<Vec<Member>> {
    let (start, length) = list(device)?;
    let mut bytes = vec![0; length as usize];
    device.read_at(start, &mut bytes)?;
    let mut members = Vec::new();
    let mut rest = &bytes[..];
    while rest.len() >= 46 && rest.starts_with(b"PK\x01\x02") {
        let lengths = [28, 30, 32].map(|at| u16_at(rest, at) as usize);
        let whole = 46 + lengths.iter().sum::<usize>();
        if rest.len() < whole {
            break;
        }
        let name = String::from_utf8_lossy(&rest[46..46 + lengths[0]]).into_owned();
        let extra = &rest[46 + lengths[0]..][..lengths[1]];
        let sizes = [u32_at(rest, 24), u32_at(rest, 20), u32_at(rest, 42)];
        let Some([real, length, at]) = large(sizes, extra) else {
            return Err(damaged(device, "a member lacks its length"));
        };
        members.push(Member {
            name: name.strip_suffix(".npy").unwrap_or(&name).to_owned(),
            packing: match u16_at(rest, 10) {
                0 if real == length => Packing::Plain,
                8 => Packing::Deflate,
                _ => Packing::Other,
            },
            bytes: real,
            at,
            length,
        });
        rest = &rest[whole..];
    }
    Ok(members)
}

/// Where the list of members lies, and its length.
fn list(device: &dyn Device) -> Result<(u64, u64)> {
    let all = device.len()?;
    let tail = all.min(END as u64 + u64::from(u16::MAX));
    let mut bytes = vec![0; tail as usize];
    device.read_at(all - tail, &mut bytes)?;
    let at = (0..(bytes.len() + 1).saturating_sub(END))
        .rev()
        .find(|&at| bytes[at..].starts_with(b"PK\x05\x06"));
    let at = at.ok_or_else(|| damaged(device, "its list of members is missing"))?;
    let (mut length, mut start) = (u32_at(&bytes, at + 12), u32_at(&bytes, at + 16));
    let end = all - tail + at as u64;
    if (start == u64::from(u32::MAX) || length == u64::from(u32::MAX)) && end >= LOCATOR {
        let mut locator = [0; LOCATOR as usize];
        device.read_at(end - LOCATOR, &mut locator)?;
        let mut record = [0; 56];
        let at = u64_at(&locator, 8);
        if !locator.starts_with(b"PK\x06\x07") || all < 56 || at > all - 56 {
            return Err(damaged(device, "its list of members is missing"));
        }
        device.read_at(at, &mut record)?;
        (length, start) = (u64_at(&record, 40), u64_at(&record, 48));
    }
    if start.checked_add(length).is_none_or(|end| end > all) || length > MOST_LIST {
        return Err(damaged(device, "its list of members lies elsewhere"));
    }
    Ok((start, length))
}

/// Lengths and position of a member; where one does not fit 32 bits it stands in the extra field.
fn large(mut sizes: [u64; 3], mut extra: &[u8]) -> Option<[u64; 3]> {
    while extra.len() >= 4 {
        let (tag, length) = (u16_at(extra, 0), u16_at(extra, 2) as usize);
        let mut field = extra[4..].get(..length)?;
        if tag == 1 {
            for size in sizes
                .iter_mut()
                .filter(|size| **size == u64::from(u32::MAX))
            {
                *size = u64_at(field.get(..8)?, 0);
                field = &field[8..];
            }
        }
        extra = &extra[4 + length..];
    }
    Some(sizes)
}

impl Member {
    /// Where its bytes lie in the zip.
    ///
    /// # Errors
    /// [`Error::Malformed`] if not within it; [`Error::Io`].
    pub fn start(&self, device: &dyn Device) -> Result<u64> {
        let all = device.len()?;
        let wrong = || damaged(device, &format!("member '{}' lies elsewhere", self.name));
        let mut local = [0; 30];
        if all < 30 || self.at > all - 30 {
            return Err(wrong());
        }
        device.read_at(self.at, &mut local)?;
        let start = self.at + 30 + u16_at(&local, 26) + u16_at(&local, 28);
        let fits = start.checked_add(self.length).is_some_and(|end| end <= all);
        if !fits || !local.starts_with(b"PK\x03\x04") {
            return Err(wrong());
        }
        Ok(start)
    }
}
