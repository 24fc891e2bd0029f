//! Arrays in and out of files, compared with what NumPy and zarr-python write, and with plain models.

mod golden;
mod hdf;
mod hdf_hostile;
mod hdf_python;
mod hostile;
mod metadata;
mod modules;
mod netcdf;
mod python;
mod round_trips;
mod runs;
mod scratch;
mod seismic;
mod times_python;
