//! `begin`, `commit`, `rollback`, and savepoints.

use std::sync::Arc;
use std::time::Instant;

use catalog::search_path::SessionPath;
use catalog::settings::SessionSettings;
use sqlparser::ast::Statement as Sql;
use syntax::begin::ModesStatement;
use syntax::constraints::SetConstraints;
use syntax::modes::Asked;
use syntax::names::{base, column_name, schema_of};
use syntax::parse::Statement;
use table::{Deferral, Tables};

use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::run::instance::Instance;
use crate::statements::temporary::Temporary;
use crate::statements::transaction::{OpenTransaction, clock};

/// A statement about the transaction itself.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    Begin(Asked),
    /// `set transaction`: what is named changes.
    Set(Asked),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    /// `set constraints`.
    Constraints(SetConstraints),
}

impl Control {
    /// What `statement` does to the transaction; none if it is any other.
    ///
    /// # Errors
    /// For modes that there are not.
    pub(crate) fn of(statement: &Statement) -> Result<Option<Control>> {
        let sql = match statement {
            Statement::Sql(sql) => sql,
            Statement::Constraints(own) => return Ok(Some(Control::Constraints(own.clone()))),
            Statement::Modes(ModesStatement::Begin(asked)) => {
                return Ok(Some(Control::Begin(*asked)));
            }
            Statement::Modes(ModesStatement::Set(asked)) => return Ok(Some(Control::Set(*asked))),
            _ => return Ok(None),
        };
        Ok(Some(match &**sql {
            Sql::Commit { chain, .. } => Control::Commit { chain: *chain },
            Sql::Rollback {
                chain,
                savepoint: None,
            } => Control::Rollback { chain: *chain },
            Sql::Rollback {
                savepoint: Some(name),
                ..
            } => Control::RollbackTo(column_name(name)),
            Sql::Savepoint { name } => Control::Savepoint(column_name(name)),
            Sql::ReleaseSavepoint { name } => Control::Release(column_name(name)),
            _ => return Ok(None),
        }))
    }

    /// Writes the rows that a transaction has gathered before it ends or gets another savepoint, unless they are undone. Where
    /// they cannot be written it has failed, and one that was to commit is over.
    async fn settle(
        &self,
        instance: &Arc<Instance>,
        open: &mut Option<OpenTransaction>,
    ) -> Result<()> {
        let (Control::Commit { .. }
        | Control::Savepoint(_)
        | Control::Release(_)
        | Control::Constraints(_)) = self
        else {
            return Ok(());
        };
        let Some(transaction) = open.as_mut().filter(|open| !open.is_failed()) else {
            return Ok(());
        };
        let written = transaction.write_gathered(instance).await;
        if written.is_err() {
            transaction.fail();
            if matches!(self, Control::Commit { .. }) {
                *open = None;
            }
        }
        written
    }

    /// Does it to `open`, the transaction of a session, of which the settings say what transactions are that are not asked to be others.
    ///
    /// # Errors
    /// If there is no transaction, or already one; if it had failed; those of the store.
    pub(crate) async fn run(
        self,
        instance: &Arc<Instance>,
        (path, temporary, settings): (&Arc<SessionPath>, &Temporary, &SessionSettings),
        open: &mut Option<OpenTransaction>,
        started: Instant,
    ) -> Result<Answer> {
        self.settle(instance, open).await?;
        let new = |modes| OpenTransaction::new(modes, settings.locks(), Some(path));
        match self {
            Control::Begin(_) if open.is_some() => {
                return Err(Error::Transaction {
code: "25001",
                    message: "there is already a transaction in progress: it goes on; `commit` or `rollback` ends it".into(),
                });
            }
            Control::Begin(asked) => {
                *open = Some(new(settings.modes().with(asked)));
            }
            Control::Commit { chain } => {
                let transaction = open.take().ok_or_else(|| none("commit"))?;
                let modes = transaction.modes();
                transaction.commit(temporary).await?;
                *open = chain.then(|| new(modes));
            }
            Control::Rollback { chain } => {
                let transaction = open.take().ok_or_else(|| none("rollback"))?;
                let modes = transaction.modes();
                drop(transaction);
                *open = chain.then(|| new(modes));
            }
            Control::Set(asked) => {
                let Some(transaction) = open.as_mut() else {
                    let notice = "SET TRANSACTION can only be used in transaction blocks";
                    let answer = Answer::changed(None, &clock(instance, started));
                    return Ok(answer.with_notice(notice));
                };
                transaction.enter()?;
                transaction.ask(asked)?;
                transaction.succeed();
            }
            Control::Savepoint(name) => {
                let transaction = open.as_mut().ok_or_else(|| none("savepoint"))?;
                transaction.enter()?;
                transaction.savepoint(name);
                transaction.succeed();
            }
            Control::RollbackTo(name) => {
                let transaction = open.as_mut().ok_or_else(|| none("rollback to"))?;
                let done = transaction.rollback_to(&name);
                if done.is_err() {
                    transaction.fail();
                }
                done?;
            }
            Control::Release(name) => {
                let transaction = open.as_mut().ok_or_else(|| none("release"))?;
                transaction.enter()?;
                transaction.release(&name)?;
                transaction.succeed();
            }
            Control::Constraints(own) => {
                let Some(transaction) = open.as_mut() else {
                    let notice = "SET CONSTRAINTS can only be used in transaction blocks";
                    let answer = Answer::changed(None, &clock(instance, started));
                    return Ok(answer.with_notice(notice));
                };
                transaction.enter()?;
                let tables = transaction.looked(instance).await?;
                let named = own.names.map(|names| found(&tables, &names)).transpose()?;
                transaction.set_constraints(named, own.deferred).await?;
                transaction.succeed();
            }
        }
        Ok(Answer::changed(None, &clock(instance, started)))
    }
}

/// The foreign keys of these names, each with its table.
///
/// # Errors
/// If there is none, or it is looked at with each statement.
fn found(tables: &Tables, names: &[String]) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for written in names {
        let (schema, name) = (table::schema_of(written), base(written));
        let (mut there, before) = (false, found.len());
        for table in tables.names() {
            let Some(own) = tables.get(table).map(|table| table.definition()) else {
                continue;
            };
            if schema.is_some_and(|schema| schema != schema_of(table)) {
                continue;
            }
            there |= own.has_constraint(name);
            let mut rules = own.rules.iter().filter(|rule| rule.name == name);
            if rules.any(|rule| rule.deferral != Deferral::Never) {
                found.push((table.to_owned(), name.to_owned()));
            }
        }
        let (code, what) = match (there, found.len() > before) {
            (_, true) => continue,
            (true, false) => ("42809", "is not deferrable"),
            (false, false) => ("42704", "does not exist"),
        };
        return Err(Error::coded(code, format!("constraint \"{name}\" {what}")));
    }
    Ok(found)
}

fn none(what: &str) -> Error {
    Error::Transaction {
        code: "25P01",
        message: format!("`{what}`: there is no transaction in progress; `begin` starts one"),
    }
}
