//! Attributes of arrays and groups of Zarr: what JSON says, as numbers and texts.

use array::{DataType, Entries, MetadataValue as Value, Scalar};
use serde_json::{Map, Value as Json};

use crate::zarr::metadata::{fill, fill_json};

/// What an object of attributes says; its array has values of this type.
pub(super) fn all(attributes: &Json, data_type: Option<DataType>) -> Entries {
    let fields = attributes.as_object().into_iter().flatten();
    let one = |(name, value): (&String, &Json)| {
        value_of(name, value, data_type).map(|value| (name.clone(), value))
    };
    fields.filter_map(one).collect()
}

/// Adds entries to an object of attributes, which has none of these names.
pub(super) fn add(entries: &[(String, Value)], to: &mut Json) {
    if !to.is_object() {
        *to = Json::Object(Map::new());
    }
    let Some(object) = to.as_object_mut() else {
        return;
    };
    for (name, value) in entries {
        let values: Vec<Json> = match value {
            Value::Numbers(numbers) => numbers.iter().map(|&of| fill_json(of)).collect(),
            Value::Texts(texts) => texts.iter().map(|of| of.as_str().into()).collect(),
        };
        let value = match <[Json; 1]>::try_from(values) {
            Ok([one]) => one,
            Err(several) => several.into(),
        };
        object.entry(name.as_str()).or_insert(value);
    }
}

/// The value of an attribute; `None` of one that is neither numbers nor texts.
fn value_of(name: &str, value: &Json, data_type: Option<DataType>) -> Option<Value> {
    let number = |value: &Json| match value {
        Json::Bool(truth) => Some(Scalar::Bool(*truth)),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Some(Scalar::Int(whole.into())),
            (None, Some(whole)) => Some(Scalar::Int(whole.into())),
            (None, None) => number.as_f64().map(Scalar::Float),
        },
        _ => None,
    };
    match (value, data_type) {
        // Floats as texts: a word, or their bytes in base 64, as xarray writes them.
        (Json::String(text), Some(of)) if of.is_float() && name == "_FillValue" => {
            let word = fill(value, of).ok().flatten();
            let found = word.or_else(|| of_base64(text, of));
            found.map(|of| Value::Numbers(vec![of]))
        }
        (Json::String(text), _) => Some(Value::Texts(vec![text.clone()])),
        (Json::Array(list), _) => {
            let numbers: Option<Vec<Scalar>> = list.iter().map(number).collect();
            let texts = || {
                let texts = list.iter().map(|of| of.as_str().map(str::to_owned));
                texts.collect::<Option<Vec<String>>>().map(Value::Texts)
            };
            let numbers = numbers.map(|all| Value::Numbers(of_one_type(all)));
            numbers.or_else(texts)
        }
        (value, _) => number(value).map(|of| Value::Numbers(vec![of])),
    }
}

/// Numbers of which some are floats as floats, as readers in Python have them.
fn of_one_type(numbers: Vec<Scalar>) -> Vec<Scalar> {
    if !numbers.iter().any(|of| matches!(of, Scalar::Float(_))) {
        return numbers;
    }
    let float = |of: Scalar| of.to_f64().map_or(of, Scalar::Float);
    numbers.into_iter().map(float).collect()
}

/// A float whose bytes, the lowest first, are written in base 64.
fn of_base64(text: &str, of: DataType) -> Option<Scalar> {
    let (mut bits, mut held, mut bytes) = (0_u32, 0, Vec::new());
    for letter in text.trim_end_matches('=').bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 255).ok()?);
        }
    }
    let float = match (bytes.len(), of) {
        (8, _) => f64::from_le_bytes(bytes.try_into().ok()?),
        (4, _) => f32::from_le_bytes(bytes.try_into().ok()?).into(),
        _ => return None,
    };
    Some(Scalar::Float(float))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attributes_are_numbers_or_texts() {
        let of = |name: &str, value: Json| value_of(name, &value, Some(DataType::F64));
        assert_eq!(
            of("scale_factor", json!(0.5)),
            Some(Value::Numbers(vec![Scalar::Float(0.5)]))
        );
        assert_eq!(
            of("units", json!("days")),
            Some(Value::Texts(vec!["days".into()]))
        );
        assert_eq!(
            of("valid_range", json!([1, 2])),
            Some(Value::Numbers(vec![Scalar::Int(1), Scalar::Int(2)]))
        );
        assert_eq!(of("other", json!({ "a": 1 })), None);
        assert_eq!(of("other", json!([1, "a"])), None);
        // -999.5 as a double.
        assert_eq!(
            of("_FillValue", json!("AAAAAAA8j8A=")),
            Some(Value::Numbers(vec![Scalar::Float(-999.5)]))
        );
        let nan = of("_FillValue", json!("NaN"));
        assert!(matches!(nan, Some(Value::Numbers(of)) if of[0].to_f64().is_some_and(f64::is_nan)));
        assert_eq!(of("_FillValue", json!("no")), None);
    }

    #[test]
    fn what_is_added_reads_back() {
        let entries: Entries = vec![
            ("units".to_owned(), "K".into()),
            (
                "levels".to_owned(),
                Value::Numbers(vec![1.0.into(), 2.5.into()]),
            ),
            (
                "both".to_owned(),
                Value::Texts(vec!["a".into(), "b".into()]),
            ),
            ("is_sea".to_owned(), Value::Numbers(vec![true.into()])),
        ];
        let mut object = json!({ "units": "own" });
        add(&entries, &mut object);
        assert_eq!(object["units"], json!("own"), "what is there stays");
        let mut object = Json::Null;
        add(&entries, &mut object);
        assert_eq!(object["levels"], json!([1.0, 2.5]));
        assert_eq!(object["is_sea"], json!(true));
        let mut read = all(&object, None);
        read.sort_by_key(|(name, _)| entries.iter().position(|(of, _)| of == name));
        assert_eq!(read, entries);
    }
}
