//! What may be said about an import or export.

use std::path::Path;

use array::{Compression, Scalar};

use crate::error::{Error, Result};

/// The formats of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A file of NumPy with one array.
    Npy,
    /// A zip of such files.
    Npz,
    /// A folder in the format Zarr 2.
    Zarr2,
    /// A folder in the format Zarr 3.
    Zarr3,
    /// An HDF5 file; one that is read may be of NetCDF-4.
    Hdf5,
    /// An HDF5 file that is written as NetCDF-4 has it.
    NetCdf4,
    /// A file of NetCDF before HDF5.
    NetCdf3,
}

impl Format {
    /// Its name: `npy`, `npz`, `zarr2`, `zarr3`, `hdf5`, `netcdf4`, `netcdf3`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::Zarr2 => "zarr2",
            Format::Zarr3 => "zarr3",
            Format::Hdf5 => "hdf5",
            Format::NetCdf4 => "netcdf4",
            Format::NetCdf3 => "netcdf3",
        }
    }

    /// Whether a file may have several arrays, of which one is chosen by its name.
    pub(crate) fn has_members(self) -> bool {
        matches!(self, Format::Npz | Format::Zarr2 | Format::Zarr3) || self.has_variables()
    }

    /// Whether a file has variables by name, with dimensions and coordinates.
    pub(crate) fn has_variables(self) -> bool {
        matches!(self, Format::Hdf5 | Format::NetCdf4 | Format::NetCdf3)
    }

    /// Whether `path` is a file of arrays: by its content, as [`of_content`](Format::of_content) has it; or by its name,
    /// whatever is in it, so that a damaged one is none of another kind.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// assert!(arrayfile::Format::holds_arrays(Path::new("absent.npy")));
    /// assert!(!arrayfile::Format::holds_arrays(Path::new("absent.csv")));
    /// ```
    pub fn holds_arrays(path: &Path) -> bool {
        let extension = path.extension().and_then(|of| of.to_str()).unwrap_or("");
        let named = [
            "npy", "npz", "zarr", "nc", "nc4", "cdf", "h5", "he5", "hdf5",
        ];
        named.iter().any(|of| extension.eq_ignore_ascii_case(of))
            || Format::of_content(path).is_ok()
    }

    /// What `path` has, by its content: a folder by its metadata, a file by its first bytes.
    ///
    /// # Errors
    /// [`Error::System`], [`Error::Io`] if it cannot be read; [`Error::Unsupported`] if it is none of the formats.
    pub fn of_content(path: &Path) -> Result<Format> {
        let metadata = std::fs::metadata(path).map_err(Error::system(path, "read"))?;
        if metadata.is_dir() {
            let has = |name: &str| path.join(name).is_file();
            return if has("zarr.json") {
                Ok(Format::Zarr3)
            } else if has(".zarray") || has(".zgroup") {
                Ok(Format::Zarr2)
            } else {
                Err(Error::unsupported(
                    path,
                    "a folder without zarr.json or .zarray is no Zarr array",
                ))
            };
        }
        match first_bytes(path) {
            Ok(first) if &first == b"\x93NUMPY" => Ok(Format::Npy),
            Ok(first) if first.starts_with(b"PK") => Ok(Format::Npz),
            Ok(first) if first.starts_with(b"\x89HDF") => Ok(Format::Hdf5),
            Ok(first) if first.starts_with(b"CDF") => Ok(Format::NetCdf3),
            // Something else may lie before the file, at least 512 bytes of it.
            Ok(_) if begins_later(path) => Ok(Format::Hdf5),
            Ok(_) | Err(io::Error::ShortRead { .. }) => Err(Error::unsupported(
                path,
                "is none of the files that are read: NPY, NPZ, HDF5, NetCDF, and folders in the format Zarr 2 or 3",
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses the name of a compression that is not written, for a file of whatever format.
    ///
    /// # Errors
    /// [`Error::Options`].
    pub(crate) fn refuse_compressed(path: &Path) -> Result<()> {
        const COMPRESSIONS: [&str; 14] = [
            "7z", "br", "bz2", "gz", "gzip", "lz4", "lzma", "snappy", "sz", "xz", "z", "zip",
            "zst", "zstd",
        ];
        let extension = path.extension().and_then(|of| of.to_str()).unwrap_or("");
        let is = |of: &&str| extension.eq_ignore_ascii_case(of);
        if COMPRESSIONS.iter().any(is) {
            return Err(Error::Options {
                what: format!(
                    "{}: a file of arrays is not compressed as a whole; leave .{extension} out, and pack its chunks instead",
                    path.display()
                ),
            });
        }
        Ok(())
    }

    /// What a file that is to be written becomes, by its name: `.npy`; `.npz`; `.h5`, `.hdf5` or `.he5`; `.nc` or `.nc4`, which is
    /// NetCDF-4; or `.zarr`, which is Zarr 3.
    ///
    /// # Errors
    /// [`Error::Options`] for another name.
    pub fn of_name(path: &Path) -> Result<Format> {
        let extension = path.extension().and_then(|of| of.to_str()).unwrap_or("");
        match extension.to_ascii_lowercase().as_str() {
            "npy" => Ok(Format::Npy),
            "npz" => Ok(Format::Npz),
            "zarr" => Ok(Format::Zarr3),
            "h5" | "hdf5" | "he5" => Ok(Format::Hdf5),
            "nc" | "nc4" => Ok(Format::NetCdf4),
            _ => Err(Error::Options {
                what: format!(
                    "{}: the name does not say the format; end it with .npy, .npz, .h5, .nc or .zarr, or give the format",
                    path.display()
                ),
            }),
        }
    }
}

fn first_bytes(path: &Path) -> std::result::Result<[u8; 6], io::Error> {
    let file = io::File::open(path, io::Access::Read)?;
    let mut first = [0; 6];
    io::Device::read_at(&file, 0, &mut first)?;
    Ok(first)
}

/// Whether an HDF5 file begins at 512 bytes, or a power of two times that.
fn begins_later(path: &Path) -> bool {
    let Ok(file) = io::File::open(path, io::Access::Read) else {
        return false;
    };
    let mut at = 512;
    let mut first = [0; 8];
    while io::Device::read_at(&file, at, &mut first).is_ok() {
        if &first == b"\x89HDF\r\n\x1a\n" {
            return true;
        }
        at *= 2;
    }
    false
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Which numbers that count from a moment (`days since 2000-01-01`) are times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Times {
    /// Those of which the file also says the `calendar`, as xarray writes it.
    #[default]
    Said,
    /// All; without a calendar it is the standard one, by the CF conventions.
    Always,
    /// None.
    Never,
}

/// What may be said about an import. The default lets the file speak.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Of a file with several arrays, which one: the name of a member of an NPZ; or of a variable of an HDF5 or NetCDF,
    /// with its groups before it if the name alone is not clear (`surface/temperature`), or several, separated by commas,
    /// which have the same dimensions and become attributes.
    pub member: Option<String>,
    /// The name of the attribute. Without: that of the variable, or `value` where the file has no names.
    pub attribute: Option<String>,
    /// The names of the dimensions, the outermost first. Without: those of the file, else `dim_0`, `dim_1` and so on.
    pub dimensions: Option<Vec<String>>,
    /// The cells of a chunk along each dimension. Without: the chunks of the file if they have 64 KiB to 64 MiB, else by
    /// the rule of [`array::chunk_lengths`].
    pub chunk: Option<Vec<u64>>,
    /// How the chunks are stored.
    pub compression: Compression,
    /// Put the array in the place of one that has its name.
    pub replace: bool,
    /// Which numbers become times.
    pub times: Times,
}

/// How the chunks of an exported array are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Packing {
    /// Not at all.
    None,
    /// With zstd at this level, 1 to 22.
    Zstd(i32),
    /// With gzip at this level, 0 to 9.
    Gzip(u32),
    /// As the format does where nothing is said: zstd at level 3 for Zarr, not at all for others.
    #[default]
    Usual,
}

/// What may be said about an export.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// Zarr: write a group, as xarray reads it: an array for each attribute, and one for the coordinates of each dimension
    /// that has some.
    pub group: bool,
    /// The format; without, the one that the name says.
    pub format: Option<Format>,
    /// Which attribute, if there are several; without, an NPZ, HDF5 or NetCDF has all of them.
    pub attribute: Option<String>,
    /// What is written in place of nulls and of cells that do not exist. Without: NaN for floats; for other types in an
    /// HDF5 or NetCDF what the libraries of NetCDF take, else an error.
    pub null: Option<Scalar>,
    /// How chunks are compressed, in Zarr, HDF5 and NetCDF-4; the latter two have gzip, after a shuffle of bytes.
    pub packing: Packing,
}
