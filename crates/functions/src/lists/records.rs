//! The rows of a function that gives several columns, as rows where only one value may stand: an array of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_common::{Result, exec_err, internal_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::lists::names::RECORDS;
use crate::lists::types::{item, list_of, lists, range};

/// The function of names of fields and the arrays of their values, one behind the other.
pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Records {
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Records {
    signature: Signature,
}

impl ScalarUDFImpl for Records {
    fn name(&self) -> &str {
        RECORDS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type of rows follows from the names of their columns, too")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let pairs = args
            .arg_fields
            .chunks_exact(2)
            .zip(args.scalar_arguments.chunks_exact(2));
        let fields = pairs.map(|(own, constants)| {
            let name = constants[0].and_then(|value| value.try_as_str().flatten());
            match (name, item(own[1].data_type())) {
                (Some(name), Some(item)) => Ok(Field::new(name, item.clone(), true)),
                _ => plan_err!("rows are made of names and arrays"),
            }
        });
        let fields = fields.collect::<Result<Fields>>()?;
        let data_type = list_of(DataType::Struct(fields));
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(DataType::Struct(fields)) = item(args.return_field.data_type()) else {
            return internal_err!("rows are made as something else");
        };
        let rows = args.number_rows;
        let arrays = args.args.iter().skip(1).step_by(2);
        let arrays = arrays.map(|own| own.to_array(rows));
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        Ok(ColumnarValue::Array(records(fields, &arrays, rows)?))
    }
}

/// For each row an array of the rows that its arrays have, which are of one length.
fn records(fields: &Fields, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let Some(first) = args.first().map(lists) else {
        return plan_err!("rows are made of arrays");
    };
    let mut columns = Vec::with_capacity(args.len());
    for own in args.iter().map(lists) {
        let alike = (0..rows).all(|row| range(own, row).len() == range(first, row).len());
        if !alike {
            return exec_err!("arrays of different lengths make no rows");
        }
        let parts: Vec<ArrayRef> = (0..rows)
            .map(|row| range(own, row))
            .filter(|part| !part.is_empty())
            .map(|part| own.values().slice(part.start, part.len()))
            .collect();
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        columns.push(if parts.is_empty() {
            own.values().slice(0, 0)
        } else {
            arrow::compute::concat(&parts)?
        });
    }
    let all = StructArray::try_new(fields.clone(), columns, None)?;
    let lengths = (0..rows).map(|row| range(first, row).len());
    let data_type = DataType::Struct(fields.clone());
    let field = Arc::new(Field::new_list_field(data_type, true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let found = ListArray::try_new(field, offsets, Arc::new(all), first.nulls().cloned())?;
    Ok(Arc::new(found))
}
