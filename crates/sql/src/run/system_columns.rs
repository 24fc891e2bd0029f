//! Columns that every table of PostgreSQL has and no `*` returns: `tableoid`, the number of the table; `ctid`, where a row is, by
//! which programs find it again in the same transaction; and `xmin`, `cmin`, `xmax`, `cmax`, the transactions that have written and deleted a row, and their statements. A row that is seen was written by a
//! transaction that has ended, which PostgreSQL calls 2 where it does not know it any more, and nobody has deleted it.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion_expr::planner::ContextProvider;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, FromTable, Ident, ObjectName, Query, Select, SelectItem,
    Statement as Sql, TableFactor, TableWithJoins, Value, Visitor, VisitorMut,
};
use syntax::call::call;
use syntax::names::{PG_CATALOG, base, column_name, table_name};
use syntax::walk::{Walk, WalkMut};
use table::{Definition, ROW_COLUMN};

use crate::functions::catalog::ROW_PLACE;
use crate::messages::numbers::table_number;
use crate::run::from_sources::{self, Walk as FromWalk, makes_rows};
use crate::run::shared_columns::Lookup;
use crate::scan::provider::Provider;
use crate::scan::written_rows::WrittenRows;

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
pub(crate) fn reads_places(statement: &impl Walk) -> bool {
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

/// Whether a `returning` asks where the rows are that a statement has written to a table, and they can be told. Those of a table
/// with an order are written in another than that in which the statement has made them.
pub(crate) fn reads_written_places(query: &Query, definition: &Definition) -> bool {
    definition.order.is_empty() && reads_places(query)
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

/// What a `from` names, and of a table its number and whether it is read with places of rows.
type Source = from_sources::Source<Option<(i64, bool)>>;

/// Whether a row is none of a table, but one that an outer join has made; none where rows are not told apart.
fn is_made(source: &Source, has_places: bool) -> Option<Expr> {
    let is_null = |name: &str| Expr::IsNull(Box::new(source.column(name)));
    if has_places {
        return Some(is_null(ROW_COLUMN));
    }
    let columns = source.columns.iter().flatten().map(|name| is_null(name));
    columns.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    })
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
        let sources = self.of_changed(statement);
        self.scopes.push(sources);
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let mut sources = Vec::new();
        self.walk().of_body(&query.body, &mut sources);
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
            let of_table = |source: &&&Source| source.of.is_some();
            let source = sources.iter().find(of_table)?;
            let (number, has_places) = source.of?;
            if name == PLACE {
                let place = || call(ROW_PLACE, vec![source.column(ROW_COLUMN)]);
                return has_places.then(place);
            }
            let fixed = FIXED.iter().find(|(own, _)| *own == name);
            let value = fixed.map_or(number, |(_, value)| *value);
            let value = Expr::value(Value::Number(value.to_string(), false));
            let made = source.outer.then(|| is_made(source, has_places)).flatten();
            return Some(match made {
                Some(condition) => null_where(condition, value),
                None => value,
            });
        }
        None
    }

    /// What a statement names that changes a table.
    fn of_changed(&self, statement: &Sql) -> Vec<Source> {
        let mut sources = Vec::new();
        let walk = self.walk();
        match statement {
            Sql::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                let others = delete.using.iter().flatten();
                for from in from.iter().chain(others) {
                    walk.of_from(from, &mut sources);
                }
            }
            Sql::Update(update) => walk.of_from(&update.table, &mut sources),
            _ => {}
        }
        sources
    }

    #[expect(clippy::type_complexity, reason = "the type of a closure has no name")]
    fn walk(&self) -> FromWalk<'_, '_, N, impl Fn(Option<&ObjectName>) -> Option<(i64, bool)>> {
        FromWalk {
            lookup: self.lookup,
            of: |name: Option<&ObjectName>| self.table(name?),
        }
    }

    /// The number of the table of that name, and whether it is read with places of rows.
    fn table(&self, name: &ObjectName) -> Option<(i64, bool)> {
        let (reference, provider) = from_sources::provider(self.lookup, name)?;
        let of_system = match reference.schema() {
            Some(schema) => schema == PG_CATALOG,
            None => reference.table().starts_with("pg_"),
        };
        let (known, has_places) = if let Some(own) = provider.downcast_ref::<Provider>() {
            let known = own.table().definition().name.clone();
            (known, own.has_row_ids())
        } else if let Some(rows) = provider.downcast_ref::<WrittenRows>() {
            (rows.table.clone(), rows.has_places)
        } else {
            (table_name(name).ok()?, false)
        };
        let known = if of_system { base(&known) } else { &known };
        Some((table_number(known), has_places))
    }
}
