//! `.zarray` and `.zattrs`: the metadata of version 2.

use array::{DataType, Scalar};
use serde_json::{Value, json};

use crate::npy::header::{descr, of_descr};
use crate::options::Packing;
use crate::zarr::codec::{Codec, USUAL_LEVEL};
use crate::zarr::metadata::{Keys, Metadata, field, fill, fill_json, lengths, names};

/// Reads the metadata of an array.
///
/// # Errors
/// What is wrong or not read, in words.
pub(super) fn parse(array: &Value, attributes: &Value) -> Result<Metadata, String> {
    if field(array, "zarr_format")?.as_u64() != Some(2) {
        return Err("'zarr_format' is not 2".to_owned());
    }
    let Some(name) = field(array, "dtype")?.as_str() else {
        return Err(
            "has records of several fields; write each field as an array of its own".to_owned(),
        );
    };
    let (data_type, big_endian) = of_descr(name)?;
    let shape = lengths(field(array, "shape")?, "shape")?;
    let order: Vec<usize> = match array.get("order").and_then(Value::as_str) {
        None | Some("C") => (0..shape.len()).collect(),
        Some("F") => (0..shape.len()).rev().collect(),
        Some(other) => return Err(format!("'order' is '{other}', not C or F")),
    };
    let filters = array.get("filters").unwrap_or(&Value::Null);
    if !filters.is_null() && filters.as_array().is_none_or(|list| !list.is_empty()) {
        return Err(format!(
            "its values are passed through filters, which are not read: {filters}"
        ));
    }
    let separator = match array.get("dimension_separator").and_then(Value::as_str) {
        None | Some(".") => '.',
        Some("/") => '/',
        Some(other) => return Err(format!("'dimension_separator' is '{other}', not . or /")),
    };
    let codecs = match array.get("compressor") {
        None | Some(Value::Null) => Vec::new(),
        Some(of) => vec![Codec::of_name(
            of.get("id").and_then(Value::as_str).unwrap_or("?"),
        )?],
    };
    Ok(Metadata {
        data_type,
        big_endian,
        chunk: lengths(field(array, "chunks")?, "chunks")?,
        order,
        fill: fill(array.get("fill_value").unwrap_or(&Value::Null), data_type)?,
        codecs,
        keys: Keys {
            prefix: None,
            separator,
        },
        shards: None,
        names: names(attributes.get("_ARRAY_DIMENSIONS"), shape.len()),
        shape,
    })
}

/// The metadata of an array, and its attributes.
pub(super) fn encode(
    data_type: DataType,
    (shape, chunk): (&[u64], &[u64]),
    fill: Scalar,
    packing: Packing,
    names: &[&str],
) -> (Value, Value) {
    let compressor = match packing {
        Packing::None => Value::Null,
        Packing::Usual => json!({ "id": "zstd", "level": USUAL_LEVEL }),
        Packing::Zstd(level) => json!({ "id": "zstd", "level": level }),
        Packing::Gzip(level) => json!({ "id": "gzip", "level": level }),
    };
    let array = json!({
        "zarr_format": 2,
        "shape": shape,
        "chunks": chunk,
        "dtype": descr(data_type),
        "compressor": compressor,
        "fill_value": fill_json(fill),
        "order": "C",
        "filters": null,
        "dimension_separator": ".",
    });
    (array, json!({ "_ARRAY_DIMENSIONS": names }))
}
