//! Joins whose tables share columns, by `using` or `natural`. Such a column is that of the left table, of the right one, or of
//! whichever has a row, which the planner does not know everywhere: so the join is written with `on`, and the column as what it
//! is. So are joins that give the columns that they share a name: `using (a) as x`.

use std::ops::ControlFlow;

use datafusion_expr::planner::ContextProvider;
use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Ident, JoinConstraint, JoinOperator, OrderBy, OrderByKind,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
    TableWithJoins, Value, VisitMut, VisitorMut,
};
use syntax::call::plain_call;
use syntax::names::column_name;
use syntax::returning::plain_query;
use syntax::rewrite::{alias_of, constraint, marked};
use syntax::walk::WalkMut;

use crate::error::{Error, Result};
use crate::run::shared_columns::{Column, Lookup, is_plain, only};

/// A column by its name alone, and what it is.
#[derive(Clone, Debug)]
struct Visible {
    name: String,
    expr: Expr,
    /// Two tables have it.
    merged: bool,
}

impl Visible {
    fn of(column: &Column) -> Visible {
        Visible {
            name: column.name.clone(),
            expr: column.written(),
            merged: false,
        }
    }

    fn item(self) -> SelectItem {
        if self.merged {
            SelectItem::ExprWithAlias {
                expr: self.expr,
                alias: Ident::with_quote('"', self.name),
            }
        } else {
            SelectItem::UnnamedExpr(self.expr)
        }
    }
}

/// The columns that a join gives a name.
struct Named {
    name: String,
    columns: Vec<Visible>,
}

/// Whether a `from` has a `right` or `full join` whose tables share columns.
pub(super) fn is_wide(select: &Select) -> bool {
    select.from.iter().any(is_wide_from)
}

fn is_wide_from(from: &TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => is_wide_from(table_with_joins),
        _ => false,
    };
    nested(&from.relation)
        || from.joins.iter().any(|join| {
            let wide = matches!(
                &join.join_operator,
                JoinOperator::Right(JoinConstraint::Using(_) | JoinConstraint::Natural)
                    | JoinOperator::RightOuter(JoinConstraint::Using(_) | JoinConstraint::Natural)
                    | JoinOperator::FullOuter(JoinConstraint::Using(_) | JoinConstraint::Natural)
            );
            let named = constraint(&join.join_operator).and_then(alias_of);
            wide || named.is_some() || nested(&join.relation)
        })
}

/// Writes such joins with `on`, and their columns, in a `select` and the order of its query, as what they are.
///
/// # Errors
/// If it is not known which columns a table has, and if a shared column is that of two tables on one side.
pub(super) fn write_out<N: ContextProvider>(
    lookup: &Lookup<'_, N>,
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
) -> Result<()> {
    let (mut all, mut named) = (Vec::new(), Vec::new());
    for from in &mut select.from {
        all.extend(chain(lookup, from, &mut named)?);
    }
    let merged: Vec<Visible> = all.iter().filter(|own| own.merged).cloned().collect();
    let columns = Columns {
        merged: &merged,
        named: &named,
        lookup,
    };
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::Wildcard(options) if is_plain(&options) => {
                select
                    .projection
                    .extend(all.iter().cloned().map(Visible::item));
            }
            SelectItem::Wildcard(_) => {
                return Err(Error::unsupported(
                    "`*` with a clause over a right or full join by shared columns is not supported: name the columns",
                ));
            }
            SelectItem::UnnamedExpr(expr) => {
                let own = columns.found(&expr).cloned();
                let item = own.map_or(SelectItem::UnnamedExpr(expr), Visible::item);
                select.projection.push(item);
            }
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) => {
                match named
                    .iter()
                    .find(|own| only(&name).as_ref() == Some(&own.name))
                {
                    Some(own) => {
                        let items = own.columns.iter().cloned().map(Visible::item);
                        select.projection.extend(items);
                    }
                    None => select.projection.push(SelectItem::QualifiedWildcard(
                        SelectItemQualifiedWildcardKind::ObjectName(name),
                        options,
                    )),
                }
            }
            other => select.projection.push(other),
        }
    }
    // What stands in `from` was seen to, table by table.
    let from = std::mem::take(&mut select.from);
    columns.write_out(select);
    select.from = from;
    if let Some(order_by) = order_by {
        ordered(select, order_by, &columns);
    }
    Ok(())
}

/// The keys of an order: a name alone is that of an output column, if there is one. Those of `distinct on` are what it says.
fn ordered<N: ContextProvider>(
    select: &Select,
    order_by: &mut OrderBy,
    columns: &Columns<'_, '_, N>,
) {
    let is_distinct = matches!(select.distinct, Some(Distinct::On(_)));
    let is_output = |name: &str| {
        !is_distinct
            && select.projection.iter().any(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => column_name(alias) == name,
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                    parts.last().is_some_and(|part| column_name(part) == name)
                }
                _ => false,
            })
    };
    let OrderByKind::Expressions(keys) = &mut order_by.kind else {
        return;
    };
    for key in keys {
        if !matches!(&key.expr, Expr::Identifier(name) if is_output(&column_name(name))) {
            columns.write_out(&mut key.expr);
        }
    }
}

fn chain<N: ContextProvider>(
    lookup: &Lookup<'_, N>,
    from: &mut TableWithJoins,
    named: &mut Vec<Named>,
) -> Result<Vec<Visible>> {
    let mut all = factor(lookup, &mut from.relation, named)?;
    for join in &mut from.joins {
        let mut other = factor(lookup, &mut join.relation, named)?;
        let operator = &mut join.join_operator;
        let wide = match operator {
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Kept::Right,
            JoinOperator::FullOuter(_) => Kept::Either,
            _ => Kept::Left,
        };
        let constraint = match operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint) => constraint,
            JoinOperator::CrossJoin(_) => {
                all.append(&mut other);
                continue;
            }
            _ => return Err(unknown()),
        };
        let shared = match &*constraint {
            JoinConstraint::Using(names) => names
                .iter()
                .filter(|name| marked(name).is_none())
                .map(only)
                .collect::<Option<Vec<_>>>()
                .ok_or_else(unknown)?,
            JoinConstraint::Natural => {
                let names = all.iter().map(|own| own.name.clone());
                names
                    .filter(|name| other.iter().any(|own| own.name == *name))
                    .collect()
            }
            JoinConstraint::On(_) | JoinConstraint::None => {
                // Names that the tables before have merged.
                let merged: Vec<Visible> = all
                    .iter()
                    .chain(&other)
                    .filter(|own| own.merged)
                    .cloned()
                    .collect();
                if let JoinConstraint::On(condition) = constraint {
                    let columns = Columns {
                        merged: &merged,
                        named,
                        lookup,
                    };
                    columns.write_out(condition);
                }
                all.append(&mut other);
                continue;
            }
        };
        let alias = alias_of(constraint).map(str::to_string);
        let (joined, condition) = merge(all, other, &shared, wide)?;
        named.extend(alias.map(|name| Named {
            name,
            columns: joined[..shared.len()].to_vec(),
        }));
        *constraint = JoinConstraint::On(condition);
        all = joined;
    }
    Ok(all)
}

/// Whose the shared columns of a join are.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Left,
    Right,
    Either,
}

/// The columns of two sides that share some, and by which condition they are joined.
fn merge(
    mut left: Vec<Visible>,
    mut right: Vec<Visible>,
    shared: &[String],
    kept: Kept,
) -> Result<(Vec<Visible>, Expr)> {
    let mut first = Vec::new();
    let mut conditions = Vec::new();
    for name in shared {
        let (own, other) = (
            taken(&mut left, name, "left")?,
            taken(&mut right, name, "right")?,
        );
        conditions.push(Expr::BinaryOp {
            left: Box::new(own.expr.clone()),
            op: BinaryOperator::Eq,
            right: Box::new(other.expr.clone()),
        });
        let expr = match kept {
            Kept::Left => own.expr,
            Kept::Right => other.expr,
            Kept::Either => plain_call("coalesce", vec![own.expr, other.expr]),
        };
        first.push(Visible {
            name: name.clone(),
            expr,
            merged: true,
        });
    }
    let both = conditions.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    });
    first.append(&mut left);
    first.append(&mut right);
    let condition = both.unwrap_or_else(|| Expr::value(Value::Boolean(true)));
    Ok((first, condition))
}

/// The one column of that name, taken out of those of a side.
fn taken(side: &mut Vec<Visible>, name: &str, called: &str) -> Result<Visible> {
    let count = side.iter().filter(|own| own.name == name).count();
    match (count, side.iter().position(|own| own.name == name)) {
        (1, Some(at)) => Ok(side.remove(at)),
        (0, _) | (_, None) => Err(Error::coded(
            "42703",
            format!("column \"{name}\" specified in USING clause does not exist in {called} table"),
        )),
        _ => Err(Error::coded(
            "42702",
            format!("common column name \"{name}\" appears more than once in {called} table"),
        )),
    }
}

fn factor<N: ContextProvider>(
    lookup: &Lookup<'_, N>,
    factor: &mut TableFactor,
    named: &mut Vec<Named>,
) -> Result<Vec<Visible>> {
    if let TableFactor::NestedJoin {
        table_with_joins,
        alias,
    } = factor
    {
        if alias.is_none() {
            return chain(lookup, table_with_joins, named);
        }
        // A join with a name is a query of its own, which is seen to after this one.
        let mut query = plain_query("select * from t")?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.from = vec![table_with_joins.as_ref().clone()];
        }
        *factor = TableFactor::Derived {
            lateral: false,
            subquery: query,
            alias: alias.take(),
            sample: None,
        };
    }
    let columns = lookup.factor(factor).ok_or_else(unknown)?;
    Ok(columns.wanted.iter().map(Visible::of).collect())
}

fn unknown() -> Error {
    Error::unsupported(
        "`using` and `natural` of a right or full join are supported for tables, views and queries in `from` that name their columns: write the join with `on`, and its columns with the names of the tables",
    )
}

/// The columns that two tables share.
struct Columns<'m, 'n, N> {
    merged: &'m [Visible],
    named: &'m [Named],
    lookup: &'m Lookup<'n, N>,
}

impl<N: ContextProvider> Columns<'_, '_, N> {
    /// Writes them as what they are.
    fn write_out(&self, tree: &mut impl VisitMut) {
        let _ = tree.walk_mut(&mut Written {
            columns: self,
            within: Vec::new(),
        });
    }

    /// What an expression is that is the name of such a column.
    fn found(&self, expr: &Expr) -> Option<&Visible> {
        match expr {
            Expr::Identifier(name) => {
                let name = column_name(name);
                self.merged.iter().find(|own| own.name == name)
            }
            Expr::CompoundIdentifier(parts) => {
                let [table, name] = &parts[..] else {
                    return None;
                };
                let (table, name) = (column_name(table), column_name(name));
                let named = self.named.iter().find(|own| own.name == table)?;
                named.columns.iter().find(|own| own.name == name)
            }
            _ => None,
        }
    }

    /// The names that may mean something else in a query inside: of the columns that it reads, and of those it returns. None if
    /// they are not known.
    fn hidden_in(&self, body: &SetExpr) -> Option<Vec<String>> {
        let select = match body {
            SetExpr::Select(select) => select,
            SetExpr::Query(query) => return self.hidden_in(&query.body),
            SetExpr::SetOperation { left, right, .. } => {
                let mut names = self.hidden_in(left)?;
                names.extend(self.hidden_in(right)?);
                return Some(names);
            }
            SetExpr::Values(_) => return Some(Vec::new()),
            _ => return None,
        };
        let mut names = Vec::new();
        for from in &select.from {
            let columns = self.lookup.chain(from)?.wanted;
            names.extend(columns.into_iter().map(|own| own.name));
        }
        names.extend(select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(column_name(alias)),
            _ => None,
        }));
        Some(names)
    }
}

/// Writes shared columns out. In a query inside, a name alone is one unless something there has that name.
struct Written<'c, 'm, 'n, N> {
    columns: &'c Columns<'m, 'n, N>,
    /// For each query inside that stands around an expression, the names that it hides; none if they are not known.
    within: Vec<Option<Vec<String>>>,
}

impl<N: ContextProvider> VisitorMut for Written<'_, '_, '_, N> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.within.push(self.columns.hidden_in(&query.body));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.within.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let mut within = self.within.iter();
        let is_seen = match &*expr {
            Expr::Identifier(name) => within.all(|hidden| {
                let name = column_name(name);
                hidden.as_ref().is_some_and(|all| !all.contains(&name))
            }),
            _ => self.within.is_empty(),
        };
        if is_seen && let Some(own) = self.columns.found(expr) {
            *expr = own.expr.clone();
        }
        ControlFlow::Continue(())
    }
}
