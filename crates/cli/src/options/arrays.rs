//! What is said of arrays that come from files or go into them.

use array::{Compression, Scalar};
use arrayfile::{Format, Packing, Times};
#[cfg(feature = "sql")]
use clap::Args;
use clap::ValueEnum;

/// What `atoll import` may be told of an array.
#[cfg(feature = "sql")]
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Arrays: NPY, NPZ, Zarr, HDF5 and NetCDF")]
pub struct ArrayOptions {
    /// The cells of a chunk along each dimension, such as 250x250x500 [default: those of the file, else chunks of up to 4 MiB]
    #[arg(long, value_name = "CELLS", value_parser = parse_chunk)]
    pub chunk: Option<Chunk>,
    /// The names of the dimensions, the outermost first, such as x,y,z [default: those of the file, else dim_0, dim_1, ...]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub dims: Option<Vec<String>>,
    /// The name of the attribute [default: that of the variable, else value]
    #[arg(long, value_name = "NAME")]
    pub attribute: Option<String>,
    /// Which array of an NPZ, or which variable of an HDF5, NetCDF or group of Zarr, such as surface/heat; of the latter also
    /// several that have the same dimensions, such as u10,v10 [default: all data variables]
    #[arg(long, value_name = "NAME")]
    pub member: Option<String>,
    /// How the chunks are stored [default: none]
    #[arg(long, value_enum, value_name = "HOW")]
    pub compress: Option<Compress>,
    /// Which numbers in units since a moment, such as hours since 1900-01-01, become timestamps [default: said]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub times: Option<WhichTimes>,
}

#[cfg(feature = "sql")]
impl ArrayOptions {
    /// The first option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            (self.chunk.is_some(), "--chunk"),
            (self.dims.is_some(), "--dims"),
            (self.attribute.is_some(), "--attribute"),
            (self.member.is_some(), "--member"),
            (self.compress.is_some(), "--compress"),
            (self.times.is_some(), "--times"),
        ];
        all.into_iter()
            .find(|(given, _)| *given)
            .map(|(_, name)| name)
    }
}

/// The cells of a chunk along each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk(pub Vec<u64>);

/// Reads `250x250x500` or `250,250,500`.
pub fn parse_chunk(text: &str) -> Result<Chunk, String> {
    let lengths = text
        .split(['x', ','])
        .map(|length| length.trim().parse().ok());
    match lengths.collect::<Option<Vec<u64>>>() {
        Some(lengths) => Ok(Chunk(lengths)),
        None => Err("give the cells along each dimension, such as 250x250x500".to_owned()),
    }
}

/// How the chunks of an array are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compress {
    /// As they are
    None,
    /// With LZ4: quick
    Lz4,
    /// With zstd at level 3: smaller
    Zstd,
}

impl From<Compress> for Compression {
    fn from(compress: Compress) -> Compression {
        match compress {
            Compress::None => Compression::None,
            Compress::Lz4 => Compression::Lz4,
            Compress::Zstd => Compression::Zstd(3),
        }
    }
}

/// Which numbers in units since a moment become timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhichTimes {
    /// Those of which the file says the calendar, too, as xarray does
    Said,
    /// All, also of files that say no calendar
    Always,
    /// None: they stay numbers
    Never,
}

impl From<WhichTimes> for Times {
    fn from(which: WhichTimes) -> Times {
        match which {
            WhichTimes::Said => Times::Said,
            WhichTimes::Always => Times::Always,
            WhichTimes::Never => Times::Never,
        }
    }
}

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// A file of NumPy
    Npy,
    /// A zip of such files, one for each attribute
    Npz,
    /// A folder in the format Zarr 2
    Zarr2,
    /// A folder in the format Zarr 3
    Zarr3,
    /// An HDF5 file
    Hdf5,
    /// A NetCDF-4 file, which is one of HDF5
    Netcdf,
    /// A NetCDF file of before HDF5: version 2, or 5 where its types or lengths need it
    Netcdf3,
}

impl From<FileFormat> for Format {
    fn from(format: FileFormat) -> Format {
        match format {
            FileFormat::Npy => Format::Npy,
            FileFormat::Npz => Format::Npz,
            FileFormat::Zarr2 => Format::Zarr2,
            FileFormat::Zarr3 => Format::Zarr3,
            FileFormat::Hdf5 => Format::Hdf5,
            FileFormat::Netcdf => Format::NetCdf4,
            FileFormat::Netcdf3 => Format::NetCdf3,
        }
    }
}

/// How the chunks of a file are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pack {
    /// Not at all
    None,
    /// With zstd at level 3: Zarr
    Zstd,
    /// With gzip at level 5: Zarr, HDF5, NetCDF-4
    Gzip,
}

impl From<Pack> for Packing {
    fn from(pack: Pack) -> Packing {
        match pack {
            Pack::None => Packing::None,
            Pack::Zstd => Packing::Zstd(3),
            Pack::Gzip => Packing::Gzip(5),
        }
    }
}

/// Reads a number, or true or false.
pub fn parse_scalar(text: &str) -> Result<Scalar, String> {
    if let Ok(value) = text.parse::<bool>() {
        return Ok(Scalar::Bool(value));
    }
    if let Ok(value) = text.parse::<i128>() {
        return Ok(Scalar::Int(value));
    }
    let float = text.parse().map(Scalar::Float);
    float.map_err(|_| format!("'{text}' is no number, nor true or false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_written_with_x_or_commas() {
        let expected = Ok(Chunk(vec![250, 1, 500]));
        assert_eq!(parse_chunk("250x1x500"), expected);
        assert_eq!(parse_chunk("250, 1,500"), expected);
        assert_eq!(parse_chunk("7"), Ok(Chunk(vec![7])));
        for wrong in ["", "x", "1x", "1xx2", "-1", "a", "1.5"] {
            assert!(parse_chunk(wrong).is_err(), "{wrong:?}");
        }
    }
}
