//! The arguments of `atoll array`.

use std::path::PathBuf;

use anyhow::bail;
use array::Scalar;
use clap::{Args, ValueEnum};

use crate::options::arrays::{
    Chunk, Compress, FileFormat, Pack, WhichTimes, parse_chunk, parse_scalar,
};
use crate::options::resources::Compute;
use crate::units;

/// `atoll array`
#[derive(Args, Debug)]
pub struct Array {
    /// The store; import creates it when absent
    pub store: PathBuf,
    /// What to do
    #[arg(value_enum)]
    pub work: Work,
    /// Import: the NPY, NPZ, HDF5 or NetCDF file or the Zarr folder to read; export: the file (.npy, .npz, .h5, .nc) or folder (.zarr) to write
    pub file: Option<PathBuf>,
    /// Which array [default: the only one; import: the name of the file, without what follows the first dot]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Import: the name of the attribute [default: that of the variable, else value]; export: which one, if there are several [default: all, of an NPZ, HDF5 or NetCDF]
    #[arg(long, value_name = "NAME")]
    pub attribute: Option<String>,
    /// Import: the names of the dimensions, the outermost first, such as x,y,z [default: those of the file, else dim_0, dim_1, ...]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub dims: Option<Vec<String>>,
    /// Import: the cells of a chunk along each dimension, such as 100x100x500 [default: those of the file, else chunks of up to 4 MiB]
    #[arg(long, value_name = "CELLS", value_parser = parse_chunk)]
    pub chunk: Option<Chunk>,
    /// Import: which array of an NPZ, or which variable of an HDF5, NetCDF or group of Zarr, such as surface/heat; of the
    /// latter also several that have the same dimensions, such as u10,v10 [default: all data variables]
    #[arg(long, value_name = "NAME")]
    pub member: Option<String>,
    /// Import: how the chunks are stored [default: none]
    #[arg(long, value_enum, value_name = "HOW")]
    pub compress: Option<Compress>,
    /// Import: which numbers in units since a moment, such as hours since 1900-01-01, become timestamps [default: said]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub times: Option<WhichTimes>,
    /// Import: put the array in the place of one that has its name
    #[arg(long)]
    pub replace: bool,
    /// Import: size of the pages of a store that is created: 4KiB, 8KiB, ... 1MiB [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    pub page_size: Option<u64>,
    /// Export: the format [default: by the name of the file]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<FileFormat>,
    /// Export: how the chunks are compressed, in Zarr, HDF5 and NetCDF-4 [default: zstd in Zarr, else none]
    #[arg(long, value_enum, value_name = "HOW")]
    pub pack: Option<Pack>,
    /// Export: what to write for nulls and for cells that do not exist: a number, true or false [default: NaN for floats, else an error, but for HDF5 and NetCDF the usual value of NetCDF]
    #[arg(long, value_name = "VALUE", value_parser = parse_scalar, allow_hyphen_values = true)]
    pub null: Option<Scalar>,
    #[command(flatten)]
    pub compute: Compute,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// What `atoll array` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Work {
    /// The arrays of the store
    List,
    /// The dimensions, attributes and chunks of an array
    Describe,
    /// Make an array of a file
    Import,
    /// Write an array into a file
    Export,
    /// Delete an array
    Delete,
}

impl Work {
    /// As it is typed.
    fn name(self) -> &'static str {
        match self {
            Work::List => "list",
            Work::Describe => "describe",
            Work::Import => "import",
            Work::Export => "export",
            Work::Delete => "delete",
        }
    }
}

impl Array {
    /// Whether only options are given that the work has, and all that it needs.
    ///
    /// # Errors
    /// One that names the first that it does not have, or that is missing.
    pub fn check(&self) -> anyhow::Result<()> {
        use Work::{Delete, Describe, Export, Import};
        let given: [(bool, &str, &[Work]); 13] = [
            (self.file.is_some(), "a file", &[Import, Export]),
            (
                self.name.is_some(),
                "--name",
                &[Describe, Import, Export, Delete],
            ),
            (self.attribute.is_some(), "--attribute", &[Import, Export]),
            (self.dims.is_some(), "--dims", &[Import]),
            (self.chunk.is_some(), "--chunk", &[Import]),
            (self.member.is_some(), "--member", &[Import]),
            (self.compress.is_some(), "--compress", &[Import]),
            (self.times.is_some(), "--times", &[Import]),
            (self.replace, "--replace", &[Import]),
            (self.page_size.is_some(), "--page-size", &[Import]),
            (self.format.is_some(), "--format", &[Export]),
            (self.pack.is_some(), "--pack", &[Export]),
            (self.null.is_some(), "--null", &[Export]),
        ];
        for (given, name, works) in given {
            if given && !works.contains(&self.work) {
                let works: Vec<_> = works.iter().map(|work| work.name()).collect();
                bail!(
                    "{name} is for {}, not for {}",
                    works.join(", "),
                    self.work.name()
                );
            }
        }
        match self.work {
            Import if self.file.is_none() => bail!("import needs the file to read"),
            Export if self.file.is_none() => bail!("export needs the file to write"),
            Delete if self.name.is_none() => bail!("delete needs --name"),
            _ => Ok(()),
        }
    }
}
