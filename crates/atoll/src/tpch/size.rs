//! The size that rows would have in a `.tbl` file, without writing one.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;

/// The bytes of a generated batch in a `.tbl` file: each value is followed by `|`, each row by a line end. Types that
/// the generator does not make count as 0.
pub(super) fn tbl_bytes(batch: &RecordBatch) -> u64 {
    let separators = batch.num_rows() as u64 * (batch.num_columns() as u64 + 1);
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    // In `.tbl` files quantities are written without their two zeros.
    let values = columns.map(|(array, field)| column_bytes(array, field.name() == "l_quantity"));
    separators + values.sum::<u64>()
}

fn column_bytes(array: &dyn Array, whole: bool) -> u64 {
    match array.data_type() {
        DataType::Int32 => array
            .as_primitive::<Int32Type>()
            .values()
            .iter()
            .map(|v| integer(i64::from(*v)))
            .sum(),
        DataType::Int64 => array
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .map(|v| integer(*v))
            .sum(),
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            values
                .iter()
                .map(|value| decimal(*value as i64, whole))
                .sum()
        }
        DataType::Date32 => 10 * array.len() as u64,
        // The low half of a view is its length.
        DataType::Utf8View => array
            .as_string_view()
            .views()
            .iter()
            .map(|view| u64::from(*view as u32))
            .sum(),
        _ => 0,
    }
}

fn integer(value: i64) -> u64 {
    u64::from(value.unsigned_abs().checked_ilog10().unwrap_or(0)) + 1 + u64::from(value < 0)
}

/// The length of a decimal with two digits after the point; of its whole part only, if `whole`.
fn decimal(hundredths: i64, whole: bool) -> u64 {
    let before = integer((hundredths / 100).abs());
    before + u64::from(hundredths < 0) + if whole { 0 } else { 3 }
}

#[cfg(test)]
mod tests {
    use tpchgen::generators::{CustomerGenerator, LineItemGenerator, OrderGenerator};

    use super::*;

    #[test]
    fn sizes_are_those_of_the_written_rows() {
        let sizes = |name| {
            super::super::generate(name, 0.001)
                .map(|batch| tbl_bytes(&batch))
                .sum::<u64>()
        };
        let written = |rows: &mut dyn Iterator<Item = String>| {
            rows.map(|row| row.len() as u64 + 1).sum::<u64>()
        };
        let lines = &mut LineItemGenerator::new(0.001, 1, 1)
            .iter()
            .map(|row| row.to_string());
        assert_eq!(sizes("lineitem"), written(lines));
        let orders = &mut OrderGenerator::new(0.001, 1, 1)
            .iter()
            .map(|row| row.to_string());
        assert_eq!(sizes("orders"), written(orders));
        let customers = &mut CustomerGenerator::new(0.001, 1, 1)
            .iter()
            .map(|row| row.to_string());
        assert_eq!(sizes("customer"), written(customers));
    }
}
