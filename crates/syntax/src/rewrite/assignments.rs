//! `set (a, b) = (1, 2)` assigns each column by itself.

use messages::{Error, Result};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, OnConflictAction, OnInsert, Query, SelectItem,
    SetExpr, Statement, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Update,
    UpdateTableFromKind,
};

use crate::returning::ASSIGNED;

/// Takes rows of columns and values apart, in `update` and in `on conflict do update`. A row that gets anything but a
/// row of as many values is left as it is.
///
/// # Errors
/// For rows and queries of another number of columns.
pub(super) fn spread(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Update(update) => {
            all(&mut update.assignments);
            from_queries(update)?;
        }
        Statement::Insert(insert) => {
            if let Some(OnInsert::OnConflict(conflict)) = &mut insert.on
                && let OnConflictAction::DoUpdate(update) = &mut conflict.action
            {
                all(&mut update.assignments);
            }
        }
        _ => {}
    }
    Ok(())
}

/// `set (a, b) = (select ...)` assigns columns of a query that stands in `from` then, [so that](crate::statements) no row is
/// lost of which it finds none.
fn from_queries(update: &mut Update) -> Result<()> {
    let mut queries = Vec::new();
    let mut assignments = Vec::new();
    for assignment in std::mem::take(&mut update.assignments) {
        let Assignment { target, value } = assignment;
        let AssignmentTarget::Tuple(names) = target else {
            assignments.push(Assignment { target, value });
            continue;
        };
        let counts = || Error::coded("42601", "number of columns does not match number of values");
        let query = match unwrapped(value) {
            Expr::Subquery(query) => query,
            Expr::Tuple(_) => return Err(counts()),
            _ => {
                return Err(Error::unsupported(
                    "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
                ));
            }
        };
        let width = match query.body.as_ref() {
            SetExpr::Select(select) => Some(&select.projection)
                .filter(|items| items.iter().all(is_single))
                .map(Vec::len),
            SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
            _ => None,
        };
        if width.is_some_and(|width| width != names.len()) {
            return Err(counts());
        }
        let called = format!("{ASSIGNED}{}", queries.len());
        let table = Ident::with_quote('"', &called);
        let columns: Vec<Ident> = (0..names.len())
            .map(|at| Ident::with_quote('"', format!("{called} {at}")))
            .collect();
        for (name, column) in names.into_iter().zip(&columns) {
            assignments.push(Assignment {
                target: AssignmentTarget::ColumnName(name),
                value: Expr::CompoundIdentifier(vec![table.clone(), column.clone()]),
            });
        }
        queries.push(laterally(query, table, columns));
    }
    update.assignments = assignments;
    if queries.is_empty() {
        return Ok(());
    }
    match &mut update.from {
        Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => {
            from.extend(queries);
        }
        none => *none = Some(UpdateTableFromKind::AfterSet(queries)),
    }
    Ok(())
}

/// A query with names for its columns, which may name those of the tables before it.
fn laterally(query: Box<Query>, name: Ident, columns: Vec<Ident>) -> TableWithJoins {
    let columns = columns.into_iter().map(|name| TableAliasColumnDef {
        name,
        data_type: None,
    });
    TableWithJoins {
        relation: TableFactor::Derived {
            lateral: true,
            subquery: query,
            alias: Some(TableAlias {
                explicit: true,
                name,
                columns: columns.collect(),
                at: None,
            }),
            sample: None,
        },
        joins: vec![],
    }
}

fn is_single(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
    )
}

fn unwrapped(expr: Expr) -> Expr {
    match expr {
        Expr::Nested(inner) => unwrapped(*inner),
        other => other,
    }
}

fn all(assignments: &mut Vec<Assignment>) {
    *assignments = std::mem::take(assignments)
        .into_iter()
        .flat_map(one)
        .collect();
}

fn one(assignment: Assignment) -> Vec<Assignment> {
    let Assignment { target, value } = assignment;
    match (target, value) {
        (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
            let pairs = names.into_iter().zip(values);
            pairs
                .map(|(name, value)| Assignment {
                    target: AssignmentTarget::ColumnName(name),
                    value,
                })
                .collect()
        }
        (AssignmentTarget::Tuple(mut names), value) if names.len() == 1 => {
            let target = AssignmentTarget::ColumnName(names.swap_remove(0));
            vec![Assignment { target, value }]
        }
        (target, value) => vec![Assignment { target, value }],
    }
}
