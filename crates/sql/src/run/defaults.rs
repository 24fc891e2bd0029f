//! Defaults of columns in a statement: planned from the texts that the table keeps.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::DataType;
use catalog::rights::Rights;
use datafusion_common::DFSchema;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};
use sqlparser::ast::{Insert, Statement as Sql, TableObject, Value};
use syntax::expression;
use syntax::names::{quoted, table_name};
use table::{Column, Definition};

use crate::error::{Error, Result};
use crate::functions::convert::cast_to;
use crate::functions::sequences::calls;
use crate::run::context::StatementContext;
use crate::run::depth::Depth;
use crate::run::query;
use crate::run::values::Defaults;

/// What a row has in a column that does not say: the text of an expression. A domain may have one besides.
pub(crate) fn text_of(column: &Column) -> Option<Cow<'_, str>> {
    match column.identity() {
        Some((sequence, _)) => Some(next_of(sequence).into()),
        None => column.default.as_deref().map(Cow::Borrowed),
    }
}

/// The expression that asks a sequence.
pub(crate) fn next_of(sequence: &str) -> String {
    let name = Value::SingleQuotedString(quoted(sequence));
    format!("nextval({name}::regclass)")
}

impl StatementContext {
    /// The defaults of the table that `statement` inserts into, if it does.
    pub(super) async fn defaults(&self, statement: &Sql) -> Result<Defaults> {
        let Sql::Insert(Insert {
            table: TableObject::TableName(name),
            ..
        }) = statement
        else {
            return Ok(Defaults::default());
        };
        let name = table_name(name)?;
        let Some(table) = self.tables.get(&name) else {
            return Ok(Defaults::default());
        };
        let columns = self.defaults_of(table.definition()).await?;
        Ok(Defaults {
            table: name,
            columns,
        })
    }

    /// What a row has in a column that does not say: of its own, or of the domain that it is of.
    pub(crate) fn default_text<'c>(&self, column: &'c Column) -> Option<Cow<'c, str>> {
        let of_domain = || {
            let domain = self.tables.domain(column.domain.as_deref()?)?;
            domain.default.clone().map(Cow::Owned)
        };
        text_of(column).or_else(of_domain)
    }

    /// A definition whose columns have the defaults of their domains, where they have none of their own.
    pub(crate) fn with_domain_defaults<'d>(
        &self,
        definition: &'d Definition,
    ) -> Cow<'d, Definition> {
        let mut definition = Cow::Borrowed(definition);
        for at in 0..definition.columns.len() {
            let column = &definition.columns[at];
            if column.domain.is_none() || column.default.is_some() {
                continue;
            }
            if let Some(text) = self.default_text(column).map(Cow::into_owned) {
                definition.to_mut().columns[at].default = Some(text);
            }
        }
        definition
    }

    /// The defaults of a table, by column.
    ///
    /// # Errors
    /// Those of [`default`](StatementContext::default).
    pub(crate) async fn defaults_of(
        &self,
        definition: &Definition,
    ) -> Result<HashMap<String, Expr>> {
        let mut columns = HashMap::new();
        for column in &definition.columns {
            if let Some(text) = self.default_text(column) {
                let value = self.default(&column.name, &text, &column.data_type).await?;
                columns.insert(column.name.clone(), value);
            }
        }
        Ok(columns)
    }

    /// The default `text` of a column, as a value of its type.
    ///
    /// # Errors
    /// If it is no expression of constants and functions of one value.
    pub(crate) fn default<'a>(
        &'a self,
        column: &'a str,
        text: &'a str,
        data_type: &'a DataType,
    ) -> BoxFuture<'a, Result<Expr>> {
        async move {
            let refused = |e: Error| Error::about(&e, format!("default of column \"{column}\": {e}"));
            let query = Sql::Query(expression::query(text).map_err(refused)?);
            // It names no tables.
            let (depth, rights) = (Depth::of_kept(), Rights::all());
            let plan = self.plan_within(query, None, depth, &rights).await;
            let value = match plan.map_err(refused)? {
                LogicalPlan::Projection(projection)
                    if matches!(*projection.input, LogicalPlan::EmptyRelation(_)) =>
                {
                    projection.expr.first().cloned().map(Expr::unalias_nested)
                }
                _ => None,
            };
            let value = value.map(|value| value.data).filter(|value| {
                let subquery = value.exists(|part| {
                    Ok(matches!(
                        part,
                        Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)
                    ))
                });
                !subquery.unwrap_or(true)
            });
            let Some(value) = value else {
                let message = "a default is made of constants and functions, not of columns, aggregates or queries";
                return Err(refused(Error::coded("0A000", message)));
            };
            let cast = cast_to(value, data_type, &DFSchema::empty());
            cast.map_err(|e| refused(Error::from(e)))
        }
        .boxed()
    }

    /// The value of a default now, or NULL: an array of one row.
    ///
    /// # Errors
    /// If it cannot be computed, or does not fit the type.
    pub(crate) async fn default_value(&mut self, column: &Column) -> Result<ArrayRef> {
        let Some(text) = self.default_text(column).map(Cow::into_owned) else {
            return Ok(new_null_array(&column.data_type, 1));
        };
        let value = self.default(&column.name, &text, &column.data_type).await?;
        if calls(&value)? > 0 {
            return Err(Error::unsupported(format!(
                "rows that are there cannot get numbers of a sequence as the default of column \"{}\": set the default afterwards, and `update` the rows",
                column.name
            )));
        }
        let plan = LogicalPlanBuilder::empty(true).project([value])?.build()?;
        let batches: Vec<_> = query::rows(self, &plan).await?.try_collect().await?;
        let mut rows = batches.iter().filter(|batch| batch.num_rows() == 1);
        match rows.next() {
            Some(batch) => Ok(batch.column(0).clone()),
            None => Err(Error::Defect {
                message: "a default has no value".into(),
            }),
        }
    }
}
