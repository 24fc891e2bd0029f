//! `returning`: a query over the rows that a statement writes.

use datafusion::sql::parser::{DFParserBuilder, Statement as Extended};
use datafusion::sql::sqlparser::ast::{
    Expr, FromTable, Ident, ObjectName, ObjectNamePart, Query, SelectItem, SetExpr, Statement,
    TableAlias, TableFactor, TableObject,
};

use crate::error::{Error, Result};
use crate::frontend::dialect::DIALECT;

/// Takes the `returning` out of an `insert`, `update` or `delete`: as a query over a table of the same name.
///
/// # Errors
/// If the statement is not about one table.
pub(crate) fn take(statement: &mut Statement) -> Result<Option<Box<Query>>> {
    let (items, target) = match statement {
        Statement::Insert(insert) => match (insert.returning.take(), &insert.table) {
            (Some(items), TableObject::TableName(name)) => (items, (name.clone(), None)),
            (None, _) => return Ok(None),
            (Some(_), _) => return Err(no_table()),
        },
        Statement::Update(update) => match update.returning.take() {
            Some(items) => (items, target(Some(&update.table.relation))?),
            None => return Ok(None),
        },
        Statement::Delete(delete) => match delete.returning.take() {
            Some(items) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                (items, target(from.first().map(|first| &first.relation))?)
            }
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    over(items, target).map(Some)
}

type Target = (ObjectName, Option<TableAlias>);

fn target(factor: Option<&TableFactor>) -> Result<Target> {
    match factor {
        Some(TableFactor::Table { name, alias, .. }) => Ok((name.clone(), alias.clone())),
        _ => Err(no_table()),
    }
}

fn no_table() -> Error {
    Error::unsupported("`returning` needs a statement that names one table")
}

/// The name of the rows that a statement writes, which `returning` knows by that of the table.
pub(crate) const WRITTEN: &str = "__written";

/// The name of the rows that an `on conflict` keeps from being inserted, in the query of [`from_rows`].
pub(crate) const EXCLUDED: &str = "__excluded";

/// The name of the table that a `merge` changes, with its row ids, in the query of its pairs.
pub(crate) const TARGET: &str = "__target";

/// `select items from __written as name`, and `, __excluded as other` behind it if there is another.
///
/// # Errors
/// Of no items that were parsed.
pub(crate) fn from_rows(
    items: Vec<Expr>,
    name: &Ident,
    other: Option<&Ident>,
) -> Result<Box<Query>> {
    let more = other.map_or_else(String::new, |other| format!(", {EXCLUDED} as {other}"));
    let text = format!("select 1 from {WRITTEN} as {name}{more}");
    let mut query = plain_query(&text)?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        let named = |(at, expr)| SelectItem::ExprWithAlias {
            expr,
            // Two of them may be the same.
            alias: Ident::with_quote('"', format!("__item{at}")),
        };
        select.projection = items.into_iter().enumerate().map(named).collect();
    }
    Ok(query)
}

/// A query that is plain enough to be planned as it is parsed.
pub(super) fn plain_query(text: &str) -> Result<Box<Query>> {
    let mut parsed = DFParserBuilder::new(text)
        .with_dialect(&DIALECT)
        .build()?
        .parse_statements()?;
    if let Some(Extended::Statement(statement)) = parsed.pop_front()
        && let Statement::Query(query) = *statement
    {
        return Ok(query);
    }
    Err(Error::Defect {
        message: "a query of rows does not parse".into(),
    })
}

/// `select items from __written as name`: queries within see the table as it was before.
fn over(items: Vec<SelectItem>, (name, alias): Target) -> Result<Box<Query>> {
    let own = name.0.last().and_then(ObjectNamePart::as_ident).cloned();
    let alias = match (alias, own) {
        (Some(alias), _) => alias,
        (None, Some(name)) => TableAlias {
            explicit: true,
            name,
            columns: Vec::new(),
            at: None,
        },
        (None, None) => return Err(no_table()),
    };
    let mut query = plain_query("select 1 from t")?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(TableFactor::Table {
            name: from,
            alias: called,
            ..
        }) = select.from.first_mut().map(|first| &mut first.relation)
    {
        *from = ObjectName::from(vec![Ident::new(WRITTEN)]);
        *called = Some(alias);
        select.projection = items;
        return Ok(query);
    }
    Err(Error::Defect {
        message: "a query of one table does not parse".into(),
    })
}
