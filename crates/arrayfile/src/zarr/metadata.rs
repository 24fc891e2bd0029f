//! What the metadata of both versions of Zarr say.

use array::{DataType, MAX_DIMENSIONS, Scalar};
use serde_json::Value;

use crate::zarr::codec::Codec;
use crate::zarr::shard::Shards;

/// The most cells of a chunk.
const MOST_CELLS: u64 = u32::MAX as u64;

/// A Zarr array as its metadata say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metadata {
    pub data_type: DataType,
    /// Whether values have their most significant byte first.
    pub big_endian: bool,
    pub shape: Vec<u64>,
    /// The cells of a chunk along each dimension, also of one at the edge.
    pub chunk: Vec<u64>,
    /// The dimensions as they lie in a chunk, the outermost first.
    pub order: Vec<usize>,
    /// What cells have whose chunk was never written; zero if it is not said.
    pub fill: Option<Scalar>,
    /// In the order in which chunks were packed.
    pub codecs: Vec<Codec>,
    pub keys: Keys,
    /// How chunks lie within chunks, if they do. The codecs are then those of the chunks that hold others.
    pub shards: Option<Shards>,
    pub names: Vec<Option<String>>,
}

/// How the files of chunks are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    /// What the name begins with, if there is such a thing.
    pub prefix: Option<&'static str>,
    /// What stands between its parts: `.`, or `/`, which makes folders.
    pub separator: char,
}

impl Keys {
    /// The name of a chunk's file, from the folder of the array on.
    pub fn name(&self, chunk: &[u64]) -> String {
        let prefix = self.prefix.map(str::to_owned);
        let numbers = chunk.iter().map(u64::to_string);
        let parts: Vec<String> = prefix.into_iter().chain(numbers).collect();
        parts.join(self.separator.encode_utf8(&mut [0; 4]))
    }

    /// Which chunk a file has, if it is one of a chunk's.
    pub fn parse(&self, name: &str, rank: usize) -> Option<Vec<u64>> {
        let mut parts = name.split(self.separator);
        if let Some(prefix) = self.prefix
            && parts.next() != Some(prefix)
        {
            return None;
        }
        let numbers: Option<Vec<u64>> = parts.map(|part| part.parse().ok()).collect();
        // `007` and `+7` are no names of a chunk.
        numbers.filter(|of| of.len() == rank && self.name(of) == name)
    }
}

impl Metadata {
    /// Checks lengths.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        let rank = self.shape.len();
        if rank == 0 {
            return Err(
                "has a single value and no dimensions; write it with one dimension".to_owned(),
            );
        }
        if rank > MAX_DIMENSIONS {
            return Err(format!(
                "has {rank} dimensions; there can be {MAX_DIMENSIONS}"
            ));
        }
        if self.chunk.len() != rank || self.chunk.contains(&0) {
            let (shape, chunk) = (&self.shape, &self.chunk);
            return Err(format!(
                "its chunks of {chunk:?} cells do not fit its shape {shape:?}"
            ));
        }
        let cells = self
            .chunk
            .iter()
            .try_fold(1u64, |all, &of| all.checked_mul(of));
        if cells.is_none_or(|cells| cells > MOST_CELLS) {
            let chunk = &self.chunk;
            return Err(format!(
                "its chunks of {chunk:?} cells are too large; write it with shorter ones"
            ));
        }
        self.shards.iter().try_for_each(|of| of.check(&self.chunk))
    }

    /// The bytes of a chunk, unpacked.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk.iter().product::<u64>() as usize * self.data_type.width()
    }
}

/// A field of an object that must be there.
///
/// # Errors
/// That it is missing.
pub(super) fn field<'a>(object: &'a Value, name: &str) -> Result<&'a Value, String> {
    object.get(name).ok_or_else(|| format!("lacks '{name}'"))
}

/// A list of lengths.
///
/// # Errors
/// That the field `name` is none.
pub(super) fn lengths(value: &Value, name: &str) -> Result<Vec<u64>, String> {
    let list = value.as_array().map(|list| list.iter().map(Value::as_u64));
    let list = list.and_then(Iterator::collect::<Option<Vec<u64>>>);
    list.ok_or_else(|| format!("'{name}' is no list of lengths"))
}

/// The names of dimensions, of which each may be missing.
pub(super) fn names(value: Option<&Value>, rank: usize) -> Vec<Option<String>> {
    let list = value
        .and_then(Value::as_array)
        .filter(|list| list.len() == rank);
    match list {
        Some(list) => list
            .iter()
            .map(|of| of.as_str().map(str::to_owned))
            .collect(),
        None => vec![None; rank],
    }
}

/// A fill value; `None` where it is null, which leaves open what it is.
///
/// # Errors
/// That it is no value of that type.
pub(super) fn fill(value: &Value, data_type: DataType) -> Result<Option<Scalar>, String> {
    let scalar = match value {
        Value::Null => return Ok(None),
        Value::Bool(value) => Some(Scalar::Bool(*value)),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => Some(Scalar::Int(whole.into())),
            (None, Some(whole), _) => Some(Scalar::Int(whole.into())),
            (None, None, float) => float.map(Scalar::Float),
        },
        Value::String(text) if data_type.is_float() => float(text, data_type).map(Scalar::Float),
        _ => None,
    };
    let fitting = scalar.and_then(|of| of.cast(data_type));
    fitting
        .map(Some)
        .ok_or_else(|| format!("its fill value {value} is no {data_type}"))
}

/// A float as a text: a word, or its bits.
fn float(text: &str, data_type: DataType) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => {
            let bits = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
            match data_type {
                DataType::F32 => Some(f64::from(f32::from_bits(u32::try_from(bits).ok()?))),
                _ => Some(f64::from_bits(bits)),
            }
        }
    }
}

/// A fill value as JSON.
pub(super) fn fill_json(fill: Scalar) -> Value {
    match fill {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => value.into(),
        Scalar::Int(value) => match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => Value::Null,
        },
        Scalar::Float(value) if value.is_nan() => "NaN".into(),
        Scalar::Float(f64::INFINITY) => "Infinity".into(),
        Scalar::Float(f64::NEG_INFINITY) => "-Infinity".into(),
        Scalar::Float(value) => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fill_values_are_read_as_they_are_written() {
        let is = |value: Value, of: DataType, expected: Scalar| {
            assert_eq!(fill(&value, of).unwrap(), Some(expected), "{value}");
            let again = fill(&fill_json(expected), of).unwrap();
            assert_eq!(again, Some(expected), "{value}");
        };
        is(json!("NaN"), DataType::F64, Scalar::Float(f64::NAN));
        is(
            json!("-Infinity"),
            DataType::F32,
            Scalar::Float(f64::NEG_INFINITY),
        );
        is(json!("0x3f800000"), DataType::F32, Scalar::Float(1.0));
        is(json!(0.0), DataType::I16, Scalar::Int(0));
        is(json!(u64::MAX), DataType::U64, Scalar::Int(u64::MAX.into()));
        is(json!(i64::MIN), DataType::I64, Scalar::Int(i64::MIN.into()));
        is(json!(true), DataType::Bool, Scalar::Bool(true));
        is(json!(0), DataType::Bool, Scalar::Bool(false));
        assert_eq!(fill(&json!(null), DataType::I8).unwrap(), None);
        for (wrong, of) in [
            (json!(300), DataType::U8),
            (json!(0.5), DataType::I8),
            (json!("NaN"), DataType::I8),
            (json!("AAAA"), DataType::F32),
            (json!([0]), DataType::F32),
        ] {
            let said = fill(&wrong, of).unwrap_err();
            assert!(said.contains(&format!("{wrong} is no {of}")), "{said}");
        }
    }

    #[test]
    fn names_of_chunks_are_read_back_and_no_others() {
        for (prefix, separator, name) in [
            (None, '.', "3.0"),
            (None, '/', "3/0"),
            (Some("c"), '/', "c/3/0"),
            (Some("c"), '.', "c.3.0"),
        ] {
            let keys = Keys { prefix, separator };
            assert_eq!(keys.name(&[3, 0]), name);
            assert_eq!(keys.parse(name, 2), Some(vec![3, 0]));
            for other in ["zarr.json", "3", "c", "c/3", "03.0", "+3.0", "3.0.0", ""] {
                assert_eq!(keys.parse(other, 2), None, "{other}");
            }
        }
    }
}
