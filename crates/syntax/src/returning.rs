//! `returning`: a query over the rows that a statement writes.

use datafusion_sql::parser::{DFParserBuilder, Statement as Extended};
use messages::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, FromTable, Ident, ObjectName, ObjectNamePart, Query, SelectItem, SetExpr,
    Statement, TableAlias, TableFactor, TableObject, TableWithJoins, UpdateTableFromKind,
};

use crate::dialect::DIALECT;
use crate::names::column_name;

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
            Some(items) => {
                let own = target(Some(&update.table.relation))?;
                if let Some(
                    UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from),
                ) = &update.from
                {
                    return beside(items, own, from).map(Some);
                }
                (items, own)
            }
            None => return Ok(None),
        },
        Statement::Delete(delete) => match delete.returning.take() {
            Some(items) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                let own = target(from.first().map(|first| &first.relation))?;
                if let Some(using) = &delete.using {
                    return beside(items, own, using).map(Some);
                }
                (items, own)
            }
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    over(items, target).map(Some)
}

/// How the relation of a [`set (a, b) = (select ...)`](ASSIGNED) is recognised.
pub(crate) const ASSIGNED: &str = "__assigned";

/// The column that numbers the rows of a statement and those beside them.
pub const NUMBER: &str = "__number of the row";

/// Whether a relation is the query from which several columns are assigned.
pub fn is_assigned(relation: &TableFactor) -> bool {
    matches!(
        relation,
        TableFactor::Derived { alias: Some(alias), .. } if alias.name.value.starts_with(ASSIGNED)
    )
}

/// The names by which a statement calls the relations of a `from`.
///
/// # Errors
/// For one that has no name.
pub fn relations(from: &[TableWithJoins]) -> Result<Vec<Ident>> {
    let mut found = Vec::new();
    for table in from.iter().filter(|table| !is_assigned(&table.relation)) {
        let joined = table.joins.iter().map(|join| &join.relation);
        for relation in std::iter::once(&table.relation).chain(joined) {
            let name = match relation {
                TableFactor::Table { name, alias, .. } => match alias {
                    Some(alias) => Some(alias.name.clone()),
                    None => name.0.last().and_then(ObjectNamePart::as_ident).cloned(),
                },
                TableFactor::Derived { alias, .. }
                | TableFactor::UNNEST { alias, .. }
                | TableFactor::Function { alias, .. } => {
                    alias.as_ref().map(|alias| alias.name.clone())
                }
                _ => None,
            };
            match name {
                Some(name) => found.push(name),
                None => {
                    return Err(Error::unsupported(
                        "`returning` needs a name for each table in `from` or `using`: give them aliases",
                    ));
                }
            }
        }
    }
    Ok(found)
}

/// The names of the rows beside those that are written, in the query of a `returning`.
pub fn others(query: &Query) -> Vec<String> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return vec![];
    };
    let names = select
        .from
        .iter()
        .skip(1)
        .filter_map(|from| match &from.relation {
            TableFactor::Table { name, .. } => name.0.last().and_then(ObjectNamePart::as_ident),
            _ => None,
        });
    names.map(|name| name.value.clone()).collect()
}

/// `select items from __written as t, "__other u" as u where t.__number = u.__number`.
fn beside(items: Vec<SelectItem>, target: Target, from: &[TableWithJoins]) -> Result<Box<Query>> {
    let names = relations(from)?;
    let mut query = over(items, target)?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(no_table());
    };
    let own = match select.from.first().map(|first| &first.relation) {
        Some(TableFactor::Table {
            alias: Some(alias), ..
        }) => alias.name.clone(),
        _ => return Err(no_table()),
    };
    let number = |table: &Ident| {
        Expr::CompoundIdentifier(vec![table.clone(), Ident::with_quote('"', NUMBER)])
    };
    for name in names {
        let called = column_name(&name);
        let text = format!(
            "select 1 from {} as {name}",
            Ident::with_quote('"', format!("__other {called}"))
        );
        let mut other = plain_query(&text)?;
        if let SetExpr::Select(other) = other.body.as_mut() {
            select.from.append(&mut other.from);
        }
        let same = Expr::BinaryOp {
            left: Box::new(number(&own)),
            op: BinaryOperator::Eq,
            right: Box::new(number(&name)),
        };
        select.selection = Some(match select.selection.take() {
            Some(before) => Expr::BinaryOp {
                left: Box::new(before),
                op: BinaryOperator::And,
                right: Box::new(same),
            },
            None => same,
        });
    }
    Ok(query)
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
pub const WRITTEN: &str = "__written";

/// The name of the rows that an `on conflict` keeps from being inserted, in the query of [`from_rows`].
pub const EXCLUDED: &str = "__excluded";

/// The name of the table that a `merge` changes, with its row ids, in the query of its pairs.
pub const TARGET: &str = "__target";

/// `select items from __written as name`, and `, __excluded as other` behind it if there is another.
///
/// # Errors
/// Of no items that were parsed.
pub fn from_rows(items: Vec<Expr>, name: &Ident, other: Option<&Ident>) -> Result<Box<Query>> {
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
pub fn plain_query(text: &str) -> Result<Box<Query>> {
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
