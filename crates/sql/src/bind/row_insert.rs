//! Inserts of one row of constants and parameters, `insert into t (a, b) values ($1, 'x')`: what they bring. In a transaction
//! such rows are [gathered](syntax::statements::gathered) without a plan.
//!
//! Any other insert, and any that says more, is none of these.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use sqlparser::ast::{Insert, ObjectName, Query, SetExpr, Statement as Sql, TableObject};
use syntax::names::{column_name, written};
use syntax::parse::{Statement, parse};
use table::{Column, Definition};

use crate::bind::left_out::Defaults;
use crate::bind::row_values::{Cell, Given, RowValue};

/// What an insert of one row brings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowInsert {
    /// The table, as it is [written](syntax::names::written).
    pub table: Arc<str>,
    /// The columns that it names, each once; none for those of the table, from the first on.
    columns: Vec<String>,
    values: Vec<RowValue>,
}

impl RowInsert {
    /// What a statement brings, if it is such an insert.
    pub(crate) fn of_statement(statement: &Statement) -> Option<RowInsert> {
        match statement {
            Statement::Sql(sql) => RowInsert::of_sql(sql),
            _ => None,
        }
    }

    /// The same of a syntax tree that has been rewritten.
    pub(crate) fn of_sql(sql: &Sql) -> Option<RowInsert> {
        let Sql::Insert(insert) = sql else {
            return None;
        };
        let (Some(source), TableObject::TableName(table)) = (&insert.source, &insert.table) else {
            return None;
        };
        let SetExpr::Values(rows) = source.body.as_ref() else {
            return None;
        };
        let [row] = rows.rows.as_slice() else {
            return None;
        };
        let values = row.content.iter().map(RowValue::of);
        let values = values.collect::<Option<Vec<_>>>()?;
        let columns = insert.columns.iter().map(column);
        let columns = columns.collect::<Option<Vec<_>>>()?;
        let twice = |at: usize| columns[..at].contains(&columns[at]);
        let as_many = columns.is_empty() || columns.len() == values.len();
        if !as_many || (0..columns.len()).any(twice) || Some(&bare(insert)?) != PLAIN.as_ref() {
            return None;
        }
        Some(RowInsert {
            table: written(table).ok()?.into(),
            columns,
            values,
        })
    }

    /// The types of the columns that parameters are for, with the place of each parameter.
    pub(crate) fn types(&self, definition: &Definition) -> Vec<(usize, DataType)> {
        let column = |at: usize| match self.columns.get(at) {
            Some(name) => definition.columns.iter().find(|own| own.name == *name),
            None if self.columns.is_empty() => definition.columns.get(at),
            None => None,
        };
        let values = self.values.iter().enumerate();
        let parameters = values.filter_map(|(at, value)| match value {
            RowValue::Parameter(parameter) => Some((*parameter, column(at)?.data_type.clone())),
            _ => None,
        });
        parameters.collect()
    }

    /// The row, a value for each column of the table; none if one would have to be converted or made.
    pub(crate) fn cells<'a>(
        &'a self,
        definition: &Definition,
        defaults: &'a Defaults,
        given: Given<'a>,
    ) -> Option<Vec<Cell<'a>>> {
        let own = &definition.columns;
        if self.columns.is_empty() {
            if self.values.len() > own.len() {
                return None;
            }
            let cell = |(at, column): (usize, &Column)| match self.values.get(at) {
                Some(value) => value.cell(given, column),
                None => defaults.cell(at, column, given.local),
            };
            return own.iter().enumerate().map(cell).collect();
        }
        let mut brought = 0;
        let cell = |(at, column): (usize, &Column)| match self
            .columns
            .iter()
            .position(|name| *name == column.name)
        {
            Some(given_at) => {
                brought += 1;
                self.values[given_at].cell(given, column)
            }
            None => defaults.cell(at, column, given.local),
        };
        let cells = own.iter().enumerate().map(cell);
        let cells = cells.collect::<Option<Vec<_>>>()?;
        // The table may have no such column.
        (brought == self.columns.len()).then_some(cells)
    }
}

/// A column by its name alone.
fn column(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(column_name),
        _ => None,
    }
}

/// `insert into t (a) values (1)` without what differs.
static PLAIN: LazyLock<Option<Insert>> = LazyLock::new(|| {
    let parsed = parse("insert into t (a) values (1)").ok()?.pop()?;
    let Statement::Sql(statement) = parsed.statement else {
        return None;
    };
    let Sql::Insert(insert) = *statement else {
        return None;
    };
    bare(&insert)
});

/// An insert without its table, its columns and its rows.
fn bare(insert: &Insert) -> Option<Insert> {
    let mut insert = insert.clone();
    insert.table = TableObject::TableName(ObjectName(Vec::new()));
    insert.columns.clear();
    let Query { body, .. } = insert.source.as_deref_mut()?;
    match body.as_mut() {
        SetExpr::Values(values) => values.rows.clear(),
        _ => return None,
    }
    Some(insert)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<RowInsert> {
        let parsed = parse(text).unwrap().pop().unwrap();
        RowInsert::of_statement(&parsed.statement)
    }

    #[test]
    fn inserts_that_say_more_are_others() {
        let plain = of("insert into s.t (a, \"B\") values (-1, 'x')").unwrap();
        assert_eq!(plain.columns, ["a", "B"]);
        let values = [RowValue::Whole(-1), RowValue::Text("x".into())];
        assert_eq!(plain.values, values);
        assert!(of("insert into t values (null, true, 1.50, (-2.5), 'x')").is_some());
        let typed =
            of("insert into t values ('{}'::jsonb, date '2020-01-01', array[1, null]::int[], 1e3)");
        assert!(typed.is_some());
        for other in [
            "insert into t values (1), (2)",
            "insert into t values (1 + 1)",
            "insert into t values (default)",
            "insert into t default values",
            "insert into t select 1",
            "insert into t (a, a) values (1, 2)",
            "insert into t (a, b) values (1)",
            "insert into t (a) overriding system value values (1)",
            "insert into t values (1) returning *",
            "insert into t values (1) on conflict do nothing",
            "insert into t values (1) limit 1",
            "with w as (select 1) insert into t values (1)",
            "insert into t values (1 + 1e3)",
            "insert into t values ('a'::varchar(3))",
            "insert into t values ('a'::mood)",
            "insert into t values (array[a, 1])",
            "update t set a = 1",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
