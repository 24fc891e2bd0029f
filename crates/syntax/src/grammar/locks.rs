//! Which queries may lock the rows that they find.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, GroupByExpr, Join, JoinConstraint, JoinOperator, LockClause,
    ObjectNamePart, Query, Select, SetExpr, TableAlias, TableFactor, TableWithJoins, UnaryOperator,
    Visitor,
};

use crate::locks::title;
use crate::names::column_name;
use crate::walk::Walk;

/// Functions that gather rows.
const GATHERING: [&str; 46] = [
    "any_value",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "every",
    "grouping",
    "json_agg",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_object_agg",
    "max",
    "min",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    "listagg",
    "group_concat",
    "mean",
    "median",
    "min_by",
    "max_by",
];

/// Functions that return sets of rows.
const SETS: [&str; 11] = [
    "generate_series",
    "generate_subscripts",
    "json_array_elements",
    "json_array_elements_text",
    "json_each",
    "json_object_keys",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_object_keys",
    "regexp_split_to_table",
    "unnest",
];

/// Checks the lock clauses of a query: they are about rows of tables, which groups and unions are not.
pub(super) fn check(query: &Query) -> Result<()> {
    query.locks.iter().try_for_each(|lock| one(query, lock))
}

fn one(query: &Query, lock: &LockClause) -> Result<()> {
    let LockClause {
        lock_type: _,
        of,
        // What both mean is seen to where the query runs.
        nonblock: _,
    } = lock;
    let title = title(lock);
    may_lock(&query.body, title)?;
    let of = match of.as_ref().map(|of| &of.0[..]) {
        None => None,
        Some([ObjectNamePart::Identifier(name)]) => Some(column_name(name)),
        Some(_) => {
            return Err(Error::coded(
                "42601",
                format!("{title} must specify unqualified relation names"),
            ));
        }
    };
    let Some(select) = select_of(&query.body) else {
        return Ok(());
    };
    let with = query.with.iter().flat_map(|with| &with.cte_tables);
    let with: BTreeSet<String> = with.map(|own| column_name(&own.alias.name)).collect();
    let mut sources = Sources {
        with: &with,
        title,
        found: Vec::new(),
        joins: BTreeSet::new(),
        conditions: Vec::new(),
    };
    for from in &select.from {
        sources.from(from, false);
    }
    if let Some(name) = &of {
        sources.has(name)?;
    }
    let mut sure = Sure::default();
    let conditions = select
        .selection
        .iter()
        .chain(sources.conditions.iter().copied());
    conditions.for_each(|condition| sure.see(condition));
    for source in &sources.found {
        if of.as_ref().is_some_and(|name| *name != source.called) {
            continue;
        }
        let inner = match &source.kind {
            Kind::Table => None,
            Kind::Query(inner) => Some(inner),
            Kind::Other(_) => continue,
        };
        // The rows of a list are locked by nobody.
        if let Some(inner) = inner.filter(|inner| !matches!(*inner.body, SetExpr::Values(_))) {
            let all = LockClause {
                of: None,
                ..lock.clone()
            };
            one(inner, &all)?;
        }
        // One that locks rows itself does so before it is joined.
        let locks = inner.is_some_and(|inner| !inner.locks.is_empty());
        if source.nullable && !locks && !sure.filters(&source.called) {
            return Err(Error::unsupported(format!(
                "{title} cannot be applied to the nullable side of an outer join"
            )));
        }
    }
    Ok(())
}

/// The `select` that a query is, maybe in parentheses.
fn select_of(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => select_of(&query.body),
        _ => None,
    }
}

/// That the rows of a query are rows of its tables.
fn may_lock(body: &SetExpr, title: &str) -> Result<()> {
    let refused = |what: &str| {
        let message = format!("{title} is not allowed with {what}");
        Err(Error::unsupported(message))
    };
    match body {
        SetExpr::SetOperation { .. } => refused("UNION/INTERSECT/EXCEPT"),
        SetExpr::Values(_) => Err(Error::unsupported(format!(
            "{title} cannot be applied to VALUES"
        ))),
        SetExpr::Query(query) => may_lock(&query.body, title),
        SetExpr::Select(select) => match without_rows(select) {
            Some(what) => refused(what),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// What gives rows that are none of a table.
fn without_rows(select: &Select) -> Option<&'static str> {
    let grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
    };
    if select.distinct.is_some() {
        return Some("DISTINCT clause");
    }
    if grouped {
        return Some("GROUP BY clause");
    }
    if select.having.is_some() {
        return Some("HAVING clause");
    }
    let mut called = Called::default();
    for item in &select.projection {
        let _ = item.walk(&mut called);
    }
    if called.gathers {
        Some("aggregate functions")
    } else if called.windows {
        Some("window functions")
    } else if called.sets {
        Some("set-returning functions in the target list")
    } else {
        None
    }
}

/// Which kinds of functions are called, but by queries within.
#[derive(Default)]
struct Called {
    depth: usize,
    gathers: bool,
    windows: bool,
    sets: bool,
}

impl Called {
    fn see(&mut self, function: &Function) {
        let name = function.name.0.last().and_then(ObjectNamePart::as_ident);
        let name = name.map(column_name).unwrap_or_default();
        self.windows |= function.over.is_some();
        self.gathers |= function.over.is_none() && GATHERING.contains(&name.as_str());
        self.sets |= SETS.contains(&name.as_str());
    }
}

impl Visitor for Called {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let (Expr::Function(function), 0) = (expr, self.depth) {
            self.see(function);
        }
        ControlFlow::Continue(())
    }
}

/// What a part of a `from` is.
enum Kind<'q> {
    Table,
    Query(&'q Query),
    /// What cannot be locked, as PostgreSQL calls it.
    Other(&'static str),
}

/// A part of a `from`.
struct Source<'q> {
    called: String,
    kind: Kind<'q>,
    /// Whether an outer join may have no row of it.
    nullable: bool,
}

/// The parts of a `from`.
struct Sources<'q> {
    with: &'q BTreeSet<String>,
    title: &'static str,
    found: Vec<Source<'q>>,
    /// The names of joins.
    joins: BTreeSet<String>,
    /// What the rows of inner joins that stand in no outer join have to meet.
    conditions: Vec<&'q Expr>,
}

impl<'q> Sources<'q> {
    fn from(&mut self, from: &'q TableWithJoins, nullable: bool) {
        let first = self.found.len();
        self.factor(&from.relation, nullable);
        for Join {
            relation,
            join_operator,
            ..
        } in &from.joins
        {
            let (left, right) = match join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
                JoinOperator::FullOuter(_) => (true, true),
                _ => (false, false),
            };
            if let (JoinOperator::Join(on) | JoinOperator::Inner(on), false) =
                (join_operator, nullable)
                && let JoinConstraint::On(condition) = on
            {
                self.conditions.push(condition);
            }
            for before in self.found.iter_mut().skip(first) {
                before.nullable |= left;
            }
            self.factor(relation, nullable || right);
        }
    }

    fn factor(&mut self, factor: &'q TableFactor, nullable: bool) {
        let name_of = |alias: &Option<TableAlias>| alias.as_ref().map(|own| column_name(&own.name));
        let (called, kind) = match factor {
            TableFactor::Table {
                name, alias, args, ..
            } => {
                let own = name.0.last().and_then(ObjectNamePart::as_ident);
                let own = own.map(column_name).unwrap_or_default();
                let kind = if args.is_some() {
                    Kind::Other("a function")
                } else if name.0.len() == 1 && self.with.contains(&own) {
                    Kind::Other("a WITH query")
                } else {
                    Kind::Table
                };
                (Some(name_of(alias).unwrap_or(own)), kind)
            }
            TableFactor::Derived {
                subquery, alias, ..
            } => (name_of(alias), Kind::Query(subquery)),
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                self.joins.extend(name_of(alias));
                return self.from(table_with_joins, nullable);
            }
            TableFactor::Function { name, alias, .. } => {
                let own = name.0.last().and_then(ObjectNamePart::as_ident);
                let called = name_of(alias).or_else(|| own.map(column_name));
                (called, Kind::Other("a function"))
            }
            TableFactor::UNNEST { alias, .. } | TableFactor::TableFunction { alias, .. } => {
                (name_of(alias), Kind::Other("a function"))
            }
            _ => return,
        };
        self.found.push(Source {
            called: called.unwrap_or_default(),
            kind,
            nullable,
        });
    }

    /// That a clause may be about what is called so.
    fn has(&self, name: &str) -> Result<()> {
        let title = self.title;
        let cannot = |what: &str| {
            let message = format!("{title} cannot be applied to {what}");
            Err(Error::unsupported(message))
        };
        let mut found = self.found.iter();
        match found.find(|own| own.called == name).map(|own| &own.kind) {
            Some(Kind::Other(what)) => cannot(what),
            Some(_) => Ok(()),
            None if self.joins.contains(name) => cannot("a join"),
            None => Err(Error::coded(
                "42P01",
                format!("relation \"{name}\" in {title} clause not found in FROM clause"),
            )),
        }
    }
}

/// What the condition of a query is sure to want values of: then an outer join has a row there after all.
#[derive(Default)]
struct Sure {
    tables: BTreeSet<String>,
    /// Whether it wants some of a column that it names without its table.
    any: bool,
}

impl Sure {
    fn filters(&self, table: &str) -> bool {
        self.any || self.tables.contains(table)
    }

    fn see(&mut self, condition: &Expr) {
        match condition {
            Expr::Nested(inner) => self.see(inner),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.see(left);
                self.see(right);
            }
            Expr::BinaryOp {
                op: BinaryOperator::Or,
                ..
            } => {}
            Expr::BinaryOp { left, right, .. } => {
                self.value(left);
                self.value(right);
            }
            Expr::IsNotNull(value)
            | Expr::Between { expr: value, .. }
            | Expr::InList { expr: value, .. }
            | Expr::InSubquery { expr: value, .. }
            | Expr::Like { expr: value, .. }
            | Expr::ILike { expr: value, .. } => self.value(value),
            value => self.value(value),
        }
    }

    /// A value that is NULL where a column of it is.
    fn value(&mut self, value: &Expr) {
        match value {
            Expr::Identifier(_) => self.any = true,
            Expr::CompoundIdentifier(parts) => {
                let table = parts.len().checked_sub(2).and_then(|at| parts.get(at));
                self.tables.extend(table.map(column_name));
            }
            Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => self.value(inner),
            Expr::UnaryOp {
                op: UnaryOperator::Not | UnaryOperator::Minus | UnaryOperator::Plus,
                expr,
            } => self.value(expr),
            Expr::BinaryOp { left, op, right }
                if !matches!(op, BinaryOperator::And | BinaryOperator::Or) =>
            {
                self.value(left);
                self.value(right);
            }
            _ => {}
        }
    }
}
