//! Files that NumPy and zarr-python wrote (`tests/data/make.py`).

use std::path::PathBuf;

use array::{DataType, Scalar};
use arrayfile::{ExportOptions, Format, ImportOptions};

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
#[expect(
    clippy::too_many_lines,
    reason = "a table of arrays and what they hold"
)]
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
            "v2-blosc",
            DataType::F64,
            Scalar::from(0.0),
            ["dim_0", "dim_1"],
        ),
        (
            "v3-shards",
            DataType::F32,
            Scalar::from(0.0),
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
    scratch
        .import("a", &data("packed.npz"), &member(None))
        .unwrap();
    assert_eq!(scratch.values("a").1, whole(DataType::I64));
    for (file, name, said) in [
        ("two.npz", None, "choose one of 'first', 'second'"),
        (
            "two.npz",
            Some("third"),
            "no member 'third'; there are 'first', 'second'",
        ),
        (
            "rows.npy",
            Some("first"),
            "only NPZ, HDF5, NetCDF and groups of Zarr have members",
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
    let error = scratch.import("a", &data(""), &ImportOptions::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("no Zarr array"), "{error}");
    let member = ImportOptions {
        member: Some("x".into()),
        ..ImportOptions::default()
    };
    let error = scratch.import("a", &data("v3-plain"), &member);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("is a single array of Zarr"), "{error}");
    assert!(array::list(&scratch.store.snapshot()).unwrap().is_empty());
}

#[test]
fn groups_are_variables_with_their_coordinates() {
    let scratch = Scratch::new();
    for name in ["v2-group", "v3-group"] {
        let options = ImportOptions {
            replace: true,
            ..ImportOptions::default()
        };
        let made = scratch.import("a", &data(name), &options).unwrap();
        let (schema, values) = scratch.values("a");
        let wanted: Vec<Scalar> = [Some(0), Some(10), None, Some(20), Some(30), Some(40)]
            .map(|of| {
                of.map_or(Scalar::Null, |of| {
                    Scalar::Float(100.0 + 0.5 * f64::from(of))
                })
            })
            .into();
        assert_eq!(values, wanted, "{name}");
        assert_eq!(schema.attributes()[0].name(), "t", "{name}");
        let dimensions = schema.dimensions();
        let names: Vec<_> = dimensions.iter().map(|of| of.name()).collect();
        assert_eq!(names, ["time", "x"], "{name}");
        let at = |dimension: usize, place: u64| {
            let found = dimensions[dimension].coordinate(place);
            found.map(|of| of.to_string())
        };
        assert_eq!(at(0, 1).as_deref(), Some("30"), "{name}");
        assert_eq!(at(1, 2).as_deref(), Some("2.5"), "{name}");
        assert!(made.notes.is_empty(), "{:?}", made.notes);
        // It goes out as a group and comes back.
        for format in [Format::Zarr2, Format::Zarr3] {
            let path = scratch.path(&format!("{name}-{format}"));
            let export = ExportOptions {
                format: Some(format),
                group: true,
                ..ExportOptions::default()
            };
            scratch.export("a", &path, &export).unwrap();
            scratch.import("b", &path, &options).unwrap();
            let (back, read) = scratch.values("b");
            assert_eq!(read, wanted, "{name} as {format}");
            assert_eq!(back.attributes()[0].name(), "t");
            assert_eq!(
                back.dimensions()[0].coordinate(1),
                dimensions[0].coordinate(1)
            );
            assert_eq!(
                back.dimensions()[1].coordinate(2),
                dimensions[1].coordinate(2)
            );
        }
        // A variable by its name, and its own folder.
        let member = ImportOptions {
            member: Some("where".into()),
            ..options.clone()
        };
        let seven: Vec<Scalar> = [7.0, 8.0, 9.0].map(Scalar::Float).into();
        scratch.import("a", &data(name), &member).unwrap();
        assert_eq!(scratch.values("a").1, seven, "{name}");
        let alone = data(name).join("where");
        scratch.import("a", &alone, &options).unwrap();
        assert_eq!(scratch.values("a").1, seven, "{name}");
    }
}

#[test]
fn an_npz_is_written_with_a_member_for_each_attribute() {
    let scratch = Scratch::new();
    let member = |name: Option<&str>| ImportOptions {
        member: name.map(str::to_owned),
        replace: true,
        ..ImportOptions::default()
    };
    for (number, name) in ["first", "second"].into_iter().enumerate() {
        scratch
            .import("a", &data("two.npz"), &member(Some(name)))
            .unwrap();
        let before = scratch.values("a");
        let npz = scratch.path(&format!("{number}.npz"));
        let written = scratch
            .export("a", &npz, &ExportOptions::default())
            .unwrap();
        assert_eq!(written.written, std::fs::metadata(&npz).unwrap().len());
        let bytes = std::fs::read(&npz).unwrap();
        assert!(bytes.starts_with(b"PK\x03\x04"));
        scratch.import("a", &npz, &member(None)).unwrap();
        assert_eq!(scratch.values("a").1, before.1);
        assert!(
            scratch
                .export("a", &npz, &ExportOptions::default())
                .is_err(),
            "it is there"
        );
    }
}
