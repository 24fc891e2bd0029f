//! Rows that filters name by a key: `id = 5`, `a = 1 and b in (2, 3)`. The index finds them, and the scan reads no others.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{BinaryExpr, Expr, Operator};
use table::{Definition, Key, Table};

use crate::error::Result;

/// The most keys that are looked up: for more, a scan may be as fast.
const MOST: usize = 1000;

/// The table with the rows alone that `filters`, a conjunction, can leave; none if they name no key.
///
/// # Errors
/// Those of reading the index.
pub(crate) async fn chosen(table: &Arc<Table>, filters: &[Expr]) -> Result<Option<Table>> {
    let definition = table.definition();
    if definition.keys.is_empty() || filters.is_empty() || table.chosen().is_some() {
        return Ok(None);
    }
    let named: Vec<Named<'_>> = filters
        .iter()
        .flat_map(conjuncts)
        .filter_map(named)
        .collect();
    for key in &definition.keys {
        if let Some(columns) = values(definition, key, &named)
            && table.has_index(key)
        {
            let found = table.find(key, &columns).await?;
            let rows: Vec<u64> = found.into_iter().flatten().collect();
            return Ok(Some(table.choose(&key.name, &rows)));
        }
    }
    Ok(None)
}

/// A column, and the only values that it may have.
type Named<'e> = (&'e str, Vec<&'e ScalarValue>);

fn conjuncts(filter: &Expr) -> Vec<&Expr> {
    match filter {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => [conjuncts(left), conjuncts(right)].concat(),
        other => vec![other],
    }
}

/// What `column = value`, `column in (values)`, or several of these with `or` between them name.
fn named(filter: &Expr) -> Option<Named<'_>> {
    match filter {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq,
            right,
        }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _))
            | (Expr::Literal(value, _), Expr::Column(column)) => Some((&column.name, vec![value])),
            _ => None,
        },
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Or,
            right,
        }) => {
            let ((column, mut values), (other, more)) = (named(left)?, named(right)?);
            values.extend(more);
            (column == other && values.len() <= MOST).then_some((column, values))
        }
        Expr::InList(list) if !list.negated && list.list.len() <= MOST => {
            let Expr::Column(column) = list.expr.as_ref() else {
                return None;
            };
            let values: Option<Vec<_>> = list.list.iter().map(literal).collect();
            Some((&column.name, values?))
        }
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// The columns of all keys that may be meant: each combination of the values of the key's columns.
fn values(definition: &Definition, key: &Key, named: &[Named<'_>]) -> Option<Vec<ArrayRef>> {
    let mut rows: Vec<Vec<ScalarValue>> = vec![vec![]];
    for column in &key.columns {
        let column = &definition.columns[*column];
        let mut of = named.iter().filter(|(name, _)| *name == column.name);
        // The fewest, where there are several.
        let (_, values) = of.by_ref().min_by_key(|(_, values)| values.len())?;
        let values: Option<Vec<_>> = values
            .iter()
            .map(|v| fitting(v, &column.data_type))
            .collect();
        let values = values?;
        if rows.len() * values.len() > MOST {
            return None;
        }
        let with = |row: &Vec<ScalarValue>, value: &ScalarValue| {
            let mut row = row.clone();
            row.push(value.clone());
            row
        };
        let longer = rows
            .iter()
            .flat_map(|row| values.iter().map(move |value| with(row, value)));
        rows = longer.collect();
    }
    let column = |at: usize| {
        let values = rows.iter().map(|row| row[at].clone());
        ScalarValue::iter_to_array(values).ok()
    };
    // An empty list of values has no type.
    if rows.is_empty() {
        return None;
    }
    (0..key.columns.len()).map(column).collect()
}

/// A value in the type of the column, if that changes nothing.
fn fitting(value: &ScalarValue, data_type: &DataType) -> Option<ScalarValue> {
    if value.data_type() == *data_type {
        return Some(value.clone());
    }
    match (value, data_type) {
        (ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text), DataType::Utf8View) => {
            Some(ScalarValue::Utf8View(text.clone()))
        }
        _ => None,
    }
}
