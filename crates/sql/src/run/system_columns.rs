//! Columns that every table of PostgreSQL has and no `*` returns: `tableoid`, the number of the table; `ctid`, where a row is, by
//! which programs find it again in the same transaction; and `xmin`, `cmin`, `xmax`, `cmax`, the transactions that have written and deleted a row, and their statements. A row that is seen was written by a
//! transaction that has ended, which PostgreSQL calls 2 where it does not know it any more, and nobody has deleted it.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, FromTable, Ident, Join, JoinOperator, ObjectName, Query,
    Select, SelectItem, SetExpr, Statement as Sql, TableFactor, TableWithJoins, Value, Visitor,
    VisitorMut,
};
use table::ROW_COLUMN;

use crate::frontend::call::call;
use crate::frontend::walk::{Walk, WalkMut};
use crate::functions::catalog::ROW_PLACE;
use crate::messages::numbers::table_number;
use crate::names::{PG_CATALOG, base, column_name, table_name};
use crate::run::shared_columns::{Lookup, only};
use crate::scan::provider::Provider;

const TABLE: &str = "tableoid";
const PLACE: &str = "ctid";

/// The columns that are the same in all rows, with their values.
const FIXED: [(&str, i64); 4] = [("xmin", 2), ("cmin", 0), ("xmax", 0), ("cmax", 0)];

fn is_one(name: &str) -> bool {
    name == TABLE || name == PLACE || FIXED.iter().any(|(own, _)| *own == name)
}

/// The name of the column that an expression is, if it is called as one of these.
fn named(expr: &Expr) -> Option<(&[Ident], String)> {
    let (table, name) = match expr {
        Expr::Identifier(name) => (&[][..], name),
        Expr::CompoundIdentifier(parts) => {
            let (name, table) = parts.split_last()?;
            (table, name)
        }
        _ => return None,
    };
    let name = column_name(name);
    is_one(&name).then_some((table, name))
}

/// Writes them as what they are, unless a table has a column of that name.
pub(super) fn write_out<N: ContextProvider>(statement: &mut Sql, lookup: &Lookup<'_, N>) {
    if statement.walk(&mut Mentioned).is_break() {
        let _ = statement.walk_mut(&mut Written {
            lookup,
            scopes: Vec::new(),
        });
    }
}

/// Whether a statement names places of rows, so that its tables are read with these; or other such columns beside an outer join,
/// where these tell rows from those that the join has made.
pub(super) fn reads_places(statement: &Sql) -> bool {
    #[derive(Default)]
    struct Places {
        named: bool,
        joined: bool,
    }

    impl Visitor for Places {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match named(expr) {
                Some((_, name)) if name == PLACE => ControlFlow::Break(()),
                Some(_) => {
                    self.named = true;
                    self.found()
                }
                None => ControlFlow::Continue(()),
            }
        }

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            self.joined |= select.from.iter().any(has_outer);
            self.found()
        }
    }

    impl Places {
        fn found(&self) -> ControlFlow<()> {
            if self.named && self.joined {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
    }

    statement.walk(&mut Places::default()).is_break()
}

/// Whether a join may make rows of NULLs of what stands before it, and of what it joins.
fn makes_rows(join: &Join) -> (bool, bool) {
    match join.join_operator {
        JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
        JoinOperator::FullOuter(_) => (true, true),
        _ => (false, false),
    }
}

fn has_outer(from: &TableWithJoins) -> bool {
    let joined = from.joins.iter().map(|join| &join.relation);
    let mut factors = std::iter::once(&from.relation).chain(joined);
    from.joins
        .iter()
        .any(|join| makes_rows(join) != (false, false))
        || factors.any(|factor| match factor {
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => has_outer(table_with_joins),
            _ => false,
        })
}

/// Breaks off where one is named.
struct Mentioned;

impl Visitor for Mentioned {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match named(expr) {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

/// What a `from` names.
struct Source {
    /// What it is called there.
    called: Vec<Ident>,
    /// The number of the table, and whether it is read with places of rows; none of what is no table.
    table: Option<(i64, bool)>,
    /// The names of its columns; none if they are not known.
    columns: Option<Vec<String>>,
    /// Whether an outer join may make rows of NULLs of it.
    outer: bool,
}

impl Source {
    fn has(&self, name: &str) -> bool {
        let columns = self.columns.as_ref();
        columns.is_none_or(|all| all.iter().any(|own| own == name))
    }

    /// Its column of that name.
    fn column(&self, name: &str) -> Expr {
        let mut parts = self.called.clone();
        parts.push(Ident::with_quote('"', name));
        Expr::CompoundIdentifier(parts)
    }

    /// Whether a row is none of it, but one that an outer join has made; none where rows are not told apart.
    fn is_made(&self, has_places: bool) -> Option<Expr> {
        let is_null = |name: &str| Expr::IsNull(Box::new(self.column(name)));
        if has_places {
            return Some(is_null(ROW_COLUMN));
        }
        let columns = self.columns.iter().flatten().map(|name| is_null(name));
        columns.reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        })
    }

    /// Whether it is what is written so: by its alias, or its name with or without its schema.
    fn is(&self, table: &[Ident]) -> bool {
        let mut own = self.called.iter().rev().map(column_name);
        let mut written = table.iter().rev().map(column_name);
        written.all(|part| own.next() == Some(part))
    }
}

/// NULL where a condition holds, and else a value.
fn null_where(condition: Expr, value: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition,
            result: Expr::value(Value::Null),
        }],
        else_result: Some(Box::new(value)),
    }
}

struct Written<'n, 'l, N> {
    lookup: &'l Lookup<'n, N>,
    /// What the queries around an expression name, the innermost last.
    scopes: Vec<Vec<Source>>,
}

impl<N: ContextProvider> VisitorMut for Written<'_, '_, N> {
    type Break = Infallible;

    fn pre_visit_statement(&mut self, statement: &mut Sql) -> ControlFlow<Infallible> {
        let mut sources = Vec::new();
        match statement {
            Sql::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                let others = delete.using.iter().flatten();
                for from in from.iter().chain(others) {
                    self.of_from(from, &mut sources);
                }
            }
            Sql::Update(update) => self.of_from(&update.table, &mut sources),
            _ => {}
        }
        self.scopes.push(sources);
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let mut sources = Vec::new();
        self.of_body(&query.body, &mut sources);
        self.scopes.push(sources);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some((_, name)) = named(expr)
                && let Some(expr) = self.value(expr)
            {
                *item = SelectItem::ExprWithAlias {
                    expr,
                    alias: Ident::with_quote('"', name),
                };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some(value) = self.value(expr) {
            *expr = value;
        }
        ControlFlow::Continue(())
    }
}

impl<N: ContextProvider> Written<'_, '_, N> {
    fn value(&self, expr: &Expr) -> Option<Expr> {
        let (table, name) = named(expr)?;
        for scope in self.scopes.iter().rev() {
            let mut sources = scope.iter().filter(|source| source.is(table)).peekable();
            if sources.peek().is_none() {
                continue;
            }
            let sources: Vec<&Source> = sources.collect();
            if sources.iter().any(|source| source.has(&name)) {
                return None;
            }
            let of_table = |source: &&&Source| source.table.is_some();
            let source = sources.iter().find(of_table)?;
            let (number, has_places) = source.table?;
            if name == PLACE {
                let place = || call(ROW_PLACE, vec![source.column(ROW_COLUMN)]);
                return has_places.then(place);
            }
            let fixed = FIXED.iter().find(|(own, _)| *own == name);
            let value = fixed.map_or(number, |(_, value)| *value);
            let value = Expr::value(Value::Number(value.to_string(), false));
            let made = source.outer.then(|| source.is_made(has_places)).flatten();
            return Some(match made {
                Some(condition) => null_where(condition, value),
                None => value,
            });
        }
        None
    }

    fn of_body(&self, body: &SetExpr, found: &mut Vec<Source>) {
        match body {
            SetExpr::Select(select) => {
                for from in &select.from {
                    self.of_from(from, found);
                }
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.of_body(left, found);
                self.of_body(right, found);
            }
            _ => {}
        }
    }

    fn of_from(&self, from: &TableWithJoins, found: &mut Vec<Source>) {
        let first = found.len();
        self.of_factor(&from.relation, found);
        for join in &from.joins {
            let (before, after) = makes_rows(join);
            let middle = found.len();
            self.of_factor(&join.relation, found);
            for (at, source) in found.iter_mut().enumerate().skip(first) {
                source.outer |= if at < middle { before } else { after };
            }
        }
    }

    fn of_factor(&self, factor: &TableFactor, found: &mut Vec<Source>) {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.of_from(table_with_joins, found),
            factor => found.push(self.source(factor)),
        }
    }

    fn source(&self, factor: &TableFactor) -> Source {
        let columns = self.lookup.factor(factor);
        let columns = columns.map(|all| {
            all.wanted
                .into_iter()
                .map(|own| own.name)
                .collect::<Vec<_>>()
        });
        let (name, alias) = match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => (Some(name), alias),
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => (None, alias),
            _ => (None, &None),
        };
        let called = match (alias, name) {
            (Some(alias), _) => vec![alias.name.clone()],
            (None, Some(name)) => {
                let parts = name.0.iter().filter_map(|part| part.as_ident());
                parts.cloned().collect()
            }
            (None, None) => Vec::new(),
        };
        Source {
            called,
            table: name.and_then(|name| self.table(name)),
            columns,
            outer: false,
        }
    }

    /// The number of the table of that name, and whether it is read with places of rows.
    fn table(&self, name: &ObjectName) -> Option<(i64, bool)> {
        let single = only(name);
        let mut hiding = self.lookup.known.iter();
        if hiding.any(|cte| single.as_ref() == Some(&cte.name)) {
            return None;
        }
        let reference = object_name_to_table_reference(name.clone(), true).ok()?;
        let of_system = match reference.schema() {
            Some(schema) => schema == PG_CATALOG,
            None => reference.table().starts_with("pg_"),
        };
        let source = self.lookup.names.get_table_source(reference).ok()?;
        let provider = source_as_provider(&source).ok()?;
        let (known, has_places) = match provider.downcast_ref::<Provider>() {
            Some(provider) => {
                let known = provider.table().definition().name.clone();
                (known, provider.has_row_ids())
            }
            None => (table_name(name).ok()?, false),
        };
        let known = if of_system { base(&known) } else { &known };
        Some((table_number(known), has_places))
    }
}
