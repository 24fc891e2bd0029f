//! Files go to NumPy and zarr-python and come back. Needs a Python with both: `$ATOLL_PYTHON`, that of `bench/run`, or
//! the system's.

use array::{DataType, Scalar};
use arrayfile::{ExportOptions, Format, ImportOptions, Packing};

use crate::modules::{python, run};
use crate::scratch::Scratch;

/// Writes all types in all orders and packings; then, given what Atoll wrote of each, compares.
const SCRIPT: &str = r"
import json, os, sys
import numpy as np, numcodecs, zarr
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec
mode, folder = sys.argv[1:3]
shape = (7, 5, 6)
types = 'bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64'.split()
def values(name):
    random = np.random.default_rng(types.index(name))
    if name == 'bool':
        return random.integers(0, 2, shape).astype(bool)
    if name.startswith('float'):
        made = random.normal(size=shape).astype(name)
        made[0, 0, :4] = [np.nan, np.inf, -np.inf, -0.0]
        return made
    bounds = np.iinfo(name)
    return random.integers(bounds.min, bounds.max, shape, dtype=name, endpoint=True)
def same(a, b, what):
    assert a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == 'f'), what
if mode == 'write':
    for at, name in enumerate(types):
        made = values(name)
        np.save(f'{folder}/{name}-c.npy', made)
        np.save(f'{folder}/{name}-f.npy', np.asfortranarray(made.astype(made.dtype.newbyteorder('>'))))
        packed = [None, numcodecs.Zstd(1), numcodecs.GZip(1), numcodecs.Zlib(1)][at % 4]
        for order in 'CF':
            array = zarr.create_array(f'{folder}/{name}-2{order}', shape=shape, chunks=(3, 5, 4), zarr_format=2,
                dtype=made.dtype.newbyteorder('<>'[at % 2]), order=order, compressors=packed, fill_value=0,
                chunk_key_encoding={'name': 'v2', 'separator': './'[at % 2]})
            array[:] = made
        packed = [None, [ZstdCodec(level=1)], [GzipCodec(level=1), Crc32cCodec()]][at % 3]
        for order in [(0, 1, 2), (2, 0, 1), (1, 2, 0)]:
            array = zarr.create_array(f'{folder}/{name}-3' + ''.join(map(str, order)), shape=shape, chunks=(3, 5, 4),
                zarr_format=3, dtype=name, compressors=packed, filters=[TransposeCodec(order=order)],
                serializer=BytesCodec(endian=['little', 'big'][at % 2]), fill_value=0, dimension_names=['x', 'y', 'z'])
            array[:] = made
else:
    for name in types:
        made = values(name)
        same(np.load(f'{folder}/{name}.npy'), made, name)
        for version in [2, 3]:
            for packing in ['none', 'zstd', 'gzip']:
                array = zarr.open_array(f'{folder}/{name}.{packing}{version}', mode='r')
                same(array[:], made, f'{name} {packing} {version}')
                assert array.metadata.zarr_format == version and array.chunks == (3, 5, 4)
        assert array.metadata.dimension_names == ('x', 'y', 'z')
";

/// Imports every file of a type as the array `a`; all have the same values.
fn import_all(scratch: &Scratch, numpy: &str, of: DataType) {
    let mut first: Vec<Scalar> = Vec::new();
    for (number, end) in ["-c.npy", "-f.npy", "-2C", "-2F", "-3012", "-3201", "-3120"]
        .iter()
        .enumerate()
    {
        let options = ImportOptions {
            dimensions: Some(["x", "y", "z"].map(str::to_owned).to_vec()),
            chunk: Some(vec![3, 5, 4]),
            replace: true,
            ..ImportOptions::default()
        };
        let file = scratch.path(&format!("{numpy}{end}"));
        scratch
            .import("a", &file, &options)
            .unwrap_or_else(|error| panic!("{error}"));
        let (schema, values) = scratch.values("a");
        assert_eq!(schema.attributes()[0].data_type(), of);
        match number {
            0 => first = values,
            _ => assert_eq!(values, first, "{numpy}{end}"),
        }
    }
}

/// Exports the array `a` in every way.
fn export_all(scratch: &Scratch, numpy: &str) {
    scratch
        .export(
            "a",
            &scratch.path(&format!("{numpy}.npy")),
            &ExportOptions::default(),
        )
        .unwrap();
    for (version, format) in [(2, Format::Zarr2), (3, Format::Zarr3)] {
        for (name, packing) in [
            ("none", Packing::None),
            ("zstd", Packing::Usual),
            ("gzip", Packing::Gzip(1)),
        ] {
            let options = ExportOptions {
                format: Some(format),
                packing,
                ..ExportOptions::default()
            };
            scratch
                .export(
                    "a",
                    &scratch.path(&format!("{numpy}.{name}{version}")),
                    &options,
                )
                .unwrap();
        }
    }
}

#[test]
fn numpy_and_zarr_python_read_what_is_written_and_the_other_way_around() {
    let check = "import numpy, zarr; assert int(zarr.__version__.split('.')[0]) >= 3";
    let Some(python) = python(check) else {
        return notrun::not_run(
            "no Python with the modules numpy and zarr 3; install them, or set ATOLL_PYTHON",
        );
    };
    let scratch = Scratch::new();
    let folder = scratch.path("");
    let run = |mode: &str| run(&python, SCRIPT, &[mode, folder.to_str().unwrap()]);
    run("write");
    for of in DataType::ALL {
        let numpy = match of {
            DataType::F32 => "float32",
            DataType::F64 => "float64",
            of => of.name(),
        };
        import_all(&scratch, numpy, of);
        export_all(&scratch, numpy);
    }
    run("compare");
}
