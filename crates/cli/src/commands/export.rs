//! `atoll export`: an array into a file. It needs no SQL.

use std::path::PathBuf;

use anyhow::anyhow;
use array::Scalar;
use arrayfile::ExportOptions;
use clap::Args;

use crate::failure::Failure;
use crate::options::arrays::{FileFormat, Pack, parse_scalar};
use crate::options::resources::Compute;
use crate::store::plain::{self, Open};
use crate::transfer;

/// `atoll export`
#[derive(Args, Debug)]
pub struct Export {
    /// The store
    pub store: PathBuf,
    /// The array; a table is written by `copy`: atoll sql STORE "copy t to 'file.parquet'"
    pub array: String,
    /// The file (.npy, .npz, .h5, .nc) or folder (.zarr) to write
    pub file: PathBuf,
    /// Which attribute, if there are several [default: all, of an NPZ, HDF5 or NetCDF]
    #[arg(long, value_name = "NAME")]
    pub attribute: Option<String>,
    /// The format [default: by the name of the file]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<FileFormat>,
    /// Zarr: a group as xarray reads it, of arrays for the attributes and for the coordinates of the dimensions
    #[arg(long)]
    pub group: bool,
    /// How the chunks are compressed, in Zarr, HDF5 and NetCDF-4 [default: zstd in Zarr, else none]
    #[arg(long, value_enum, value_name = "HOW")]
    pub pack: Option<Pack>,
    /// What to write for nulls and for cells that do not exist: a number, true or false [default: NaN for floats, else an error, but for HDF5 and NetCDF the usual value of NetCDF]
    #[arg(long, value_name = "VALUE", value_parser = parse_scalar, allow_hyphen_values = true)]
    pub null: Option<Scalar>,
    #[command(flatten)]
    pub compute: Compute,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &Export) -> Result<(), Failure> {
    let opened = plain::open(&args.store, &args.compute, Open::Read, false)?;
    let snapshot = opened.store.snapshot();
    let name = &args.array;
    if let Err(array::Error::NoArray { .. }) = array::Array::open(&snapshot, name) {
        let store = args.store.display();
        return Err(anyhow!(
            "{store} has no array '{name}'; a table is written by atoll sql {store} \"copy {name} to 'file.parquet'\""
        )
        .into());
    }
    let options = ExportOptions {
        group: args.group,
        format: args.format.map(Into::into),
        attribute: args.attribute.clone(),
        null: args.null,
        packing: args.pack.map_or_else(Default::default, Into::into),
    };
    transfer::export(&opened, &snapshot, (name, &args.file), &options, args.json)
}
