//! `nextval`, `currval`, `lastval`, `setval`, `pg_get_serial_sequence`.
//!
//! They are bound to the statement that calls them: it knows the sequences, the session, and whether it may write. So
//! they are made when a statement names them.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Result, plan_err};
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use messages::Error;
use messages::names::CATALOG;
use table::within;

/// What statements do with sequences, which are given by the texts that name them.
pub trait Numbers: Debug + Send + Sync {
    /// The next numbers of a sequence.
    fn next(&self, name: &str, count: usize) -> messages::Result<Vec<i64>>;
    /// The last number that the session has got of it.
    fn current(&self, name: &str) -> messages::Result<i64>;
    /// The last number that the session has got.
    fn last(&self) -> messages::Result<i64>;
    /// Sets it; `called` says whether the number was given already.
    fn set(&self, name: &str, value: i64, called: bool) -> messages::Result<()>;
    /// The name of the sequence that belongs to a column of a table, with its schema.
    fn owned(&self, table: &str, column: &str) -> messages::Result<Option<String>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Next,
    Current,
    Last,
    Set,
    Owned,
}

impl What {
    fn named(name: &str) -> Option<What> {
        Some(match name {
            "nextval" => What::Next,
            "currval" => What::Current,
            "lastval" => What::Last,
            "setval" => What::Set,
            "pg_get_serial_sequence" => What::Owned,
            _ => return None,
        })
    }
}

/// The name in `text`, as `'s'`, `'public.s'` or `'"S"'` name a sequence or a table: in lower case unless quoted, with its
/// schema if it has one.
///
/// # Errors
/// If it is no name.
pub fn relation(text: &str) -> messages::Result<String> {
    let invalid = || Error::coded("42602", format!("invalid name syntax: \"{text}\""));
    let mut parts: Vec<String> = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, behind) = if let Some(quoted) = rest.strip_prefix('"') {
            let mut part = String::new();
            let mut quoted = quoted;
            loop {
                let end = quoted.find('"').ok_or_else(invalid)?;
                part.push_str(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix('"') {
                    Some(more) => {
                        part.push('"');
                        quoted = more;
                    }
                    None => break (part, quoted),
                }
            }
        } else {
            let end = rest.find(['.', '"']).unwrap_or(rest.len());
            (rest[..end].trim().to_lowercase(), &rest[end..])
        };
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        let behind = behind.trim_start();
        match behind.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None if behind.is_empty() => break,
            None => return Err(invalid()),
        }
    }
    let missing = || Error::coded("42P01", format!("relation \"{text}\" does not exist"));
    let name = parts.pop().ok_or_else(invalid)?;
    match &parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(name),
        [schema] | [CATALOG, schema] => Ok(within(schema, &name)),
        _ => Err(missing()),
    }
}

#[derive(Debug)]
struct OfSequence {
    what: What,
    numbers: Arc<dyn Numbers>,
    signature: Signature,
}

/// The function of this name for a statement, if there is one.
pub fn named(numbers: &Arc<dyn Numbers>, name: &str) -> Option<ScalarUDF> {
    let what = What::named(name)?;
    Some(ScalarUDF::from(OfSequence {
        what,
        numbers: Arc::clone(numbers),
        signature: match what {
            What::Last => Signature::nullary(Volatility::Volatile),
            What::Owned => Signature::user_defined(Volatility::Stable),
            _ => Signature::user_defined(Volatility::Volatile),
        },
    }))
}

/// Whether a function of this name asks for sequences.
pub fn is_name(name: &str) -> bool {
    What::named(name).is_some()
}

/// How many calls in an expression [ask sequences](is_one).
///
/// # Errors
/// None: walking an expression does not fail.
pub fn calls(expr: &Expr) -> Result<usize> {
    let mut count = 0;
    expr.apply(|part| {
        if let Expr::ScalarFunction(call) = part {
            count += usize::from(is_one(&call.func));
        }
        Ok(datafusion_common::tree_node::TreeNodeRecursion::Continue)
    })?;
    Ok(count)
}

/// Whether a function takes numbers from a sequence, sets it, or asks for its last number.
pub fn is_one(function: &ScalarUDF) -> bool {
    matches!(
        function.name(),
        "nextval" | "currval" | "lastval" | "setval"
    )
}

impl PartialEq for OfSequence {
    fn eq(&self, other: &OfSequence) -> bool {
        self.what == other.what && Arc::ptr_eq(&self.numbers, &other.numbers)
    }
}

impl Eq for OfSequence {}

impl Hash for OfSequence {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.what.hash(state);
    }
}

impl ScalarUDFImpl for OfSequence {
    fn name(&self) -> &str {
        match self.what {
            What::Next => "nextval",
            What::Current => "currval",
            What::Last => "lastval",
            What::Set => "setval",
            What::Owned => "pg_get_serial_sequence",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let text = |data_type: &DataType| {
            matches!(
                data_type,
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null
            )
        };
        let whole = |data_type: &DataType| data_type.is_integer() || data_type.is_null();
        let truth = |data_type: &DataType| matches!(data_type, DataType::Boolean | DataType::Null);
        match (self.what, types) {
            (What::Next | What::Current, [name]) if text(name) => Ok(vec![DataType::Utf8]),
            (What::Set, [name, value]) if text(name) && whole(value) => {
                Ok(vec![DataType::Utf8, DataType::Int64])
            }
            (What::Set, [name, value, called]) if text(name) && whole(value) && truth(called) => {
                Ok(vec![DataType::Utf8, DataType::Int64, DataType::Boolean])
            }
            (What::Owned, [table, column]) if text(table) && text(column) => {
                Ok(vec![DataType::Utf8; 2])
            }
            (What::Owned, _) => {
                plan_err!("pg_get_serial_sequence takes the name of a table and that of a column")
            }
            (What::Set, _) => plan_err!(
                "setval takes the name of a sequence, a bigint, and whether that was given already"
            ),
            _ => plan_err!("{} takes the name of a sequence", self.name()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.what {
            What::Owned => DataType::Utf8,
            _ => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let found = match (self.what, &args.args[..]) {
            (What::Last, _) => {
                let last = if rows > 0 { self.numbers.last()? } else { 0 };
                Int64Array::from(vec![last; rows])
            }
            (What::Next, [ColumnarValue::Scalar(name)]) => match name.try_as_str().flatten() {
                // All at once.
                Some(name) if rows > 0 => Int64Array::from(self.numbers.next(name, rows)?),
                _ => Int64Array::new_null(rows),
            },
            (what, args) => {
                let arrays = args.iter().map(|arg| arg.to_array(rows));
                if what == What::Owned {
                    let arrays = arrays.collect::<Result<Vec<_>>>()?;
                    return Ok(ColumnarValue::Array(self.owned(&arrays)?));
                }
                self.each(&arrays.collect::<Result<Vec<_>>>()?, rows)?
            }
        };
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}

impl OfSequence {
    /// The sequences of columns.
    fn owned(&self, args: &[ArrayRef]) -> Result<ArrayRef> {
        let texts: Vec<_> = args
            .iter()
            .filter_map(|arg| arg.as_string_opt::<i32>())
            .collect();
        let [tables, columns] = texts[..] else {
            return plan_err!("{} takes two names", self.name());
        };
        let found = tables
            .iter()
            .zip(columns)
            .map(|(table, column)| match (table, column) {
                (Some(table), Some(column)) => Ok(self.numbers.owned(table, column)?),
                _ => Ok(None),
            });
        Ok(Arc::new(found.collect::<Result<StringArray>>()?))
    }

    /// Row by row; NULL where an argument is.
    fn each(&self, args: &[ArrayRef], rows: usize) -> Result<Int64Array> {
        let Some(names) = args.first().and_then(|names| names.as_string_opt::<i32>()) else {
            return plan_err!("{} takes the name of a sequence", self.name());
        };
        let values = args.get(1).map(|values| values.as_primitive::<Int64Type>());
        let called: Option<&BooleanArray> = args.get(2).map(|called| called.as_boolean());
        let mut found = Vec::with_capacity(rows);
        for row in 0..rows {
            if args.iter().any(|arg| arg.is_null(row)) {
                found.push(None);
                continue;
            }
            let name = names.value(row);
            found.push(Some(match (self.what, values) {
                (What::Set, Some(values)) => {
                    let called = called.is_none_or(|called| called.value(row));
                    self.numbers.set(name, values.value(row), called)?;
                    values.value(row)
                }
                (What::Current, _) => self.numbers.current(name)?,
                _ => self.numbers.next(name, 1)?.first().copied().unwrap_or(0),
            }));
        }
        Ok(Int64Array::from(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_sequences_as_statements_do() {
        for (text, wanted) in [
            ("s", "s"),
            (" S ", "s"),
            ("public.S", "public\u{1}s"),
            ("\"S\"", "S"),
            ("public.\"a\"\"b.c\"", "public\u{1}a\"b.c"),
            ("other.s", "other\u{1}s"),
            ("atoll . public . s", "public\u{1}s"),
        ] {
            assert_eq!(relation(text).unwrap(), wanted, "{text}");
        }
        for text in ["", ".", "a.", "\"a", "\"a\"b", "a.b.s"] {
            assert!(relation(text).is_err(), "{text}");
        }
    }
}
