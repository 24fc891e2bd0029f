//! What statements change, and what they keep of other tables, by the names that it has in the catalog: a name without a
//! schema is looked up in the [path](catalog::search_path) of the session.
//!
//! What a statement reads is looked up where it is planned.

use catalog::search_path::SearchPath;
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ColumnDef, ColumnOption, CommentObject, CreateTable,
    CreateView, Expr, FromTable, Ident, ObjectName, ObjectType, Statement as Sql, TableAlias,
    TableConstraint, TableFactor, TableObject, TableWithJoins, Value, ValueWithSpan,
};
use syntax::fixed;
use syntax::materialized::MaterializedStatement;
use syntax::names::{PG_TEMP, base, exact, known, quoted, table_name, temporary, written};
use syntax::parse::Statement;
use syntax::sequences::SequenceStatement;
use table::{Tables, within};

use crate::error::{Error, Result};
use crate::messages::nearest::unknown_table;
use crate::statements::scope::Scope;

/// Puts names of the catalog in the places of those that `statement` has.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) fn named(scope: &mut Scope<'_>, statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::View { view, .. } => {
            let temporary = is_temporary_view(view)?;
            if !temporary {
                scope.without_temporary();
            }
        }
        Statement::Sequence(SequenceStatement::Create {
            name, temporary, ..
        }) => is_temporary_sequence(name, temporary)?,
        // They outlive the session.
        Statement::Materialized(_) => scope.without_temporary(),
        Statement::Sql(sql) => {
            is_temporary(sql)?;
            refers_to_itself(scope.temporary().schema(), sql)?;
        }
        _ => {}
    }
    if scope.sees_one_schema() {
        return plainly(statement);
    }
    let (path, tables) = (scope.path(), scope.tables()?);
    Names {
        path: &path,
        tables: &tables,
        new: None,
    }
    .of_statement(statement)
}

/// The same where all is in `public`.
fn plainly(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Explain { statement, .. } => return plainly(statement),
        Statement::Identity(change) => change.table = known(&change.table),
        Statement::Change(change) => change.table = known(&change.table),
        Statement::Merge(merge) => merge.target = known(&merge.target),
        Statement::Sequence(SequenceStatement::Alter { name, .. }) => *name = known(name),
        Statement::Materialized(MaterializedStatement::Refresh { name, .. }) => *name = known(name),
        _ => {}
    }
    if let Statement::Sequence(
        SequenceStatement::Create { options, .. } | SequenceStatement::Alter { options, .. },
    ) = statement
        && let Some(Some((table, _))) = &mut options.owner
    {
        *table = known(table);
    }
    Ok(())
}

/// Whether a view goes with the session: `create view pg_temp.v` is `create temporary view v`.
fn is_temporary_view(view: &mut CreateView) -> Result<bool> {
    let name = written(&view.name)?;
    match table::schema_of(&name) {
        Some(PG_TEMP) => {
            view.temporary = true;
            view.name = ObjectName::from(vec![Ident::with_quote('"', base(&name))]);
        }
        Some(_) if view.temporary => return Err(not_temporary()),
        _ => {}
    }
    Ok(view.temporary)
}

/// `create sequence pg_temp.s` is `create temporary sequence s`.
fn is_temporary_sequence(name: &mut String, temporary: &mut bool) -> Result<()> {
    match table::schema_of(name) {
        Some(PG_TEMP) => {
            *temporary = true;
            *name = base(name).to_owned();
            Ok(())
        }
        Some(_) if *temporary => Err(not_temporary()),
        _ => Ok(()),
    }
}

/// The error for what goes with the session and is to be in a schema that does not.
fn not_temporary() -> Error {
    Error::coded(
        "42P16",
        "cannot create temporary relation in non-temporary schema",
    )
}

/// `create table pg_temp.t` is `create temporary table t`.
fn is_temporary(sql: &mut Sql) -> Result<()> {
    let Sql::CreateTable(create) = sql else {
        return Ok(());
    };
    let name = written(&create.name)?;
    match table::schema_of(&name) {
        Some(PG_TEMP) => {
            create.temporary = true;
            create.name = ObjectName::from(vec![Ident::with_quote('"', base(&name))]);
        }
        Some(_) if create.temporary => return Err(not_temporary()),
        _ => {}
    }
    Ok(())
}

/// Puts the name that a temporary table gets in the places where it refers to itself.
fn refers_to_itself(schema: &str, sql: &mut Sql) -> Result<()> {
    let Sql::CreateTable(create) = sql else {
        return Ok(());
    };
    if !create.temporary {
        return Ok(());
    }
    let own = written(&create.name)?;
    let options = create.columns.iter_mut().flat_map(|c| &mut c.options);
    let options = options.filter_map(|own| match &mut own.option {
        ColumnOption::ForeignKey(key) => Some(key),
        _ => None,
    });
    let constraints = create.constraints.iter_mut().filter_map(|own| match own {
        TableConstraint::ForeignKey(key) => Some(key),
        _ => None,
    });
    for key in options.chain(constraints) {
        let parent = written(&key.foreign_table)?;
        if parent == own || parent == within(PG_TEMP, &own) {
            let new = temporary(schema, &own);
            key.foreign_table = ObjectName::from(vec![Ident::with_quote('"', new)]);
        }
    }
    Ok(())
}

/// Where names are looked up.
struct Names<'n> {
    path: &'n SearchPath,
    tables: &'n Tables,
    /// A table that there will be, too.
    new: Option<&'n str>,
}

impl Names<'_> {
    fn of_statement(&self, statement: &mut Statement) -> Result<()> {
        match statement {
            Statement::Sql(sql) | Statement::Returning { statement: sql, .. } => self.of_sql(sql),
            Statement::Explain { statement, .. } => self.of_statement(statement),
            Statement::Identity(change) => {
                self.resolve(&mut change.table);
                Ok(())
            }
            Statement::Change(change) => {
                self.resolve(&mut change.table);
                Ok(())
            }
            Statement::Merge(merge) => {
                self.resolve(&mut merge.target);
                Ok(())
            }
            Statement::Sequence(sequence) => {
                self.of_sequence(sequence);
                Ok(())
            }
            Statement::View { text, .. } => self.of_view(text),
            Statement::Materialized(MaterializedStatement::Create { text, .. }) => {
                self.of_view(text)
            }
            Statement::Materialized(MaterializedStatement::Refresh { name, .. }) => {
                self.resolve(name);
                Ok(())
            }
            Statement::CopyFrom(copy) => self.replace(&mut copy.table),
            _ => Ok(()),
        }
    }

    fn of_sequence(&self, statement: &mut SequenceStatement) {
        if let SequenceStatement::Alter { name, .. } = statement {
            self.resolve(name);
        }
        let (SequenceStatement::Create { options, .. } | SequenceStatement::Alter { options, .. }) =
            statement;
        if let Some(Some((table, _))) = &mut options.owner {
            self.resolve(table);
        }
    }

    fn of_sql(&self, sql: &mut Sql) -> Result<()> {
        match sql {
            Sql::Insert(insert) => match &mut insert.table {
                TableObject::TableName(name) => self.replace(name),
                _ => Ok(()),
            },
            Sql::Update(update) => self.aliased(&mut update.table),
            Sql::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &mut delete.from;
                from.iter_mut().try_for_each(|table| self.aliased(table))
            }
            Sql::Truncate(truncate) => {
                let mut targets = truncate.table_names.iter_mut();
                targets.try_for_each(|target| self.replace(&mut target.name))
            }
            Sql::CreateTable(create) => self.of_new_table(create),
            Sql::AlterTable(alter) => {
                self.replace(&mut alter.name)?;
                let mut operations = alter.operations.iter_mut();
                operations.try_for_each(|operation| self.of_operation(operation))
            }
            Sql::CreateIndex(create) => self.replace(&mut create.table_name),
            Sql::Drop {
                object_type:
                    ObjectType::Table
                    | ObjectType::View
                    | ObjectType::MaterializedView
                    | ObjectType::Sequence,
                names,
                ..
            } => names.iter_mut().try_for_each(|name| self.replace(name)),
            Sql::Comment {
                object_type,
                object_name,
                ..
            } => self.of_comment(*object_type, object_name),
            Sql::ExplainTable { table_name, .. } => self.replace(table_name),
            _ => Ok(()),
        }
    }

    fn of_comment(&self, kind: CommentObject, name: &mut ObjectName) -> Result<()> {
        match kind {
            // Looked up among the keys or types, or in no path.
            CommentObject::Index
            | CommentObject::Schema
            | CommentObject::Type
            | CommentObject::Domain => Ok(()),
            CommentObject::Column => {
                let Some(column) = name.0.pop() else {
                    return Ok(());
                };
                if !name.0.is_empty() {
                    self.replace(name)?;
                }
                name.0.push(column);
                Ok(())
            }
            _ => self.replace(name),
        }
    }

    fn of_new_table(&self, create: &mut CreateTable) -> Result<()> {
        // Its foreign keys may refer to itself.
        let new = self.path.creates(self.tables, &written(&create.name)?).ok();
        let beside = Names {
            new: new.as_deref().filter(|_| !create.temporary),
            ..*self
        };
        beside.of_parts(create)
    }

    fn of_parts(&self, create: &mut CreateTable) -> Result<()> {
        let mut columns = create.columns.iter_mut();
        columns.try_for_each(|column| self.of_column(column))?;
        let mut constraints = create.constraints.iter_mut();
        constraints.try_for_each(|constraint| self.of_constraint(constraint))
    }

    fn of_column(&self, column: &mut ColumnDef) -> Result<()> {
        for option in &mut column.options {
            match &mut option.option {
                ColumnOption::Default(value) => self.of_default(value)?,
                ColumnOption::ForeignKey(key) => self.replace(&mut key.foreign_table)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn of_constraint(&self, constraint: &mut TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::ForeignKey(key) => self.replace(&mut key.foreign_table),
            _ => Ok(()),
        }
    }

    fn of_operation(&self, operation: &mut AlterTableOperation) -> Result<()> {
        match operation {
            AlterTableOperation::AddColumn { column_def, .. } => self.of_column(column_def),
            AlterTableOperation::AddConstraint { constraint, .. } => self.of_constraint(constraint),
            AlterTableOperation::AlterColumn {
                op: AlterColumnOperation::SetDefault { value },
                ..
            } => self.of_default(value),
            _ => Ok(()),
        }
    }

    /// A default, which is [kept](syntax::kept) as a text.
    fn of_default(&self, value: &mut Expr) -> Result<()> {
        if let Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text),
            ..
        }) = value
        {
            *text = fixed::expression(text, &|written| self.kept(written))?;
        }
        Ok(())
    }

    fn of_view(&self, text: &mut String) -> Result<()> {
        *text = fixed::view(text, &|written| self.kept(written))?;
        Ok(())
    }

    /// What stands in a text that is kept in the place of a name; none if that means the same there.
    fn kept(&self, written: &str) -> Result<Option<String>> {
        match table::schema_of(written) {
            // Later it would be the schema of whoever asks.
            Some(PG_TEMP) => return Ok(Some(quoted(&self.path.resolve(self.tables, written)))),
            Some(_) => return Ok(None),
            None => {}
        }
        match self.path.find(self.tables, written) {
            Some(found) if found == *written => Ok(None),
            Some(found) => Ok(Some(quoted(&found))),
            // What is in `public` would be found later, but not now.
            None if SearchPath::kept().find(self.tables, written).is_some() => {
                Err(unknown_table(written, self.tables))
            }
            None => Ok(None),
        }
    }

    fn resolve(&self, name: &mut String) {
        *name = self.path.resolve(self.tables, name);
    }

    /// Replaces the name of a table that keeps it as the name of its columns.
    fn aliased(&self, table: &mut TableWithJoins) -> Result<()> {
        let TableFactor::Table { name, alias, .. } = &mut table.relation else {
            return Ok(());
        };
        let before = name.0.len();
        self.replace(name)?;
        if alias.is_none() && before == 1 {
            *alias = Some(TableAlias {
                explicit: true,
                name: Ident::with_quote('"', base(&table_name(name)?)),
                columns: Vec::new(),
                at: None,
            });
        }
        Ok(())
    }

    /// Replaces a name that does not say where it is. The new one is looked up nowhere.
    fn replace(&self, name: &mut ObjectName) -> Result<()> {
        let written = written(name)?;
        match table::schema_of(&written) {
            None | Some(PG_TEMP) => {
                let found = self.path.resolve_beside(self.tables, self.new, &written);
                *name = ObjectName::from(vec![Ident::with_quote('"', exact(&found))]);
            }
            Some(_) => {}
        }
        Ok(())
    }
}
