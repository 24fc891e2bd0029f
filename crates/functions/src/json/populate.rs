//! Structs, arrays and other values from JSON: `json_populate_record` and its kind.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, StringViewArray, StructArray, UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::kernels::zip::zip;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::{Result, exec_err, internal_err, plan_err};
use messages::types::type_name;
use table::json_kind;

use crate::json::cut::{self, Kind};
use crate::json::read::read as read_json;
use crate::json::value::{named, texts};
use crate::lists::types::{base, dimensions, fields, is_list, is_map, item, list_of, plain};
use crate::own::{Own, READ};
use crate::structs::values as field_values;

/// The name of the function that makes a struct of JSON, with the fields of another struct where the JSON says nothing; and
/// the name of that for `jsonb`.
pub const RECORD: [&str; 2] = ["json populated", "jsonb populated"];
/// The name of the function that makes structs of an array of JSON; and the name of that for `jsonb`.
pub const RECORDS: [&str; 2] = ["json populated rows", "jsonb populated rows"];
/// The name of the function that makes values of a type of the items of an array of JSON.
pub const ITEMS: &str = "json populated items";
/// The name of the function that makes an array of one struct, which may be NULL.
pub const ONE: &str = "json one row";

pub(super) fn all() -> Vec<Own> {
    let own = |types: &[DataType]| Ok(types[0].clone());
    let lists = |types: &[DataType]| Ok(list_of(types[0].clone()));
    vec![
        Own::new(RECORD[0], base_and_json, own, record),
        Own::new(RECORD[1], base_and_jsonb, own, record),
        Own::new(RECORDS[0], base_and_json, lists, records),
        Own::new(RECORDS[1], base_and_jsonb, lists, records),
        Own::new(ITEMS, base_and_items, own, items),
        Own::new(
            ONE,
            |types| Ok(types.iter().map(plain).collect()),
            lists,
            one,
        ),
    ]
}

fn base_and_json(types: &[DataType]) -> Result<Vec<DataType>> {
    base_and("json_populate_record", types)
}

fn base_and_jsonb(types: &[DataType]) -> Result<Vec<DataType>> {
    base_and("jsonb_populate_record", types)
}

fn base_and(name: &'static str, types: &[DataType]) -> Result<Vec<DataType>> {
    let [own, json] = types else {
        return plan_err!("{name} takes a value of a composite type, and JSON");
    };
    if fields(own).is_none() {
        return plan_err!(
            "first argument of {name} must be a row type, not {}",
            type_name(own)
        );
    }
    let json = named(name, std::slice::from_ref(json))?;
    Ok(vec![plain(own), json])
}

fn base_and_items(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [own, json] if is_list(own) && item(json).and_then(json_kind).is_some() => {
            Ok(vec![plain(own), json.clone()])
        }
        _ => plan_err!("items take an array of their type, and an array of JSON"),
    }
}

fn record(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = texts(&args[1]);
    let mut json = Vec::with_capacity(rows);
    for row in 0..rows {
        json.push(match own.is_valid(row).then(|| own.value(row)) {
            None => None,
            Some(text) => match Kind::of(text) {
                Kind::Object => Some(text),
                Kind::Array => return exec_err!("cannot call populate_composite on an array"),
                _ => return exec_err!("cannot call populate_composite on a scalar"),
            },
        });
    }
    let found = values_of(&json, args[0].data_type(), Some(&args[0]))?;
    // Of no JSON: the record that there was.
    let said: BooleanArray = json.iter().map(|json| Some(json.is_some())).collect();
    Ok(zip(&said, &found, &args[0])?)
}

fn records(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = texts(&args[1]);
    let (mut json, mut places) = (Vec::new(), Vec::new());
    let mut lengths = Vec::with_capacity(rows);
    for row in 0..rows {
        let before = json.len();
        if own.is_valid(row) {
            let text = own.value(row);
            let objects = match Kind::of(text) {
                Kind::Array => cut::items(text),
                Kind::Object => {
                    return exec_err!("cannot call json_populate_recordset on an object");
                }
                _ => return exec_err!("cannot call json_populate_recordset on a scalar"),
            };
            for object in objects {
                if Kind::of(object) != Kind::Object {
                    return exec_err!(
                        "argument of json_populate_recordset must be an array of objects"
                    );
                }
                json.push(Some(object));
                places.push(row as u32);
            }
        }
        lengths.push(json.len() - before);
    }
    let places = UInt32Array::from(places);
    let own = take(&args[0], &places, None)?;
    let found = values_of(&json, args[0].data_type(), Some(&own))?;
    let field = Arc::new(Field::new_list_field(found.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(field, offsets, found, None)?))
}

fn items(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let Some(to) = item(args[0].data_type()) else {
        return exec_err!("items of no array");
    };
    let own = args[1].as_list::<i32>();
    let all = texts(own.values());
    let json: Vec<Option<&str>> = all.iter().collect();
    let found = values_of(&json, to, None)?;
    let field = Arc::new(Field::new_list_field(found.data_type().clone(), true));
    let (offsets, nulls) = (own.offsets().clone(), own.nulls().cloned());
    Ok(Arc::new(ListArray::try_new(field, offsets, found, nulls)?))
}

fn one(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let field = Arc::new(Field::new_list_field(args[0].data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(vec![1; rows]);
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        Arc::clone(&args[0]),
        None,
    )?))
}

/// The values of a type that JSON says: NULL for `null`, and for no JSON. Fields of which it does not speak are those of `own`,
/// if there are structs.
fn values_of(json: &[Option<&str>], to: &DataType, own: Option<&ArrayRef>) -> Result<ArrayRef> {
    let json: Vec<Option<&str>> = json
        .iter()
        .map(|json| json.filter(|text| Kind::of(text) != Kind::Null))
        .collect();
    if is_map(to) {
        return exec_err!(
            "a value of type {} from JSON is not supported",
            type_name(to)
        );
    }
    if let Some(kind) = json_kind(to) {
        return read_json(&StringViewArray::from_iter(json), kind);
    }
    if fields(to).is_none() && !is_list(to) {
        let texts = json.iter().map(|json| match json {
            Some(text) => cut::plain(text),
            None => Ok(None),
        });
        let texts = StringViewArray::from_iter(texts.collect::<Result<Vec<_>>>()?);
        return read(texts, to);
    }
    // A text says an array or a struct as constants in quotes do.
    let parts: Vec<Option<&str>> = json
        .iter()
        .map(|json| json.filter(|text| !is_text(text)))
        .collect();
    let found = match fields(to) {
        Some(fields) => structs(&parts, fields, own)?,
        None => arrays(&parts, to)?,
    };
    if !json.iter().flatten().any(is_text) {
        return Ok(found);
    }
    let said = json.iter().map(|json| match json.filter(is_text) {
        Some(text) => cut::plain(text),
        None => Ok(None),
    });
    let said = said.collect::<Result<Vec<_>>>()?;
    let is_said: BooleanArray = said.iter().map(|text| Some(text.is_some())).collect();
    let said = read(StringViewArray::from_iter(said), to)?;
    Ok(zip(&is_said, &said, &found)?)
}

fn is_text(json: &&str) -> bool {
    Kind::of(json) == Kind::Text
}

/// The values that texts say, as constants in quotes do.
fn read(texts: StringViewArray, to: &DataType) -> Result<ArrayRef> {
    match READ.get() {
        Some(read) => read(&(Arc::new(texts) as ArrayRef), to),
        None => internal_err!("texts are not read yet"),
    }
}

fn structs(json: &[Option<&str>], to: &Fields, own: Option<&ArrayRef>) -> Result<ArrayRef> {
    let mut objects = Vec::with_capacity(json.len());
    for text in json {
        objects.push(match text.map(|text| (text, Kind::of(text))) {
            None => None,
            Some((text, Kind::Object)) => {
                let members = cut::members(text).into_iter();
                let members = members.map(|(key, value)| Ok((cut::characters(key)?, value)));
                Some(members.collect::<Result<Vec<_>>>()?)
            }
            Some((_, Kind::Array)) => {
                return exec_err!("cannot call populate_composite on an array");
            }
            Some(_) => return exec_err!("cannot call populate_composite on a scalar"),
        });
    }
    let columns = to.iter().enumerate().map(|(at, field)| {
        let values: Vec<Option<&str>> = objects
            .iter()
            .map(|members| {
                // The last of several.
                let mut members = members.as_ref()?.iter().rev();
                let found = members.find(|(key, _)| key == field.name());
                found.map(|(_, value)| *value)
            })
            .collect();
        let before = own.map(|own| field_values(own, at)).transpose()?;
        let found = values_of(&values, field.data_type(), before.as_ref())?;
        let Some(before) = before else {
            return Ok(found);
        };
        let is_said: BooleanArray = values.iter().map(|value| Some(value.is_some())).collect();
        Ok(zip(&is_said, &found, &before)?)
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    let valid: Vec<bool> = objects.iter().map(Option::is_some).collect();
    let nulls = Some(NullBuffer::from(valid));
    Ok(Arc::new(StructArray::try_new(to.clone(), columns, nulls)?))
}

/// How many items arrays of JSON have in each dimension.
struct Shape {
    sizes: Vec<Option<usize>>,
    /// Whether there was an item that is no array.
    has_items: bool,
}

fn arrays(json: &[Option<&str>], to: &DataType) -> Result<ArrayRef> {
    let depth = dimensions(to);
    let mut levels = vec![vec![0i32]; depth];
    let mut leaves: Vec<Option<&str>> = Vec::new();
    for text in json {
        let mut shape = Shape {
            sizes: vec![None; depth],
            has_items: false,
        };
        if let Some(text) = text {
            if Kind::of(text) != Kind::Array {
                return exec_err!("expected JSON array");
            }
            put(text, 0, &mut shape, &mut leaves)?;
        }
        let mut count = 1;
        for (level, size) in levels.iter_mut().zip(&shape.sizes) {
            // An array of empty ones is empty itself.
            let size = size.filter(|_| shape.has_items).unwrap_or(0);
            for _ in 0..count {
                level.push(level.last().copied().unwrap_or(0) + size as i32);
            }
            count *= size;
        }
    }
    let mut found = values_of(&leaves, base(to), None)?;
    let mut own = base(to).clone();
    for (level, ends) in levels.into_iter().enumerate().rev() {
        let valid: Vec<bool> = json.iter().map(Option::is_some).collect();
        let nulls = (level == 0).then(|| NullBuffer::from(valid));
        let field = Arc::new(Field::new_list_field(own.clone(), true));
        let offsets = OffsetBuffer::new(ends.into());
        found = Arc::new(ListArray::try_new(field, offsets, found, nulls)?);
        own = list_of(own);
    }
    Ok(found)
}

/// Appends the items of an array, which stands in so many others.
fn put<'t>(
    text: &'t str,
    depth: usize,
    shape: &mut Shape,
    leaves: &mut Vec<Option<&'t str>>,
) -> Result<()> {
    let items = cut::items(text);
    if *shape.sizes[depth].get_or_insert(items.len()) != items.len() {
        return exec_err!(
            "malformed JSON array: Multidimensional arrays must have sub-arrays with matching dimensions."
        );
    }
    let most = shape.sizes.len();
    for item in items {
        let is_array = Kind::of(item) == Kind::Array;
        match (is_array, depth + 1 == most) {
            (true, true) if !shape.has_items => {
                return exec_err!(
                    "not supported: a JSON array of more than {most} dimensions where the type has {most}"
                );
            }
            (_, true) => {
                shape.has_items = true;
                leaves.push(Some(item));
            }
            (true, false) => put(item, depth + 1, shape, leaves)?,
            (false, false) if shape.has_items => return exec_err!("expected JSON array"),
            (false, false) => {
                return exec_err!(
                    "not supported: a JSON array of {} dimensions where the type has {most}",
                    depth + 1
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::convert;
    use crate::lists::write::write;

    /// The values as texts.
    fn written(
        json: &[Option<&str>],
        to: &DataType,
        own: Option<&ArrayRef>,
    ) -> Result<Vec<String>> {
        let _ = READ.set(convert);
        let texts = write(&values_of(json, to, own)?)?;
        let texts = texts.as_string_view().iter();
        Ok(texts
            .map(|text| text.unwrap_or("NULL").to_string())
            .collect())
    }

    fn said(json: &str, to: &DataType) -> Option<String> {
        written(&[Some(json)], to, None).ok()?.pop()
    }

    #[test]
    fn arrays_have_one_size_in_each_dimension() {
        let one = list_of(DataType::Int32);
        let two = list_of(one.clone());
        for (json, to, wanted) in [
            ("[1, \"2\", null, 4]", &one, Some("{1,2,NULL,4}")),
            ("\"{1,2}\"", &one, Some("{1,2}")),
            ("[]", &one, Some("{}")),
            ("null", &one, Some("NULL")),
            ("[[1, 2], [null, 4]]", &two, Some("{{1,2},{NULL,4}}")),
            ("[[], []]", &two, Some("{}")),
            ("[[1, 2], [3]]", &two, None),
            ("[[1, 2], 3]", &two, None),
            ("[1, 2]", &two, None),
            ("[[1]]", &one, None),
            ("123", &one, None),
        ] {
            assert_eq!(said(json, to).as_deref(), wanted, "{json}");
        }
    }

    #[test]
    fn structs_take_what_json_does_not_say_from_another() {
        let fields = Fields::from(vec![
            Field::new("a", DataType::Int32, true),
            Field::new("b", DataType::Utf8View, true),
        ]);
        let to = DataType::Struct(fields);
        assert_eq!(
            said("{\"b\": [1], \"a\": 7}", &to).as_deref(),
            Some("(7,[1])")
        );
        assert_eq!(said("{\"a\": 1, \"a\": 2}", &to).as_deref(), Some("(2,)"));
        assert_eq!(said("\"(1,x)\"", &to).as_deref(), Some("(1,x)"));
        assert_eq!(said("[1]", &to), None);
        let own = StringViewArray::from(vec![Some("(1,x)"), None]);
        let own = read(own, &to).unwrap();
        let json = [Some("{\"b\": null}"), Some("{\"b\": 2}")];
        assert_eq!(written(&json, &to, Some(&own)).unwrap(), ["(1,)", "(,2)"]);
    }
}
