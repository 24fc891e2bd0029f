//! NumPy's files.

pub(crate) mod header;
mod savez;
mod source;
mod write;
mod zip;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use io::{Access, Device, File};

use crate::error::{Error, Result};
use crate::job::Job;
use crate::npy::source::{NpySource, Values};
use crate::npy::zip::{Member, Packing};
use crate::source::Source;

pub(crate) use savez::NpzTarget;
pub(crate) use write::NpyTarget;

/// The array of an NPY file.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Unsupported`], [`Error::Io`].
pub(crate) fn open(path: &Path) -> Result<Box<dyn Source>> {
    let device: Arc<dyn Device> = Arc::new(File::open(path, Access::Read)?);
    let length = device.len()?;
    Ok(Box::new(NpySource::open(Values::part(device, 0, length))?))
}

/// An array of an NPZ: the member of that name, or the only one.
///
/// # Errors
/// As [`open`]; [`Error::Options`] if there is no such member, or several and no name; [`Error::Memory`].
pub(crate) fn open_member(
    path: &Path,
    name: Option<&str>,
    job: &Job<'_>,
) -> Result<Box<dyn Source>> {
    let device: Arc<dyn Device> = Arc::new(File::open(path, Access::Read)?);
    let members = zip::members(&*device)?;
    let known = || {
        let names: Vec<_> = members.iter().map(|of| format!("'{}'", of.name)).collect();
        names.join(", ")
    };
    let what = |what: String| Error::Options {
        what: format!("{}: {what}", path.display()),
    };
    let found = match (name, &members[..]) {
        (None, [one]) => one,
        (None, []) => return Err(what("has no members".to_owned())),
        (None, _) => {
            return Err(what(format!(
                "has several members: choose one of {}",
                known()
            )));
        }
        (Some(name), _) => members
            .iter()
            .find(|of| of.name == name.strip_suffix(".npy").unwrap_or(name))
            .ok_or_else(|| what(format!("has no member '{name}'; there are {}", known())))?,
    };
    let start = found.start(&*device)?;
    let name = &found.name;
    let values = match found.packing {
        Packing::Plain => Values::part(device, start, found.length),
        Packing::Deflate => {
            let all = found.bytes.saturating_add(found.length);
            let reserved = job.reserve("a member that is unpacked", all)?;
            let bytes = inflated(&*device, start, found)?;
            Values::unpacked(path, bytes, reserved)
        }
        Packing::Other => {
            let what = format!(
                "member '{name}' is compressed in a way that is not read; write it with numpy.savez_compressed, or unzip it and import the .npy"
            );
            return Err(Error::unsupported(path, what));
        }
    };
    Ok(Box::new(NpySource::open(values)?))
}

/// The bytes of a deflated member that begins at `start`.
fn inflated(device: &dyn Device, start: u64, member: &Member) -> Result<Vec<u8>> {
    let wrong = || {
        let what = format!("member '{}' cannot be unpacked; it is damaged", member.name);
        Error::malformed(device.path(), what)
    };
    let length = usize::try_from(member.length).map_err(|_| wrong())?;
    let mut packed = vec![0; length];
    device.read_at(start, &mut packed)?;
    let mut bytes = Vec::new();
    let unpacked = flate2::read::DeflateDecoder::new(&packed[..])
        .take(member.bytes.saturating_add(1))
        .read_to_end(&mut bytes);
    match unpacked {
        Ok(_) if bytes.len() as u64 == member.bytes => Ok(bytes),
        _ => Err(wrong()),
    }
}
