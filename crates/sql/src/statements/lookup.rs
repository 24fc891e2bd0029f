//! Queries for the row of one key, `select a, b from t where id = 5`: answered from the index, without a plan.
//!
//! Planning takes many times as long as such a row takes to find. Any other query, and any that says more, is planned.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Statement as Sql,
    TableFactor, WildcardAdditionalOptions,
};
use table::{Privileges, Table};

use crate::error::Result;
use crate::frontend::constant::Constant;
use crate::frontend::parse::{Statement, parse};
use crate::names::{column_name, written};
use crate::run::answer::Answer;
use crate::run::visible;
use crate::statements::scope::Scope;
use crate::statements::transaction::clock;

/// The answer of `query` if it asks for the row of one key; none if it is to be planned.
///
/// # Errors
/// Those of reading the catalog, the index and the row.
pub(crate) async fn answer(
    scope: &Scope<'_>,
    query: &Query,
    started: Instant,
) -> Result<Option<Answer>> {
    // The name may be that of rows which a part of the statement has given.
    if scope.has_given() {
        return Ok(None);
    }
    let Some(wanted) = Wanted::of(query).filter(|_| scope.is_alone()) else {
        return Ok(None);
    };
    let instance = &scope.instance;
    let tables = instance.catalog.tables(&instance.store.snapshot())?;
    let name = scope.path().resolve(&tables, &wanted.table);
    let Some(table) = tables.get(&name) else {
        return Ok(None);
    };
    let (Some(columns), Some((key, values))) = (wanted.columns(table), wanted.key(table)) else {
        return Ok(None);
    };
    let rights = scope.rights(&tables)?;
    rights.check(&tables, &name, Privileges::SELECT)?;
    let mut clock = clock(instance, started);
    clock.planned();
    clock.ran_on = "index";
    let row = table.find(key, &values).await?.into_iter().flatten().next();
    let (positions, names): (Vec<usize>, Vec<String>) = columns.into_iter().unzip();
    let schema = table.schema().project(&positions)?;
    let fields = schema.fields().iter().zip(names);
    let fields = fields.map(|(field, name)| field.as_ref().clone().with_name(name));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
    let mut batches = Vec::new();
    if let Some(row) = row {
        batches.push(
            table
                .fetch(&positions, &[row])
                .await?
                .with_schema(Arc::clone(&schema))?,
        );
    }
    let seen = visible::schema(&schema);
    let batches = batches.iter().map(|rows| visible::batch(rows, &seen));
    let batches = batches.collect::<Result<Vec<_>>>()?;
    Ok(Some(Answer::rows_of(seen, batches, &clock)))
}

/// What a query asks for.
struct Wanted<'q> {
    table: String,
    /// None for all.
    items: Option<Vec<(&'q Ident, String)>>,
    /// Columns, and the value of each.
    values: Vec<(String, Constant<'q>)>,
}

/// `select * from t` without what differs.
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

/// A query of one table without its items, the table's name and its condition, and that name.
fn bare(query: &Query) -> Option<(Query, ObjectName)> {
    let mut query = query.clone();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    select.projection.clear();
    select.selection = None;
    let [from] = select.from.as_mut_slice() else {
        return None;
    };
    let TableFactor::Table { name, .. } = &mut from.relation else {
        return None;
    };
    let name = std::mem::replace(name, ObjectName(Vec::new()));
    Some((query, name))
}

impl<'q> Wanted<'q> {
    fn of(query: &'q Query) -> Option<Wanted<'q>> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let mut values = Vec::new();
        conjuncts(select.selection.as_ref()?, &mut values)?;
        let items = items(select)?;
        let (bare, name) = bare(query)?;
        if Some(&bare) != PLAIN.as_ref() {
            return None;
        }
        Some(Wanted {
            table: written(&name).ok()?,
            items,
            values,
        })
    }

    /// The positions of the columns, and their names in the answer.
    fn columns(&self, table: &Table) -> Option<Vec<(usize, String)>> {
        let definition = table.definition();
        let Some(items) = &self.items else {
            let names = definition.columns.iter().map(|column| column.name.clone());
            return Some(names.enumerate().collect());
        };
        let column = |(ident, name): &(&Ident, String)| {
            Some((definition.position(&column_name(ident)).ok()?, name.clone()))
        };
        items.iter().map(column).collect()
    }

    /// The key, and the values of its columns.
    fn key<'t>(&self, table: &'t Table) -> Option<(&'t table::Key, Vec<ArrayRef>)> {
        let definition = table.definition();
        let key = definition.keys.iter().find(|key| {
            let named = |column: &usize| {
                let name = &definition.columns[*column].name;
                self.values.iter().any(|(other, _)| other == name)
            };
            key.columns.len() == self.values.len() && key.columns.iter().all(named)
        })?;
        let value = |column: &usize| {
            let column = &definition.columns[*column];
            let (_, value) = self.values.iter().find(|(name, _)| *name == column.name)?;
            Constant::column(&[*value], &column.data_type)
        };
        let values = key.columns.iter().map(value).collect::<Option<Vec<_>>>()?;
        table.has_index(key).then_some((key, values))
    }
}

fn items(select: &Select) -> Option<Option<Vec<(&Ident, String)>>> {
    let all =
        |options: &WildcardAdditionalOptions| *options == WildcardAdditionalOptions::default();
    if let [SelectItem::Wildcard(options)] = select.projection.as_slice() {
        return all(options).then_some(None);
    }
    let items: Option<Vec<_>> = select.projection.iter().map(item).collect();
    Some(Some(items.filter(|items| !items.is_empty())?))
}

fn item(item: &SelectItem) -> Option<(&Ident, String)> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(ident)) => Some((ident, column_name(ident))),
        SelectItem::ExprWithAlias {
            expr: Expr::Identifier(ident),
            alias,
        } => Some((ident, column_name(alias))),
        _ => None,
    }
}

fn conjuncts<'q>(condition: &'q Expr, values: &mut Vec<(String, Constant<'q>)>) -> Option<()> {
    match condition {
        Expr::Nested(inner) => conjuncts(inner, values),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            conjuncts(left, values)?;
            conjuncts(right, values)
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => {
            let (Expr::Identifier(ident), value) = (left.as_ref(), Constant::of(right)?) else {
                return None;
            };
            values.push((column_name(ident), value));
            Some(())
        }
        _ => None,
    }
}
