//! `select * from a join b using (k)` has `k` as its first column, and `natural join` the columns that both have. The planner
//! leaves them where they are in `a`, so `*` is written out where that is another place. In a `right` or `full join` it takes
//! their values from `a` alone, so statements that read them there without a table's name are refused.

use std::ops::ControlFlow;

use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::parser::Statement as Extended;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderBy, Query, Select, SelectItem,
    SetExpr, TableFactor, TableWithJoins, Visit, VisitMut, Visitor, VisitorMut,
    WildcardAdditionalOptions,
};
use table::ROW_COLUMN;

use crate::error::{Error, Result};
use crate::frontend::flow::{flow, outcome};
use crate::messages::tags::shown;
use crate::names::column_name;

/// The statement with its `*` written out where tables share columns. What `from` names is looked up in
/// `names`; a `*` over anything else is left as it is.
///
/// # Errors
/// If it reads a column that both tables of a `right` or `full join` have.
pub(super) fn first(mut statement: Extended, names: &impl ContextProvider) -> Result<Extended> {
    if let Extended::Statement(sql) = &mut statement {
        let mut known = Vec::new();
        let _ = VisitMut::visit(sql, &mut CommonTables(&mut known));
        outcome(VisitMut::visit(sql, &mut Stars { names, known }))?;
    }
    Ok(statement)
}

/// Collects the names that `with` defines: they hide those of tables.
struct CommonTables<'a>(&'a mut Vec<String>);

impl VisitorMut for CommonTables<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(with.map(|cte| column_name(&cte.alias.name)));
        ControlFlow::Continue(())
    }
}

struct Stars<'n, N> {
    names: &'n N,
    known: Vec<String>,
}

impl<N: ContextProvider> VisitorMut for Stars<'_, N> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        if let SetExpr::Select(select) = query.body.as_ref()
            && let Some(order_by) = &query.order_by
        {
            flow(ordered(select, order_by))?;
        }
        flow(self.body(&mut query.body))
    }
}

/// That an order reads no column that tables of a `right` or `full join` share. An output column of its name is another.
fn ordered(select: &Select, order_by: &OrderBy) -> Result<()> {
    let is_output = |name: &String| {
        let mut items = select.projection.iter();
        items.any(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => shown(&column_name(alias)) == *name,
            _ => false,
        })
    };
    let mut wide = widened(select);
    wide.retain(|name| !is_output(name));
    unread(&wide, order_by)
}

/// The columns that tables of `right` and `full` joins share.
fn widened(select: &Select) -> Vec<String> {
    let joins = select.from.iter().flat_map(|from| &from.joins);
    let mut names = Vec::new();
    for join in joins {
        if let JoinOperator::Right(JoinConstraint::Using(shared))
        | JoinOperator::RightOuter(JoinConstraint::Using(shared))
        | JoinOperator::FullOuter(JoinConstraint::Using(shared)) = &join.join_operator
        {
            names.extend(shared.iter().filter_map(only));
        }
    }
    names
}

/// That none of `names` is read without the name of a table, but in queries inside.
fn unread(names: &[String], tree: &impl Visit) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    outcome(tree.visit(&mut Reads { names, depth: 0 }))
}

struct Reads<'n> {
    names: &'n [String],
    depth: usize,
}

impl Visitor for Reads<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Box<Error>> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Box<Error>> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<Error>> {
        if let Expr::Identifier(name) = expr
            && self.depth == 0
            && self.names.contains(&column_name(name))
        {
            return ControlFlow::Break(Box::new(refused(&column_name(name))));
        }
        ControlFlow::Continue(())
    }
}

fn refused(name: &str) -> Error {
    Error::unsupported(format!(
        "the shared column \"{name}\" of a right or full join is not supported: write `coalesce(a.{name}, b.{name})` with the names of the tables"
    ))
}

/// A column of a `from`.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    /// The name of its table, with the schema if that was written.
    table: Vec<Ident>,
    name: String,
}

impl Column {
    fn item(&self) -> SelectItem {
        let name = Ident::with_quote('"', &self.name);
        let mut parts = self.table.clone();
        parts.push(name);
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
    }
}

/// The columns of a `from`, in PostgreSQL's order. A shared one is that of the first table; the planner would take the one
/// whose table has the first name of the alphabet.
#[derive(Default)]
struct Columns {
    wanted: Vec<Column>,
}

impl Columns {
    /// Adds those of another table, which share `shared` with these.
    fn join(&mut self, mut other: Columns, shared: &[String]) {
        let is_shared = |column: &Column| shared.contains(&column.name);
        let mut first = Vec::new();
        for name in shared {
            let own = self.wanted.iter().find(|column| column.name == *name);
            first.extend(own.cloned());
        }
        self.wanted.retain(|column| !is_shared(column));
        other.wanted.retain(|column| !is_shared(column));
        first.append(&mut self.wanted);
        first.append(&mut other.wanted);
        self.wanted = first;
    }
}

impl<N: ContextProvider> Stars<'_, N> {
    fn body(&self, body: &mut SetExpr) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left)?;
                self.body(right)
            }
            _ => Ok(()),
        }
    }

    fn select(&self, select: &mut Select) -> Result<()> {
        let mut joins = select.from.iter().flat_map(|from| &from.joins);
        if !joins.any(|join| shares(&join.join_operator)) {
            return Ok(());
        }
        let wide = widened(select);
        unread(&wide, &*select)?;
        let mut items = select.projection.iter();
        if let Some(name) = wide.first()
            && items.any(|item| matches!(item, SelectItem::Wildcard(_)))
        {
            return Err(refused(name));
        }
        self.write_out(select);
        Ok(())
    }

    /// Writes `*` out, if its columns are known.
    fn write_out(&self, select: &mut Select) {
        let plain =
            |item: &SelectItem| matches!(item, SelectItem::Wildcard(options) if is_plain(options));
        if !select.projection.iter().any(plain) {
            return;
        }
        let mut columns = Columns::default();
        for from in &select.from {
            match self.chain(from) {
                Some(own) => columns.join(own, &[]),
                None => return,
            }
        }
        for item in std::mem::take(&mut select.projection) {
            if plain(&item) {
                let written = columns.wanted.iter().map(Column::item);
                select.projection.extend(written);
            } else {
                select.projection.push(item);
            }
        }
    }

    fn chain(&self, from: &TableWithJoins) -> Option<Columns> {
        let mut columns = self.factor(&from.relation)?;
        for join in &from.joins {
            let other = self.factor(&join.relation)?;
            let shared = match constraint(&join.join_operator)? {
                JoinConstraint::Using(names) => {
                    names.iter().map(only).collect::<Option<Vec<_>>>()?
                }
                JoinConstraint::Natural => {
                    let there = |name: &String| other.wanted.iter().any(|c| c.name == *name);
                    let own = columns.wanted.iter().map(|column| column.name.clone());
                    own.filter(there).collect()
                }
                JoinConstraint::On(_) | JoinConstraint::None => Vec::new(),
            };
            columns.join(other, &shared);
        }
        Some(columns)
    }

    fn factor(&self, factor: &TableFactor) -> Option<Columns> {
        let (name, alias) = match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => (name, alias),
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => return self.chain(table_with_joins),
            _ => return None,
        };
        let hidden = only(name).is_some_and(|name| self.known.contains(&name));
        if hidden {
            return None;
        }
        let reference = object_name_to_table_reference(name.clone(), true).ok()?;
        let source = self.names.get_table_source(reference).ok()?;
        let schema = source.schema();
        let own = schema.fields().iter().map(|field| field.name().clone());
        let mut own: Vec<String> = own.filter(|name| name != ROW_COLUMN).collect();
        let called = alias.iter().flat_map(|alias| &alias.columns);
        for (name, column) in own.iter_mut().zip(called) {
            *name = column_name(&column.name);
        }
        let table = match alias {
            Some(alias) => vec![alias.name.clone()],
            None => name
                .0
                .iter()
                .map(|part| part.as_ident().cloned())
                .collect::<Option<_>>()?,
        };
        let columns = own.into_iter().map(|name| Column {
            table: table.clone(),
            name,
        });
        Some(Columns {
            wanted: columns.collect(),
        })
    }
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
}

/// A name of one part.
fn only(name: &ObjectName) -> Option<String> {
    match &name.0[..] {
        [part] => part.as_ident().map(column_name),
        _ => None,
    }
}

fn shares(join: &JoinOperator) -> bool {
    matches!(
        constraint(join),
        Some(JoinConstraint::Using(_) | JoinConstraint::Natural)
    )
}

/// What a join of two tables' columns is made by.
fn constraint(join: &JoinOperator) -> Option<&JoinConstraint> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}
