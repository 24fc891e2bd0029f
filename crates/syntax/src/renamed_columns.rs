//! Texts of views once a column of a table has another name: what they return, and what it is called, stays.
//!
//! 1. Where a `select` names its columns one by one, they are called as they are called now, and those that are returned get
//!    the old name as their alias.
//! 2. Elsewhere the table is replaced by a query that gives its columns their old names: where all columns are read, or the
//!    name may mean something of another query.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{
    Expr, Ident, JoinConstraint, ObjectName, OrderByKind, Query, Select, SelectItem, SetExpr,
    Statement as Sql, TableFactor, TableWithJoins, Visitor,
};
use sqlparser::tokenizer::{Location, Span};

use crate::fixed::{before, idents, replaced, span_of};
use crate::names::{column_name, known, quoted, written};
use crate::rewrite::constraint;
use crate::views;
use crate::walk::Walk;

/// What happens to the columns of a table.
pub struct Change<'c> {
    /// The table, as the catalog names it.
    pub table: &'c str,
    /// Its columns, as they are called after it, and as views know them.
    pub columns: Vec<(&'c str, &'c str)>,
}

/// The text of a view once the columns are called otherwise.
///
/// # Errors
/// If it is none, or there is no text that means the same.
pub fn view(text: &str, change: &Change<'_>) -> Result<String> {
    let query = Sql::Query(views::of_text(text)?.query);
    let mut found = Found {
        text,
        change,
        scopes: Vec::new(),
        places: BTreeMap::new(),
        done: Vec::new(),
    };
    match query.walk(&mut found) {
        ControlFlow::Break(failed) => Err(failed),
        ControlFlow::Continue(()) => replaced(text, found.places),
    }
}

struct Found<'c> {
    text: &'c str,
    change: &'c Change<'c>,
    /// The names that `with` defines, of the queries around.
    scopes: Vec<Vec<String>>,
    /// What stands in the place of what.
    places: BTreeMap<Location, (Location, String)>,
    /// Where the table is named by a `select` that calls its columns as they are called now.
    done: Vec<Location>,
}

/// What a `select` reads from.
#[derive(Default)]
struct Sources {
    /// What the table is called there, and where.
    own: Vec<(String, Location)>,
    /// How many queries there are.
    queries: usize,
    /// Whether names of columns can be seen through.
    unclear: bool,
}

impl Found<'_> {
    fn is_own(&self, name: &ObjectName) -> bool {
        if let [only] = &name.0[..] {
            let name = only.as_ident().map(column_name);
            let mut defined = self.scopes.iter().flatten();
            if name.is_some_and(|name| defined.any(|own| *own == name)) {
                return false;
            }
        }
        written(name).is_ok_and(|written| known(&written) == self.change.table)
    }

    /// The new name of a column, if it gets another.
    fn new_name(&self, column: &Ident) -> Option<&str> {
        let column = column_name(column);
        let mut changed = self.change.columns.iter();
        let (now, _) = changed.find(|(now, old)| now != old && *old == column)?;
        Some(now)
    }

    fn selects(&mut self, body: &SetExpr, query: Option<&Query>) {
        match body {
            SetExpr::Select(select) => self.select(select, query),
            SetExpr::SetOperation { left, right, .. } => {
                self.selects(left, None);
                self.selects(right, None);
            }
            _ => {}
        }
    }

    /// Has a `select` call the columns as they are called now, if it names them one by one.
    fn select(&mut self, select: &Select, query: Option<&Query>) {
        let mut sources = Sources::default();
        for from in &select.from {
            self.from(from, &mut sources);
        }
        if sources.own.is_empty() || sources.unclear {
            return;
        }
        let columns = &self.change.columns;
        if columns.iter().all(|(now, old)| now == old) {
            if !reads_all(select) {
                self.done.extend(sources.own.into_iter().map(|(_, at)| at));
            }
            return;
        }
        let mut named = Named {
            depth: 0,
            queries: 0,
            tables: sources.own.iter().map(|(name, _)| name.as_str()).collect(),
            found: Vec::new(),
        };
        let _ = select.walk(&mut named);
        let order = query.and_then(|query| query.order_by.as_ref());
        let order = order.map(|order| &order.kind);
        let mut ordered = Vec::new();
        if let Some(OrderByKind::Expressions(all)) = order {
            for own in all {
                if let Expr::Identifier(name) = &own.expr {
                    ordered.push(name);
                } else {
                    let _ = own.expr.walk(&mut named);
                }
            }
        }
        if named.queries != sources.queries {
            return;
        }
        let mut places = BTreeMap::new();
        for name in &named.found {
            let Some(now) = self.new_name(name) else {
                continue;
            };
            if name.span == Span::empty() {
                return;
            }
            places.insert(name.span.start, (name.span.end, quoted(now)));
        }
        let mut returned = Vec::new();
        for item in &select.projection {
            match self.returned(item) {
                Returned::Nothing => return,
                Returned::Other(name) => returned.extend(name),
                Returned::Renamed(name) => {
                    if let Some((_, new)) = places.get_mut(&name.span.start) {
                        *new = format!("{new} as {}", quoted(&column_name(name)));
                    }
                    returned.push(column_name(name));
                }
            }
        }
        for name in ordered {
            // What is returned comes before what is read.
            let Some(now) = self.new_name(name) else {
                continue;
            };
            if !returned.contains(&column_name(name)) {
                places.insert(name.span.start, (name.span.end, quoted(now)));
            }
        }
        self.places.extend(places);
        self.done.extend(sources.own.into_iter().map(|(_, at)| at));
    }

    /// What an item of a `select` returns.
    fn returned<'i>(&self, item: &'i SelectItem) -> Returned<'i> {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            // Without a place it was not written.
            SelectItem::ExprWithAlias { expr, alias } if alias.span != Span::empty() => {
                return Returned::Other(Some(column_name(alias)));
            }
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            _ => return Returned::Nothing,
        };
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        match name {
            Some(name) if self.new_name(name).is_some() => Returned::Renamed(name),
            Some(name) => Returned::Other(Some(column_name(name))),
            // It is called by what is in it.
            None if alias.is_some_and(|alias| self.new_name(alias).is_some()) => Returned::Nothing,
            None if is_called_by_column(expr) => Returned::Nothing,
            None => Returned::Other(None),
        }
    }

    fn from(&self, from: &TableWithJoins, sources: &mut Sources) {
        self.factor(&from.relation, sources);
        for join in &from.joins {
            self.factor(&join.relation, sources);
            sources.unclear |= matches!(
                constraint(&join.join_operator),
                Some(JoinConstraint::Natural | JoinConstraint::Using(_))
            );
        }
    }

    fn factor(&self, factor: &TableFactor, sources: &mut Sources) {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let own = self.is_own(name);
                let last = idents(name).last().map(|name| column_name(name));
                let called = alias.as_ref().map(|alias| column_name(&alias.name));
                let renames = alias.as_ref().is_some_and(|own| !own.columns.is_empty());
                sources.unclear |= own && renames;
                if own && let Some(called) = called.or(last) {
                    sources.own.push((called, span_of(name).start));
                }
            }
            TableFactor::Derived { lateral: false, .. } => sources.queries += 1,
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.from(table_with_joins, sources),
            _ => sources.unclear = true,
        }
    }

    /// Replaces the table by a query that calls its columns as they were called.
    fn query(&mut self, name: &ObjectName, called: Option<String>) -> Result<()> {
        let span = span_of(name);
        let word = before(self.text, span.start)
            .trim_end()
            .to_ascii_lowercase();
        if span == Span::empty() || word.ends_with("table") {
            return Err(no_text());
        }
        let columns = self.change.columns.iter().map(|(now, old)| {
            if now == old {
                quoted(now)
            } else {
                format!("{} as {}", quoted(now), quoted(old))
            }
        });
        let columns: Vec<String> = columns.collect();
        let mut query = format!("(select {} from {name})", columns.join(", "));
        if let Some(called) = called {
            query.push_str(" as ");
            query.push_str(&quoted(&called));
        }
        self.places.insert(span.start, (span.end, query));
        Ok(())
    }
}

/// Whether a `select` returns all columns of something, also those that come later.
fn reads_all(select: &Select) -> bool {
    let mut items = select.projection.iter();
    items.any(|item| {
        matches!(
            item,
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
        )
    })
}

/// What an item of a `select` returns.
enum Returned<'i> {
    /// What has a name that is not known.
    Nothing,
    /// What is called so, if it has a name.
    Other(Option<String>),
    /// A column that gets another name.
    Renamed(&'i Ident),
}

/// Whether PostgreSQL calls a value by a column within.
fn is_called_by_column(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::CompoundFieldAccess { .. } => {
            true
        }
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::Collate { expr: inner, .. } => is_called_by_column(inner),
        _ => false,
    }
}

fn no_text() -> Error {
    Error::Constraint {
        code: "2BP01",
        message: "a view reads the table in a way that cannot follow: drop it, and create it again afterwards".into(),
    }
}

/// The names of columns that may be those of some tables.
struct Named<'n> {
    depth: usize,
    queries: usize,
    tables: Vec<&'n str>,
    found: Vec<Ident>,
}

impl Visitor for Named<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += usize::from(self.depth == 0);
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::Identifier(name) => self.found.push(name.clone()),
            Expr::CompoundIdentifier(parts) => {
                if let [.., table, column] = &parts[..]
                    && self.tables.contains(&column_name(table).as_str())
                {
                    self.found.push(column.clone());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Visitor for Found<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.scopes.push(Vec::new());
        if let Some(with) = &query.with {
            for own in &with.cte_tables {
                // Those that come before are seen in it, those behind and itself only where it is recursive.
                if !with.recursive {
                    own.query.walk(self)?;
                }
                if let Some(scope) = self.scopes.last_mut() {
                    scope.push(column_name(&own.alias.name));
                }
            }
        }
        self.selects(&query.body, Some(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let at = span_of(name).start;
        if !self.is_own(name) || self.done.contains(&at) || self.places.contains_key(&at) {
            return ControlFlow::Continue(());
        }
        let last = idents(name).last().map(|name| column_name(name));
        match self.query(name, last.filter(|_| alias.is_none())) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failed) => ControlFlow::Break(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(text: &str) -> String {
        let change = Change {
            table: "t",
            columns: vec![("a", "a"), ("C", "b")],
        };
        view(text, &change).unwrap()
    }

    #[test]
    fn views_follow_and_keep_the_names_of_their_columns() {
        for (text, wanted) in [
            (
                "create view v as select a, b from t where b > 1 order by b",
                "create view v as select a, \"C\" as b from t where \"C\" > 1 order by b",
            ),
            (
                "create view v as select x.b + 1 as s, max(t.b) from t as x join u as t on x.a = t.a group by x.b order by x.b",
                "create view v as select x.\"C\" + 1 as s, max(t.b) from t as x join u as t on x.a = t.a group by x.\"C\" order by x.\"C\"",
            ),
            (
                "create view v as select a as b from t order by b",
                "create view v as select a as b from t order by b",
            ),
            (
                "create view v as select a from t order by b desc",
                "create view v as select a from t order by \"C\" desc",
            ),
            (
                "create view v as select * from t",
                "create view v as select * from (select a, \"C\" as b from t) as t",
            ),
            (
                "create view v as select q.b from (select b from t union select b from u) q",
                "create view v as select q.b from (select \"C\" as b from t union select b from u) q",
            ),
            (
                "create view v as select b::text from t x",
                "create view v as select b::text from (select a, \"C\" as b from t) x",
            ),
            (
                "create view v as select a from t where exists (select 1 from u where u.a = t.b)",
                "create view v as select a from (select a, \"C\" as b from t) as t where exists (select 1 from u where u.a = t.b)",
            ),
            (
                "create view v as with t as (select b from t) select b from t",
                "create view v as with t as (select \"C\" as b from t) select b from t",
            ),
        ] {
            assert_eq!(renamed(text), wanted);
        }
    }

    #[test]
    fn views_of_all_columns_do_not_get_more() {
        let change = Change {
            table: "t",
            columns: vec![("a", "a")],
        };
        for (text, wanted) in [
            (
                "create view v as select * from t x",
                "create view v as select * from (select a from t) x",
            ),
            (
                "create view v as select a::text from t where a in (select a from t)",
                "create view v as select a::text from t where a in (select a from t)",
            ),
        ] {
            assert_eq!(view(text, &change).unwrap(), wanted);
        }
    }
}
