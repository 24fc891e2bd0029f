//! What the columns of a table have that [the insert of one row](crate::bind::row_insert) says nothing of.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, TimeUnit};
use sqlparser::ast::{
    DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};
use syntax::expression::expression;
use syntax::names::{column_name, quoted};
use table::{Column, uuid_type};

use crate::bind::cells;
use crate::bind::row_values::{Cell, Given, RowValue};
use crate::functions::arguments::UTC;
use crate::functions::temporal::local::Local;
use crate::functions::uuid;

/// What the columns of a table have that a row says nothing of, in their order.
#[derive(Debug)]
pub(crate) struct Defaults(pub Vec<LeftOut>);

/// What a column has that a row says nothing of.
#[derive(Debug)]
pub(crate) enum LeftOut {
    /// What its default says as it is written; NULL where it has none.
    Value(RowValue),
    /// The same in all rows of a transaction: an array of one, of the type of the column.
    Same(ArrayRef),
    /// The next number of a sequence, which this text names.
    Next(String),
    /// When the transaction began: `now()` in a column of its type.
    Beginning,
    /// A uuid of its own for each row: `gen_random_uuid()`.
    Random,
    /// What is computed for each row.
    Computed,
}

impl LeftOut {
    /// What a column has by its definition alone.
    pub(crate) fn of(column: &Column) -> LeftOut {
        if let Some((sequence, _)) = column.identity() {
            return LeftOut::Next(quoted(sequence));
        }
        let Some(text) = &column.default else {
            return LeftOut::Value(RowValue::Null);
        };
        let Ok(default) = expression(text) else {
            return LeftOut::Computed;
        };
        if let Some(value) = RowValue::of(&default) {
            return LeftOut::Value(value);
        }
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        match sequence(&default) {
            Some(name) if column.data_type.is_integer() => LeftOut::Next(name.to_owned()),
            None if column.data_type == instant && is_beginning(&default) => LeftOut::Beginning,
            None if column.data_type == uuid_type() && is_random(&default) => LeftOut::Random,
            _ => LeftOut::Computed,
        }
    }
}

impl Defaults {
    /// What the column in this place has; none if that is to be computed, or would have to be converted.
    pub(super) fn cell(&self, at: usize, column: &Column, local: Local) -> Option<Cell<'_>> {
        let given = Given {
            local,
            ..Given::NONE
        };
        match self.0.get(at)? {
            LeftOut::Value(value) => value.cell(given, column),
            LeftOut::Same(value) => of_array(value, &column.data_type),
            LeftOut::Next(name) => Some(Cell::Next(name)),
            LeftOut::Random => Some(Cell::One(uuid::random().ok()?)),
            LeftOut::Beginning | LeftOut::Computed => None,
        }
    }
}

/// The value of an array of one, which is of the type `own` of a column.
fn of_array<'a>(value: &'a ArrayRef, own: &DataType) -> Option<Cell<'a>> {
    match value.as_string_view_opt() {
        Some(texts) if value.data_type() == own && texts.is_valid(0) => {
            Some(Cell::Text(texts.value(0)))
        }
        _ => cells::of_array(value, own),
    }
}

/// Whether an expression is when the transaction began.
fn is_beginning(default: &Expr) -> bool {
    const NAMES: [&str; 3] = ["now", "current_timestamp", "transaction_timestamp"];
    let function = match default {
        Expr::Nested(inner) => return is_beginning(inner),
        Expr::Function(function) => function,
        _ => return false,
    };
    let is_bare = match &function.args {
        FunctionArguments::None => true,
        FunctionArguments::List(list) => list.args.is_empty() && list.clauses.is_empty(),
        FunctionArguments::Subquery(_) => false,
    };
    let [part] = function.name.0.as_slice() else {
        return false;
    };
    let name = part.as_ident().map(column_name);
    let is_named = name.is_some_and(|name| NAMES.contains(&name.as_str()));
    is_bare && is_named && function.filter.is_none() && function.over.is_none()
}

/// Whether an expression is `gen_random_uuid()`, which is a cast of DataFusion's function here.
fn is_random(default: &Expr) -> bool {
    let function = match default {
        Expr::Nested(inner) => return is_random(inner),
        Expr::Cast {
            expr,
            data_type: SqlType::Uuid,
            ..
        } => match expr.as_ref() {
            Expr::Function(function) => function,
            _ => return false,
        },
        _ => return false,
    };
    let FunctionArguments::List(list) = &function.args else {
        return false;
    };
    let [part] = function.name.0.as_slice() else {
        return false;
    };
    let name = part.as_ident().map(column_name);
    let is_plain = function.filter.is_none() && function.over.is_none();
    is_plain && list.args.is_empty() && name.as_deref() == Some("uuid")
}

/// The name in `nextval('name')` or `nextval('name'::regclass)`.
fn sequence(default: &Expr) -> Option<&str> {
    match default {
        Expr::Nested(inner) => sequence(inner),
        Expr::Function(function) => text(argument(function, "nextval")?),
        _ => None,
    }
}

/// A text, or one that is cast to `regclass`.
fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => text(inner),
        Expr::Cast {
            expr, data_type, ..
        } if data_type.to_string().eq_ignore_ascii_case("regclass") => text(expr),
        // What the cast is read as.
        Expr::Function(function) => text(argument(function, "regclass")?),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// What the function of this name is given, if it is called with that alone.
fn argument<'e>(function: &'e Function, called: &str) -> Option<&'e Expr> {
    let Function {
        name,
        args: FunctionArguments::List(list),
        filter: None,
        over: None,
        ..
    } = function
    else {
        return None;
    };
    let [part] = name.0.as_slice() else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else {
        return None;
    };
    (column_name(part.as_ident()?) == called).then_some(argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_named_by_texts() {
        for (default, name) in [
            ("nextval('s')", Some("s")),
            ("NEXTVAL(('a.\"S\"'::regclass))", Some("a.\"S\"")),
            ("nextval('s') + 1", None),
            ("currval('s')", None),
            ("nextval(lower('S'))", None),
            ("nextval('s', 's')", None),
        ] {
            assert_eq!(sequence(&expression(default).unwrap()), name, "{default}");
        }
    }

    #[test]
    fn uuids_are_asked_for_by_name() {
        for (default, wanted) in [
            ("gen_random_uuid()", true),
            ("(pg_catalog.gen_random_uuid())", true),
            ("gen_random_uuid()::text", false),
            ("'6c5fc5be-8c8b-4f4c-8a50-2d16a3b7a1a1'::uuid", false),
        ] {
            let found = is_random(&expression(default).unwrap());
            assert_eq!(found, wanted, "{default}");
        }
    }

    #[test]
    fn the_beginning_of_the_transaction_is_asked_for_by_name() {
        for (default, wanted) in [
            ("now()", true),
            ("(NOW())", true),
            ("now() + interval '1 day'", false),
            ("clock_timestamp()", false),
            ("statement_timestamp()", false),
            ("now", false),
        ] {
            let found = is_beginning(&expression(default).unwrap());
            assert_eq!(found, wanted, "{default}");
        }
    }
}
