//! What a statement is called when it is done.

use sqlparser::ast::{ObjectType, Set, Statement as Sql};

use crate::arrays::ArrayStatement;
use crate::begin::ModesStatement;
use crate::domains::DomainStatement;
use crate::grants::Things;
use crate::materialized::MaterializedStatement;
use crate::parse::Statement;
use crate::roles::RoleStatement;
use crate::schemas::{Kind, SchemaStatement};
use crate::sequences::SequenceStatement;
use crate::summarize::Told;
use crate::types::TypeStatement;

/// The name of the command as PostgreSQL tells its clients: `SELECT`, `INSERT`, `CREATE TABLE`, ... Statements that it
/// does not have are called by their first word.
pub fn verb(statement: &Statement) -> &'static str {
    match statement {
        Statement::Sql(sql) => of_sql(sql),
        Statement::Returning { statement, .. } => of_sql(statement),
        Statement::Prepare { .. } => "PREPARE",
        Statement::Execute { .. } => "EXECUTE",
        Statement::Deallocate(None) => "DEALLOCATE ALL",
        Statement::Deallocate(Some(_)) => "DEALLOCATE",
        Statement::View { .. } => "CREATE VIEW",
        Statement::Array(array) => of_array(array),
        Statement::Schema(schema) | Statement::NewSchema { create: schema, .. } => {
            of_schema(schema)
        }
        Statement::Role(role) => of_role(role),
        Statement::Sequence(SequenceStatement::Create { .. }) => "CREATE SEQUENCE",
        Statement::Sequence(SequenceStatement::Alter { .. }) => "ALTER SEQUENCE",
        Statement::Materialized(MaterializedStatement::Create {
            with_data: true, ..
        }) => "SELECT",
        Statement::Materialized(MaterializedStatement::Create { .. }) => "CREATE MATERIALIZED VIEW",
        Statement::Materialized(MaterializedStatement::Refresh { .. }) => {
            "REFRESH MATERIALIZED VIEW"
        }
        Statement::Domain(DomainStatement::Create(_)) => "CREATE DOMAIN",
        Statement::Domain(DomainStatement::Alter { .. }) => "ALTER DOMAIN",
        Statement::Domain(DomainStatement::Drop { .. }) => "DROP DOMAIN",
        Statement::Type(TypeStatement::Create { .. } | TypeStatement::Composite { .. }) => {
            "CREATE TYPE"
        }
        Statement::Type(TypeStatement::Alter { .. }) => "ALTER TYPE",
        Statement::Type(TypeStatement::Drop { .. }) => "DROP TYPE",
        Statement::Like(_) => "CREATE TABLE",
        Statement::Absent(own) => own.tag,
        Statement::Maintenance(own) => own.tag,
        Statement::Constraints(_) => "SET CONSTRAINTS",
        Statement::Modes(ModesStatement::Begin(_)) => "BEGIN",
        Statement::Modes(ModesStatement::Set(_)) => "SET",
        Statement::Merge(_) => "MERGE",
        Statement::Steps { last, .. } => verb(last),
        Statement::Identity(_) | Statement::Change(_) | Statement::Changes(_) => "ALTER TABLE",
        Statement::Explain { .. } => "EXPLAIN",
        Statement::Columns(asked) => match asked.told {
            Told::Types => "DESCRIBE",
            Told::Values => "SUMMARIZE",
        },
        Statement::CopyTo(_) | Statement::CopyFrom(_) | Statement::Through(_) => "COPY",
    }
}

fn of_array(statement: &ArrayStatement) -> &'static str {
    match statement {
        ArrayStatement::Create { .. } => "CREATE ARRAY",
        ArrayStatement::Drop { .. } => "DROP ARRAY",
        ArrayStatement::CreateVersion { .. } => "CREATE VERSION",
        ArrayStatement::DropVersion { .. } => "DROP VERSION",
    }
}

fn of_role(statement: &RoleStatement) -> &'static str {
    match statement {
        RoleStatement::Create { .. } => "CREATE ROLE",
        RoleStatement::Alter { .. } | RoleStatement::Configure { .. } => "ALTER ROLE",
        RoleStatement::Drop { .. } => "DROP ROLE",
        RoleStatement::Privileges { grants: true, .. } => "GRANT",
        RoleStatement::Privileges { grants: false, .. } => "REVOKE",
        RoleStatement::Members { grants: true, .. } => "GRANT ROLE",
        RoleStatement::Members { grants: false, .. } => "REVOKE ROLE",
        RoleStatement::Owner { things, .. } => match things {
            Things::Schemas(_) => "ALTER SCHEMA",
            Things::Sequences(_) => "ALTER SEQUENCE",
            _ => "ALTER TABLE",
        },
        RoleStatement::Set { role: None, .. } => "RESET",
        RoleStatement::Set { .. } => "SET",
        RoleStatement::Authorize(own) if own.resets => "RESET",
        RoleStatement::Authorize(_) => "SET",
        RoleStatement::Show(_) => "SHOW",
    }
}

fn of_schema(statement: &SchemaStatement) -> &'static str {
    match statement {
        SchemaStatement::Create { .. } => "CREATE SCHEMA",
        SchemaStatement::Drop { .. } => "DROP SCHEMA",
        SchemaStatement::Rename { .. } => "ALTER SCHEMA",
        SchemaStatement::RenameColumn(_) => "ALTER VIEW",
        SchemaStatement::Move { kind, .. } | SchemaStatement::RenameRelation { kind, .. } => {
            match kind {
                Kind::Table => "ALTER TABLE",
                Kind::View => "ALTER VIEW",
                Kind::MaterializedView => "ALTER MATERIALIZED VIEW",
                Kind::Sequence => "ALTER SEQUENCE",
                Kind::Index => "ALTER INDEX",
            }
        }
        SchemaStatement::SetPath { called: true, .. } => "SELECT",
        SchemaStatement::SetPath { setting: None, .. } => "RESET",
        SchemaStatement::SetPath { .. } => "SET",
        SchemaStatement::SetDates { value: None, .. } => "RESET",
        SchemaStatement::SetDates { .. } => "SET",
        SchemaStatement::ShowPath | SchemaStatement::ShowDates(_) => "SHOW",
    }
}

fn of_sql(statement: &Sql) -> &'static str {
    match statement {
        Sql::Query(_) => "SELECT",
        Sql::Insert(_) => "INSERT",
        Sql::Update(_) => "UPDATE",
        Sql::Delete(_) => "DELETE",
        Sql::CreateTable(create) if create.query.is_some() => "SELECT",
        Sql::CreateTable(_) => "CREATE TABLE",
        Sql::AlterTable(_) => "ALTER TABLE",
        Sql::Comment { .. } => "COMMENT",
        Sql::Truncate(_) => "TRUNCATE TABLE",
        Sql::Drop {
            object_type: ObjectType::View,
            ..
        } => "DROP VIEW",
        Sql::Drop {
            object_type: ObjectType::MaterializedView,
            ..
        } => "DROP MATERIALIZED VIEW",
        Sql::CreateIndex(_) => "CREATE INDEX",
        Sql::Drop {
            object_type: ObjectType::Index,
            ..
        } => "DROP INDEX",
        Sql::Drop {
            object_type: ObjectType::Sequence,
            ..
        } => "DROP SEQUENCE",
        Sql::Drop { .. } => "DROP TABLE",
        Sql::StartTransaction { .. } => "BEGIN",
        Sql::Commit { .. } => "COMMIT",
        Sql::Rollback { .. } => "ROLLBACK",
        Sql::Savepoint { .. } => "SAVEPOINT",
        Sql::ReleaseSavepoint { .. } => "RELEASE",
        Sql::Set(Set::SetTransaction { .. }) => "SET",
        Sql::Lock(_) => "LOCK TABLE",
        Sql::ShowTables { .. } => "SHOW",
        Sql::ExplainTable { .. } => "DESCRIBE",
        _ => "OK",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    #[test]
    fn commands_are_called_as_in_postgresql() {
        for (text, wanted) in [
            ("select 1", "SELECT"),
            ("with a as (select 1) select * from a", "SELECT"),
            ("table t", "SELECT"),
            ("insert into t values (1) returning a", "INSERT"),
            ("create table t as select 1 as a", "SELECT"),
            ("create view v as select 1 as a", "CREATE VIEW"),
            ("start transaction", "BEGIN"),
            ("abort", "ROLLBACK"),
            ("copy t from stdin", "COPY"),
            ("drop array a", "DROP ARRAY"),
            ("create sequence s cycle", "CREATE SEQUENCE"),
            ("alter sequence s restart", "ALTER SEQUENCE"),
            ("drop sequence s", "DROP SEQUENCE"),
            ("create schema s", "CREATE SCHEMA"),
            ("drop schema s", "DROP SCHEMA"),
            ("alter view v set schema s", "ALTER VIEW"),
            ("set search_path = s", "SET"),
            ("create user ann", "CREATE ROLE"),
            ("grant select on t to ann", "GRANT"),
            ("revoke staff from ann", "REVOKE ROLE"),
            ("alter table t owner to ann", "ALTER TABLE"),
            ("alter table t alter a restart", "ALTER TABLE"),
            (
                "create materialized view m as select 1 with no data",
                "CREATE MATERIALIZED VIEW",
            ),
            ("refresh materialized view m", "REFRESH MATERIALIZED VIEW"),
            ("drop materialized view m", "DROP MATERIALIZED VIEW"),
            ("deallocate all", "DEALLOCATE ALL"),
            ("explain select 1", "EXPLAIN"),
        ] {
            let parsed = parse(text).unwrap();
            assert_eq!(verb(&parsed[0].statement), wanted, "{text}");
        }
    }
}
