//! Queries for the row of one key, `select a, b from t where id = 5`: what they ask for. They are answered
//! [without a plan](crate::statements::lookup).
//!
//! Any other query, and any that says more, is none of these. They are read from a syntax tree, or from the plainest of
//! texts without a parser, which takes many times as long as such a row takes to find.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Date32Array, Decimal128Array};
use arrow::datatypes::DataType;
use chrono::{Datelike, NaiveDate};
use messages::tags::shown;
use sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Statement as Sql,
    TableAlias, TableFactor, Value, WildcardAdditionalOptions,
};
use table::{Column, Definition, Key};

use crate::constant::Constant;
use crate::lengths;
use crate::names::{column_name, written};
use crate::parse::{Statement, parse};
use crate::prepared::number;

/// What a query for the row of one key asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyQuery {
    /// The table, as it is [written](crate::names::written).
    pub table: String,
    /// The columns, and what each is called in the answer; none for all.
    pub items: Option<Vec<(String, String)>>,
    /// Columns, and what each is to be. There is one at least.
    pub values: Vec<(String, KeyValue)>,
}

/// What a column is to be.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyValue {
    /// NULL.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number of 64 bits.
    Whole(i64),
    /// A string literal.
    Text(String),
    /// A day, by its number from the beginning of 1970 on: a parameter that is one.
    Day(i32),
    /// The parameter in this place, from 0 on.
    Parameter(usize),
}

impl KeyQuery {
    /// What a statement asks for, if it is such a query.
    pub fn of_statement(statement: &Statement) -> Option<KeyQuery> {
        match statement {
            Statement::Sql(sql) => KeyQuery::of_sql(sql),
            _ => None,
        }
    }

    /// The same of a syntax tree that has been rewritten.
    pub fn of_sql(sql: &Sql) -> Option<KeyQuery> {
        match sql {
            Sql::Query(query) => KeyQuery::of_query(query),
            _ => None,
        }
    }

    /// The same of a query.
    pub(crate) fn of_query(query: &Query) -> Option<KeyQuery> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let equal = equalities(select.selection.as_ref()?)?;
        let (bare, name, alias) = bare(query)?;
        if Some(&bare) != PLAIN.as_ref() {
            return None;
        }
        let qualifier = qualifier(&name, alias.as_ref());
        let own = |column: &Named<'_>| column.is_of(qualifier.as_deref());
        let values = equal.into_iter().map(|(column, value)| {
            let value = KeyValue::of(value)?;
            own(&column).then(|| (column_name(column.column), value))
        });
        Some(KeyQuery {
            table: written(&name).ok()?,
            items: chosen(select, qualifier.as_deref())?,
            values: values.collect::<Option<Vec<_>>>()?,
        })
    }

    /// The positions of the columns, and their names in the answer, where these are not those of all columns; none if the
    /// table has no such column.
    pub fn columns(&self, definition: &Definition) -> Option<Option<Vec<(usize, String)>>> {
        positions(self.items.as_deref(), definition)
    }

    /// The key whose columns the query names, each once, and the values that they are to have; none if there is no such key,
    /// or a value would have to be converted.
    pub fn key<'t>(
        &self,
        definition: &'t Definition,
        parameters: &[KeyValue],
    ) -> Option<(&'t Key, Vec<ArrayRef>)> {
        let key = self.named(definition)?;
        let value = |column: &usize| {
            let column = &definition.columns[*column];
            let (_, value) = self.values.iter().find(|(own, _)| *own == column.name)?;
            // A `char(n)` keeps none.
            if value.ends_with_blank(parameters) && lengths::is_char(definition, &column.name) {
                return None;
            }
            value.column(parameters, column)
        };
        let values = key.columns.iter().map(value).collect::<Option<Vec<_>>>()?;
        Some((key, values))
    }

    /// The key whose columns the query names, each once.
    fn named<'t>(&self, definition: &'t Definition) -> Option<&'t Key> {
        let is_named = |column: &usize| {
            let name = &definition.columns[*column].name;
            self.values.iter().any(|(other, _)| other == name)
        };
        definition
            .keys
            .iter()
            .find(|key| key.columns.len() == self.values.len() && key.columns.iter().all(is_named))
    }

    /// The types of the parameters, some of which are `declared`: those of the columns that they are compared with. None if the
    /// query names no key, a parameter stands in several places, or is of a type that would have to be converted.
    pub fn parameters(
        &self,
        definition: &Definition,
        declared: &[Option<DataType>],
    ) -> Option<Vec<DataType>> {
        self.named(definition)?;
        let mut types: Vec<Option<DataType>> = vec![None; self.values.len()];
        let mut count = 0;
        for (column, value) in &self.values {
            let KeyValue::Parameter(at) = value else {
                continue;
            };
            let own = &definition.columns[definition.position(column).ok()?].data_type;
            let whole = [DataType::Int16, DataType::Int32, DataType::Int64];
            let others = [DataType::Utf8View, DataType::Boolean, DataType::Date32];
            let known = match declared.get(*at).cloned().flatten() {
                None if whole.contains(own) || others.contains(own) => own.clone(),
                Some(said) if said == *own && others.contains(own) => said,
                Some(said) if whole.contains(&said) && whole.contains(own) => said,
                _ => return None,
            };
            if types.get_mut(*at)?.replace(known).is_some() {
                return None;
            }
            count += 1;
        }
        // Each has a type that comes before the last.
        types.truncate(count);
        types.into_iter().collect()
    }
}

impl KeyValue {
    /// The value that an expression is, if it is one that says its value, or a parameter.
    pub fn of(expr: &Expr) -> Option<KeyValue> {
        match expr {
            Expr::Nested(inner) => return KeyValue::of(inner),
            Expr::Value(value) => {
                if let Value::Placeholder(name) = &value.value {
                    return number(name).map(|number| KeyValue::Parameter(number - 1));
                }
            }
            _ => {}
        }
        match Constant::of(expr)? {
            Constant::Null => Some(KeyValue::Null),
            Constant::Boolean(value) => Some(KeyValue::Boolean(value)),
            Constant::Whole(number) => Some(KeyValue::Whole(number)),
            Constant::Text(text) => Some(KeyValue::Text(text.to_owned())),
            // What is written with a point is a decimal, which a float need not be.
            Constant::Float(_) => None,
        }
    }

    /// A parameter of this type that has come as a text; none if it is not plainly of that type.
    pub fn of_parameter(data_type: &DataType, text: Option<&str>) -> Option<KeyValue> {
        let Some(text) = text else {
            return Some(KeyValue::Null);
        };
        match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                let number: i64 = text.trim().parse().ok()?;
                // One that is not of its type is an error, whatever it is compared with.
                Constant::column(&[Constant::Whole(number)], data_type)?;
                Some(KeyValue::Whole(number))
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Some(KeyValue::Text(text.to_owned()))
            }
            DataType::Boolean => match text {
                "t" | "true" => Some(KeyValue::Boolean(true)),
                "f" | "false" => Some(KeyValue::Boolean(false)),
                _ => None,
            },
            DataType::Date32 => date(text).map(KeyValue::Day),
            DataType::Decimal128(..) => text.parse().ok().map(KeyValue::Whole),
            _ => None,
        }
    }

    /// Whether it is a text with a blank at its end.
    fn ends_with_blank(&self, parameters: &[KeyValue]) -> bool {
        let value = match self {
            KeyValue::Parameter(at) => parameters.get(*at),
            own => Some(own),
        };
        matches!(value, Some(KeyValue::Text(text)) if text.ends_with(' '))
    }

    /// The value as an array of one, of the type of a column; none if it would have to be converted.
    fn column(&self, parameters: &[KeyValue], column: &Column) -> Option<ArrayRef> {
        let data_type = &column.data_type;
        let constant = match self {
            KeyValue::Null => Constant::Null,
            KeyValue::Boolean(value) => Constant::Boolean(*value),
            KeyValue::Whole(number) => Constant::Whole(*number),
            KeyValue::Text(text) => Constant::Text(text),
            KeyValue::Day(day) => {
                let day = Date32Array::from(vec![*day]);
                return (*data_type == DataType::Date32).then(|| Arc::new(day) as ArrayRef);
            }
            KeyValue::Parameter(at) => {
                let given = parameters.get(*at)?;
                // A parameter is none of another.
                return match given {
                    KeyValue::Parameter(_) => None,
                    given => given.column(&[], column),
                };
            }
        };
        match (constant, data_type) {
            (Constant::Whole(number), DataType::Decimal128(precision, scale)) => {
                decimal(number, *precision, *scale)
            }
            (Constant::Text(text), DataType::Date32) => {
                Some(Arc::new(Date32Array::from(vec![date(text)?])))
            }
            (_, DataType::Float64) => None,
            (constant, data_type) => Constant::column(&[constant], data_type),
        }
    }
}

/// A whole number as a decimal.
fn decimal(number: i64, precision: u8, scale: i8) -> Option<ArrayRef> {
    let scaled = 10_i128
        .checked_pow(u32::try_from(scale).ok()?)?
        .checked_mul(number.into())?;
    let least_beyond = 10_u128.checked_pow(precision.into())?;
    let values = Decimal128Array::from(vec![scaled]);
    let values = values.with_precision_and_scale(precision, scale).ok()?;
    (scaled.unsigned_abs() < least_beyond).then(|| Arc::new(values) as ArrayRef)
}

/// The day of a text such as 2020-02-29, of which there is one reading alone.
pub fn date(text: &str) -> Option<i32> {
    let plain = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    if text.len() != 10 || !text.bytes().enumerate().all(plain) {
        return None;
    }
    let (year, month, day) = (&text[..4], &text[5..7], &text[8..]);
    let date = NaiveDate::from_ymd_opt(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
    let first = NaiveDate::from_ymd_opt(1970, 1, 1)?;
    (date.year() > 0).then(|| (date - first).num_days() as i32)
}

/// `select * from t where a = 1` without what differs.
static PLAIN: LazyLock<Option<Query>> = LazyLock::new(|| {
    let parsed = parse("select * from t where a = 1").ok()?.pop()?;
    let Statement::Sql(statement) = parsed.statement else {
        return None;
    };
    let Sql::Query(query) = *statement else {
        return None;
    };
    Some(bare(&query)?.0)
});

/// A query of one table without its items, the table's name, its alias and its condition; that name and that alias.
fn bare(query: &Query) -> Option<(Query, ObjectName, Option<Ident>)> {
    let mut query = query.clone();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    select.projection.clear();
    select.selection = None;
    let [from] = select.from.as_mut_slice() else {
        return None;
    };
    let TableFactor::Table { name, alias, .. } = &mut from.relation else {
        return None;
    };
    let name = std::mem::replace(name, ObjectName(Vec::new()));
    let alias = match alias.take() {
        None => None,
        Some(TableAlias {
            explicit: _,
            name,
            columns,
            at: None,
        }) if columns.is_empty() => Some(name),
        Some(_) => return None,
    };
    Some((query, name, alias))
}

/// The name of the table that columns may be called with.
fn qualifier(name: &ObjectName, alias: Option<&Ident>) -> Option<String> {
    match (alias, name.0.as_slice()) {
        (Some(alias), _) => Some(column_name(alias)),
        (None, [part]) => part.as_ident().map(column_name),
        // Columns may be called by the name with its schema, too.
        (None, _) => None,
    }
}

/// The positions of the columns of all rows of one table that a query takes, and their names in the answer, as
/// [`KeyQuery::columns`]; none of a query that says more.
pub fn columns_of_rows(
    query: &Query,
    definition: &Definition,
) -> Option<Option<Vec<(usize, String)>>> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let (bare, name, alias) = bare(query)?;
    if select.selection.is_some() || Some(&bare) != PLAIN.as_ref() {
        return None;
    }
    let qualifier = qualifier(&name, alias.as_ref());
    let items = chosen(select, qualifier.as_deref())?;
    positions(items.as_deref(), definition)
}

/// The names of the columns that are selected, and what each is called; none for all.
fn chosen(select: &Select, qualifier: Option<&str>) -> Option<Option<Vec<(String, String)>>> {
    let Some(items) = items(select)? else {
        return Some(None);
    };
    let items = items.into_iter().map(|(column, name)| {
        let own = column.is_of(qualifier);
        own.then(|| (column_name(column.column), name))
    });
    Some(Some(items.collect::<Option<Vec<_>>>()?))
}

/// The positions of columns; none if the table has no such column.
fn positions(
    items: Option<&[(String, String)]>,
    definition: &Definition,
) -> Option<Option<Vec<(usize, String)>>> {
    let Some(items) = items else {
        return Some(None);
    };
    let column =
        |(column, name): &(String, String)| Some((definition.position(column).ok()?, name.clone()));
    Some(Some(items.iter().map(column).collect::<Option<Vec<_>>>()?))
}

/// A column as a query names it.
pub struct Named<'q> {
    /// The table before the column.
    pub table: Option<&'q Ident>,
    /// The name of the column.
    pub column: &'q Ident,
}

impl<'q> Named<'q> {
    /// The column that an expression is, if it is one.
    pub fn of(expr: &'q Expr) -> Option<Named<'q>> {
        match expr {
            Expr::Identifier(column) => Some(Named {
                table: None,
                column,
            }),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, column] => Some(Named {
                    table: Some(table),
                    column,
                }),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it may be a column of the table with this name.
    fn is_of(&self, qualifier: Option<&str>) -> bool {
        match self.table {
            None => true,
            Some(table) => Some(column_name(table).as_str()) == qualifier,
        }
    }
}

/// Whether items are nothing but columns, which have no parameters in them.
pub fn are_columns(items: &[SelectItem]) -> bool {
    let is_column =
        |own: &SelectItem| matches!(own, SelectItem::Wildcard(_)) || item(own).is_some();
    items.iter().all(is_column)
}

/// The columns that are selected, and what each is called; none for all.
fn items(select: &Select) -> Option<Option<Vec<(Named<'_>, String)>>> {
    if let [SelectItem::Wildcard(options)] = select.projection.as_slice() {
        return (*options == WildcardAdditionalOptions::default()).then_some(None);
    }
    let items: Option<Vec<_>> = select.projection.iter().map(item).collect();
    Some(Some(items.filter(|items| !items.is_empty())?))
}

fn item(item: &SelectItem) -> Option<(Named<'_>, String)> {
    match item {
        SelectItem::UnnamedExpr(expr) => {
            let column = Named::of(expr)?;
            let name = column_name(column.column);
            Some((column, name))
        }
        SelectItem::ExprWithAlias { expr, alias } => {
            Some((Named::of(expr)?, shown(&column_name(alias)).to_owned()))
        }
        _ => None,
    }
}

/// The columns that a condition compares with others or with values, and what with, if that is all that it does.
pub fn equalities(condition: &Expr) -> Option<Vec<(Named<'_>, &Expr)>> {
    let mut equal = Vec::new();
    conjuncts(condition, &mut equal)?;
    Some(equal)
}

fn conjuncts<'q>(condition: &'q Expr, equal: &mut Vec<(Named<'q>, &'q Expr)>) -> Option<()> {
    match condition {
        Expr::Nested(inner) => conjuncts(inner, equal),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            conjuncts(left, equal)?;
            conjuncts(right, equal)
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => {
            equal.push((Named::of(left)?, right));
            Some(())
        }
        _ => None,
    }
}
