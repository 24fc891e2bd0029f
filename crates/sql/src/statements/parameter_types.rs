//! The types of parameters that stand for columns: those of an insert of one row, and of an `update` or a `delete` of the row of
//! a key. What these are is known without a plan.

use arrow::datatypes::DataType;
use sqlparser::ast::{
    AssignmentTarget, BinaryOperator, Expr, ObjectNamePart, SelectItem, Statement as Sql,
    TableFactor,
};
use syntax::key_query::{Named, are_columns, equalities};
use syntax::names::{base, column_name, written};
use syntax::parameters::Readied;
use table::Definition;

use crate::bind::row_insert::RowInsert;
use crate::bind::row_values::RowValue;
use crate::run::context::StatementContext;
use crate::statements::dml::delete_written;

/// The types of parameters, each with its place; none if the statement is another.
pub(super) fn of_columns(
    context: &StatementContext,
    readied: &Readied,
) -> Option<Vec<(usize, DataType)>> {
    readied.known(|sql| of_statement(context, sql))
}

fn of_statement(context: &StatementContext, statement: &Sql) -> Option<Vec<(usize, DataType)>> {
    // A `returning` of columns has no parameters.
    let plain = |returning: &Option<Vec<SelectItem>>| returning.as_deref().is_none_or(are_columns);
    let name = match statement {
        Sql::Insert(insert) if plain(&insert.returning) => {
            let mut insert = insert.clone();
            insert.returning = None;
            let insert = RowInsert::of_sql(&Sql::Insert(insert))?;
            let table = context.table(&context.own(&insert.table)).ok()?;
            return Some(insert.types(table.definition()));
        }
        Sql::Update(update) if update.from.is_none() && plain(&update.returning) => {
            match &update.table.relation {
                TableFactor::Table {
                    name, alias: None, ..
                } => written(name).ok()?,
                _ => return None,
            }
        }
        Sql::Delete(delete) if delete.using.is_none() && plain(&delete.returning) => {
            delete_written(delete).ok()?
        }
        _ => return None,
    };
    let table = context.table(&context.own(&name)).ok()?;
    let mut own = Own {
        definition: table.definition(),
        types: Vec::new(),
    };
    match statement {
        Sql::Update(update) => {
            for assignment in &update.assignments {
                let AssignmentTarget::ColumnName(name) = &assignment.target else {
                    return None;
                };
                let [ObjectNamePart::Identifier(column)] = name.0.as_slice() else {
                    return None;
                };
                own.assigned(&column_name(column), &assignment.value)?;
            }
            own.condition(update.selection.as_ref()?)?;
        }
        Sql::Delete(delete) => own.condition(delete.selection.as_ref()?)?,
        _ => return None,
    }
    Some(own.types)
}

/// What is known of the parameters of a statement that changes a table.
struct Own<'d> {
    definition: &'d Definition,
    types: Vec<(usize, DataType)>,
}

impl Own<'_> {
    /// A value that is assigned to a column.
    fn assigned(&mut self, column: &str, value: &Expr) -> Option<()> {
        match value {
            Expr::Nested(inner) => self.assigned(column, inner),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Plus | BinaryOperator::Minus,
                right,
            } => {
                let left = Named::of(left)?;
                let from = column_name(left.column);
                let data_type = self.column(&from, left.table.map(column_name))?;
                // Of moments and spans it is for the planner to say.
                let is_whole = data_type.is_integer() && self.column(column, None)? == data_type;
                is_whole.then(|| self.value(data_type, right))?
            }
            value => self.value(self.column(column, None)?, value),
        }
    }

    fn condition(&mut self, condition: &Expr) -> Option<()> {
        for (named, value) in equalities(condition)? {
            let table = named.table.map(column_name);
            let data_type = self.column(&column_name(named.column), table)?;
            self.value(data_type, value)?;
        }
        Some(())
    }

    /// The type of a column, which may be called with the name of its table.
    fn column(&self, name: &str, table: Option<String>) -> Option<DataType> {
        if table.is_some_and(|table| table != base(&self.definition.name)) {
            return None;
        }
        let at = self.definition.position(name).ok()?;
        Some(self.definition.columns.get(at)?.data_type.clone())
    }

    /// A value of this type, which may be a parameter; none if one may be in it.
    fn value(&mut self, data_type: DataType, value: &Expr) -> Option<()> {
        match RowValue::of(value)? {
            RowValue::Array(_) => return None,
            // One that is cast has the type that it is cast to.
            RowValue::Parameter(at) => {
                let mut types = self.types.iter();
                if types.any(|(own, other)| *own == at && *other != data_type) {
                    return None;
                }
                self.types.push((at, data_type));
            }
            _ => {}
        }
        Some(())
    }
}
