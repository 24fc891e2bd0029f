//! `obj_description`, `col_description`: what people have said about tables and columns, which are given by numbers.
//!
//! They are bound to the statement that calls them, which knows the tables.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// What knows the comments.
pub(crate) trait Descriptions: Debug + Send + Sync {
    /// The comment on the table, view, sequence or key with this number, or on its column with this place, from 1 on.
    fn of(&self, relation: i64, column: i64) -> Option<String>;
}

#[derive(Debug)]
struct Description {
    of_column: bool,
    descriptions: Arc<dyn Descriptions>,
    signature: Signature,
}

/// The function of this name for a statement, if there is one.
pub(crate) fn named(descriptions: &Arc<dyn Descriptions>, name: &str) -> Option<ScalarUDF> {
    let of_column = match name {
        "obj_description" => false,
        "col_description" => true,
        _ => return None,
    };
    Some(ScalarUDF::from(Description {
        of_column,
        descriptions: Arc::clone(descriptions),
        signature: Signature::user_defined(Volatility::Stable),
    }))
}

/// Whether there is a function of this name.
pub(crate) fn is_name(name: &str) -> bool {
    matches!(name, "obj_description" | "col_description")
}

impl PartialEq for Description {
    fn eq(&self, other: &Description) -> bool {
        self.of_column == other.of_column && Arc::ptr_eq(&self.descriptions, &other.descriptions)
    }
}

impl Eq for Description {}

impl Hash for Description {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of_column.hash(state);
    }
}

impl ScalarUDFImpl for Description {
    fn name(&self) -> &str {
        if self.of_column {
            "col_description"
        } else {
            "obj_description"
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.of_column, types) {
            (true, [_, _]) => Ok(vec![DataType::Int64; 2]),
            (false, [_]) => Ok(vec![DataType::Int64]),
            (false, [_, _]) => Ok(vec![DataType::Int64, DataType::Utf8]),
            (true, _) => {
                plan_err!("col_description takes the number of a table and the place of a column")
            }
            (false, _) => {
                plan_err!(
                    "obj_description takes a number and the name of the catalog that it is of"
                )
            }
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|arg| arg.to_array(rows));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let numbers = arrays[0].as_primitive::<Int64Type>();
        let found = (0..rows).map(|row| {
            if arrays.iter().any(|array| array.is_null(row)) {
                return None;
            }
            let column = match &arrays[..] {
                [_, places] if self.of_column => places.as_primitive::<Int64Type>().value(row),
                // Of other catalogs there are no comments.
                [_, catalog] if catalog.as_string::<i32>().value(row) != "pg_class" => return None,
                _ => 0,
            };
            if self.of_column && column < 1 {
                return None;
            }
            self.descriptions.of(numbers.value(row), column)
        });
        Ok(ColumnarValue::Array(Arc::new(
            found.collect::<StringArray>(),
        )))
    }
}
