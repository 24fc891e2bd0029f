//! HDF5 and NetCDF files that are written, and read back.

use array::{
    Attribute, Block, Column, DataType, Decimal, Dimension, Layout, Region, Scalar, Schema, Writer,
};
use arrayfile::{ExportOptions, Format, ImportOptions, Packing};
use futures::executor::block_on;

use crate::scratch::Scratch;

pub fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

/// Makes an array of these dimensions and attributes, whose cell number i has the value i % 120, or null where that is 7 and
/// can be.
pub fn make(scratch: &Scratch, name: &str, dimensions: Vec<Dimension>, attributes: Vec<Attribute>) {
    make_with(scratch, name, dimensions, attributes, Layout::Dense);
}

/// The same with a layout; of a sparse one only every other cell exists.
pub fn make_with(
    scratch: &Scratch,
    name: &str,
    dimensions: Vec<Dimension>,
    attributes: Vec<Attribute>,
    layout: Layout,
) {
    let schema = Schema::new(dimensions, attributes).unwrap();
    let schema = schema.with_layout(layout);
    let region = Region::of_shape(&schema.shape());
    let cells = schema.cells() as i64;
    let column = |of: &Attribute| {
        let value = |at: i64| match at % 120 {
            7 if of.is_nullable() => Scalar::Null,
            at if of.data_type() == DataType::Bool => Scalar::Bool(at % 3 == 0),
            at => Scalar::from(at),
        };
        let values: Vec<Scalar> = (0..cells).map(value).collect();
        Some(Column::of_scalars(of.data_type(), &values).unwrap())
    };
    let columns = schema.attributes().iter().map(column).collect();
    let mut writer = Writer::begin(&scratch.store).unwrap();
    writer.create(name, &schema).unwrap();
    if cells > 0 {
        let block = Block::new(region, columns).unwrap();
        let block = match layout {
            Layout::Sparse => {
                block.with_present((0..cells).map(|at| u8::from(at % 2 == 0)).collect())
            }
            Layout::Dense => block,
        };
        block_on(writer.write(name, &block)).unwrap();
    }
    writer.commit().unwrap();
}

fn space() -> Vec<Dimension> {
    vec![
        Dimension::integer("year", 1990, 4).chunk(3).growing(),
        Dimension::regular("lat", decimal("50.25"), decimal("-0.25"), 5).chunk(2),
        Dimension::listed("depth", ["0", "2.5", "10.1"].map(decimal).to_vec()),
        Dimension::integer("x", 0, 6),
    ]
}

#[test]
fn arrays_come_back_with_coordinates_attributes_and_nulls() {
    let scratch = Scratch::new();
    let of_types = |types: &[DataType]| {
        let both = types.iter().flat_map(|&of| {
            let plain = Attribute::new(of.name(), of);
            [
                plain,
                Attribute::new(&format!("{of}_or_null"), of).nullable(),
            ]
        });
        both.collect::<Vec<_>>()
    };
    let classic = [
        DataType::I8,
        DataType::I16,
        DataType::I32,
        DataType::F32,
        DataType::F64,
    ];
    let large = [
        DataType::U8,
        DataType::U16,
        DataType::U32,
        DataType::I64,
        DataType::U64,
    ];
    let all = [classic, large].concat();
    for (name, types, format) in [
        ("classic", &classic[..], Format::NetCdf3),
        ("large", &large, Format::NetCdf3),
        ("four", &all, Format::NetCdf4),
        ("hdf", &all, Format::Hdf5),
    ] {
        make(&scratch, name, space(), of_types(types));
        let path = scratch.path(&format!("{name}.file"));
        let options = ExportOptions {
            format: Some(format),
            ..ExportOptions::default()
        };
        let written = scratch.export(name, &path, &options).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let front: &[u8] = match name {
            "classic" => b"CDF\x02",
            "large" => b"CDF\x05",
            _ => b"\x89HDF",
        };
        assert_eq!(&bytes[..4], front);
        assert_eq!(bytes.len() as u64, written.written);
        let back = format!("{name}_back");
        scratch
            .import(&back, &path, &ImportOptions::default())
            .unwrap();
        came_back(&scratch, (name, &back), format != Format::NetCdf3);
    }
}

/// Whether an array came back from a file that keeps which dimensions grow, or has them all of one length.
fn came_back(scratch: &Scratch, (name, back): (&str, &str), grows: bool) {
    let open = |name| array::Array::open(&scratch.store.snapshot(), name).unwrap();
    let (before, after) = (open(name), open(back));
    let (before, after) = (before.schema(), after.schema());
    for (a, b) in before.dimensions().iter().zip(after.dimensions()) {
        assert_eq!((a.name(), a.coordinates()), (b.name(), b.coordinates()));
        assert_eq!(b.is_growing(), a.is_growing() && grows, "{}", a.name());
    }
    assert_eq!(before.attributes().len(), after.attributes().len());
    for (at, (a, b)) in before
        .attributes()
        .iter()
        .zip(after.attributes())
        .enumerate()
    {
        let of = |of: &Attribute| (of.name().to_owned(), of.data_type(), of.is_nullable());
        assert_eq!(of(a), of(b));
        let [a, b] = [name, back].map(|of| scratch.column(of, at));
        assert_eq!(a, b, "attribute {at}");
    }
}

#[test]
fn one_attribute_is_chosen_and_a_bool_comes_back() {
    for format in [Format::NetCdf3, Format::NetCdf4, Format::Hdf5] {
        a_bool_comes_back(format);
    }
}

fn a_bool_comes_back(format: Format) {
    let scratch = Scratch::new();
    let attributes = vec![
        Attribute::new("a", DataType::Bool),
        Attribute::new("b", DataType::I16),
    ];
    make(
        &scratch,
        "two",
        vec![Dimension::integer("x", 0, 5)],
        attributes,
    );
    let options = ExportOptions {
        attribute: Some("a".to_owned()),
        format: Some(format),
        ..ExportOptions::default()
    };
    let path = scratch.path("one.nc");
    scratch.export("two", &path, &options).unwrap();
    let made = scratch
        .import("one", &path, &ImportOptions::default())
        .unwrap();
    assert_eq!(made.schema.attributes().len(), 1);
    assert_eq!(made.schema.attributes()[0].data_type(), DataType::Bool);
    assert_eq!(scratch.column("one", 0), scratch.column("two", 0));
    // One that may be null has three values.
    let nullable = vec![Attribute::new("a", DataType::Bool).nullable()];
    make(
        &scratch,
        "three",
        vec![Dimension::integer("x", 0, 9)],
        nullable,
    );
    let path = scratch.path("three.nc");
    let options = ExportOptions {
        format: Some(format),
        ..ExportOptions::default()
    };
    scratch.export("three", &path, &options).unwrap();
    let made = scratch
        .import("byte", &path, &ImportOptions::default())
        .unwrap();
    assert_eq!(made.schema.attributes()[0].data_type(), DataType::I8);
    let bytes = scratch.column("byte", 0);
    assert_eq!(
        (bytes[7], bytes[6], bytes[8]),
        (Scalar::Null, Scalar::from(1), Scalar::from(0))
    );
}

#[test]
fn what_a_file_of_variables_cannot_have_is_said_and_leaves_nothing() {
    let scratch = Scratch::new();
    let plain = |name: &str| vec![Attribute::new(name, DataType::I32)];
    let x = |length| vec![Dimension::integer("x", 0, length)];
    make(&scratch, "none", x(0), plain("v"));
    make(&scratch, "slash", x(3), plain("a/b"));
    let long = Dimension::regular("x", decimal("0.1234567890123456"), decimal("0.1"), 30);
    make(&scratch, "long", vec![long], plain("v"));
    let nullable = Attribute::new("v", DataType::I32).nullable();
    make(&scratch, "nulls", x(20), vec![nullable]);
    let many = (0..2001).map(|at| Attribute::new(&format!("a{at}"), DataType::I8));
    make(&scratch, "many", x(1), many.collect());
    let wide = Dimension::integer("x", 0, 1 << 40).chunk(1 << 31);
    let schema = Schema::new(vec![wide], plain("v")).unwrap();
    let mut writer = Writer::begin(&scratch.store).unwrap();
    writer.create("wide", &schema).unwrap();
    writer.commit().unwrap();

    let options = |format, null: Option<i64>, packing| ExportOptions {
        format: Some(format),
        null: null.map(Scalar::from),
        packing,
        ..ExportOptions::default()
    };
    let usual = |format| options(format, None, Packing::Usual);
    let refused = |name: &str, options: &ExportOptions, said: &str| {
        let error = scratch.export(name, &scratch.path("a"), options);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(said), "{name} {options:?}: {error}");
        assert!(scratch.files().is_empty(), "{:?}", scratch.files());
    };
    let (hdf5, four, three) = (Format::Hdf5, Format::NetCdf4, Format::NetCdf3);
    for format in [hdf5, four, three] {
        refused("slash", &usual(format), "no name 'a/b'");
        refused("long", &usual(format), "more digits than a double");
        let five = options(format, Some(5), Packing::Usual);
        let said = "has the value 5, which is to stand for cells without a value";
        refused("nulls", &five, said);
        if format != three {
            refused("many", &usual(format), "more than 2000 attributes");
            let zstd = options(format, None, Packing::Zstd(3));
            refused("slash", &zstd, "take --pack gzip");
        }
    }
    refused("none", &usual(three), "has no cells");
    let gzip = options(three, None, Packing::Gzip(3));
    refused("slash", &gzip, "never compressed");
    let much = block_on(arrayfile::export(
        &scratch.store.snapshot(),
        "wide",
        &scratch.path("a"),
        &usual(hdf5),
        crate::scratch::job(1 << 40),
    ));
    let much = much.unwrap_err().to_string();
    assert!(much.contains("chunks of more than 4 GiB"), "{much}");

    for format in [hdf5, four, three] {
        let path = scratch.path(format.name());
        let options = options(format, Some(-1), Packing::Usual);
        scratch.export("nulls", &path, &options).unwrap();
        let again = ImportOptions {
            replace: true,
            ..ImportOptions::default()
        };
        scratch.import("back", &path, &again).unwrap();
        assert_eq!(scratch.column("back", 0), scratch.column("nulls", 0));
    }
}
