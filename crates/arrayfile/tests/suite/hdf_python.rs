//! Files that h5py and netCDF4 write now, of random shapes, chunks, types and filters, beside the same values as NPY; and what
//! these and xarray read of files that are written. Needs a Python with them: `$ATOLL_PYTHON`, or the system's.

use array::{Attribute, DataType, Dimension, Layout};
use arrayfile::{ExportOptions, Format, ImportOptions, Packing};

use crate::hdf::member;
use crate::modules::{python, run};
use crate::netcdf::{decimal, make, make_with};
use crate::scratch::Scratch;

/// How many data sets of each library are written.
const CASES: u32 = 60;

/// Writes files `N.h5` and `N.nc` with a variable `v`, and `N.h5.npy` and `N.nc.npy` with its values as they are read back.
const SCRIPT: &str = r"
import os, sys
import h5py, netCDF4, numpy as np
folder, cases, seed, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if mode == 'compare':
    # What was written of each array that was read.
    for at in range(cases):
        for end in ['h5', 'nc']:
            expected = np.load(f'{folder}/{at}.{end}.npy')
            def same(got, what):
                assert got.dtype == expected.dtype, (at, end, what, got.dtype, expected.dtype)
                assert np.array_equal(got, expected, equal_nan=got.dtype.kind == 'f'), (at, end, what)
            for form in ['3', '4']:
                back = f'{folder}/{at}.{end}.back{form}.nc'
                if form == '3' and not os.path.exists(back):
                    assert expected.size == 0
                    continue
                with netCDF4.Dataset(back) as f:
                    f.set_auto_maskandscale(False)
                    same(f['v'][...], form)
            with h5py.File(f'{folder}/{at}.{end}.back.h5') as f:
                same(f['v'][...], 'h5')
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
    let Some(python) = python("import h5py, netCDF4, numpy") else {
        return notrun::not_run(
            "no Python with the modules h5py and netCDF4; install them, or set ATOLL_PYTHON",
        );
    };
    let scratch = Scratch::new();
    let seed = std::env::var("ATOLL_SEED").unwrap_or_else(|_| "1".to_owned());
    let folder = scratch.path("");
    let run = |mode: &str| {
        let arguments = [folder.to_str().unwrap(), &CASES.to_string(), &seed, mode];
        run(&python, SCRIPT, &arguments);
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
            let (none, gzip) = (Packing::None, Packing::Gzip(1));
            for (back, format, packing) in [
                ("3.nc", Format::NetCdf3, none),
                ("4.nc", Format::NetCdf4, none),
                (".h5", Format::Hdf5, gzip),
            ] {
                if format == Format::NetCdf3 && schema.cells() == 0 {
                    continue;
                }
                let back = scratch.path(&format!("{case}.{end}.back{back}"));
                let options = ExportOptions {
                    format: Some(format),
                    packing,
                    ..ExportOptions::default()
                };
                let written = scratch.export("read", &back, &options);
                written.unwrap_or_else(|error| panic!("{}", told(&error)));
            }
        }
    }
    run("compare");
}

/// Compares what the libraries see of the files that are written below.
const READ: &str = r"
import sys
import h5py, netCDF4, numpy as np, xarray
folder = sys.argv[1]
cells = np.arange(4 * 5 * 3 * 6).reshape(4, 5, 3, 6) % 120
coordinates = {'year': [1990, 1991, 1992, 1993], 'lat': [50.25, 50, 49.75, 49.5, 49.25], 'depth': [0, 2.5, 10.1],
    'far': [3_000_000_000 + n for n in range(6)]}
types = 'i1 i2 i4 i8 u1 u2 u4 u8 f4 f8'.split()
for end in ['h5', 'nc', 'gzip.nc']:
    for engine in ['netcdf4', 'h5netcdf']:
        with xarray.open_dataset(f'{folder}/all.{end}', engine=engine) as ds:
            assert set(ds.coords) == set(coordinates), ds
            for name, values in coordinates.items():
                assert ds[name].values.tolist() == values, (end, engine, ds[name])
            assert ds.encoding['unlimited_dims'] == {'year'}, ds.encoding
            assert list(ds.data_vars) == [n for of in types for n in (of, of + '_or_null')] + ['flag'], list(ds.data_vars)
            for of in types:
                assert ds[of].dims == tuple(coordinates) and ds[of].dtype == of and (ds[of].values == cells).all(), (end, of)
                # xarray has nulls as NaN, in a float that may be too narrow for a sentinel: its positions are what counts.
                nulls = ds[of + '_or_null'].values
                assert (np.isnan(nulls) == (cells == 7)).all(), (end, engine, of)
                assert (nulls[cells != 7] == cells[cells != 7]).all(), (end, engine, of)
            flag = ds['flag']
            # NetCDF knows no enumeration without a name of its own.
            expected = np.int8 if (end, engine) == ('h5', 'netcdf4') else bool
            assert flag.dtype == expected and (flag.values == (cells % 3 == 0)).all(), (end, engine, flag)
    with netCDF4.Dataset(f'{folder}/all.{end}') as f:
        assert list(f.dimensions) == list(coordinates) and f.dimensions['year'].isunlimited(), f
        masked = f['i2_or_null'][...]
        assert (np.ma.getmaskarray(masked) == (cells == 7)).all() and f['i2'].chunking() == [3, 2, 3, 6]
        assert (end == 'gzip.nc') == bool(f['i2'].filters()['zlib']), f['i2'].filters()
with h5py.File(f'{folder}/all.h5') as f:
    assert f['flag'].dtype == bool and [d.label for d in f['i4'].dims] == [''] * 4
    assert [d[0].name for d in f['i4'].dims] == ['/' + name for name in coordinates]
    assert f['lat'].is_scale and f['i4'].maxshape == (None, 5, 3, 6) and f['i4'].chunks == (3, 2, 3, 6)
    f.visititems(lambda name, item: item[...])
# Three levels of nodes, with gaps.
for end in ['h5', 'nc']:
    with h5py.File(f'{folder}/many.{end}') as f:
        v = f['v']
        expected = np.full((100, 100), np.nan)
        expected.ravel()[::2] = np.arange(10_000)[::2] % 120
        assert np.array_equal(v[...], expected, equal_nan=True)
        assert v.id.get_num_chunks() == 5_000 and v[99, 98] == 9_998 % 120 and np.isnan(v[99, 99])
        for name in 'xy':
            assert f[name].shape == (100,) and f[name].attrs['NAME'].startswith(b'This is a netCDF dimension')
    with xarray.open_dataset(f'{folder}/many.{end}') as ds:
        assert not ds.coords and np.array_equal(ds.v.values, expected, equal_nan=True)
# Nothing along a dimension, yet.
with netCDF4.Dataset(f'{folder}/empty.nc') as f:
    assert f['v'].shape == (0, 3) and f.dimensions['t'].isunlimited()
# What is written on is a file like any other.
with h5py.File(f'{folder}/all.h5', 'r+') as f:
    f['i4'].resize(9, 0)
    f['i4'][8] = 5
    f['u1'][0, 0, 0] = [9, 8, 7, 6, 5, 4]
    f.create_dataset('other', data=[1, 2])
with netCDF4.Dataset(f'{folder}/many.nc', 'a') as f:
    f['v'][0, 1] = 3
    f.createVariable('w', 'i4', ('x',))[:] = 1
with h5py.File(f'{folder}/all.h5') as f:
    assert (f['i4'][8] == 5).all() and (f['i4'][:4] == cells).all() and f['u1'][0, 0, 0].tolist() == [9, 8, 7, 6, 5, 4]
with xarray.open_dataset(f'{folder}/many.nc') as ds:
    assert ds.v[0, 1] == 3 and ds.v[99, 98] == 9_998 % 120 and (ds.w == 1).all()
";

#[test]
fn h5py_netcdf4_and_xarray_read_what_is_written() {
    let Some(python) = python("import h5netcdf, h5py, netCDF4, numpy, xarray") else {
        return notrun::not_run(
            "no Python with the modules h5py, netCDF4, xarray and h5netcdf; install them, or set ATOLL_PYTHON",
        );
    };
    let scratch = Scratch::new();
    let of = |name: &str, of| Attribute::new(name, of);
    let mut attributes = Vec::new();
    for (name, data_type) in [
        ("i1", DataType::I8),
        ("i2", DataType::I16),
        ("i4", DataType::I32),
        ("i8", DataType::I64),
        ("u1", DataType::U8),
        ("u2", DataType::U16),
        ("u4", DataType::U32),
        ("u8", DataType::U64),
        ("f4", DataType::F32),
        ("f8", DataType::F64),
    ] {
        attributes.push(of(name, data_type));
        attributes.push(of(&format!("{name}_or_null"), data_type).nullable());
    }
    attributes.push(of("flag", DataType::Bool));
    let space = vec![
        Dimension::integer("year", 1990, 4).chunk(3).growing(),
        Dimension::regular("lat", decimal("50.25"), decimal("-0.25"), 5).chunk(2),
        Dimension::listed("depth", ["0", "2.5", "10.1"].map(decimal).to_vec()),
        Dimension::integer("far", 3_000_000_000, 6),
    ];
    make(&scratch, "all", space, attributes);
    let square = ["x", "y"].map(|name| Dimension::integer(name, 0, 100).chunk(1));
    make_with(
        &scratch,
        "many",
        square.to_vec(),
        vec![of("v", DataType::F64)],
        Layout::Sparse,
    );
    let empty = vec![
        Dimension::integer("t", 0, 0).growing(),
        Dimension::integer("x", 0, 3),
    ];
    make(&scratch, "empty", empty, vec![of("v", DataType::I16)]);
    let gzip = ExportOptions {
        packing: Packing::Gzip(1),
        ..ExportOptions::default()
    };
    let plain = ExportOptions::default();
    for (name, file, options) in [
        ("all", "all.h5", &plain),
        ("all", "all.nc", &plain),
        ("all", "all.gzip.nc", &gzip),
        ("many", "many.h5", &gzip),
        ("many", "many.nc", &plain),
        ("empty", "empty.nc", &plain),
    ] {
        let written = scratch.export(name, &scratch.path(file), options);
        written.unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    run(&python, READ, &[scratch.path("").to_str().unwrap()]);
}
