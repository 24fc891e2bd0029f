//! `create sequence`, `alter sequence`, `drop sequence`.

use std::ops::ControlFlow;
use std::time::Instant;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Value, Visit,
    Visitor,
};
use table::Tables;

use crate::error::{Error, Result};
use crate::frontend::expression;
use crate::frontend::sequences::SequenceStatement;
use crate::names::{check_new, column_name, table_name};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::sequences::{relation, sequence};
use crate::statements::scope::Scope;

/// Creates or changes a sequence.
pub(crate) async fn define(
    scope: &mut Scope<'_>,
    statement: SequenceStatement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        SequenceStatement::Create {
            name,
            if_not_exists,
            options,
        } => {
            check_new(&name)?;
            let (mut writing, context) = scope.write("CREATE SEQUENCE", &[&name], started).await?;
            if taken(&context, &name)? {
                if if_not_exists {
                    return Ok(Answer::changed(None, &context.clock));
                }
                return Err(Error::invalid(format!(
                    "relation \"{name}\" already exists"
                )));
            }
            let number = scope.instance.sequences.new_number(&writing.tx)?;
            let own = options.new_sequence(number)?;
            table::create_sequence(&mut writing.tx, &name, &own)?;
            scope.keep(writing).await?;
            Ok(Answer::changed(None, &context.clock))
        }
        SequenceStatement::Alter {
            name,
            if_exists,
            options,
        } => {
            let (mut writing, context) = scope.write("ALTER SEQUENCE", &[&name], started).await?;
            if if_exists && !taken(&context, &name)? {
                return Ok(Answer::changed(None, &context.clock));
            }
            let before = sequence(&context.tables, &name)?;
            let (sequences, store) = (&scope.instance.sequences, &scope.instance.store);
            let at = sequences.position(store, &name, before)?;
            let (mut own, restart) = options.changed(before, at)?;
            own.first = restart.unwrap_or(at);
            if restart.is_some() {
                // From a place of its own, to which nobody comes who does not see this change.
                own.state = sequences.new_number(&writing.tx)?;
            }
            table::change_sequence(&mut writing.tx, &name, &own)?;
            scope.keep(writing).await?;
            Ok(Answer::changed(None, &context.clock))
        }
    }
}

/// That no sequence has the name, which a table or a view is to get.
///
/// # Errors
/// If one has.
pub(crate) fn no_sequence(tables: &Tables, name: &str) -> Result<()> {
    match tables.sequence(name) {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!(
            "relation \"{name}\" already exists: it is a sequence; `drop sequence {name}` first, or take another name"
        ))),
    }
}

/// Whether something has the name.
fn taken(context: &StatementContext, name: &str) -> Result<bool> {
    let tables = &context.tables;
    Ok(tables.get(name).is_some()
        || tables.view(name).is_some()
        || tables.sequence(name).is_some()
        || context.array(name)?.is_some())
}

/// `drop sequence [if exists] a, b`.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    let targets: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write("DROP SEQUENCE", &targets, started).await?;
    let mut there: Vec<&str> = Vec::new();
    for name in targets {
        if there.contains(&name) || if_exists && !taken(&context, name)? {
            continue;
        }
        match sequence(&context.tables, name) {
            Ok(_) => there.push(name),
            Err(_) if !taken(&context, name)? => {
                return Err(Error::invalid(format!(
                    "sequence \"{name}\" does not exist"
                )));
            }
            Err(e) => return Err(e),
        }
    }
    for name in &there {
        stays_unused(&context, name)?;
        table::drop_sequence(&mut writing.tx, name)?;
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// That no default of a column asks a sequence that goes.
fn stays_unused(context: &StatementContext, name: &str) -> Result<()> {
    for table in context.tables.names() {
        let Some(of) = context.tables.get(table) else {
            continue;
        };
        for column in &of.definition().columns {
            let asked = column.default.as_deref().map(asked).transpose()?;
            if asked.is_some_and(|asked| asked.iter().any(|one| one == name)) {
                return Err(Error::Constraint {
                    message: format!(
                        "cannot drop sequence {name} because other objects depend on it: default value for column {} of table {table} depends on sequence {name}",
                        column.name
                    ),
                });
            }
        }
    }
    Ok(())
}

/// The sequences that an expression asks by constant names.
fn asked(text: &str) -> Result<Vec<String>> {
    struct Asked(Vec<String>);

    impl Visitor for Asked {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::Function(function) = expr
                && let Some(name) = constant(function)
                && let Ok(name) = relation(name)
            {
                self.0.push(name);
            }
            ControlFlow::Continue(())
        }
    }

    let mut found = Asked(Vec::new());
    let _ = expression::expression(text)?.visit(&mut found);
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
