//! Rows as values: `row(1, 2)` and `(1, 2)`, and the row of a table by the table's name.

use std::ops::ControlFlow;

use functions::lists::names::{STRUCT, WHOLE, WHOLE_OUTER};
use messages::Error;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Join,
    JoinOperator, Select, SelectItem, TableFactor, TableWithJoins, Value, VisitorMut,
};

use crate::call::call;
use crate::flow::flow;
use crate::names::column_name;
use crate::outside::outside_queries;
use crate::rewrite::calls::plain_arguments;
use crate::rewrite::joined::{alias_of, constraint};
use crate::rewrite::special::text;

/// Makes `row(1, 2)` the same as `(1, 2)`.
pub(super) struct Tuples;

impl VisitorMut for Tuples {
    type Break = Box<Error>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        let Expr::Function(function) = &*expr else {
            return ControlFlow::Continue(());
        };
        if name(function).as_deref() != Some("row") {
            return ControlFlow::Continue(());
        }
        let values = plain_arguments(function).filter(|values| !values.is_empty());
        match values {
            Some(values) => {
                *expr = Expr::Tuple(values);
                ControlFlow::Continue(())
            }
            None => flow(Err(Error::unsupported(
                "`row` takes values: `row()` and `row(t.*)` are not supported",
            ))),
        }
    }
}

fn name(function: &Function) -> Option<String> {
    let [part] = &function.name.0[..] else {
        return None;
    };
    part.as_ident().map(column_name)
}

/// Makes calls of the rows that stand where values do. Those that are compared are none any more, but for those that a
/// subquery is searched for.
#[derive(Default)]
pub(super) struct Values {
    /// Whether the next row is left.
    searched: bool,
    left: Vec<bool>,
}

impl VisitorMut for Values {
    type Break = Box<Error>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        match expr {
            Expr::Tuple(_) => self.left.push(std::mem::take(&mut self.searched)),
            Expr::InSubquery { expr, .. } => self.searched = is_tuple(expr),
            Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => self.searched = is_tuple(left),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        let Expr::Tuple(values) = expr else {
            return ControlFlow::Continue(());
        };
        let left = self.left.pop().unwrap_or_default();
        // `group by ()` has none.
        if !left && !values.is_empty() {
            let numbered = std::mem::take(values).into_iter().enumerate();
            let args = numbered.flat_map(|(at, value)| [text(&format!("f{}", at + 1)), value]);
            *expr = call(STRUCT, args.collect());
        }
        ControlFlow::Continue(())
    }
}

fn is_tuple(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_tuple(inner),
        other => matches!(other, Expr::Tuple(_)),
    }
}

/// What a `from` calls a table or a query.
pub(super) struct Source {
    pub name: String,
    /// Whether an outer join may leave it without a row.
    nullable: bool,
}

/// The tables and queries of a `from`. Functions are none: their column has their name.
pub(super) fn sources(select: &Select) -> Vec<Source> {
    let mut all = Vec::new();
    for from in &select.from {
        joined(from, &mut all);
    }
    all
}

fn joined(from: &TableWithJoins, all: &mut Vec<Source>) {
    let start = all.len();
    source(&from.relation, all);
    for Join {
        relation,
        join_operator,
        ..
    } in &from.joins
    {
        use JoinOperator::{
            CrossJoin, FullOuter, Inner, Join, Left, LeftAnti, LeftOuter, LeftSemi, Right,
            RightOuter,
        };
        let (left, right) = match join_operator {
            Join(_) | Inner(_) | CrossJoin(_) | LeftSemi(_) | LeftAnti(_) => (false, false),
            Left(_) | LeftOuter(_) => (false, true),
            Right(_) | RightOuter(_) => (true, false),
            FullOuter(_) => (true, true),
            _ => (true, true),
        };
        let middle = all.len();
        source(relation, all);
        all.extend(
            constraint(join_operator)
                .and_then(alias_of)
                .map(|name| Source {
                    name: name.to_string(),
                    nullable: false,
                }),
        );
        for (at, source) in all.iter_mut().enumerate().skip(start) {
            source.nullable |= if at < middle { left } else { right };
        }
    }
}

fn source(factor: &TableFactor, all: &mut Vec<Source>) {
    let name = match factor {
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => return joined(table_with_joins, all),
        TableFactor::Table {
            alias: Some(alias),
            args: None,
            ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(column_name(&alias.name)),
        TableFactor::Table {
            name,
            alias: None,
            args: None,
            ..
        } => name
            .0
            .last()
            .and_then(|part| part.as_ident())
            .map(column_name),
        _ => None,
    };
    all.extend(name.map(|name| Source {
        name,
        nullable: false,
    }));
}

/// Whether `a.b` or `a.b.c` is a field of a column, by what a `from` calls tables.
pub(super) fn is_field(parts: &[Ident], sources: &[Source]) -> bool {
    let names = |part: Option<&Ident>| {
        part.is_some_and(|part| sources.iter().any(|own| own.name == column_name(part)))
    };
    match parts.len() {
        0 | 1 => false,
        2 => !names(parts.first()),
        // `t.s.a`, and not `schema.t.a`.
        _ => names(parts.first()) || !names(parts.get(1)),
    }
}

/// Finds names of tables where values stand: as columns of a `select`, and as arguments of functions.
pub(super) struct Whole;

impl VisitorMut for Whole {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        let sources = sources(select);
        if sources.is_empty() {
            return ControlFlow::Continue(());
        }
        for item in &mut select.projection {
            match item {
                SelectItem::UnnamedExpr(Expr::Identifier(ident)) => {
                    if let Some(row) = row(ident, &sources) {
                        let alias = Ident::with_quote('"', column_name(ident));
                        *item = SelectItem::ExprWithAlias { expr: row, alias };
                    }
                }
                SelectItem::ExprWithAlias { expr, .. } => {
                    if let Expr::Identifier(ident) = &*expr
                        && let Some(row) = row(ident, &sources)
                    {
                        *expr = row;
                    }
                }
                _ => {}
            }
        }
        // Queries inside have tables of their own.
        outside_queries(select, |expr| arguments(expr, &sources));
        ControlFlow::Continue(())
    }
}

/// The row of the table that a name may stand for.
fn row(ident: &Ident, sources: &[Source]) -> Option<Expr> {
    let name = column_name(ident);
    let source = sources.iter().find(|source| source.name == name)?;
    let op = if source.nullable { WHOLE_OUTER } else { WHOLE };
    Some(Expr::BinaryOp {
        left: Box::new(Expr::Identifier(ident.clone())),
        op: BinaryOperator::Custom(op.into()),
        right: Box::new(Expr::value(Value::SingleQuotedString(name))),
    })
}

/// Makes rows of the arguments of a call that are names of tables.
fn arguments(expr: &mut Expr, sources: &[Source]) {
    let Expr::Function(function) = expr else {
        return;
    };
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    for arg in &mut list.args {
        let FunctionArg::Unnamed(arg) = arg else {
            continue;
        };
        let ident = match &*arg {
            FunctionArgExpr::Expr(Expr::Identifier(ident)) => Some(ident.clone()),
            FunctionArgExpr::QualifiedWildcard(name) => match &name.0[..] {
                [part] => part.as_ident().cloned(),
                _ => None,
            },
            _ => None,
        };
        if let Some(row) = ident.and_then(|ident| row(&ident, sources)) {
            *arg = FunctionArgExpr::Expr(row);
        }
    }
}
