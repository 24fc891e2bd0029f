//! What files say of their variables: kept, written back, and read as times.

use array::{Array, Coordinates, MetadataValue, Schema};
use arrayfile::{ExportOptions, Format, ImportOptions, Times};
use serde_json::json;

use crate::scratch::Scratch;

/// A group of version 2 as xarray writes it: `t` over `time` and `x`, with what is said of all of them.
fn group(scratch: &Scratch, units: &str, calendar: Option<&str>) -> std::path::PathBuf {
    let array = |shape: &[u64], dtype: &str, fill: serde_json::Value| {
        json!({
            "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": dtype, "compressor": null,
            "fill_value": fill, "order": "C", "filters": null,
        })
        .to_string()
    };
    scratch.write("g/.zgroup", r#"{"zarr_format": 2}"#);
    let said =
        json!({ "title": "A sea", "Conventions": "CF-1.8", "edition": 3, "nested": { "a": 1 } });
    scratch.write("g/.zattrs", said.to_string());
    scratch.write("g/t/.zarray", array(&[3, 2], "<i2", json!(-99)));
    let said = json!({
        "_ARRAY_DIMENSIONS": ["time", "x"], "units": "K", "long_name": "heat of the säa",
        "scale_factor": 0.5, "valid_range": [0, 100], "flags": [1, 2.5], "coordinates": "where",
    });
    scratch.write("g/t/.zattrs", said.to_string());
    let values = [0i16, 10, -99, 20, 30, 40];
    scratch.write("g/t/0.0", values.map(i16::to_le_bytes).concat());
    scratch.write("g/time/.zarray", array(&[3], "<f8", json!(null)));
    let mut said =
        json!({ "_ARRAY_DIMENSIONS": ["time"], "units": units, "standard_name": "time" });
    if let Some(calendar) = calendar {
        said["calendar"] = calendar.into();
    }
    scratch.write("g/time/.zattrs", said.to_string());
    let times = [0.0f64, 0.25, 2.0];
    scratch
        .write("g/time/0", times.map(f64::to_le_bytes).concat())
        .parent()
        .and_then(|of| of.parent())
        .map(ToOwned::to_owned)
        .unwrap()
}

fn schema(scratch: &Scratch, name: &str) -> Schema {
    let array = Array::open(&scratch.store.snapshot(), name).unwrap();
    array.schema().clone()
}

/// What is said of a part of an array, by name, but for what one format alone says.
fn said(schema: &Schema, part: Option<&str>) -> Vec<(String, MetadataValue)> {
    let mut all = schema.metadata().of(part).to_vec();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn text(name: &str, text: &str) -> (String, MetadataValue) {
    (name.to_owned(), text.into())
}

const STANDARD: Option<&str> = Some("proleptic_gregorian");

#[test]
fn what_is_said_comes_in_and_goes_out_in_all_formats() {
    let scratch = Scratch::new();
    let path = group(&scratch, "days since 2000-01-01", STANDARD);
    let options = ImportOptions::default();
    let made = scratch.import("a", &path, &options).unwrap();
    assert!(made.notes.is_empty(), "{:?}", made.notes);
    let first = schema(&scratch, "a");
    let of_array = vec![
        text("Conventions", "CF-1.8"),
        ("edition".to_owned(), MetadataValue::Numbers(vec![3.into()])),
        text("title", "A sea"),
    ];
    let of_t = [
        (
            "flags".to_owned(),
            MetadataValue::Numbers(vec![1.0.into(), 2.5.into()]),
        ),
        text("long_name", "heat of the säa"),
        text("units", "K"),
    ];
    let of_time = vec![
        text("calendar", "proleptic_gregorian"),
        text("standard_name", "time"),
        text("units", "days since 2000-01-01"),
    ];
    assert_eq!(said(&first, None), of_array, "without what is neither");
    let flags = |schema: &Schema| {
        let of = said(schema, Some("t"));
        of.iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
    };
    let expected: Vec<String> = of_t.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(flags(&first), expected, "without how it was packed");
    assert_eq!(said(&first, Some("time")), of_time);
    let time = first.metadata().time("time").unwrap();
    assert_eq!(time.of_whole(1), Some(946_771_200_000_000));
    assert!(first.metadata().time("t").is_none());
    for (format, path) in [
        (Format::Zarr2, "two.zarr"),
        (Format::Zarr3, "three.zarr"),
        (Format::Hdf5, "a.h5"),
        (Format::NetCdf4, "a.nc"),
        (Format::NetCdf3, "a3.nc"),
    ] {
        let path = scratch.path(path);
        let export = ExportOptions {
            format: Some(format),
            group: matches!(format, Format::Zarr2 | Format::Zarr3),
            ..ExportOptions::default()
        };
        scratch.export("a", &path, &export).unwrap();
        let name = format!("back {format}");
        scratch.import(&name, &path, &options).unwrap();
        let back = schema(&scratch, &name);
        assert_eq!(said(&back, None), of_array, "{format}");
        assert_eq!(flags(&back), expected, "{format}");
        assert_eq!(said(&back, Some("time")), of_time, "{format}");
        assert_eq!(back.metadata().time("time"), Some(time), "{format}");
        assert_eq!(
            back.dimensions()[0].coordinates(),
            first.dimensions()[0].coordinates()
        );
    }
}

#[test]
fn an_array_alone_has_one_place_for_all_that_is_said() {
    let (scratch, options) = (Scratch::new(), ImportOptions::default());
    let path = group(&scratch, "days since 2000-01-01", STANDARD);
    scratch.import("a", &path, &options).unwrap();
    let alone = scratch.path("alone.zarr");
    scratch
        .export("a", &alone, &ExportOptions::default())
        .unwrap();
    scratch.import("alone", &alone, &options).unwrap();
    let back = schema(&scratch, "alone");
    let units = back.metadata().of(Some("value"));
    assert!(units.contains(&text("units", "K")) && units.contains(&text("title", "A sea")));
}

#[test]
fn only_units_and_calendars_that_are_exact_are_times() {
    for (units, calendar, times, expected) in [
        ("days since 2000-01-01", STANDARD, Times::Said, true),
        ("days since 2000-01-01", None, Times::Said, false),
        ("days since 2000-01-01", None, Times::Always, true),
        ("days since 2000-01-01", STANDARD, Times::Never, false),
        (
            "days since 2000-01-01",
            Some("noleap"),
            Times::Always,
            false,
        ),
        (
            "days since 2000-01-01",
            Some("360_day"),
            Times::Always,
            false,
        ),
        ("days since never", STANDARD, Times::Always, false),
        ("days since 300000-01-01", STANDARD, Times::Always, false),
    ] {
        let scratch = Scratch::new();
        let path = group(&scratch, units, calendar);
        let options = ImportOptions {
            times,
            ..ImportOptions::default()
        };
        scratch.import("a", &path, &options).unwrap();
        let schema = schema(&scratch, "a");
        let time = schema.metadata().time("time");
        assert_eq!(time.is_some(), expected, "{units} {calendar:?} {times:?}");
        // What is no time is a number, and what was said of it stays.
        let said = schema.metadata().of(Some("time"));
        assert!(said.contains(&text("units", units)), "{said:?}");
        let coordinates = schema.dimensions()[0].coordinates();
        assert!(matches!(coordinates, Coordinates::Listed(of) if of.len() == 3));
    }
}

#[test]
fn coordinates_beyond_all_times_stay_numbers() {
    let scratch = Scratch::new();
    let path = group(&scratch, "days since 2000-01-01", STANDARD);
    let far = [0.0f64, 1.0, 1e9];
    scratch.write("g/time/0", far.map(f64::to_le_bytes).concat());
    let made = scratch
        .import("a", &path, &ImportOptions::default())
        .unwrap();
    assert!(
        made.notes.iter().any(|of| of.contains("'time'")),
        "{:?}",
        made.notes
    );
    assert!(schema(&scratch, "a").metadata().time("time").is_none());
    // What is no coordinate at all says nothing of the dimension, which counts from 0.
    let absurd = [0.0f64, 1.0, 1e300];
    scratch.write("g/time/0", absurd.map(f64::to_le_bytes).concat());
    scratch
        .import("b", &path, &ImportOptions::default())
        .unwrap();
    let schema = schema(&scratch, "b");
    assert_eq!(
        schema.dimensions()[0].coordinates(),
        &Coordinates::Integer { start: 0 }
    );
    assert!(schema.metadata().of(Some("time")).is_empty());
    assert!(schema.metadata().time("time").is_none());
}

#[test]
fn an_array_alone_whose_values_are_packed_has_no_times() {
    let scratch = Scratch::new();
    group(&scratch, "days since 2000-01-01", STANDARD);
    let (time, options) = (scratch.path("g/time"), ImportOptions::default());
    scratch.import("a", &time, &options).unwrap();
    let plain = schema(&scratch, "a");
    assert!(plain.metadata().time("value").is_some());
    let said = json!({
        "_ARRAY_DIMENSIONS": ["time"], "units": "days since 2000-01-01", "calendar": "standard", "scale_factor": 0.5,
    });
    scratch.write("g/time/.zattrs", said.to_string());
    scratch.import("b", &time, &options).unwrap();
    let packed = schema(&scratch, "b");
    assert!(packed.metadata().time("value").is_none());
    let scale = MetadataValue::Numbers(vec![0.5.into()]);
    let said = packed.metadata().of(Some("value"));
    assert!(
        said.contains(&("scale_factor".to_owned(), scale)),
        "{said:?}"
    );
}
