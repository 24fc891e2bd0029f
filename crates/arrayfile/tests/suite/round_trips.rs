//! What is written reads back: random arrays, through each format.

use array::{
    Attribute, Block, Buffer, Column, DataType, Dimension, Layout, Region, Scalar, Schema, Writer,
};
use arrayfile::{ExportOptions, Format, ImportOptions, Packing};
use futures::executor::block_on;
use proptest::prelude::*;

use crate::scratch::Scratch;

/// A value that people write, or one at an edge.
fn value(of: DataType) -> BoxedStrategy<Scalar> {
    let (least, most) = of.bounds();
    match of {
        DataType::Bool => any::<bool>().prop_map(Scalar::Bool).boxed(),
        _ if of.is_float() => {
            prop::sample::select(vec![0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, -3.25e10, 7.0])
                .prop_map(move |value| Scalar::Float(value).cast(of).unwrap())
                .boxed()
        }
        _ => prop::sample::select(vec![0, 1, 2, 77, least, most])
            .prop_map(Scalar::Int)
            .boxed(),
    }
}

/// A schema of one attribute, and for each cell its value or nothing.
fn arrays() -> impl Strategy<Value = (Schema, Vec<Option<Scalar>>)> {
    let axis = (0..7u64, 1..5u64);
    let kind = (
        prop::sample::select(DataType::ALL.to_vec()),
        any::<bool>(),
        any::<bool>(),
    );
    (prop::collection::vec(axis, 1..4), kind).prop_flat_map(|(axes, (of, nullable, sparse))| {
        let dimensions = axes.iter().enumerate();
        let dimensions = dimensions.map(|(at, &(length, chunk))| {
            Dimension::integer(&format!("d{at}"), 0, length).chunk(chunk)
        });
        let dimensions: Vec<_> = dimensions.collect();
        let cells = axes.iter().map(|of| of.0).product::<u64>() as usize;
        (
            value(of),
            prop::collection::vec(prop::option::weighted(0.8, value(of)), cells),
        )
            .prop_map(move |(fill, values)| {
                let attribute = Attribute::new("v", of);
                let attribute = if nullable {
                    attribute.nullable()
                } else {
                    attribute.fill(fill)
                };
                let layout = if sparse {
                    Layout::Sparse
                } else {
                    Layout::Dense
                };
                (
                    Schema::new(dimensions.clone(), vec![attribute])
                        .unwrap()
                        .with_layout(layout),
                    values,
                )
            })
    })
}

/// Writes the array `a`: nothing is a null where there can be one, a cell that does not exist where there can be none, and
/// else the fill value. What is expected in a file, with `stand_in` for nothing.
fn write(
    scratch: &Scratch,
    schema: &Schema,
    values: &[Option<Scalar>],
    stand_in: Scalar,
) -> Vec<Scalar> {
    let attribute = &schema.attributes()[0];
    let mut writer = Writer::begin(&scratch.store).unwrap();
    writer.create("a", schema).unwrap();
    let region = Region::of_shape(&schema.shape());
    let fill = attribute.fill_value();
    let of = attribute.data_type();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| {
            Buffer::filled(of, 1, value.unwrap_or(Scalar::Null))
                .bytes()
                .to_vec()
        })
        .collect();
    let mut buffer = Buffer::zeros(of, values.len());
    for (at, value) in bytes.chunks(of.width()).enumerate() {
        set(&mut buffer, at, value);
    }
    let there: Vec<u8> = values
        .iter()
        .map(|value| u8::from(value.is_some()))
        .collect();
    let column = if attribute.is_nullable() {
        Column::nullable(buffer, there.clone())
    } else {
        Column::new(buffer)
    };
    let block = Block::new(region, vec![Some(column)]).unwrap();
    let block = if attribute.is_nullable() {
        block
    } else {
        block.with_present(there)
    };
    block_on(writer.write("a", &block)).unwrap();
    writer.commit().unwrap();
    let hole = if schema.layout() == Layout::Dense && !attribute.is_nullable() {
        fill
    } else {
        stand_in
    };
    values.iter().map(|value| value.unwrap_or(hole)).collect()
}

fn set(buffer: &mut Buffer, at: usize, bytes: &[u8]) {
    macro_rules! with {
        ($($of:ident $native:ty),*) => {
            match buffer.data_type() {
                DataType::Bool => buffer.values_mut::<u8>()[at] = bytes[0],
                $(DataType::$of => buffer.values_mut::<$native>()[at] = <$native>::from_le_bytes(bytes.try_into().unwrap()),)*
            }
        };
    }
    with!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn arrays_come_back_from_files(
        (schema, values) in arrays(),
        format in prop::sample::select(vec![Format::Npy, Format::Zarr2, Format::Zarr3]),
        packing in prop::sample::select(vec![Packing::None, Packing::Usual, Packing::Zstd(1), Packing::Gzip(6)]),
        chunk in 0..4u64,
    ) {
        let scratch = Scratch::new();
        let of = schema.attributes()[0].data_type();
        let null = Scalar::Int(1).cast(of).unwrap();
        let expected = write(&scratch, &schema, &values, null);
        let path = scratch.path("file");
        let options = ExportOptions {
            format: Some(format),
            packing: if format == Format::Npy { Packing::Usual } else { packing },
            null: Some(null),
            ..ExportOptions::default()
        };
        let exported = scratch.export("a", &path, &options).unwrap();
        prop_assert_eq!(exported.bytes, (values.len() * of.width()) as u64);
        let rank = schema.dimensions().len();
        let options = ImportOptions {
            chunk: (chunk > 0).then(|| vec![chunk; rank]),
            attribute: Some("v".to_owned()),
            ..ImportOptions::default()
        };
        scratch.import("b", &path, &options).unwrap();
        let (back, read) = scratch.values("b");
        prop_assert_eq!(read, expected);
        prop_assert_eq!(back.shape(), schema.shape());
        prop_assert_eq!(back.attributes()[0].data_type(), of);
        if format != Format::Npy {
            let names = |of: &Schema| of.dimensions().iter().map(|of| of.name().to_owned()).collect::<Vec<_>>();
            prop_assert_eq!(names(&back), names(&schema));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn arrays_come_back_from_files_of_variables(
        (schema, values) in arrays(),
        format in prop::sample::select(vec![Format::Hdf5, Format::NetCdf4, Format::NetCdf3]),
        packing in prop::sample::select(vec![Packing::Usual, Packing::Gzip(6)]),
        chunk in 0..4u64,
    ) {
        let scratch = Scratch::new();
        let three = format == Format::NetCdf3;
        prop_assume!(!three || schema.cells() > 0);
        let attribute = &schema.attributes()[0];
        let of = attribute.data_type();
        let lacks = attribute.is_nullable() || schema.layout() == Layout::Sparse;
        let mut expected = write(&scratch, &schema, &values, Scalar::Null);
        let path = scratch.path("file");
        let options = ExportOptions {
            format: Some(format),
            packing: if three { Packing::Usual } else { packing },
            ..ExportOptions::default()
        };
        let exported = scratch.export("a", &path, &options);
        let usual = usual_null(of);
        if lacks && expected.contains(&usual) {
            let error = exported.unwrap_err().to_string();
            prop_assert!(error.contains("is to stand for cells without a value"), "{}", error);
            return Ok(());
        }
        exported.unwrap();
        let rank = schema.dimensions().len();
        let options = ImportOptions {
            chunk: (chunk > 0).then(|| vec![chunk; rank]),
            ..ImportOptions::default()
        };
        scratch.import("b", &path, &options).unwrap();
        let (back, read) = scratch.values("b");
        let mut read_type = of;
        if lacks && of == DataType::Bool {
            read_type = DataType::I8;
            let byte = |of: &Scalar| of.cast(DataType::I8).unwrap_or(Scalar::Null);
            expected = expected.iter().map(byte).collect();
        }
        prop_assert_eq!(read, expected);
        prop_assert_eq!(back.shape(), schema.shape());
        prop_assert_eq!(back.attributes()[0].data_type(), read_type);
        let names = |of: &Schema| of.dimensions().iter().map(|of| of.name().to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(names(&back), names(&schema));
    }
}

/// What the libraries of NetCDF take for a cell without a value.
fn usual_null(of: DataType) -> Scalar {
    match of {
        DataType::Bool | DataType::F32 | DataType::F64 => Scalar::Float(f64::NAN),
        DataType::I8 => Scalar::from(-127),
        DataType::U8 => Scalar::from(255),
        DataType::I16 => Scalar::from(-32_767),
        DataType::U16 => Scalar::from(65_535),
        DataType::I32 => Scalar::from(-2_147_483_647),
        DataType::U32 => Scalar::Int(4_294_967_295),
        DataType::I64 => Scalar::Int(-9_223_372_036_854_775_806),
        DataType::U64 => Scalar::Int(18_446_744_073_709_551_614),
    }
}

#[test]
fn what_a_file_cannot_have_is_said() {
    let scratch = Scratch::new();
    let schema = Schema::new(
        vec![Dimension::integer("x", 0, 3)],
        vec![
            Attribute::new("n", DataType::I32).nullable(),
            Attribute::new("f", DataType::F64).nullable(),
        ],
    );
    let mut writer = Writer::begin(&scratch.store).unwrap();
    writer.create("a", &schema.unwrap()).unwrap();
    writer.commit().unwrap();
    let with = |attribute: Option<&str>, null: Option<Scalar>| ExportOptions {
        attribute: attribute.map(str::to_owned),
        null,
        ..ExportOptions::default()
    };
    for (name, file, options, said) in [
        ("a", "a.npy", with(None, None), "choose one of 'n', 'f'"),
        ("a", "a.npy", with(Some("g"), None), "no attribute 'g'"),
        ("a", "a.npy", with(Some("n"), None), "without a value"),
        (
            "a",
            "a.npy",
            with(Some("n"), Some(Scalar::Float(0.5))),
            "0.5 cannot stand for nulls",
        ),
        (
            "a",
            "a.txt",
            with(Some("f"), None),
            "end it with .npy, .npz, .h5, .nc or .zarr",
        ),
        ("b", "a.npy", with(Some("f"), None), "no array 'b'"),
        ("a", "none/a.npy", with(Some("f"), None), "none"),
        ("a", "none/a.zarr", with(Some("f"), None), "none"),
        (
            "a",
            "a.npy",
            ExportOptions {
                packing: Packing::Gzip(3),
                ..with(Some("f"), None)
            },
            "never compressed",
        ),
    ] {
        let error = scratch
            .export(name, &scratch.path(file), &options)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
    // Nulls of floats are NaN, and what is there is not written over.
    scratch
        .export("a", &scratch.path("f.npy"), &with(Some("f"), None))
        .unwrap();
    let error = scratch
        .export("a", &scratch.path("f.npy"), &with(Some("f"), None))
        .unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    scratch
        .import("f", &scratch.path("f.npy"), &ImportOptions::default())
        .unwrap();
    assert_eq!(scratch.values("f").1, [Scalar::from(f64::NAN); 3]);
}
