//! Statements that name files: sessions of other people's machines may not run them.

use std::ops::ControlFlow;
use std::path::MAIN_SEPARATOR;

use messages::{Error, Result};
use sqlparser::ast::{ObjectName, ObjectNamePart, Statement as Sql, TableFactor, Visit, Visitor};

use crate::copy::ThroughWhat;
use crate::materialized::MaterializedStatement;
use crate::names::{is_literal, looks_like_file};
use crate::parse::Statement;
use crate::walk::Walk;
use crate::{readers, views};

/// Refuses a statement that reads or writes a file.
///
/// # Errors
/// The refusal, which names the file.
pub fn refuse(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Sql(sql) => of_tree(&**sql),
        Statement::Returning { statement, query } => {
            of_tree(&**statement).and_then(|()| of_tree(&**query))
        }
        Statement::Prepare { prepared, .. } => of_tree(prepared.statement()),
        Statement::Execute { .. }
        | Statement::Deallocate(_)
        | Statement::Array(_)
        | Statement::Schema(_)
        | Statement::Role(_)
        | Statement::Sequence(_)
        | Statement::Like(_)
        | Statement::Absent(_)
        | Statement::Maintenance(_)
        | Statement::Change(_)
        | Statement::Constraints(_)
        | Statement::Modes(_)
        | Statement::Type(_)
        | Statement::Domain(_)
        | Statement::Identity(_) => Ok(()),
        Statement::NewSchema { elements, .. } => elements.iter().try_for_each(refuse),
        Statement::Changes(changes) => changes.iter().try_for_each(refuse),
        Statement::Materialized(MaterializedStatement::Create { text, .. }) => {
            of_tree(&Sql::Query(views::of_text(text)?.query))
        }
        Statement::Materialized(MaterializedStatement::Refresh { .. }) => Ok(()),
        Statement::Merge(merge) => of_tree(&*merge.pairs),
        Statement::Steps { before, last, .. } => {
            let mut before = before.iter();
            before.try_for_each(|step| refuse(&step.statement))?;
            refuse(last)
        }
        Statement::View { view, .. } => of_tree(&Sql::CreateView((**view).clone())),
        Statement::Explain { statement, .. } => refuse(statement),
        Statement::Columns(asked) => of_tree(&*asked.query),
        Statement::CopyTo(copy) => Err(refusal(&copy.target)),
        Statement::CopyFrom(copy) => Err(refusal(&copy.source)),
        Statement::Through(through) => match &through.what {
            ThroughWhat::Out { query, .. } => of_tree(&**query),
            ThroughWhat::In { .. } => Ok(()),
        },
    }
}

fn refusal(file: &str) -> Error {
    Error::Denied {
        message: format!("{file}: this session reads and writes no files of the server's machine"),
    }
}

fn of_tree(tree: &impl Visit) -> Result<()> {
    match tree.walk(&mut Files) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(file) => Err(refusal(&file)),
    }
}

struct Files;

impl Visitor for Files {
    type Break = String;

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<String> {
        match relation.0.last().and_then(ObjectNamePart::as_ident) {
            // What is in single quotes may be a folder: whether it is one is not told either.
            Some(name)
                if looks_like_file(&name.value) || is_literal(name) || readers::reads(relation) =>
            {
                let name = name.value.trim_end_matches(MAIN_SEPARATOR);
                ControlFlow::Break(name.to_owned())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::Table {
                name,
                args: Some(_),
                ..
            } if readers::reads(name) => ControlFlow::Break(name.to_string()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    #[test]
    fn statements_that_name_files_are_refused() {
        let refused = |text: &str| {
            let parsed = parse(text).unwrap();
            refuse(&parsed[0].statement).is_err()
        };
        for text in [
            "select * from 'f.csv'",
            "select * from \"/etc/passwd\"",
            "select * from t where a in (select a from read_csv('f'))",
            "with x as (from 'f.parquet') select * from x",
            "insert into t select * from 'f.csv'",
            "create table t as select * from 'f.csv'",
            "create view v as select * from 'f.csv'",
            "explain select * from read_parquet('f')",
            "copy t to 'f.csv'",
            "copy t from 'f.csv'",
            "copy (select * from 'f.csv') to stdout",
            "prepare p as select * from 'f.csv'",
            "delete from t using 'f.csv' where true",
            "update t set a = 1 from 'f.csv'",
            "describe 'f.csv'",
            "summarize 'f.csv'",
            "summarize read_csv('f')",
            // It may be a folder.
            "select * from 'hive'",
            "summarize 'hive'",
        ] {
            // What is not taken at all needs no refusal.
            assert!(parse(text).is_err() || refused(text), "{text}");
        }
        for text in [
            "select 'f.csv' from t",
            "copy t from stdin",
            "select * from bfs('web', 1)",
            "insert into t values ('/etc/passwd')",
        ] {
            assert!(!refused(text), "{text}");
        }
    }
}
