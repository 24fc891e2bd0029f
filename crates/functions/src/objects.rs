//! Types of PostgreSQL whose values are numbers of things, and their names where somebody reads them: `regclass`, `regtype`,
//! `regnamespace`, `regrole`, `regproc`. Here values of them are numbers; a cast to one, and one to a text, is a call of a
//! function that knows the tables of the statement.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::descriptions::Descriptions;
use crate::lists::types::list_of;
use crate::object_kinds::{Kind, NAMES};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    /// From a name to the number of what must be there.
    Cast,
    /// The same of what need not be.
    Optional,
    /// From a number to the name.
    Text,
}

#[derive(Debug)]
struct Object {
    kind: Kind,
    way: Way,
    known: Arc<dyn Descriptions>,
    signature: Signature,
}

fn found(name: &str) -> Option<(Kind, Way)> {
    NAMES.iter().find_map(|own| {
        let way = if own.cast == name {
            Way::Cast
        } else if own.optional == name {
            Way::Optional
        } else if own.text == name {
            Way::Text
        } else {
            return None;
        };
        Some((own.kind, way))
    })
}

/// The function of this name for a statement, if there is one.
pub fn named(known: &Arc<dyn Descriptions>, name: &str) -> Option<ScalarUDF> {
    let (kind, way) = found(name)?;
    Some(ScalarUDF::from(Object {
        kind,
        way,
        known: Arc::clone(known),
        signature: Signature::user_defined(Volatility::Stable),
    }))
}

/// Whether a function of this name makes numbers of names, or names of numbers.
pub fn is_name(name: &str) -> bool {
    found(name).is_some()
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        (self.kind, self.way) == (other.kind, other.way) && Arc::ptr_eq(&self.known, &other.known)
    }
}

impl Eq for Object {}

impl Hash for Object {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.way).hash(state);
    }
}

impl Object {
    /// The number of what a text names, which may be a number itself.
    fn number(&self, text: &str) -> Result<Option<i64>> {
        if let Ok(number) = text.trim().parse() {
            return Ok(Some(number));
        }
        // What PostgreSQL writes where there is nothing.
        if text == "-" {
            return Ok(Some(0));
        }
        match (self.known.number_of(self.kind, text), self.way) {
            (Ok(None), Way::Cast) => Err(self.kind.unknown(text).into()),
            // What no name means alone is NULL, too.
            (Err(_), Way::Optional) => Ok(None),
            (found, _) => Ok(found?),
        }
    }

    /// Numbers for texts, or texts for numbers.
    fn made(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let numbers = values.as_primitive_opt::<Int64Type>();
        Ok(match (self.way, numbers) {
            (Way::Text, Some(numbers)) => {
                let names = numbers.iter().map(|number| Some(self.title(number?)));
                Arc::new(names.collect::<StringArray>())
            }
            (Way::Cast | Way::Optional, None) => {
                let texts = values.as_string::<i32>().iter();
                let found = texts.map(|text| text.map_or(Ok(None), |text| self.number(text)));
                Arc::new(found.collect::<Result<Int64Array>>()?)
            }
            // They are it already.
            _ => Arc::clone(values),
        })
    }

    fn title(&self, number: i64) -> String {
        match self.known.name_of(self.kind, number) {
            Some(name) => name,
            None if number == 0 => "-".to_owned(),
            None => number.to_string(),
        }
    }
}

/// The type of the items of an array.
fn item_of(ty: &DataType) -> Option<&DataType> {
    match ty {
        DataType::List(item) => Some(item.data_type()),
        _ => None,
    }
}

impl ScalarUDFImpl for Object {
    fn name(&self) -> &str {
        let names = self.kind.names();
        match self.way {
            Way::Cast => names.cast,
            Way::Optional => names.optional,
            Way::Text => names.text,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [one] if one.is_integer() => Ok(vec![DataType::Int64]),
            [DataType::Null] => Ok(vec![DataType::Int64]),
            [one] if let Some(item) = item_of(one) => Ok(vec![list_of(if item.is_integer() {
                DataType::Int64
            } else {
                DataType::Utf8
            })]),
            [_] => Ok(vec![DataType::Utf8]),
            _ => plan_err!("{} takes one value", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let one = match self.way {
            Way::Cast | Way::Optional => DataType::Int64,
            Way::Text => DataType::Utf8,
        };
        let is_array = types.first().is_some_and(|own| item_of(own).is_some());
        Ok(if is_array { list_of(one) } else { one })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let Some(arg) = args.args.first() else {
            return plan_err!("{} takes one value", self.name());
        };
        let values = arg.to_array(rows)?;
        let made = match values.as_list_opt::<i32>() {
            // An array of them.
            Some(lists) => {
                let items = self.made(lists.values())?;
                let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
                let (offsets, valid) = (lists.offsets().clone(), lists.nulls().cloned());
                Arc::new(ListArray::try_new(field, offsets, items, valid)?)
            }
            None => self.made(&values)?,
        };
        Ok(ColumnarValue::Array(made))
    }
}
