//! HDF5 and NetCDF files that h5py and netCDF4 wrote (`tests/data/hdf/make.py`).

use std::path::PathBuf;

use array::{Coordinates, DataType, Scalar};
use arrayfile::{Format, ImportOptions};

use crate::scratch::Scratch;

pub fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/hdf")
        .join(name)
}

pub fn member(name: &str) -> ImportOptions {
    ImportOptions {
        member: Some(name.to_owned()),
        replace: true,
        ..ImportOptions::default()
    }
}

/// The value that `make.py` gives a cell.
fn cell(at: u64) -> i64 {
    ((7 * at + 3) % 100) as i64
}

fn expected(cells: u64, of: DataType) -> Vec<Scalar> {
    let all = (0..cells).map(|at| Scalar::from(cell(at)).cast(of).unwrap());
    all.collect()
}

/// Cells that were written where `written` says it, and this value elsewhere.
fn partly(cells: u64, elsewhere: i64, written: impl Fn(u64) -> bool) -> Vec<Scalar> {
    let one = |at| if written(at) { cell(at) } else { elsewhere };
    (0..cells).map(|at| Scalar::from(one(at))).collect()
}

/// Checks long lists, and says of them where they differ.
fn differs(got: &[Scalar], expected: &[Scalar], name: &str) {
    assert_eq!(got.len(), expected.len(), "{name}");
    let first = got.iter().zip(expected).position(|(a, b)| a != b);
    assert_eq!(first, None, "{name}: the first cell that differs");
}

/// The values of a data set, whatever the chunks of the array are.
fn values(scratch: &Scratch, file: &str, name: &str) -> Vec<Scalar> {
    let mut first = None;
    for chunk in [None, Some(2), Some(5)] {
        let mut options = member(name);
        let made = scratch.import("a", &data(file), &options);
        let made = made.unwrap_or_else(|error| panic!("{error}"));
        if let Some(chunk) = chunk {
            options.chunk = Some(vec![chunk; made.schema.dimensions().len()]);
            scratch.import("a", &data(file), &options).unwrap();
        }
        let got = scratch.values("a").1;
        assert_eq!(
            first.get_or_insert_with(|| got.clone()),
            &got,
            "{file} {name}"
        );
    }
    first.unwrap()
}

#[test]
fn all_types_of_numbers_are_read() {
    let scratch = Scratch::new();
    for (name, of) in [
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
        for end in ["little", "big"] {
            let name = format!("{end}/{name}");
            assert_eq!(
                values(&scratch, "types.h5", &name),
                expected(15, of),
                "{name}"
            );
            let schema = scratch.values("a").0;
            assert_eq!(schema.attributes()[0].data_type(), of);
            assert_eq!(schema.attributes()[0].name(), &name[end.len() + 1..]);
        }
    }
    assert_eq!(
        values(&scratch, "types.h5", "enum"),
        expected(15, DataType::U8)
    );
    assert_eq!(
        values(&scratch, "types.h5", "of_committed"),
        expected(15, DataType::I16)
    );
    assert_eq!(
        values(&scratch, "types.h5", "half"),
        expected(15, DataType::F32)
    );
    let even: Vec<_> = (0..15).map(|at| Scalar::Bool(cell(at) % 2 == 0)).collect();
    assert_eq!(values(&scratch, "types.h5", "bool"), even);
    // Further names of the same: a hard link, a soft one, and those through a group that lies in itself.
    for name in [
        "same",
        "soft",
        "/soft",
        "ring/again/bool",
        "ring/again/soft",
    ] {
        assert_eq!(values(&scratch, "types.h5", name), even, "{name}");
    }
    let none = scratch
        .import("none", &data("types.h5"), &member("/none"))
        .unwrap();
    assert_eq!((none.schema.shape(), none.chunks), (vec![0, 4], 0));
    assert!(none.schema.dimensions()[0].is_growing());
    assert!(!none.schema.dimensions()[1].is_growing());
}

#[test]
fn what_is_not_read_is_refused_by_name_and_reason() {
    let scratch = Scratch::new();
    for (file, name, said) in [
        (
            "types.h5",
            "complex",
            "'complex' has records (a compound type)",
        ),
        ("types.h5", "text", "'text' has texts"),
        ("types.h5", "fixed", "'fixed' has texts"),
        ("types.h5", "lists", "'lists' has lists of any length"),
        ("types.h5", "arrays", "'arrays' has arrays in each cell"),
        (
            "types.h5",
            "scalar",
            "'scalar' has a single value and no dimensions",
        ),
        ("types.h5", "null", "'null' has no values at all"),
        (
            "types.h5",
            "absent",
            "no variable 'absent'; there are 'arrays' (not read)",
        ),
        ("types.h5", "i1", "no variable 'i1'"),
        (
            "types.h5",
            "bool,none",
            "different dimensions; choose one with --member",
        ),
        ("groups.nc", "deep/name", "'deep/name' has texts"),
        ("records.nc", "name", "'name' has texts"),
    ] {
        let error = scratch
            .import("a", &data(file), &member(name))
            .unwrap_err()
            .to_string();
        assert!(error.contains(said) && error.contains(file), "{error}");
    }
    for (file, said) in [
        ("types.h5", "has variables of different dimensions"),
        ("groups.nc", "'surface/heat'"),
    ] {
        let options = ImportOptions::default();
        let error = scratch
            .import("a", &data(file), &options)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
    assert!(array::list(&scratch.store.snapshot()).unwrap().is_empty());
}

#[test]
fn all_layouts_indexes_and_filters_are_read() {
    let scratch = Scratch::new();
    let whole = expected(35, DataType::I32);
    for file in ["earliest.h5", "latest.h5"] {
        assert_eq!(
            values(&scratch, file, "compact"),
            expected(15, DataType::I32),
            "{file}"
        );
        for name in ["contiguous", "early", "shortened"] {
            assert_eq!(values(&scratch, file, name), whole, "{file} {name}");
        }
        assert_eq!(
            values(&scratch, file, "untouched"),
            partly(35, -5, |_| false),
            "{file}"
        );
        for group in ["chunks", "grows", "both", "one"] {
            for name in ["plain", "gzip", "shuffled", "summed", "all", "lzf"] {
                if file == "earliest.h5" && group != "chunks" && name != "all" {
                    continue;
                }
                let name = format!("{group}/{name}");
                assert_eq!(values(&scratch, file, &name), whole, "{file} {name}");
            }
        }
        let holes = partly(35, -1, |at| {
            (3..6).contains(&(at / 5)) && (2..4).contains(&(at % 5))
        });
        for name in ["holes", "growing_holes", "both_holes"] {
            assert_eq!(values(&scratch, file, name), holes, "{file} {name}");
            let fill = scratch.values("a").0.attributes()[0].fill_value();
            assert_eq!(fill, Scalar::from(-1));
        }
        // Its attributes are so many that they lie beside its header.
        let halves: Vec<_> = (0..35)
            .map(|at| Scalar::Float(cell(at) as f64 / 2.0))
            .collect();
        assert_eq!(values(&scratch, file, "described"), halves, "{file}");
    }
}

#[test]
fn long_indexes_are_read_to_their_end() {
    let scratch = Scratch::new();
    let of = DataType::U8;
    let nine = |cells, from| partly(cells, 9, move |at| (from..from + 10).contains(&at));
    for (name, expected) in [
        ("fixed", expected(1100, of)),
        ("fixed_part", nine(3000, 1500)),
        ("growing", expected(600, of)),
        ("growing_part", nine(140_000, 135_000)),
        ("tree", expected(144, of)),
        ("may_grow", expected(16, of)),
    ] {
        let mut options = member(name);
        let made = scratch.import("a", &data("v110.h5"), &options).unwrap();
        differs(&scratch.values("a").1, &expected, name);
        let rank = made.schema.dimensions().len();
        options.chunk = Some(vec![64; rank]);
        scratch.import("a", &data("v110.h5"), &options).unwrap();
        differs(&scratch.values("a").1, &expected, name);
    }
}

#[test]
fn scales_become_coordinates_and_variables_attributes() {
    let scratch = Scratch::new();
    let options = ImportOptions::default();
    let made = scratch.import("a", &data("scales.h5"), &options).unwrap();
    assert_eq!(made.format, Format::Hdf5);
    let names: Vec<_> = made
        .schema
        .attributes()
        .iter()
        .map(|of| of.name())
        .collect();
    assert_eq!(names, ["salt", "warmth"]);
    let [depth, x] = made.schema.dimensions() else {
        panic!("two dimensions")
    };
    assert_eq!((depth.name(), x.name()), ("depth", "east"));
    let listed = ["0", "10", "25"].map(|of| of.parse().unwrap()).to_vec();
    assert_eq!(depth.coordinates(), &Coordinates::Listed(listed));
    let (start, step) = ("0.1".parse().unwrap(), "0.1".parse().unwrap());
    assert_eq!(x.coordinates(), &Coordinates::Regular { start, step });
    assert_eq!(scratch.column("a", 1), expected(15, DataType::F32));
    let error = scratch
        .import(
            "b",
            &data("scales.h5"),
            &ImportOptions {
                attribute: Some("v".to_owned()),
                ..options
            },
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("one attribute, and the file has 2"),
        "{error}"
    );
}

#[test]
fn netcdf_of_all_versions_is_read_by_the_conventions() {
    let scratch = Scratch::new();
    for (file, format) in [
        ("weather1.nc", Format::NetCdf3),
        ("weather2.nc", Format::NetCdf3),
        ("weather5.nc", Format::NetCdf3),
        ("weather4.nc", Format::Hdf5),
    ] {
        let options = ImportOptions {
            replace: true,
            ..ImportOptions::default()
        };
        let made = scratch.import("w", &data(file), &options);
        let made = made.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((made.format, made.notes), (format, Vec::new()), "{file}");
        let [time, lat, lon] = made.schema.dimensions() else {
            panic!("three dimensions")
        };
        let spans = [time, lat, lon].map(|of| format!("{} {}", of.name(), of.span()));
        assert_eq!(
            spans,
            ["time 10 to 16", "lat 50.25 to 49.75", "lon -10.5 to 0"],
            "{file}"
        );
        assert!(time.is_growing() && !lat.is_growing(), "{file}");
        assert!(
            matches!(lat.coordinates(), Coordinates::Regular { .. }),
            "{file}"
        );
        assert!(
            matches!(lon.coordinates(), Coordinates::Listed(_)),
            "{file}"
        );
        let attributes = made.schema.attributes();
        let at = |name: &str| attributes.iter().position(|of| of.name() == name).unwrap();
        assert_eq!(attributes.len(), 3, "{file}");
        let packed: Vec<_> = (0..30)
            .map(|at| match at {
                29 => Scalar::Null,
                at => Scalar::Float(cell(at) as f64 * 0.5 + 200.0),
            })
            .collect();
        assert_eq!(scratch.column("w", at("t2m")), packed, "{file}");
        let wind = expected(30, DataType::F32);
        let wind = wind.into_iter().map(|of| match of {
            Scalar::Float(3.0) => Scalar::Null,
            of => of,
        });
        assert_eq!(
            scratch.column("w", at("wind")),
            wind.collect::<Vec<_>>(),
            "{file}"
        );
        let flags: Vec<_> = (0..30).map(|at| Scalar::from(2 * cell(at))).collect();
        assert_eq!(scratch.column("w", at("flags")), flags, "{file}");
        assert_eq!(attributes[at("flags")].data_type(), DataType::U8);
        // A coordinate by itself.
        let alone = scratch
            .import("time", &data(file), &member("time"))
            .unwrap();
        assert_eq!(alone.schema.attributes()[0].name(), "time_value");
        assert_eq!(scratch.column("time", 0), [10, 16].map(Scalar::from));
    }
}

#[test]
fn groups_and_records_that_are_not_filled_up_are_read() {
    let scratch = Scratch::new();
    for name in ["surface/heat", "/deep/heat"] {
        assert_eq!(
            values(&scratch, "groups.nc", name),
            expected(4, DataType::F32)
        );
    }
    assert_eq!(
        values(&scratch, "records.nc", "odd"),
        expected(15, DataType::I8)
    );
}

#[test]
fn what_is_no_coordinate_is_said_and_the_dimension_counts() {
    let scratch = Scratch::new();
    let options = ImportOptions::default();
    let made = scratch
        .import("a", &data("unordered.nc"), &options)
        .unwrap();
    let said = [
        "'up' neither rises nor falls: the dimension counts from 0",
        "'far' has the coordinate 1e300, which is no decimal of 18 digits: the dimension counts from 0",
        "'gap' lacks a coordinate: the dimension counts from 0",
    ];
    assert_eq!(made.notes, said);
    let spans: Vec<_> = made
        .schema
        .dimensions()
        .iter()
        .map(|of| of.span())
        .collect();
    assert_eq!(spans, ["0 to 2", "0 to 1", "0 to 2"]);
    assert_eq!(scratch.values("a").1, expected(18, DataType::I16));
}

#[test]
fn links_are_followed_within_a_file_and_not_into_others() {
    let scratch = Scratch::new();
    let wanted: Vec<Scalar> = (0..6).map(Scalar::from).collect();
    // Soft ones from the root, from a group and through a group, and a second name.
    for name in ["soft", "g/near", "folder/real", "hard", "g/real", "/soft"] {
        scratch
            .import("a", &data("links.h5"), &member(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(scratch.values("a").1, wanted, "{name}");
    }
    // The links are no variables of their own.
    scratch
        .import(
            "a",
            &data("links.h5"),
            &ImportOptions {
                replace: true,
                ..ImportOptions::default()
            },
        )
        .unwrap();
    for (file, options, part) in [
        (
            "links.h5",
            member("ext"),
            "'ext' is a link into another file, other.h5",
        ),
        ("links.h5", member("dangling"), "has no variable 'dangling'"),
        (
            "elsewhere.h5",
            ImportOptions::default(),
            "'ext' is a link into another file, other.h5",
        ),
    ] {
        let error = scratch.import("b", &data(file), &options).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}
