//! `zarr.json`: the metadata of version 3.

use array::{DataType, Scalar};
use serde_json::{Value, json};

use crate::options::Packing;
use crate::zarr::codec::{Codec, USUAL_LEVEL};
use crate::zarr::metadata::{Keys, Metadata, field, fill, fill_json, lengths, names};
use crate::zarr::shard::{Index, Shards};

/// Reads the metadata of an array.
///
/// # Errors
/// What is wrong or not read, in words.
pub(super) fn parse(array: &Value) -> Result<Metadata, String> {
    if field(array, "zarr_format")?.as_u64() != Some(3) {
        return Err("'zarr_format' is not 3".to_owned());
    }
    let name = field(array, "data_type")?;
    let data_type = DataType::ALL
        .into_iter()
        .find(|&of| name.as_str() == Some(type_name(of)));
    let data_type = data_type.ok_or_else(|| {
        format!("has the type {name}; bool, int8 to int64, uint8 to uint64, float32 and float64 are read")
    })?;
    let shape = lengths(field(array, "shape")?, "shape")?;
    let grid = field(array, "chunk_grid")?;
    if named(grid) != "regular" {
        return Err(format!(
            "its chunks are not regular but '{}', which is not read",
            named(grid)
        ));
    }
    let chunk = configuration(grid)
        .get("chunk_shape")
        .unwrap_or(&Value::Null);
    let keys = field(array, "chunk_key_encoding")?;
    let separator = configuration(keys).get("separator").and_then(Value::as_str);
    let (prefix, usual) = match named(keys) {
        "default" => (Some("c"), "/"),
        "v2" => (None, "."),
        other => {
            return Err(format!(
                "the names of its chunks are '{other}', which is not read"
            ));
        }
    };
    let separator = match separator.unwrap_or(usual) {
        "." => '.',
        "/" => '/',
        other => return Err(format!("'separator' is '{other}', not . or /")),
    };
    if let Some(list) = array.get("storage_transformers").and_then(Value::as_array)
        && !list.is_empty()
    {
        return Err("it has storage transformers, which are not read".to_owned());
    }
    let coded = codecs(field(array, "codecs")?, shape.len(), true)?;
    let of_attributes = array
        .get("attributes")
        .and_then(|of| of.get("_ARRAY_DIMENSIONS"));
    let given = array.get("dimension_names").filter(|of| !of.is_null());
    Ok(Metadata {
        data_type,
        big_endian: coded.big_endian,
        chunk: lengths(chunk, "chunk_shape")?,
        order: coded.order,
        fill: fill(array.get("fill_value").unwrap_or(&Value::Null), data_type)?,
        codecs: coded.codecs,
        shards: coded.shards,
        keys: Keys { prefix, separator },
        names: names(given.or(of_attributes), shape.len()),
        shape,
    })
}

/// The name of a codec or another extension, which may stand alone.
fn named(value: &Value) -> &str {
    let name = value
        .as_str()
        .or_else(|| value.get("name").and_then(Value::as_str));
    name.unwrap_or("?")
}

fn configuration(value: &Value) -> &Value {
    value.get("configuration").unwrap_or(&Value::Null)
}

/// How a chunk is coded.
struct Coded {
    /// The dimensions as they lie in it, the outermost first.
    order: Vec<usize>,
    big_endian: bool,
    /// How chunks lie in it, if there are some.
    shards: Option<Shards>,
    /// What packs its bytes.
    codecs: Vec<Codec>,
}

/// What a list of codecs says. Chunks that hold chunks are only the outermost.
fn codecs(list: &Value, rank: usize, outermost: bool) -> Result<Coded, String> {
    let list = list.as_array().ok_or("'codecs' is no list")?;
    let mut order: Vec<usize> = (0..rank).collect();
    let mut rest = list.iter().peekable();
    while let Some(transpose) = rest.next_if(|of| named(of) == "transpose") {
        let given = configuration(transpose)
            .get("order")
            .unwrap_or(&Value::Null);
        let by = lengths(given, "order")?;
        let mut sorted = by.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..rank as u64) {
            return Err(format!(
                "'transpose' has the order {given}, which is none of {rank} dimensions"
            ));
        }
        order = by.iter().map(|&at| order[at as usize]).collect();
    }
    let (big_endian, shards) = match rest.next() {
        Some(bytes) if named(bytes) == "bytes" => (is_big_endian(bytes)?, None),
        Some(sharded) if named(sharded) == "sharding_indexed" && outermost => {
            if order.iter().enumerate().any(|(at, &of)| at != of) {
                return Err("its shards are transposed, which is not read".to_owned());
            }
            let (shards, big_endian) = shards(configuration(sharded), rank)?;
            (big_endian, Some(shards))
        }
        Some(other) => {
            return Err(format!(
                "its values pass through '{}', which is not read",
                named(other)
            ));
        }
        None => return Err("'codecs' lacks 'bytes'".to_owned()),
    };
    let packed = rest.map(|of| Codec::of_name(named(of)));
    Ok(Coded {
        order,
        big_endian,
        shards,
        codecs: packed.collect::<Result<_, _>>()?,
    })
}

fn is_big_endian(bytes: &Value) -> Result<bool, String> {
    match configuration(bytes).get("endian").and_then(Value::as_str) {
        None | Some("little") => Ok(false),
        Some("big") => Ok(true),
        Some(other) => Err(format!("'endian' is '{other}', not little or big")),
    }
}

/// How the chunks of a shard lie, and whether their values are big-endian.
fn shards(of: &Value, rank: usize) -> Result<(Shards, bool), String> {
    let inner = codecs(field(of, "codecs")?, rank, false)?;
    let index = codecs(field(of, "index_codecs")?, 1, false)?;
    let checked = match index.codecs[..] {
        [] => false,
        [Codec::Crc32c] => true,
        _ => return Err("the index of its shards is packed, which is not read".to_owned()),
    };
    let first = match of.get("index_location").and_then(Value::as_str) {
        None | Some("end") => false,
        Some("start") => true,
        Some(other) => return Err(format!("'index_location' is '{other}', not start or end")),
    };
    let shards = Shards {
        chunk: lengths(field(of, "chunk_shape")?, "chunk_shape")?,
        order: inner.order,
        codecs: inner.codecs,
        index: Index {
            big_endian: index.big_endian,
            checked,
            first,
        },
    };
    Ok((shards, inner.big_endian))
}

/// The name of a type.
fn type_name(of: DataType) -> &'static str {
    match of {
        DataType::F32 => "float32",
        DataType::F64 => "float64",
        of => of.name(),
    }
}

/// The metadata of an array.
pub(super) fn encode(
    data_type: DataType,
    (shape, chunk): (&[u64], &[u64]),
    fill: Scalar,
    packing: Packing,
    names: &[&str],
) -> Value {
    let bytes = match data_type.width() {
        1 => json!({ "name": "bytes" }),
        _ => json!({ "name": "bytes", "configuration": { "endian": "little" } }),
    };
    let zstd = |level: i32| json!({ "name": "zstd", "configuration": { "level": level, "checksum": false } });
    let packed = match packing {
        Packing::None => None,
        Packing::Usual => Some(zstd(USUAL_LEVEL)),
        Packing::Zstd(level) => Some(zstd(level)),
        Packing::Gzip(level) => {
            Some(json!({ "name": "gzip", "configuration": { "level": level } }))
        }
    };
    let codecs: Vec<Value> = [bytes].into_iter().chain(packed).collect();
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": type_name(data_type),
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": fill_json(fill),
        "codecs": codecs,
        "dimension_names": names,
        "attributes": {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Value {
        encode(
            DataType::I16,
            (&[5, 4], &[2, 3]),
            Scalar::Int(7),
            Packing::Usual,
            &["y", "x"],
        )
    }

    #[test]
    fn what_is_written_reads_back() {
        let read = parse(&sound()).unwrap();
        assert_eq!(
            (read.shape, read.chunk, read.order),
            (vec![5, 4], vec![2, 3], vec![0, 1])
        );
        assert_eq!(
            (read.fill, read.codecs),
            (Some(Scalar::Int(7)), vec![Codec::Zstd])
        );
        assert_eq!(read.names, [Some("y".to_owned()), Some("x".to_owned())]);
    }

    #[test]
    fn orders_of_dimensions_add_up() {
        let mut array = sound();
        let turn = json!({ "name": "transpose", "configuration": { "order": [1, 0] } });
        array["codecs"] = json!([turn, "bytes", "crc32c"]);
        let read = parse(&array).unwrap();
        assert_eq!((read.order, read.codecs), (vec![1, 0], vec![Codec::Crc32c]));
        array["codecs"] = json!([turn, turn, "bytes"]);
        assert_eq!(parse(&array).unwrap().order, [0, 1]);
    }

    #[test]
    fn what_is_not_read_is_named() {
        let sharded = json!([{ "name": "sharding_indexed", "configuration": {} }]);
        let turned =
            json!([{ "name": "transpose", "configuration": { "order": [0, 0] } }, "bytes"]);
        for (name, value, said) in [
            ("zarr_format", json!(4), "'zarr_format' is not 3"),
            ("data_type", json!("complex64"), "\"complex64\""),
            ("data_type", json!({ "name": "struct" }), "struct"),
            ("shape", json!([1.5]), "'shape'"),
            ("shape", json!([-1, 2]), "'shape'"),
            (
                "chunk_grid",
                json!({ "name": "rectilinear" }),
                "'rectilinear'",
            ),
            (
                "chunk_key_encoding",
                json!({ "name": "fanout" }),
                "'fanout'",
            ),
            ("fill_value", json!(1 << 20), "1048576 is no int16"),
            ("codecs", sharded, "lacks 'codecs'"),
            ("codecs", turned, "'transpose'"),
            ("codecs", json!(["bytes", "lzma"]), "'lzma'"),
            ("codecs", json!([]), "lacks 'bytes'"),
        ] {
            let mut array = sound();
            array[name] = value;
            let wrong = parse(&array).unwrap_err();
            assert!(wrong.contains(said), "{wrong}");
        }
        for name in [
            "shape",
            "data_type",
            "chunk_grid",
            "codecs",
            "chunk_key_encoding",
        ] {
            let mut array = sound();
            array.as_object_mut().unwrap().remove(name);
            assert_eq!(parse(&array).unwrap_err(), format!("lacks '{name}'"));
        }
    }
}
