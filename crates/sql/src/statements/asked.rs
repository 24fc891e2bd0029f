//! Which defaults of columns ask sequences: these are not dropped.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, Visitor,
};
use table::Definition;

use crate::error::{Error, Result};
use crate::frontend::expression;
use crate::frontend::walk::Walk;
use crate::functions::sequences::relation;
use crate::names::{base, column_name, known, session_of};
use crate::run::context::StatementContext;

/// That no default of a column asks a sequence that goes with `what`, but in the tables `but`.
///
/// # Errors
/// [`Error::Constraint`] with the first column that does.
pub(crate) fn stays_unused(
    context: &StatementContext,
    name: &str,
    what: &str,
    but: &[&str],
) -> Result<()> {
    for table in context.tables.names() {
        let Some(of) = context.tables.get(table).filter(|_| !but.contains(&table)) else {
            continue;
        };
        for column in &of.definition().columns {
            let asked = column.default.as_deref().map(asked).transpose()?;
            if asked.is_some_and(|asked| asked.iter().any(|one| one == name)) {
                return Err(Error::Constraint {
                    code: "2BP01",
                    message: format!(
                        "cannot drop {what} because other objects depend on it: default value for column {} of table {table} depends on sequence {name}",
                        column.name
                    ),
                });
            }
        }
    }
    Ok(())
}

/// That a default of a table that outlives the session asks no sequence that does not.
///
/// # Errors
/// If one does, with the column's name.
pub(crate) fn stays_there(table: &str, column: &str, text: &str) -> Result<()> {
    if session_of(table).is_some() {
        return Ok(());
    }
    let asked = asked(text)?;
    match asked.iter().find(|name| session_of(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::unsupported(format!(
            "the default of column \"{column}\" asks the temporary sequence \"{}\", which goes with the session, and the table stays: take a permanent sequence",
            base(name)
        ))),
    }
}

/// The same for all columns of a table.
///
/// # Errors
/// As [`stays_there`].
pub(crate) fn stay_there(definition: &Definition) -> Result<()> {
    definition.columns.iter().try_for_each(|column| {
        let text = column.default.as_deref();
        text.map_or(Ok(()), |text| {
            stays_there(&definition.name, &column.name, text)
        })
    })
}

/// The sequences that an expression asks by constant names.
///
/// # Errors
/// If it is none.
pub(crate) fn asked(text: &str) -> Result<Vec<String>> {
    struct Asked(Vec<String>);

    impl Visitor for Asked {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::Function(function) = expr
                && let Some(name) = constant(function)
                && let Ok(name) = relation(name)
            {
                self.0.push(known(&name));
            }
            ControlFlow::Continue(())
        }
    }

    let mut found = Asked(Vec::new());
    let _ = expression::expression(text)?.walk(&mut found);
    Ok(found.0)
}

/// The constant that names the sequence in a call of `nextval` and the like.
fn constant(function: &Function) -> Option<&str> {
    let [part] = &function.name.0[..] else {
        return None;
    };
    let name = column_name(part.as_ident()?);
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))) = list.args.first()
    else {
        return None;
    };
    match &value.value {
        Value::SingleQuotedString(text)
            if matches!(name.as_str(), "nextval" | "currval" | "setval") =>
        {
            Some(text)
        }
        _ => None,
    }
}
