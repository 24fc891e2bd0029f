//! The columns of a `from`, by the names of its tables.

use std::cell::Cell;

use datafusion_expr::planner::ContextProvider;
use datafusion_sql::planner::object_name_to_table_reference;
use sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, SelectItem, SetExpr,
    SetQuantifier, TableAlias, TableFactor, TableWithJoins, WildcardAdditionalOptions,
};
use syntax::names::column_name;
use syntax::rewrite::constraint;

use crate::messages::hidden::is_hidden;

/// A column of a `from`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    /// The name of its table, with the schema if that was written.
    pub table: Vec<Ident>,
    pub name: String,
}

impl Column {
    /// It as it is written.
    pub(super) fn written(&self) -> Expr {
        let name = Ident::with_quote('"', &self.name);
        let mut parts = self.table.clone();
        parts.push(name);
        Expr::CompoundIdentifier(parts)
    }
}

/// The columns of a `from`, in PostgreSQL's order. A shared one is that of the first table; the planner would take the one
/// whose table has the first name of the alphabet.
#[derive(Default)]
pub(super) struct Columns {
    pub wanted: Vec<Column>,
}

impl Columns {
    /// Adds those of another table, which share `shared` with these.
    pub(super) fn join(&mut self, mut other: Columns, shared: &[String]) {
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

/// Looks up what a `from` names.
pub(super) struct Lookup<'n, N> {
    pub names: &'n N,
    /// What `with` defines: these hide tables.
    pub known: Vec<Cte>,
    /// How deep it is in queries.
    pub depth: Cell<usize>,
}

/// What `with` defines: a name, a query, and what its columns are called.
pub(super) struct Cte {
    pub name: String,
    pub query: Box<Query>,
    pub columns: Vec<String>,
}

/// Most queries in each other that are looked through for names of columns.
const MAX_DEPTH: usize = 16;

impl<N: ContextProvider> Lookup<'_, N> {
    /// The columns of tables that are joined; none if they are not known.
    pub(super) fn chain(&self, from: &TableWithJoins) -> Option<Columns> {
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

    /// The columns of one of them.
    pub(super) fn factor(&self, factor: &TableFactor) -> Option<Columns> {
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
            TableFactor::Derived {
                subquery,
                alias: Some(alias),
                ..
            } => return self.derived(subquery, alias),
            other => return of_rows(other),
        };
        let single = only(name);
        let hiding = self.known.iter();
        let hiding = hiding.filter(|cte| single.as_ref() == Some(&cte.name));
        let hiding: Vec<&Cte> = hiding.collect();
        let mut own: Vec<String> = match &hiding[..] {
            [] => {
                let reference = object_name_to_table_reference(name.clone(), true).ok()?;
                let source = self.names.get_table_source(reference).ok()?;
                let schema = source.schema();
                let own = schema.fields().iter().map(|field| field.name().clone());
                own.filter(|name| !is_hidden(name)).collect()
            }
            [cte] => {
                let mut own = self.outputs(&cte.query)?;
                for (name, column) in own.iter_mut().zip(&cte.columns) {
                    name.clone_from(column);
                }
                own
            }
            _ => return None,
        };
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

    /// The columns of a query in `from`.
    fn derived(&self, query: &Query, alias: &TableAlias) -> Option<Columns> {
        let mut names = self.outputs(query)?;
        for (name, column) in names.iter_mut().zip(&alias.columns) {
            *name = column_name(&column.name);
        }
        let columns = names.into_iter().map(|name| Column {
            table: vec![alias.name.clone()],
            name,
        });
        Some(Columns {
            wanted: columns.collect(),
        })
    }

    /// The names of the columns of a query, where it says them.
    fn outputs(&self, query: &Query) -> Option<Vec<String>> {
        if self.depth.get() >= MAX_DEPTH {
            return None;
        }
        self.depth.set(self.depth.get() + 1);
        let names = self.outputs_of(&query.body);
        self.depth.set(self.depth.get() - 1);
        names
    }

    fn outputs_of(&self, body: &SetExpr) -> Option<Vec<String>> {
        let select = match body {
            SetExpr::Select(select) => select,
            SetExpr::SetOperation {
                left,
                set_quantifier: SetQuantifier::None | SetQuantifier::All | SetQuantifier::Distinct,
                ..
            } => return self.outputs_of(left),
            SetExpr::Query(query) => return self.outputs(query),
            SetExpr::Values(values) => {
                let count = values.rows.first()?.len();
                return Some((1..=count).map(|at| format!("column{at}")).collect());
            }
            _ => return None,
        };
        let mut names = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => names.push(column_name(name)),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                    names.push(column_name(parts.last()?));
                }
                SelectItem::ExprWithAlias { alias, .. } => names.push(column_name(alias)),
                SelectItem::Wildcard(options) if is_plain(options) => {
                    for from in &select.from {
                        let columns = self.chain(from)?;
                        names.extend(columns.wanted.into_iter().map(|own| own.name));
                    }
                }
                _ => return None,
            }
        }
        Some(names)
    }
}

/// The columns of `unnest` and of `generate_series`; none of other tables.
fn of_rows(factor: &TableFactor) -> Option<Columns> {
    let is_series = |name: &ObjectName| only(name).as_deref() == Some("generate_series");
    match factor {
        TableFactor::UNNEST {
            alias: Some(alias),
            array_exprs,
            with_offset: false,
            with_ordinality: false,
            ..
        } => unnested(alias, array_exprs.len()),
        TableFactor::Table {
            name,
            alias: Some(alias),
            args: Some(_),
            ..
        }
        | TableFactor::Function {
            name,
            alias: Some(alias),
            ..
        } if is_series(name) => unnested(alias, 1),
        _ => None,
    }
}

/// The columns of `unnest` of so many arrays, or of a function with such, if all have names: a single one has that of the table.
fn unnested(alias: &TableAlias, arrays: usize) -> Option<Columns> {
    let table = vec![alias.name.clone()];
    let names: Vec<String> = match (&alias.columns[..], arrays) {
        ([], 1) => vec![column_name(&alias.name)],
        (named, arrays) if named.len() == arrays => {
            named.iter().map(|own| column_name(&own.name)).collect()
        }
        _ => return None,
    };
    let columns = names.into_iter().map(|name| Column {
        table: table.clone(),
        name,
    });
    Some(Columns {
        wanted: columns.collect(),
    })
}

/// Whether a `*` stands for all columns.
pub(super) fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
}

/// A name of one part.
pub(super) fn only(name: &ObjectName) -> Option<String> {
    match &name.0[..] {
        [part] => part.as_ident().map(column_name),
        _ => None,
    }
}

/// Whether a join is by columns of the same names.
pub(super) fn shares(join: &JoinOperator) -> bool {
    matches!(
        constraint(join),
        Some(JoinConstraint::Using(_) | JoinConstraint::Natural)
    )
}

/// Whether tables of a `from` are joined so, also within parentheses.
pub(super) fn shares_columns(from: &TableWithJoins) -> bool {
    let within = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => shares_columns(table_with_joins),
        _ => false,
    };
    let mut joins = from.joins.iter();
    within(&from.relation)
        || joins.any(|join| shares(&join.join_operator) || within(&join.relation))
}
