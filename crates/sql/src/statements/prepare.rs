//! The prepared statements of a session.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sqlparser::ast::{Expr, Statement as Sql};
use syntax::parse::{Statement, bound};
use syntax::prepared::Prepared;

use crate::error::{Error, Result};

/// The prepared statements of a session, by name. Transactions do not undo them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<Mutex<HashMap<String, Prepared>>>);

impl Names {
    /// `prepare name as statement`.
    ///
    /// # Errors
    /// If there is one of that name.
    pub(crate) fn prepare(&self, name: String, prepared: Prepared) -> Result<()> {
        let mut names = self.0.lock();
        if names.contains_key(&name) {
            return Err(Error::coded(
                "42P05",
                format!(
                    "prepared statement \"{name}\" already exists; `deallocate {name}` removes it"
                ),
            ));
        }
        names.insert(name, prepared);
        Ok(())
    }

    /// What `execute name (arguments)` runs.
    ///
    /// # Errors
    /// If there is none of that name; those of [`Prepared::bind`].
    pub(crate) fn execute(&self, name: &str, arguments: &[Expr]) -> Result<Statement> {
        let prepared = self.0.lock().get(name).cloned();
        bound(prepared.ok_or_else(|| none(name))?.bind(name, arguments)?)
    }

    /// The query that an `execute` runs, whose rows are handed on as they come; any other statement as it is.
    pub(crate) fn query_of(&self, statement: Statement) -> Statement {
        let Statement::Execute { name, arguments } = &statement else {
            return statement;
        };
        match self.execute(name, arguments) {
            Ok(Statement::Sql(sql)) if matches!(*sql, Sql::Query(_)) => Statement::Sql(sql),
            // What is wrong with it is found where it runs.
            _ => statement,
        }
    }

    /// `deallocate name`, or all of them.
    ///
    /// # Errors
    /// If there is none of that name.
    pub(crate) fn deallocate(&self, name: Option<&str>) -> Result<()> {
        let mut names = self.0.lock();
        match name {
            None => names.clear(),
            Some(name) => drop(names.remove(name).ok_or_else(|| none(name))?),
        }
        Ok(())
    }
}

fn none(name: &str) -> Error {
    Error::coded(
        "26000",
        format!("prepared statement \"{name}\" does not exist"),
    )
}
