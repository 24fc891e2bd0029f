//! The values of a field in arrays of structs, as arrays: what `from` makes columns of.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::lists::names::FIELDS;
use crate::lists::types::{fields, item, list_of, lists, plain};
use crate::structs::access::values;

/// The function of an array of structs and the name of a field.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Columns {
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Columns {
    signature: Signature,
}

/// The place and the type of the field of this name.
fn place(structs: &DataType, name: Option<&ScalarValue>) -> Option<(usize, DataType)> {
    let name = name?.try_as_str().flatten()?;
    let (at, field) = fields(item(structs)?)?.find(name)?;
    Some((at, plain(field.data_type())))
}

impl ScalarUDFImpl for Columns {
    fn name(&self) -> &str {
        FIELDS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [structs, name] => Ok(vec![plain(structs), name.clone()]),
            _ => plan_err!("fields are taken by an array of structs and a name"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type of a field follows from its name, too")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let ([own, _], [_, name]) = (args.arg_fields, args.scalar_arguments) else {
            return plan_err!("fields are taken by an array of structs and a name");
        };
        match place(own.data_type(), *name) {
            Some((_, data_type)) => Ok(Arc::new(Field::new(self.name(), list_of(data_type), true))),
            None => internal_err!("there is no such field"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, ColumnarValue::Scalar(name)] = &args.args[..] else {
            return internal_err!("fields without a name");
        };
        let constant = matches!(value, ColumnarValue::Scalar(_));
        let rows = if constant { 1 } else { args.number_rows };
        let all = value.to_array(rows)?;
        let Some((at, data_type)) = place(all.data_type(), Some(name)) else {
            return internal_err!("there is no such field");
        };
        let own = lists(&all);
        let items = values(own.values(), at)?;
        let field = Arc::new(Field::new_list_field(data_type, true));
        let (offsets, nulls) = (own.offsets().clone(), own.nulls().cloned());
        let found: ArrayRef = Arc::new(ListArray::try_new(field, offsets, items, nulls)?);
        Ok(if constant {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
        } else {
            ColumnarValue::Array(found)
        })
    }
}
