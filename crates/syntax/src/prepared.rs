//! `prepare`, `execute`, `deallocate`: statements with parameters, which `execute` puts constants in the places of.

use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{
    CastKind, DataType, Expr, ObjectName, Query, Statement as Sql, UnaryOperator, Value,
    ValueWithSpan, Visitor, VisitorMut,
};

use crate::flow::{flow, outcome};
use crate::grammar::{none_of, refused_for};
use crate::walk::{Walk, WalkMut};

/// A statement that waits for its parameters.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// As it was parsed, and not rewritten yet.
    statement: Box<Sql>,
    /// The types that were declared, of the first parameters or of all.
    types: Vec<DataType>,
    /// The greatest number of a parameter.
    parameters: usize,
}

impl Prepared {
    /// Prepares a statement.
    ///
    /// # Errors
    /// If it is none that can be, or has parameters without numbers.
    pub(crate) fn new(statement: Box<Sql>, types: Vec<DataType>) -> Result<Prepared> {
        let fits = matches!(
            *statement,
            Sql::Query(_) | Sql::Insert(_) | Sql::Update(_) | Sql::Delete(_)
        );
        if !fits {
            return Err(Error::unsupported(
                "`prepare` takes a query, insert, update or delete",
            ));
        }
        let mut numbers = Numbers { greatest: 0 };
        outcome(statement.walk(&mut numbers))?;
        Ok(Prepared {
            statement,
            parameters: numbers.greatest.max(types.len()),
            types,
        })
    }

    /// How many parameters it has.
    pub(crate) fn parameters(&self) -> usize {
        self.parameters
    }

    /// As it was parsed, with its parameters.
    pub fn statement(&self) -> &Sql {
        &self.statement
    }

    /// The statement with `arguments` in the places of its parameters.
    ///
    /// # Errors
    /// If there are more of them or fewer, or one is no constant.
    pub fn bind(&self, name: &str, arguments: &[Expr]) -> Result<Box<Sql>> {
        if arguments.len() != self.parameters {
            return Err(Error::coded(
                "42601",
                format!(
                    "wrong number of parameters for prepared statement \"{name}\": it has {}, and {} were given",
                    self.parameters,
                    arguments.len()
                ),
            ));
        }
        arguments
            .iter()
            .try_for_each(|argument| outcome(argument.walk(&mut Constants)))?;
        let typed = |(at, argument): (usize, &Expr)| match self.types.get(at) {
            Some(data_type) => Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(argument.clone()),
                data_type: data_type.clone(),
                array: false,
                format: None,
            },
            None => Expr::Nested(Box::new(argument.clone())),
        };
        let mut places = Places {
            arguments: arguments.iter().enumerate().map(typed).collect(),
        };
        let mut statement = self.statement.clone();
        outcome(statement.walk_mut(&mut places))?;
        Ok(statement)
    }

    /// The statement with something else for each parameter, that says its type and stays a parameter.
    pub(crate) fn with_types(&self, arguments: Vec<Expr>) -> Result<Box<Sql>> {
        let mut statement = self.statement.clone();
        outcome(statement.walk_mut(&mut Places { arguments }))?;
        Ok(statement)
    }

    /// The statement with NULL for each parameter: to see what is wrong with it already when it is prepared.
    ///
    /// # Errors
    /// None that [`bind`](Prepared::bind) does not have.
    pub(crate) fn with_nulls(&self) -> Result<Box<Sql>> {
        let null = Expr::Value(Value::Null.with_empty_span());
        self.bind("", &vec![null; self.parameters])
    }
}

/// The name of what is executed, and its arguments.
///
/// # Errors
/// For the words of other databases.
pub(crate) fn execute(statement: Sql) -> Result<(ObjectName, Vec<Expr>)> {
    let Sql::Execute {
        name,
        parameters,
        has_parentheses: _,
        immediate,
        into,
        using,
        output,
        default,
    } = statement
    else {
        return Err(no_name());
    };
    none_of(&[
        (immediate, "execute immediate"),
        (!into.is_empty(), "execute ... into"),
        (!using.is_empty(), "execute ... using"),
        (output || default, "execute ... output or default"),
    ])?;
    Ok((name.ok_or_else(no_name)?, parameters))
}

fn no_name() -> Error {
    Error::coded("42601", "`execute` needs the name of a prepared statement")
}

/// The number of a parameter, from 1 on; none of other placeholders.
pub fn number(placeholder: &str) -> Option<usize> {
    let number = placeholder.strip_prefix('$')?.parse().ok()?;
    (1..=u16::MAX.into()).contains(&number).then_some(number)
}

struct Numbers {
    greatest: usize,
}

impl Visitor for Numbers {
    type Break = Box<Error>;

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<Box<Error>> {
        if let Value::Placeholder(name) = &value.value {
            let Some(number) = number(name) else {
                return flow(Err(refused_for(name, "parameters are $1 to $65535")));
            };
            self.greatest = self.greatest.max(number);
        }
        ControlFlow::Continue(())
    }
}

/// What takes the places of parameters.
struct Places {
    arguments: Vec<Expr>,
}

impl VisitorMut for Places {
    type Break = Box<Error>;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
            && let Some(argument) = number(name).and_then(|number| self.arguments.get(number - 1))
        {
            *expr = argument.clone();
        }
        ControlFlow::Continue(())
    }
}

/// Refuses what is not the same for all rows of a statement.
struct Constants;

impl Visitor for Constants {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Box<Error>> {
        flow(Err(not_constant()))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<Error>> {
        match expr {
            Expr::Value(value) if !matches!(value.value, Value::Placeholder(_)) => {
                ControlFlow::Continue(())
            }
            Expr::TypedString(_)
            | Expr::Interval(_)
            | Expr::Nested(_)
            | Expr::Cast { .. }
            | Expr::BinaryOp { .. }
            | Expr::UnaryOp {
                op: UnaryOperator::Minus | UnaryOperator::Plus | UnaryOperator::Not,
                ..
            } => ControlFlow::Continue(()),
            _ => flow(Err(not_constant())),
        }
    }
}

fn not_constant() -> Error {
    Error::coded("42601", "the parameters of `execute` are constants")
}
