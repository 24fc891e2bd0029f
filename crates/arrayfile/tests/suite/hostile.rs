//! Files that are cut, damaged, or say what cannot be: an error that names them, no panic, and no memory to speak of.

use std::path::Path;

use arrayfile::{Error, ImportOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::scratch::{Scratch, npy};

/// What importing a file says.
fn said(scratch: &Scratch, path: &Path) -> String {
    let error = scratch
        .import("a", path, &ImportOptions::default())
        .unwrap_err();
    let file = path.file_name().unwrap().to_str().unwrap();
    assert!(error.to_string().contains(file), "{error} names {file}");
    assert!(
        array::list(&scratch.store.snapshot()).unwrap().is_empty(),
        "nothing is left"
    );
    error.to_string()
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    let scratch = Scratch::new();
    let header = |shape: &str| {
        npy(
            &format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n"),
            &[0; 16],
        )
    };
    for (shape, expected) in [
        ("(2,)", ""),
        ("(3,)", "not the 24 of its 3 cells"),
        ("(1,)", "not the 8 of its 1 cells"),
        ("(1000000000000000,)", "not the 8000000000000000"),
        (
            "(4611686018427387904, 4611686018427387904)",
            "more than 2^64",
        ),
        ("(2305843009213693952,)", "more than 2^64"),
        ("()", ".reshape(1)"),
        ("(18446744073709551616,)", "a length"),
    ] {
        let path = scratch.write("shape.npy", header(shape));
        if expected.is_empty() {
            scratch
                .import("b", &path, &ImportOptions::default())
                .unwrap();
            let mut writer = array::Writer::begin(&scratch.store).unwrap();
            writer.delete("b").unwrap();
            writer.commit().unwrap();
        } else {
            let said = said(&scratch, &path);
            assert!(said.contains(expected), "{said}");
        }
    }
    // No cells, however long the other dimension is.
    let none = npy(
        "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 1000000000000, 3), }\n",
        &[],
    );
    let path = scratch.write("none.npy", none);
    let made = scratch
        .import("none", &path, &ImportOptions::default())
        .unwrap();
    assert_eq!((made.chunks, made.bytes), (0, 0));
}

#[test]
fn files_that_are_cut_anywhere_are_refused() {
    let scratch = Scratch::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["rows.npy", "two.npz"] {
        let whole = std::fs::read(data.join(name)).unwrap();
        for length in (0..whole.len()).step_by(7) {
            let path = scratch.write("cut", &whole[..length]);
            let options = ImportOptions {
                member: (name == "two.npz").then(|| "first".to_owned()),
                ..ImportOptions::default()
            };
            assert!(
                scratch.import("a", &path, &options).is_err(),
                "{name} cut to {length}"
            );
        }
    }
    let absent = said(&scratch, &scratch.path("absent.npy"));
    assert!(absent.contains("No such file"), "{absent}");
    let other = said(&scratch, &scratch.write("text.npy", "x,y,z\n1,2,3\n"));
    assert!(other.contains("none of the files that are read"), "{other}");
    let hdf = said(&scratch, &scratch.write("a.h5", b"\x89HDF\r\n\x1a\n"));
    assert!(hdf.contains("ends too early"), "{hdf}");
}

/// A Zarr array of two chunks in the folder `a.zarr`, with another field.
fn zarr(scratch: &Scratch, name: &str, value: Value) -> std::path::PathBuf {
    let mut array = json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int32",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
        "chunk_key_encoding": { "name": "default" }, "fill_value": 5, "codecs": ["bytes"],
    });
    array[name] = value;
    scratch.write("a.zarr/zarr.json", array.to_string());
    scratch.write("a.zarr/c/0", [1, 0, 0, 0, 2, 0, 0, 0]);
    scratch.path("a.zarr")
}

fn chunks_of(shape: Value) -> Value {
    json!({ "name": "regular", "configuration": { "chunk_shape": shape } })
}

#[test]
fn a_missing_chunk_is_filled_and_a_damaged_one_is_named() {
    let scratch = Scratch::new();
    let path = zarr(&scratch, "attributes", json!({}));
    scratch
        .import("good", &path, &ImportOptions::default())
        .unwrap();
    assert_eq!(
        scratch.values("good").1,
        [1, 2, 5, 5].map(array::Scalar::from)
    );
    let mut writer = array::Writer::begin(&scratch.store).unwrap();
    writer.delete("good").unwrap();
    writer.commit().unwrap();
    for (bytes, expected) in [
        (&[1, 2, 3][..], "has 3 bytes of values where 8 are needed"),
        (&[0; 9][..], "has 9 bytes"),
        (&[0; 8192][..], "is longer than the 8 bytes"),
        (&[][..], "has 0 bytes"),
    ] {
        scratch.write("a.zarr/c/1", bytes);
        let error = scratch
            .import("a", &path, &ImportOptions::default())
            .unwrap_err();
        assert!(matches!(error, Error::Chunk { .. }), "{error:?}");
        let error = error.to_string();
        assert!(
            error.contains(expected) && error.contains("c/1, chunk [1]"),
            "{error}"
        );
    }
    let path = zarr(&scratch, "codecs", json!(["bytes", "zstd"]));
    let error = scratch
        .import("a", &path, &ImportOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("c/0, chunk [0]") && error.contains("zstd"),
        "{error}"
    );
    assert!(array::list(&scratch.store.snapshot()).unwrap().is_empty());
}

#[test]
fn metadata_that_cannot_be_are_refused() {
    let scratch = Scratch::new();
    let far = 1u64 << 40;
    for (name, value, expected) in [
        ("chunk_grid", chunks_of(json!([0])), "do not fit its shape"),
        (
            "chunk_grid",
            chunks_of(json!([2, 2])),
            "do not fit its shape",
        ),
        ("chunk_grid", chunks_of(json!([far])), "too large"),
        ("chunk_grid", chunks_of(json!([u32::MAX])), "memory"),
        ("shape", json!([]), "single value"),
        ("shape", json!(vec![1; 40]), "40 dimensions"),
        ("shape", json!([u64::MAX]), "18 digits"),
        ("node_type", json!("group"), "has no data variable"),
    ] {
        let path = zarr(&scratch, name, value);
        let error = scratch
            .import("a", &path, &ImportOptions::default())
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    scratch.write("a.zarr/zarr.json", "{\"zarr_format\": 3,");
    let error = scratch
        .import("a", &scratch.path("a.zarr"), &ImportOptions::default())
        .unwrap_err();
    assert!(
        error.to_string().contains("zarr.json: is no JSON"),
        "{error}"
    );
}

#[test]
fn an_array_of_few_chunks_in_a_vast_shape_is_read_at_once() {
    let scratch = Scratch::new();
    // 2^50 cells, one chunk: only what is there is looked at.
    let path = zarr(&scratch, "shape", json!([1u64 << 50]));
    let made = scratch
        .import("vast", &path, &ImportOptions::default())
        .unwrap();
    assert_eq!(made.chunks, 1);
}

#[cfg(unix)]
#[test]
fn links_that_lead_back_are_not_followed() {
    let scratch = Scratch::new();
    let path = zarr(&scratch, "shape", json!(vec![4; 12]));
    let text = std::fs::read_to_string(path.join("zarr.json")).unwrap();
    let mut array: Value = serde_json::from_str(&text).unwrap();
    array["chunk_grid"] = chunks_of(json!(vec![2; 12]));
    scratch.write("a.zarr/zarr.json", array.to_string());
    // Followed, these would be 3 to the power of 12 folders.
    for name in ["1", "2", "3"] {
        std::os::unix::fs::symlink(path.join("c"), path.join("c").join(name)).unwrap();
    }
    let made = scratch
        .import("a", &path, &ImportOptions::default())
        .unwrap();
    assert_eq!(made.chunks, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damage_is_a_panic(at in 0..568usize, byte: u8, which in 0..3usize) {
        let name = ["rows.npy", "columns.npy", "two.npz"][which];
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        let mut bytes = std::fs::read(data).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        let scratch = Scratch::new();
        let path = scratch.write("damaged", bytes);
        let member = (which == 2).then(|| "first".to_owned());
        let _ = scratch.import("a", &path, &ImportOptions { member, ..ImportOptions::default() });
    }

    #[test]
    fn no_metadata_is_a_panic(
        name in prop::sample::select(vec!["shape", "data_type", "chunk_grid", "chunk_key_encoding", "codecs", "fill_value", "dimension_names"]),
        value in prop::sample::select(vec![
            json!(null), json!(-1), json!(0), json!(1e300), json!("bytes"), json!([]), json!([0]), json!([1, 2]), json!({}),
            json!([null]), json!(["bytes", "gzip"]), json!({ "name": "regular", "configuration": { "chunk_shape": [1u64 << 63, 4] } }),
        ]),
    ) {
        let scratch = Scratch::new();
        let path = zarr(&scratch, name, value);
        let _ = scratch.import("a", &path, &ImportOptions::default());
    }
}
