//! Arrays in and out of files: NPY and NPZ of NumPy, Zarr 2 and 3, HDF5 and NetCDF; and the synthetic seismic array
//! (row T7).
//!
//! [`import`] makes an array of what a file has, [`export`] writes one into a file. Both go chunk by chunk, tell how far
//! they are, stop when asked to, and leave nothing half done: an import is one transaction, and a file that is written
//! appears when it is complete. Formats are found by content when reading, by name when writing.
//!
//! | format | reads | writes |
//! |---|---|---|
//! | NPY | versions 1 to 3, both orders of dimensions and of bytes | version 1, row-major, little-endian |
//! | NPZ | members, plain and deflated | plain, a member for each attribute |
//! | Zarr 2, 3 | regular chunks and shards: plain, zstd, gzip, zlib, blosc, crc32c; all orders; no filters. Groups as variables with their coordinates | plain, zstd, gzip; an array, or a group with coordinates |
//! | HDF5, NetCDF-4 | data sets: compact, contiguous, in chunks by every kind of index; gzip, shuffle, Fletcher's sum, lzf, zstd | chunks, plain or shuffled and gzip; all attributes, and coordinates as dimension scales |
//! | NetCDF-3 | versions 1, 2 and 5 | version 2, or 5 where it needs it; all attributes, and coordinates |
//!
//! What Zarr, HDF5 and NetCDF say of variables, coordinates and the file becomes the array's [`Metadata`](array::Metadata) and
//! goes back into these formats; numbers that count from a moment are times by it ([`Times`]).
//!
//! Values are bool, whole numbers of 8 to 64 bits, and floats of 32 and 64. A chunk of a Zarr that is missing has the fill
//! value, as the format says; one that is damaged is an error that names it.
//!
//! ```
//! use arrayfile::{ExportOptions, ImportOptions, Job};
//! use futures::executor::block_on;
//!
//! let folder = tempfile::tempdir()?;
//! let npy = folder.path().join("depths.npy");
//! let mut bytes = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
//! bytes.extend(b"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }            \n");
//! bytes.resize(80, b' ');
//! bytes.extend([1i16, 2, 3, 4, 5, 6].map(i16::to_le_bytes).concat());
//! std::fs::write(&npy, bytes)?;
//!
//! let store = store::Store::create(folder.path().join("sea.atoll"), &store::Options::default())?;
//! let job = || Job::new(memory::Budget::new(64 << 20));
//! let options = ImportOptions::default();
//! let read = block_on(arrayfile::import(&store, "depths", &npy, &options, job()))?;
//! assert_eq!(read.schema.shape(), [2, 3]);
//!
//! let zarr = folder.path().join("depths.zarr");
//! let (snapshot, options) = (store.snapshot(), ExportOptions::default());
//! let written = block_on(arrayfile::export(&snapshot, "depths", &zarr, &options, job()))?;
//! assert_eq!(written.bytes, 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aside;
mod axis;
mod cf;
mod classic;
mod copy;
mod decode;
mod error;
mod export;
mod hdf5;
mod import;
mod job;
mod npy;
mod options;
pub mod seismic;
mod source;
mod target;
mod values;
mod variables;
mod zarr;

pub use error::{Error, Result};
pub use export::{Exported, export};
pub use import::{Imported, import};
pub use job::{Job, Progress};
pub use options::{ExportOptions, Format, ImportOptions, Packing, Times};
