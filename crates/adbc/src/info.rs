//! What driver and database say of themselves.

use std::collections::HashSet;
use std::sync::Arc;

use adbc_core::constants::ADBC_VERSION_1_1_0;
use adbc_core::error::Result;
use adbc_core::options::InfoCode;
use adbc_core::schemas::GET_INFO_SCHEMA;
use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray,
    new_empty_array,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::DataType;

/// A value of an info.
#[derive(Clone, Copy)]
enum Told {
    Text(&'static str),
    Truth(bool),
    Number(i64),
}

const ALL: [(InfoCode, Told); 9] = [
    (InfoCode::VendorName, Told::Text("Atoll")),
    (
        InfoCode::VendorVersion,
        Told::Text(env!("CARGO_PKG_VERSION")),
    ),
    (
        InfoCode::VendorArrowVersion,
        Told::Text(arrow::ARROW_VERSION),
    ),
    (InfoCode::VendorSql, Told::Truth(true)),
    (InfoCode::VendorSubstrait, Told::Truth(false)),
    (InfoCode::DriverName, Told::Text("ADBC driver of Atoll")),
    (
        InfoCode::DriverVersion,
        Told::Text(env!("CARGO_PKG_VERSION")),
    ),
    (
        InfoCode::DriverArrowVersion,
        Told::Text(arrow::ARROW_VERSION),
    ),
    (
        InfoCode::DriverAdbcVersion,
        Told::Number(ADBC_VERSION_1_1_0 as i64),
    ),
];

/// The infos of these codes, or all. Codes of which nothing is known are left out, as ADBC asks.
///
/// # Errors
/// None but a defect.
pub(crate) fn batch(codes: Option<&HashSet<InfoCode>>) -> Result<RecordBatch> {
    let wanted = |code: &InfoCode| codes.is_none_or(|codes| codes.contains(code));
    let told = ALL.iter().filter(|(code, _)| wanted(code));
    let (mut names, mut kinds, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    let (mut texts, mut truths, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for (code, value) in told {
        names.push(u32::from(code));
        let (kind, offset) = match value {
            Told::Text(text) => {
                texts.push(*text);
                (0, texts.len())
            }
            Told::Truth(truth) => {
                truths.push(*truth);
                (1, truths.len())
            }
            Told::Number(number) => {
                numbers.push(*number);
                (2, numbers.len())
            }
        };
        kinds.push(kind);
        offsets.push(offset as i32 - 1);
    }
    let schema = Arc::clone(&GET_INFO_SCHEMA);
    let DataType::Union(fields, _) = schema.field(1).data_type() else {
        return Err(crate::error::state("the schema of infos has no values"));
    };
    let children = fields.iter().map(|(kind, field)| -> ArrayRef {
        match kind {
            0 => Arc::new(StringArray::from(texts.clone())),
            1 => Arc::new(BooleanArray::from(truths.clone())),
            2 => Arc::new(Int64Array::from(numbers.clone())),
            _ => new_empty_array(field.data_type()),
        }
    });
    let values = UnionArray::try_new(
        fields.clone(),
        ScalarBuffer::from(kinds),
        Some(ScalarBuffer::from(offsets)),
        children.collect(),
    )?;
    let columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(names)), Arc::new(values)];
    Ok(RecordBatch::try_new(schema, columns)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;

    use super::*;

    #[test]
    fn what_is_asked_for_is_told() {
        let all = batch(None).unwrap();
        assert_eq!(all.num_rows(), ALL.len());
        let some = HashSet::from([InfoCode::VendorName, InfoCode::Other(4711)]);
        let one = batch(Some(&some)).unwrap();
        assert_eq!(one.num_rows(), 1);
        let value = one.column(1).as_union().value(0);
        assert_eq!(value.as_string::<i32>().value(0), "Atoll");
        assert_eq!(batch(Some(&HashSet::new())).unwrap().num_rows(), 0);
    }
}
