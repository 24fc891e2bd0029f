//! Files that h5py and netCDF4 write now, of random shapes, chunks, types and filters, beside the same values as NPY. Needs a
//! Python with both, which also reads what is written of them as NetCDF: `$ATOLL_PYTHON`, or the system's.

use std::path::{Path, PathBuf};
use std::process::Command;

use arrayfile::ImportOptions;

use crate::hdf::member;
use crate::scratch::Scratch;

/// How many data sets of each library are written.
const CASES: u32 = 60;

fn python() -> Option<PathBuf> {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/.venv/bin/python");
    let given = std::env::var_os("ATOLL_PYTHON").map(PathBuf::from);
    let candidates = given.into_iter().chain([bench, PathBuf::from("python3")]);
    candidates.into_iter().find(|python| {
        let found = Command::new(python)
            .args(["-c", "import h5py, netCDF4, numpy"])
            .output();
        found.is_ok_and(|output| output.status.success())
    })
}

/// Writes files `N.h5` and `N.nc` with a variable `v`, and `N.h5.npy` and `N.nc.npy` with its values as they are read back.
const SCRIPT: &str = r"
import os, sys
import h5py, netCDF4, numpy as np
folder, cases, seed, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if mode == 'compare':
    # What was written of each array that was read.
    for at in range(cases):
        for end in ['h5', 'nc']:
            if not os.path.exists(f'{folder}/{at}.{end}.back.nc'):
                continue
            expected = np.load(f'{folder}/{at}.{end}.npy')
            with netCDF4.Dataset(f'{folder}/{at}.{end}.back.nc') as f:
                f.set_auto_maskandscale(False)
                got = f['v'][...]
                assert got.dtype == expected.dtype, (at, end, got.dtype, expected.dtype)
                assert np.array_equal(got, expected, equal_nan=got.dtype.kind == 'f'), (at, end)
    sys.exit()
random = np.random.default_rng(seed)
types = 'i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8'.split()
def pick(*of):
    return of[random.integers(len(of))]
def values(shape, kind):
    dtype = np.dtype(kind)
    if dtype.kind == 'f':
        made = random.normal(size=shape).astype(dtype)
        made[random.random(shape) < 0.05] = np.nan
        return made
    bounds = np.iinfo(dtype)
    return random.integers(bounds.min, bounds.max, shape, dtype=dtype.newbyteorder('='), endpoint=True).astype(dtype)
def write(to, shape, kind):
    # Some parts, the rest is fill.
    for _ in range(random.integers(0, 4)):
        lo = [random.integers(0, n + 1) for n in shape]
        hi = [random.integers(l, n + 1) for l, n in zip(lo, shape)]
        part = tuple(slice(l, h) for l, h in zip(lo, hi))
        to[part] = values(tuple(h - l for l, h in zip(lo, hi)), kind)
    if random.random() < 0.5:
        to[...] = values(shape, kind)
def shape_of():
    return tuple(int(random.integers(1, 12)) for _ in range(random.integers(1, 5)))
for at in range(cases):
    shape, kind = shape_of(), pick('<', '>') + pick(*types)
    name = f'{folder}/{at}.h5'
    with h5py.File(name, 'w', libver=pick('earliest', 'v108', 'v110', 'v112', 'v114', 'latest')) as f:
        more = {'fillvalue': values((), kind)}
        if random.random() < 0.8:
            more['chunks'] = tuple(int(random.integers(1, n + 1)) for n in shape)
            more['maxshape'] = tuple(pick(None, n, n + 7) for n in shape)
            more['compression'] = pick(None, 'gzip', 'lzf')
            more['shuffle'], more['fletcher32'] = pick(False, True), pick(False, True)
        group = f.create_group(pick('a', 'b/c'), track_order=pick(False, True))
        for other in range(random.integers(0, 30)):
            group.create_dataset(f'other_{other}', data=1)
        v = group.create_dataset('v', shape, kind, **more)
        for other in range(random.integers(0, 20)):
            v.attrs[f'note {other}'] = pick('text', 1.5, [1, 2, 3])
        write(v, shape, kind)
        if v.maxshape[0] is None and v.chunks and random.random() < 0.5:
            v.resize(int(random.integers(1, 2 * shape[0] + 1)), 0)
        read = v[...].astype(v.dtype.newbyteorder('='))
        np.save(name + '.npy', read.astype('f4') if read.dtype == 'f2' else read)
    name = f'{folder}/{at}.nc'
    form = pick('NETCDF4', 'NETCDF4', 'NETCDF4_CLASSIC', 'NETCDF3_CLASSIC', 'NETCDF3_64BIT_OFFSET', 'NETCDF3_64BIT_DATA')
    kind = pick(*([of for of in types if of != 'f2'] if form in ('NETCDF4', 'NETCDF3_64BIT_DATA') else ['i1', 'i2', 'i4', 'f4', 'f8']))
    with netCDF4.Dataset(name, 'w', format=form) as f:
        names = [f'd{n}' for n in range(len(shape))]
        for n, length in zip(names, shape):
            f.createDimension(n, None if n == 'd0' and random.random() < 0.5 else length)
        more = {}
        if form.startswith('NETCDF4'):
            more = dict(zlib=pick(False, True), shuffle=pick(False, True), fletcher32=pick(False, True))
        for other in range(random.integers(0, 3)):
            f.createVariable(f'w{other}', 'i1', names[:1])[: shape[0]] = 1
        v = f.createVariable('v', kind, names, **more)
        f.set_auto_maskandscale(False)
        write(v, shape, kind)
        v[shape[0] - 1] = values(shape[1:], kind)
        np.save(name + '.npy', v[...])
";

#[test]
fn what_h5py_and_netcdf4_write_is_read() {
    let Some(python) = python() else {
        return notrun::not_run(
            "no Python with the modules h5py and netCDF4; install them, or set ATOLL_PYTHON",
        );
    };
    let scratch = Scratch::new();
    let seed = std::env::var("ATOLL_SEED").unwrap_or_else(|_| "1".to_owned());
    let run = |mode: &str| {
        let ran = Command::new(&python)
            .args(["-c", SCRIPT])
            .arg(scratch.path(""))
            .args([&CASES.to_string(), &seed, mode])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{mode}: {said}");
    };
    run("write");
    for case in 0..CASES {
        for end in ["h5", "nc"] {
            let file = scratch.path(&format!("{case}.{end}"));
            let told =
                |what: &dyn std::fmt::Display| format!("seed {seed}, {}: {what}", file.display());
            let plain = ImportOptions {
                replace: true,
                ..ImportOptions::default()
            };
            let npy = scratch.path(&format!("{case}.{end}.npy"));
            scratch.import("plain", &npy, &plain).unwrap();
            let (schema, expected) = scratch.values("plain");
            for chunk in [None, Some(vec![3; schema.dimensions().len()])] {
                let options = ImportOptions {
                    chunk,
                    ..member("v")
                };
                let read = scratch.import("read", &file, &options);
                read.unwrap_or_else(|error| panic!("{}", told(&error)));
                let (of, got) = scratch.values("read");
                assert_eq!(of.shape(), schema.shape(), "{}", told(&"shape"));
                let types = [&of, &schema].map(|of| of.attributes()[0].data_type());
                assert_eq!(types[0], types[1], "{}", told(&"type"));
                let differs = (0..got.len()).find(|&at| got[at] != expected[at]);
                assert_eq!(differs, None, "{}", told(&"first cell that differs"));
            }
            if schema.cells() > 0 {
                let back = scratch.path(&format!("{case}.{end}.back.nc"));
                let written = scratch.export("read", &back, &arrayfile::ExportOptions::default());
                written.unwrap_or_else(|error| panic!("{}", told(&error)));
            }
        }
    }
    run("compare");
}
