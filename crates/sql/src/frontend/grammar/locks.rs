//! Which queries may lock the rows that they find.

use datafusion::sql::sqlparser::ast::{GroupByExpr, LockClause, Query, SetExpr};

use crate::error::{Error, Result};
use crate::frontend::locks::{named, tables, title};

/// Checks the lock clauses of a query: they are about rows of tables, which groups and unions are not.
pub(super) fn check(query: &Query) -> Result<()> {
    for lock in &query.locks {
        let LockClause {
            lock_type: _,
            of,
            // What both mean is seen to where the query runs.
            nonblock: _,
        } = lock;
        let title = title(lock);
        if let Some(clause) = without_rows(&query.body) {
            return Err(Error::unsupported(format!(
                "{title} is not allowed with {clause}"
            )));
        }
        let found = tables(&query.body);
        if let Some(of) = of
            && !found.iter().any(|own| named(lock, own))
        {
            return Err(Error::coded(
                "42P01",
                format!("relation \"{of}\" in {title} clause not found in FROM clause"),
            ));
        }
    }
    Ok(())
}

/// What gives rows that are none of a table.
fn without_rows(body: &SetExpr) -> Option<&'static str> {
    match body {
        SetExpr::SetOperation { .. } => Some("UNION/INTERSECT/EXCEPT"),
        SetExpr::Values(_) => Some("VALUES"),
        SetExpr::Select(select) => {
            let grouped = match &select.group_by {
                GroupByExpr::All(_) => true,
                GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
            };
            if select.distinct.is_some() {
                Some("DISTINCT clause")
            } else if grouped {
                Some("GROUP BY clause")
            } else if select.having.is_some() {
                Some("HAVING clause")
            } else {
                None
            }
        }
        _ => None,
    }
}
