//! Times and attributes of data sets that xarray writes, which come in as times and go out so that xarray reads them again.
//! Needs a Python with it: `$ATOLL_PYTHON`, or the system's.

use array::Array;
use arrayfile::{ExportOptions, Format, ImportOptions};

use crate::modules::{python, run};
use crate::scratch::Scratch;

/// How many data sets are written: in days, hours, minutes and seconds.
const CASES: usize = 4;

/// The forms in which xarray writes each.
const FORMS: [&str; 4] = ["zarr2", "zarr3", "nc", "h5"];

/// The times of the data sets, in microseconds from 1970 on.
const TIMES: [i64; 4] = [
    946_706_400_000_000,
    946_735_200_000_000,
    1_709_164_800_000_000,
    9_214_691_640_000_000,
];

/// Writes data sets `N.form`; then compares each with what was exported of it, `N.form.back.format`.
const SCRIPT: &str = r"
import sys
import numpy as np, xarray
mode, folder = sys.argv[1:3]
times = np.array(['2000-01-01T06:00', '2000-01-01T14:00', '2024-02-29T00:00', '2262-01-01T12:34'], 'M8[ns]')
def data(at):
    calendar = ['proleptic_gregorian', 'standard'][at % 2]
    unit = ['days', 'hours', 'minutes', 'seconds'][at % 4]
    seen = times[::-1][:, None] + np.array([0, 60], 'm8[s]')
    said = {'units': 'K', 'long_name': 'Wärme', 'levels': [1, 2]}
    heat = xarray.DataArray(np.arange(8.0).reshape(4, 2), dims=('time', 'x'), attrs=said)
    coords = {'time': times, 'x': [1.5, 2.5]}
    ds = xarray.Dataset({'heat': heat, 'seen': (('time', 'x'), seen)}, coords, {'title': 'A sea'})
    ds.time.attrs['standard_name'] = 'time'
    for name in ['time', 'seen']:
        dtype = 'f8' if unit in ('days', 'hours') else 'i8'
        ds[name].encoding.update(units=f'{unit} since 1850-01-01', calendar=calendar, dtype=dtype)
    return ds
if mode == 'write':
    for at in range(int(sys.argv[3])):
        data(at).to_zarr(f'{folder}/{at}.zarr2', zarr_format=2, consolidated=False)
        data(at).to_zarr(f'{folder}/{at}.zarr3', zarr_format=3, consolidated=False)
        data(at).to_netcdf(f'{folder}/{at}.nc', engine='netcdf4')
        data(at).to_netcdf(f'{folder}/{at}.h5', engine='h5netcdf')
    sys.exit()
for at in range(int(sys.argv[3])):
    for form in ['zarr2', 'zarr3', 'nc', 'h5']:
        for back in ['zarr2', 'zarr3', 'netcdf4', 'hdf5', 'netcdf3']:
            path, what = f'{folder}/{at}.{form}.back.{back}', (at, form, back)
            if back.startswith('zarr'):
                ds = xarray.open_zarr(path, consolidated=False)
            else:
                ds = xarray.open_dataset(path, engine='h5netcdf' if back == 'hdf5' else 'netcdf4')
            with ds:
                assert ds.time.dtype.kind == 'M' and ds.seen.dtype.kind == 'M', (what, ds)
                assert (ds.time.values == times).all(), (what, ds.time)
                wrong = np.abs(ds.seen.values - data(at).seen.values).max()
                # Days as doubles keep some microseconds.
                assert wrong <= np.timedelta64(10, 'us'), (what, wrong)
                assert (ds.heat.values == np.arange(8.0).reshape(4, 2)).all(), what
                assert ds.title == 'A sea' and ds.time.standard_name == 'time', (what, ds)
                assert ds.heat.units == 'K' and ds.heat.long_name == 'Wärme', (what, ds.heat)
                assert list(ds.heat.levels) == [1, 2] and list(ds.x.values) == [1.5, 2.5], (what, ds.heat)
";

#[test]
fn xarray_s_times_come_in_and_go_out() {
    let check = "import h5netcdf, netCDF4, numpy, xarray, zarr; assert int(zarr.__version__.split('.')[0]) >= 3";
    let Some(python) = python(check) else {
        return notrun::not_run(
            "no Python with the modules xarray, zarr 3, netCDF4 and h5netcdf; install them, or set ATOLL_PYTHON",
        );
    };
    let scratch = Scratch::new();
    let folder = scratch.path("");
    let cases = CASES.to_string();
    let run = |mode: &str| run(&python, SCRIPT, &[mode, folder.to_str().unwrap(), &cases]);
    run("write");
    let options = ImportOptions {
        replace: true,
        ..ImportOptions::default()
    };
    for at in 0..CASES {
        for form in FORMS {
            let file = format!("{at}.{form}");
            scratch
                .import("a", &scratch.path(&file), &options)
                .unwrap_or_else(|error| panic!("{file}: {error}"));
            let array = Array::open(&scratch.store.snapshot(), "a").unwrap();
            let (schema, metadata) = (array.schema(), array.schema().metadata());
            let time = metadata.time("time").unwrap();
            let days = &schema.dimensions()[0];
            let found = (0..4).map(|at| time.of_decimal(days.coordinate(at).unwrap()).unwrap());
            assert_eq!(found.collect::<Vec<_>>(), TIMES, "{file}");
            assert!(metadata.time("seen").is_some(), "{file}");
            for format in [
                Format::Zarr2,
                Format::Zarr3,
                Format::NetCdf4,
                Format::Hdf5,
                Format::NetCdf3,
            ] {
                let export = ExportOptions {
                    format: Some(format),
                    group: matches!(format, Format::Zarr2 | Format::Zarr3),
                    ..ExportOptions::default()
                };
                let to = scratch.path(&format!("{file}.back.{format}"));
                scratch
                    .export("a", &to, &export)
                    .unwrap_or_else(|error| panic!("{file} as {format}: {error}"));
            }
        }
    }
    run("compare");
}
