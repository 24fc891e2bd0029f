//! Structs from values: `row(1, 2)`, `struct_pack(a := 1)`.

use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::lists::names::STRUCT;
use crate::lists::types::plain;

/// The function of names and values, one behind the other.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Make {
        aliases: vec!["named_struct".into()],
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Make {
    aliases: Vec<String>,
    signature: Signature,
}

/// The type in which a value is a field. A constant in quotes and a NULL are texts, as in an array.
fn field_type(given: &DataType) -> DataType {
    match given {
        DataType::Null => DataType::Utf8View,
        given => plain(given),
    }
}

impl ScalarUDFImpl for Make {
    fn name(&self) -> &str {
        STRUCT
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let of = |(at, ty): (usize, &DataType)| match at % 2 {
            0 => ty.clone(),
            _ => field_type(ty),
        };
        Ok(types.iter().enumerate().map(of).collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type of a struct follows from the names of its fields, too")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if args.arg_fields.is_empty() || !args.arg_fields.len().is_multiple_of(2) {
            return plan_err!("a struct has fields, each with a name and a value");
        }
        let mut fields: Vec<Field> = Vec::with_capacity(args.arg_fields.len() / 2);
        let pairs = args
            .arg_fields
            .chunks(2)
            .zip(args.scalar_arguments.chunks(2));
        for (own, constants) in pairs {
            let name = constants[0].and_then(|value| value.try_as_str().flatten());
            let Some(name) = name else {
                return plan_err!("the name of a field of a struct is a constant in quotes");
            };
            if fields.iter().any(|field| field.name() == name) {
                return plan_err!("a struct has no two fields of the name \"{name}\"");
            }
            fields.push(Field::new(name, field_type(own[1].data_type()), true));
        }
        let data_type = DataType::Struct(Fields::from(fields));
        Ok(Arc::new(Field::new(self.name(), data_type, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let DataType::Struct(fields) = args.return_field.data_type() else {
            return internal_err!("a struct is made as something else");
        };
        let values = args.args.iter().skip(1).step_by(2);
        let constant = values
            .clone()
            .all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let columns = values.zip(fields).map(|(value, field)| {
            let array = value.to_array(rows)?;
            if array.data_type() == field.data_type() {
                return Ok(array);
            }
            Ok(cast(&array, field.data_type())?)
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let made: ArrayRef = Arc::new(StructArray::try_new(fields.clone(), columns, None)?);
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &made, 0,
            )?));
        }
        Ok(ColumnarValue::Array(made))
    }
}
