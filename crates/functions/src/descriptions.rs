//! Functions about the catalog that know the tables of the statement that calls them: `obj_description`,
//! `col_description`, `current_schema`, `current_schemas`, `pg_table_is_visible`, `pg_type_is_visible`, `pg_get_viewdef`,
//! `pg_get_indexdef`, `pg_get_constraintdef`.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListBuilder, StringArray, StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::object_kinds::Kind;

/// What knows the catalog.
pub trait Descriptions: Debug + Send + Sync {
    /// The comment on the table, view, sequence or key with this number, or on its column with this place, from 1 on.
    fn of(&self, relation: i64, column: i64) -> Option<String>;
    /// The comment on the constraint with this number.
    fn of_constraint(&self, constraint: i64) -> Option<String>;
    /// The comment on the schema with this number.
    fn of_schema(&self, schema: i64) -> Option<String>;
    /// The schema in which new tables are made.
    fn schema(&self) -> Option<String>;
    /// The schemas in which names are looked up, with those that no path names if `implicit`.
    fn schemas(&self, implicit: bool) -> Vec<String>;
    /// The number of what a text names.
    fn number_of(&self, kind: Kind, text: &str) -> messages::Result<Option<i64>>;
    /// What the thing with this number is called, with its schema if it is not found without.
    fn name_of(&self, kind: Kind, number: i64) -> Option<String>;
    /// What makes the view, index or constraint with this number: its text.
    fn definition(&self, what: Made, number: i64) -> Option<String>;
    /// The definition of a constraint without what people need not read.
    fn laid_out(&self, text: String) -> String;
    /// The statement that makes the index with this number, or the column at this place of it, from 1 on, if it is not 0;
    /// `pretty`: as people read it.
    fn index(&self, number: i64, place: usize, pretty: bool) -> Option<String>;
    /// An expression that a table keeps, as the statement would have to write it; `pretty`: with as few parentheses as it needs.
    fn expression(&self, text: &str, pretty: bool) -> String;
    /// What SQL calls the type with this number and modifier.
    fn type_title(&self, number: i64, modifier: i64) -> Option<String>;
    /// Whether the table, view or sequence with this number is found without its schema.
    fn is_visible(&self, relation: i64) -> Option<bool>;
    /// The same of the type with this number.
    fn is_visible_type(&self, number: i64) -> Option<bool>;
}

/// What has a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Made {
    /// A view, by its query.
    View,
    /// An index, by the statement that makes it.
    Index,
    /// A constraint, by what a table declares.
    Constraint,
    /// What a function takes.
    Arguments,
    /// What it returns.
    Result,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Definition(Made),
    Object,
    Column,
    Schema,
    Schemas,
    Visible,
    VisibleType,
    /// What a table keeps of an expression.
    Expression,
    /// What types are called.
    Title,
}

impl What {
    fn named(name: &str) -> Option<What> {
        Some(match name {
            "obj_description" => What::Object,
            "col_description" => What::Column,
            "current_schema" => What::Schema,
            "current_schemas" => What::Schemas,
            "pg_table_is_visible" => What::Visible,
            "pg_type_is_visible" => What::VisibleType,
            "format_type" => What::Title,
            "pg_get_expr" => What::Expression,
            "pg_get_viewdef" => What::Definition(Made::View),
            "pg_get_indexdef" => What::Definition(Made::Index),
            "pg_get_constraintdef" => What::Definition(Made::Constraint),
            "pg_get_function_arguments" | "pg_get_function_identity_arguments" => {
                What::Definition(Made::Arguments)
            }
            "pg_get_function_result" => What::Definition(Made::Result),
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

/// The function of this name for a statement that asks `known` for the catalog, if it is one of these.
pub fn named(descriptions: &Arc<dyn Descriptions>, name: &str) -> Option<ScalarUDF> {
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

/// Whether a function of this name asks for the catalog.
pub fn is_name(name: &str) -> bool {
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
            What::Visible => "pg_table_is_visible",
            What::VisibleType => "pg_type_is_visible",
            What::Title => "format_type",
            What::Expression => "pg_get_expr",
            What::Definition(Made::View) => "pg_get_viewdef",
            What::Definition(Made::Index) => "pg_get_indexdef",
            What::Definition(Made::Constraint) => "pg_get_constraintdef",
            What::Definition(Made::Arguments) => "pg_get_function_arguments",
            What::Definition(Made::Result) => "pg_get_function_result",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.what, types) {
            (What::Column | What::Title, [_, _]) => Ok(vec![DataType::Int64; 2]),
            (What::Object | What::Visible | What::VisibleType, [_]) => Ok(vec![DataType::Int64]),
            (What::Expression, [_, rest @ ..]) if (1..3).contains(&rest.len()) => {
                Ok([&[DataType::Utf8], rest].concat())
            }
            (What::Object, [_, _]) => Ok(vec![DataType::Int64, DataType::Utf8]),
            (What::Schemas, [_]) => Ok(vec![DataType::Boolean]),
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
            | What::Title
            | What::Expression
            | What::Definition(_) => DataType::Utf8,
            What::Schemas => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            What::Visible | What::VisibleType => DataType::Boolean,
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
            What::Title => Arc::new(self.titles(&arrays)),
            What::Expression => {
                let texts = arrays[0].as_string::<i32>().iter().enumerate();
                let pretty = arrays.get(2).and_then(|own| own.as_boolean_opt());
                let shown = texts.map(|(row, text)| {
                    let pretty = pretty.is_some_and(|own| own.is_valid(row) && own.value(row));
                    Some(self.descriptions.expression(text?, pretty))
                });
                Arc::new(shown.collect::<StringArray>())
            }
            What::Visible | What::VisibleType => {
                let numbers = arrays[0].as_primitive::<Int64Type>().iter();
                let seen = |number: Option<i64>| match self.what {
                    What::VisibleType => self.descriptions.is_visible_type(number?),
                    _ => self.descriptions.is_visible(number?),
                };
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
                    "pg_constraint" => {
                        return self.descriptions.of_constraint(numbers.value(row));
                    }
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
                let number = |name| self.descriptions.number_of(Kind::Relation, name);
                let numbers = names.map(|name| name.map_or(Ok(None), number));
                numbers.collect::<messages::Result<Int64Array>>()?
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
        let pretty = match (made, arrays) {
            (Made::Constraint | Made::View, [_, pretty]) | (Made::Index, [_, _, pretty]) => {
                pretty.as_boolean_opt()
            }
            _ => None,
        };
        let of = |row: usize| {
            let number = named.is_valid(row).then(|| named.value(row))?;
            let pretty = pretty.is_some_and(|own| own.is_valid(row) && own.value(row));
            if made == Made::Index {
                let place = column(row).and_then(|at| usize::try_from(at).ok());
                return self.descriptions.index(number, place.unwrap_or(0), pretty);
            }
            let text = self.descriptions.definition(made, number)?;
            Some(if pretty {
                self.descriptions.laid_out(text)
            } else {
                text
            })
        };
        Ok((0..rows).map(of).collect())
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
