//! Writing an NPZ, as `numpy.savez` does: a zip of NPY files that are not packed. Lengths are those of large zips always, so
//! that an array may have any.

use std::path::Path;

use array::{DataType, Region};
use flate2::Crc;
use io::{Device, File};

use crate::aside::Aside;
use crate::copy::each_run;
use crate::error::Result;
use crate::npy::header::NpyHeader;
use crate::target::Target;

/// Bytes that are summed at a time.
const AT_A_TIME: usize = 1 << 20;
/// The version of the format that large zips need.
const VERSION: u16 = 45;
/// The first day that a zip can name.
const DAY: u16 = 1 << 5 | 1;
/// What stands for a number that does not fit 32 bits.
const LARGE: u32 = u32::MAX;
/// Bytes before the name in the header of a member.
const LOCAL: u64 = 30;
/// Bytes of both lengths, as a large zip has them.
const LENGTHS: u64 = 20;

/// An array that becomes a member.
#[derive(Debug)]
struct Member {
    /// With `.npy`.
    name: String,
    width: usize,
    /// Where its header in the zip begins.
    at: u64,
    /// Where its values begin.
    values: u64,
    /// Bytes of the NPY file.
    bytes: u64,
}

impl Member {
    /// Where the NPY file begins.
    fn start(&self) -> u64 {
        self.at + LOCAL + self.name.len() as u64 + LENGTHS
    }
}

/// An NPZ that is being written: a member for each attribute, in row-major order.
#[derive(Debug)]
pub(crate) struct NpzTarget {
    file: File,
    aside: Aside,
    shape: Vec<u64>,
    members: Vec<Member>,
    end: u64,
}

impl NpzTarget {
    /// Begins the file, in its full length but for the list of members.
    ///
    /// # Errors
    /// [`Error::Exists`](crate::Error::Exists), [`Error::Io`](crate::Error::Io): a full disk, for one.
    pub fn create(
        path: &Path,
        attributes: &[(&str, DataType)],
        shape: &[u64],
    ) -> Result<NpzTarget> {
        let mut aside = Aside::new(path)?;
        let file = File::create(aside.path())?;
        aside.made();
        let (mut at, mut members) = (0, Vec::new());
        for &(name, data_type) in attributes {
            let header = NpyHeader::encode(data_type, shape);
            let width = data_type.width();
            let values = shape.iter().product::<u64>() * width as u64;
            let mut member = Member {
                name: format!("{name}.npy"),
                width,
                at,
                values: 0,
                bytes: header.len() as u64 + values,
            };
            file.write_at(member.start(), &header)?;
            member.values = member.start() + header.len() as u64;
            file.allocate(member.values, values)?;
            at = member.start() + member.bytes;
            members.push(member);
        }
        Ok(NpzTarget {
            file,
            aside,
            shape: shape.to_vec(),
            members,
            end: at,
        })
    }

    /// The checksum of a member, which is read again: its cells came in any order.
    fn sum(&self, member: &Member) -> Result<u32> {
        let mut sum = Crc::new();
        let mut bytes = vec![0; AT_A_TIME];
        let (mut at, end) = (member.start(), member.start() + member.bytes);
        while at < end {
            let length = (end - at).min(AT_A_TIME as u64);
            let part = &mut bytes[..length as usize];
            self.file.read_at(at, part)?;
            sum.update(part);
            at += length;
        }
        Ok(sum.sum())
    }
}

/// What the header of a member and the list of members say alike: from the version on to the length of what follows the name.
fn common(member: &Member, sum: u32, extra: u64) -> Vec<u8> {
    // Names are UTF-8.
    let flags: u16 = 1 << 11;
    let mut bytes = Vec::new();
    for short in [VERSION, flags, 0, 0, DAY] {
        bytes.extend(short.to_le_bytes());
    }
    for long in [sum, LARGE, LARGE] {
        bytes.extend(long.to_le_bytes());
    }
    bytes.extend((member.name.len() as u16).to_le_bytes());
    bytes.extend((extra as u16).to_le_bytes());
    bytes
}

/// Numbers of 64 bits as what follows the name of a member.
fn large(numbers: &[u64]) -> Vec<u8> {
    let mut bytes = 1_u16.to_le_bytes().to_vec();
    bytes.extend((8 * numbers.len() as u16).to_le_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// The entry of a member in the list of members.
fn entry(member: &Member, sum: u32) -> Vec<u8> {
    let extra = large(&[member.bytes, member.bytes, member.at]);
    let mut bytes = b"PK\x01\x02".to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(common(member, sum, extra.len() as u64));
    // No comment, the first disk, no attributes.
    bytes.extend([0; 10]);
    bytes.extend(LARGE.to_le_bytes());
    bytes.extend(member.name.as_bytes());
    bytes.extend(extra);
    bytes
}

/// The end of a zip whose list of members has so many entries, so many bytes, and lies there.
fn end(entries: u64, length: u64, start: u64) -> Vec<u8> {
    let mut bytes = b"PK\x06\x06".to_vec();
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([VERSION.to_le_bytes(), VERSION.to_le_bytes()].concat());
    bytes.extend([0; 8]);
    for number in [entries, entries, length, start] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"PK\x06\x07");
    bytes.extend([0; 4]);
    bytes.extend((start + length).to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(b"PK\x05\x06");
    bytes.extend([0; 4]);
    let few = u16::try_from(entries).unwrap_or(u16::MAX).to_le_bytes();
    bytes.extend([few, few].concat());
    bytes.extend([LARGE.to_le_bytes(), LARGE.to_le_bytes()].concat());
    bytes.extend([0; 2]);
    bytes
}

impl Target for NpzTarget {
    fn write(&mut self, field: usize, region: &Region, values: &[u8]) -> Result<()> {
        let Some(member) = self.members.get(field) else {
            return Ok(());
        };
        let mut rest = values;
        each_run(&self.shape, region, &mut |first, cells| {
            let (run, after) = rest.split_at(cells as usize * member.width);
            rest = after;
            let at = member.values + first * member.width as u64;
            Ok(self.file.write_at(at, run)?)
        })
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        let mut list = Vec::new();
        for member in &self.members {
            let sum = self.sum(member)?;
            let mut header = b"PK\x03\x04".to_vec();
            header.extend(common(member, sum, LENGTHS));
            header.extend(member.name.as_bytes());
            header.extend(large(&[member.bytes, member.bytes]));
            self.file.write_at(member.at, &header)?;
            list.extend(entry(member, sum));
        }
        let length = list.len() as u64;
        list.extend(end(self.members.len() as u64, length, self.end));
        self.file.write_at(self.end, &list)?;
        self.file.sync()?;
        let bytes = self.file.len()?;
        self.aside.publish()?;
        Ok(bytes)
    }
}
