//! NumPy's files.

pub(crate) mod header;
mod source;
mod write;
mod zip;

use std::path::Path;
use std::sync::Arc;

use io::{Access, Device, File};

use crate::error::{Error, Result};
use crate::npy::source::NpySource;
use crate::source::Source;

pub(crate) use write::NpyTarget;

/// The array of an NPY file.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Unsupported`], [`Error::Io`].
pub(crate) fn open(path: &Path) -> Result<Box<dyn Source>> {
    let device: Arc<dyn Device> = Arc::new(File::open(path, Access::Read)?);
    let length = device.len()?;
    Ok(Box::new(NpySource::open(device, 0, length)?))
}

/// An array of an NPZ: the member of that name, or the only one.
///
/// # Errors
/// As [`open`]; [`Error::Options`] if there is no such member, or several and no name.
pub(crate) fn open_member(path: &Path, name: Option<&str>) -> Result<Box<dyn Source>> {
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
    if !found.plain {
        let name = &found.name;
        let what = format!(
            "member '{name}' is compressed; write it with numpy.savez, or unzip it and import the .npy"
        );
        return Err(Error::unsupported(path, what));
    }
    let start = found.start(&*device)?;
    Ok(Box::new(NpySource::open(device, start, found.length)?))
}
