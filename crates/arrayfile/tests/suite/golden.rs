//! Files that NumPy and zarr-python wrote (`tests/data/make.py`).

use std::path::PathBuf;

use array::{DataType, Scalar};
use arrayfile::{Format, ImportOptions};

use crate::scratch::Scratch;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// The values that `make.py` gives, with `hole` where nothing was written.
fn expected(of: DataType, hole: Scalar) -> Vec<Scalar> {
    let cell = |at: i64| {
        if at % 4 > 1 && at < 8 {
            hole
        } else {
            Scalar::from(at).cast(of).unwrap()
        }
    };
    (0..20).map(cell).collect()
}

#[test]
fn zarr_python_s_arrays_are_read() {
    let scratch = Scratch::new();
    for (name, of, hole, dimensions) in [
        ("v2-gzip", DataType::I16, Scalar::from(7), ["y", "x"]),
        (
            "v2-f-big",
            DataType::F32,
            Scalar::from(f64::NAN),
            ["dim_0", "dim_1"],
        ),
        (
            "v2-zlib-null",
            DataType::U8,
            Scalar::from(0),
            ["dim_0", "dim_1"],
        ),
        (
            "v3-zstd",
            DataType::F64,
            Scalar::from(f64::NEG_INFINITY),
            ["y", "x"],
        ),
        (
            "v3-turned",
            DataType::I32,
            Scalar::from(-1),
            ["dim_0", "dim_1"],
        ),
        (
            "v3-plain",
            DataType::U64,
            Scalar::Int(u64::MAX.into()),
            ["dim_0", "dim_1"],
        ),
    ] {
        for chunk in [None, Some(vec![3, 3]), Some(vec![1, 4])] {
            let options = ImportOptions {
                chunk: chunk.clone(),
                replace: true,
                ..ImportOptions::default()
            };
            let imported = scratch.import(name, &data(name), &options).unwrap();
            let (schema, values) = scratch.values(name);
            assert_eq!(values, expected(of, hole), "{name} in chunks {chunk:?}");
            assert_eq!(schema.attributes()[0].data_type(), of);
            assert_eq!(schema.attributes()[0].fill_value(), hole);
            let names: Vec<_> = schema.dimensions().iter().map(|of| of.name()).collect();
            assert_eq!(names, dimensions, "{name}");
            let version = if name.starts_with("v2") {
                Format::Zarr2
            } else {
                Format::Zarr3
            };
            assert_eq!(
                (imported.format, imported.bytes),
                (version, 20 * of.width() as u64)
            );
        }
    }
    let small = scratch
        .import("kept", &data("v2-gzip"), &ImportOptions::default())
        .unwrap();
    assert_ne!(
        small.schema.dimensions()[0].chunk_length(),
        2,
        "chunks of 8 bytes are not kept"
    );
}

#[test]
fn numpy_s_files_are_read() {
    let scratch = Scratch::new();
    let whole = |of: DataType| -> Vec<Scalar> {
        (0..20i64)
            .map(|at| Scalar::from(at).cast(of).unwrap())
            .collect()
    };
    for (name, of) in [("rows.npy", DataType::I64), ("columns.npy", DataType::F32)] {
        scratch
            .import(name, &data(name), &ImportOptions::default())
            .unwrap();
        assert_eq!(scratch.values(name).1, whole(of), "{name}");
    }
    let member = |name: Option<&str>| ImportOptions {
        member: name.map(str::to_owned),
        replace: true,
        ..ImportOptions::default()
    };
    scratch
        .import("a", &data("two.npz"), &member(Some("first")))
        .unwrap();
    assert_eq!(scratch.values("a").1, whole(DataType::U16));
    scratch
        .import("a", &data("two.npz"), &member(Some("second.npy")))
        .unwrap();
    let large: Vec<_> = (0..20).map(|at| Scalar::Bool(at > 3)).collect();
    assert_eq!(scratch.values("a").1, large);
    for (file, name, said) in [
        ("two.npz", None, "choose one of 'first', 'second'"),
        (
            "two.npz",
            Some("third"),
            "no member 'third'; there are 'first', 'second'",
        ),
        (
            "packed.npz",
            None,
            "'only' is compressed; write it with numpy.savez",
        ),
        (
            "rows.npy",
            Some("first"),
            "only NPZ, HDF5 and NetCDF have members",
        ),
    ] {
        let error = scratch
            .import("b", &data(file), &member(name))
            .unwrap_err()
            .to_string();
        assert!(error.contains(said) && error.contains(file), "{error}");
    }
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let scratch = Scratch::new();
    for (name, said) in [
        (
            "v2-blosc",
            "'blosc', which is not read; write them without compression",
        ),
        ("v3-shards", "shards, which are not read"),
        ("", "no Zarr array"),
    ] {
        let error = scratch
            .import("a", &data(name), &ImportOptions::default())
            .unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    assert!(array::list(&scratch.store.snapshot()).unwrap().is_empty());
}
