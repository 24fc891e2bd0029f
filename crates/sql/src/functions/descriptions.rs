//! Functions about the catalog that know the tables of the statement that calls them: `obj_description`,
//! `col_description`, `current_schema`, `current_schemas`, `to_regclass`, `pg_table_is_visible`, `pg_get_viewdef`,
//! `pg_get_indexdef`, `pg_get_constraintdef`.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListBuilder, StringArray, StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::Error;

/// The function that `x::regclass::text` becomes.
pub(crate) const REGCLASS_TEXT: &str = "regclass text";

/// What knows the catalog.
pub(crate) trait Descriptions: Debug + Send + Sync {
    /// The comment on the table, view, sequence or key with this number, or on its column with this place, from 1 on.
    fn of(&self, relation: i64, column: i64) -> Option<String>;
    /// The comment on the schema with this number.
    fn of_schema(&self, schema: i64) -> Option<String>;
    /// The schema in which new tables are made.
    fn schema(&self) -> Option<String>;
    /// The schemas in which names are looked up, with those that no path names if `implicit`.
    fn schemas(&self, implicit: bool) -> Vec<String>;
    /// The number of the table, view or sequence that a text names.
    fn number(&self, text: &str) -> crate::error::Result<Option<i64>>;
    /// What makes the view, index or constraint with this number: its text.
    fn definition(&self, what: Made, number: i64) -> Option<String>;
    /// What the table, view or sequence with this number is called, with its schema if it is not found without.
    fn name(&self, relation: i64) -> Option<String>;
    /// What SQL calls the type with this number and modifier.
    fn type_title(&self, number: i64, modifier: i64) -> Option<String>;
    /// The number of the type that a text names.
    fn type_number(&self, text: &str) -> Option<i64>;
    /// Whether the table, view or sequence with this number is found without its schema.
    fn is_visible(&self, relation: i64) -> Option<bool>;
}

/// What has a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Made {
    /// A view, by its query.
    View,
    Index,
    Constraint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Definition(Made),
    Object,
    Column,
    Schema,
    Schemas,
    Number,
    /// The same of what must be there: `'t'::regclass`.
    Relation,
    /// The other way around: `1234::regclass::text`.
    Name,
    Visible,
    /// What types are called, and the numbers of those that are called so.
    Title,
    Type,
    /// The same of what must be there: `'t'::regtype`.
    NamedType,
}

impl What {
    fn named(name: &str) -> Option<What> {
        Some(match name {
            "obj_description" => What::Object,
            "col_description" => What::Column,
            "current_schema" => What::Schema,
            "current_schemas" => What::Schemas,
            "to_regclass" => What::Number,
            "regclass" => What::Relation,
            REGCLASS_TEXT => What::Name,
            "pg_table_is_visible" => What::Visible,
            "format_type" => What::Title,
            "to_regtype" => What::Type,
            "regtype" => What::NamedType,
            "pg_get_viewdef" => What::Definition(Made::View),
            "pg_get_indexdef" => What::Definition(Made::Index),
            "pg_get_constraintdef" => What::Definition(Made::Constraint),
            _ => return None,
        })
    }
}

#[derive(Debug)]
struct Description {
    what: What,
    descriptions: Arc<dyn Descriptions>,
    signature: Signature,
}

/// The function of this name for a statement, if there is one.
pub(crate) fn named(descriptions: &Arc<dyn Descriptions>, name: &str) -> Option<ScalarUDF> {
    let what = What::named(name)?;
    Some(ScalarUDF::from(Description {
        what,
        descriptions: Arc::clone(descriptions),
        signature: match what {
            What::Schema => Signature::nullary(Volatility::Stable),
            _ => Signature::user_defined(Volatility::Stable),
        },
    }))
}

/// Whether there is a function of this name.
pub(crate) fn is_name(name: &str) -> bool {
    What::named(name).is_some()
}

impl PartialEq for Description {
    fn eq(&self, other: &Description) -> bool {
        self.what == other.what && Arc::ptr_eq(&self.descriptions, &other.descriptions)
    }
}

impl Eq for Description {}

impl Hash for Description {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.what.hash(state);
    }
}

impl ScalarUDFImpl for Description {
    fn name(&self) -> &str {
        match self.what {
            What::Object => "obj_description",
            What::Column => "col_description",
            What::Schema => "current_schema",
            What::Schemas => "current_schemas",
            What::Number => "to_regclass",
            What::Relation => "regclass",
            What::Name => REGCLASS_TEXT,
            What::Visible => "pg_table_is_visible",
            What::Title => "format_type",
            What::Type => "to_regtype",
            What::NamedType => "regtype",
            What::Definition(Made::View) => "pg_get_viewdef",
            What::Definition(Made::Index) => "pg_get_indexdef",
            What::Definition(Made::Constraint) => "pg_get_constraintdef",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.what, types) {
            (What::Column | What::Title, [_, _]) => Ok(vec![DataType::Int64; 2]),
            (What::Object | What::Visible | What::Name, [_]) => Ok(vec![DataType::Int64]),
            (What::Object, [_, _]) => Ok(vec![DataType::Int64, DataType::Utf8]),
            (What::Schemas, [_]) => Ok(vec![DataType::Boolean]),
            (What::Number | What::Relation | What::Type | What::NamedType, [_]) => {
                Ok(vec![DataType::Utf8])
            }
            // A view may be named by a text; how it is to be laid out is the same whatever is asked.
            (
                What::Definition(_),
                [
                    DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8,
                    rest @ ..,
                ],
            ) if rest.len() < 3 => Ok([&[DataType::Utf8], rest].concat()),
            (What::Definition(_), [_, rest @ ..]) if rest.len() < 3 => {
                Ok([&[DataType::Int64], rest].concat())
            }
            (What::Title, _) => {
                plan_err!("format_type takes the numbers of a type and of its modifier")
            }
            (What::Column, _) => {
                plan_err!("col_description takes the number of a table and the place of a column")
            }
            (What::Object, _) => {
                plan_err!(
                    "obj_description takes a number and the name of the catalog that it is of"
                )
            }
            _ => plan_err!("{} takes one value", self.name()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.what {
            What::Object
            | What::Column
            | What::Schema
            | What::Name
            | What::Title
            | What::Definition(_) => DataType::Utf8,
            What::Schemas => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            What::Number | What::Relation | What::Type | What::NamedType => DataType::Int64,
            What::Visible => DataType::Boolean,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|arg| arg.to_array(rows));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let found: ArrayRef = match self.what {
            What::Object | What::Column => Arc::new(self.texts(&arrays, rows)),
            What::Definition(made) => Arc::new(self.definitions(made, &arrays, rows)?),
            What::Schema => Arc::new(StringArray::from(vec![self.descriptions.schema(); rows])),
            What::Schemas => self.schemas(arrays[0].as_boolean()),
            What::Number | What::Relation => {
                let texts = arrays[0].as_string::<i32>().iter();
                let numbers = texts.map(|text| text.map_or(Ok(None), |text| self.number(text)));
                Arc::new(numbers.collect::<Result<Int64Array>>()?)
            }
            What::Name => {
                let numbers = arrays[0].as_primitive::<Int64Type>().iter();
                let name = |number: i64| {
                    let name = self.descriptions.name(number);
                    name.unwrap_or_else(|| number.to_string())
                };
                let names = numbers.map(|number| number.map(name));
                Arc::new(names.collect::<StringArray>())
            }
            What::Title => Arc::new(self.titles(&arrays)),
            What::Type | What::NamedType => {
                let texts = arrays[0].as_string::<i32>().iter();
                let numbers = texts.map(|text| text.map_or(Ok(None), |text| self.of_type(text)));
                Arc::new(numbers.collect::<Result<Int64Array>>()?)
            }
            What::Visible => {
                let numbers = arrays[0].as_primitive::<Int64Type>().iter();
                let seen = |number: Option<i64>| self.descriptions.is_visible(number?);
                Arc::new(numbers.map(seen).collect::<BooleanArray>())
            }
        };
        Ok(ColumnarValue::Array(found))
    }
}

impl Description {
    /// What has been said.
    fn texts(&self, arrays: &[ArrayRef], rows: usize) -> StringArray {
        let numbers = arrays[0].as_primitive::<Int64Type>();
        let found = (0..rows).map(|row| {
            if arrays.iter().any(|array| array.is_null(row)) {
                return None;
            }
            let column = match arrays {
                [_, places] if self.what == What::Column => {
                    places.as_primitive::<Int64Type>().value(row)
                }
                [_, catalog] => match catalog.as_string::<i32>().value(row) {
                    "pg_class" | "pg_type" => 0,
                    "pg_namespace" => return self.descriptions.of_schema(numbers.value(row)),
                    // Of other catalogs there are no comments.
                    _ => return None,
                },
                _ => 0,
            };
            if self.what == What::Column && column < 1 {
                return None;
            }
            self.descriptions.of(numbers.value(row), column)
        });
        found.collect()
    }

    /// What types are called.
    fn titles(&self, arrays: &[ArrayRef]) -> StringArray {
        let numbers = arrays[0].as_primitive::<Int64Type>().iter();
        let modifiers = arrays[1].as_primitive::<Int64Type>().iter();
        let title = |(number, modifier): (Option<i64>, Option<i64>)| {
            let title = self
                .descriptions
                .type_title(number?, modifier.unwrap_or(-1));
            Some(title.unwrap_or_else(|| "???".into()))
        };
        numbers.zip(modifiers).map(title).collect()
    }

    /// The texts that make what numbers or names say; of an index, of its column with a number, if that is not 0.
    fn definitions(&self, made: Made, arrays: &[ArrayRef], rows: usize) -> Result<StringArray> {
        let named = match arrays[0].data_type() {
            DataType::Utf8 => {
                let names = arrays[0].as_string::<i32>().iter();
                let numbers = names.map(|name| name.map_or(Ok(None), |name| self.number(name)));
                numbers.collect::<Result<Int64Array>>()?
            }
            _ => arrays[0].as_primitive::<Int64Type>().clone(),
        };
        let column = match (made, arrays) {
            (Made::Index, [_, columns, ..]) => Some(cast(columns, &DataType::Int64)?),
            _ => None,
        };
        let column = |row: usize| {
            let columns = column.as_ref()?.as_primitive::<Int64Type>();
            columns.is_valid(row).then(|| columns.value(row))
        };
        let of = |row: usize| {
            let number = named.is_valid(row).then(|| named.value(row))?;
            let text = self.descriptions.definition(made, number)?;
            match column(row).and_then(|at| usize::try_from(at).ok()) {
                None | Some(0) => Some(text),
                Some(at) => {
                    let (_, columns) = text.split_once(" (")?;
                    let columns = columns.strip_suffix(')')?;
                    let column = columns.split(", ").nth(at - 1)?;
                    // Without its order.
                    let column = column.split(" NULLS ").next()?;
                    Some(column.strip_suffix(" DESC").unwrap_or(column).to_owned())
                }
            }
        };
        Ok((0..rows).map(of).collect())
    }

    /// The number of what a text names, which may be a number itself.
    fn number(&self, text: &str) -> Result<Option<i64>> {
        if self.what == What::Relation
            && let Ok(number) = text.trim().parse()
        {
            return Ok(Some(number));
        }
        match self.descriptions.number(text)? {
            None if self.what == What::Relation => Err(Error::UnknownTable {
                name: text.to_owned(),
                candidates: Vec::new(),
                position: None,
            }
            .into()),
            found => Ok(found),
        }
    }

    /// The number of the type that a text names.
    fn of_type(&self, text: &str) -> Result<Option<i64>> {
        match self.descriptions.type_number(text) {
            None if self.what == What::NamedType => {
                let message = format!("type \"{}\" does not exist", text.trim());
                Err(Error::coded("42704", message).into())
            }
            found => Ok(found),
        }
    }

    /// The schemas, row by row.
    fn schemas(&self, implicit: &BooleanArray) -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for implicit in implicit {
            match implicit {
                Some(implicit) => {
                    for name in self.descriptions.schemas(implicit) {
                        lists.values().append_value(name);
                    }
                    lists.append(true);
                }
                None => lists.append(false),
            }
        }
        Arc::new(lists.finish())
    }
}
