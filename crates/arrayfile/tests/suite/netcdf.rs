//! NetCDF files that are written, and read back.

use array::{
    Attribute, Block, Column, DataType, Decimal, Dimension, Region, Scalar, Schema, Writer,
};
use arrayfile::{ExportOptions, Format, ImportOptions};
use futures::executor::block_on;

use crate::scratch::Scratch;

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

/// Makes an array of these dimensions and attributes, whose cell number i has the value i % 120, or null where that is 7 and
/// can be.
fn make(scratch: &Scratch, name: &str, dimensions: Vec<Dimension>, attributes: Vec<Attribute>) {
    let schema = Schema::new(dimensions, attributes).unwrap();
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
        block_on(writer.write(name, &Block::new(region, columns).unwrap())).unwrap();
    }
    writer.commit().unwrap();
}

fn space() -> Vec<Dimension> {
    vec![
        Dimension::integer("year", 1990, 4).chunk(3),
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
    for (name, types, version) in [("classic", classic, 2), ("large", large, 5)] {
        make(&scratch, name, space(), of_types(&types));
        let path = scratch.path(&format!("{name}.nc"));
        let written = scratch
            .export(name, &path, &ExportOptions::default())
            .unwrap();
        assert_eq!(written.format, Format::NetCdf3);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[..4], [b'C', b'D', b'F', version]);
        assert_eq!(bytes.len() as u64, written.written);
        let back = format!("{name}_back");
        scratch
            .import(&back, &path, &ImportOptions::default())
            .unwrap();
        let before = array::Array::open(&scratch.store.snapshot(), name).unwrap();
        let after = array::Array::open(&scratch.store.snapshot(), &back).unwrap();
        let (before, after) = (before.schema(), after.schema());
        for (a, b) in before.dimensions().iter().zip(after.dimensions()) {
            assert_eq!((a.name(), a.coordinates()), (b.name(), b.coordinates()));
        }
        for (at, (a, b)) in before
            .attributes()
            .iter()
            .zip(after.attributes())
            .enumerate()
        {
            let of = |of: &Attribute| (of.name().to_owned(), of.data_type(), of.is_nullable());
            assert_eq!(of(a), of(b));
            assert_eq!(
                scratch.column(name, at),
                scratch.column(&back, at),
                "{}",
                a.name()
            );
        }
    }
}

#[test]
fn one_attribute_is_chosen_and_a_bool_comes_back() {
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
    scratch
        .export("three", &path, &ExportOptions::default())
        .unwrap();
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
fn what_a_netcdf_cannot_have_is_said_and_leaves_nothing() {
    let scratch = Scratch::new();
    let plain = |name: &str| vec![Attribute::new(name, DataType::I32)];
    let x = |length| vec![Dimension::integer("x", 0, length)];
    make(&scratch, "none", x(0), plain("v"));
    make(&scratch, "slash", x(3), plain("a/b"));
    let long = Dimension::regular("x", decimal("0.1234567890123456"), decimal("0.1"), 30);
    make(&scratch, "long", vec![long], plain("v"));
    make(
        &scratch,
        "nulls",
        x(20),
        vec![Attribute::new("v", DataType::I32).nullable()],
    );
    let null = |null: i64| ExportOptions {
        null: Some(Scalar::from(null)),
        ..ExportOptions::default()
    };
    for (name, options, said) in [
        ("none", ExportOptions::default(), "has no cells"),
        (
            "slash",
            ExportOptions::default(),
            "NetCDF has no name 'a/b'",
        ),
        (
            "long",
            ExportOptions::default(),
            "more digits than a double",
        ),
        (
            "nulls",
            null(5),
            "has the value 5, which is to stand for cells without a value",
        ),
    ] {
        let error = scratch
            .export(name, &scratch.path("a.nc"), &options)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
    let path = scratch.path("a.nc");
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
    scratch.export("nulls", &path, &null(-1)).unwrap();
    scratch
        .import("back", &path, &ImportOptions::default())
        .unwrap();
    assert_eq!(scratch.column("back", 0), scratch.column("nulls", 0));
}
