//! JSON values in arrays: texts within a struct, which has the name of their type.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err, plan_err};
use messages::types::type_name;
use table::{JsonKind, json_kind, json_type, jsonb_type};

use crate::arguments::is_text;

/// The texts of JSON values.
pub fn texts(values: &ArrayRef) -> StringViewArray {
    let values = values.as_struct();
    let texts = values.column(0).as_string_view();
    let nulls = NullBuffer::union(values.nulls(), texts.nulls());
    // To check the texts once more takes longer than most of what is done with them.
    if nulls.as_ref() == texts.nulls() {
        return texts.clone();
    }
    let (views, buffers, _) = texts.clone().into_parts();
    // The views are those of an array that was checked.
    StringViewArray::try_new(views, buffers, nulls).unwrap_or_else(|_| texts.clone())
}

/// Texts that are valid, and normal if `kind` is, as values.
pub(crate) fn values(
    kind: JsonKind,
    texts: impl IntoIterator<Item = Option<String>>,
) -> Result<ArrayRef> {
    let texts = StringViewArray::from_iter(texts);
    of_texts(kind, texts)
}

pub(super) fn of_texts(kind: JsonKind, texts: StringViewArray) -> Result<ArrayRef> {
    let DataType::Struct(fields) = kind.data_type() else {
        return exec_err!("JSON is no struct");
    };
    let nulls = texts.nulls().cloned();
    Ok(Arc::new(StructArray::try_new(
        fields,
        vec![Arc::new(texts)],
        nulls,
    )?))
}

/// The kind of JSON that argument `at` of a function is.
///
/// # Errors
/// If it is none.
pub(super) fn argument(name: &str, types: &[DataType], at: usize) -> Result<DataType> {
    match types.get(at) {
        Some(DataType::Null) => Ok(jsonb_type()),
        // A constant, which is read as JSON.
        Some(ty) if is_text(ty) && name.starts_with("jsonb") => Ok(jsonb_type()),
        Some(ty) if is_text(ty) && name.starts_with("json") => Ok(json_type()),
        Some(ty) => match json_kind(ty) {
            Some(_) => Ok(ty.clone()),
            None => plan_err!(
                "function {name} takes JSON, but its argument {} is of type {}: cast it",
                at + 1,
                type_name(ty)
            ),
        },
        None => plan_err!("function {name} takes JSON"),
    }
}

/// The type of JSON of a function's first argument, where its name says that type: `json_typeof`, `jsonb_typeof`.
pub(super) fn named(name: &'static str, types: &[DataType]) -> Result<DataType> {
    let wanted = if name.starts_with("jsonb") {
        jsonb_type()
    } else {
        json_type()
    };
    match types.first() {
        Some(DataType::Null) => Ok(wanted),
        // A constant, which is read as JSON.
        Some(ty) if *ty == wanted || is_text(ty) => Ok(wanted),
        Some(ty) => plan_err!("function {name}({}) does not exist", type_name(ty)),
        None => plan_err!("function {name} takes an argument"),
    }
}
