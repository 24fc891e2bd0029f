//! What is known of a row that was read from a file: the columns `filename` and `file_row_number`, which no `*` returns, and
//! the functions `input_file_name()` and `file_row_index()`, which are the same of the only file in `from`. Rows are counted
//! from 0 in each file. They are written as hidden columns, with which files are then read.

use std::ops::ControlFlow;

use datafusion_expr::planner::ContextProvider;
use ingest::{FILE_NAME, FILE_ROW};
use sqlparser::ast::{
    Expr, Function, FunctionArguments, Ident, JoinConstraint, JoinOperator, ObjectName, Query,
    Select, SelectItem, SetExpr, Statement as Sql, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins, Value, Visitor, VisitorMut,
};
use syntax::flow::{flow, outcome};
use syntax::names::{column_name, is_literal, looks_like_file};
use syntax::walk::{Walk, WalkMut};

use crate::error::{Error, Result};
use crate::run::from_sources::{self, Walk as FromWalk, table_of};
use crate::run::shared_columns::{Lookup, only};
use crate::scan::files::table::FileTable;

/// The columns, the functions, and the hidden column that each is.
const NAMES: [(&str, &str, &str); 2] = [
    ("filename", "input_file_name", FILE_NAME),
    ("file_row_number", "file_row_index", FILE_ROW),
];

/// One of them in a statement.
#[derive(Debug)]
struct Mention {
    /// As it is called there.
    called: &'static str,
    hidden: &'static str,
    /// The table that stands before a column.
    table: Vec<Ident>,
    is_call: bool,
}

/// What an expression is, if it is called as one of them.
fn mention(expr: &Expr) -> Option<Mention> {
    let (table, name) = match expr {
        Expr::Identifier(name) => (&[][..], name),
        Expr::CompoundIdentifier(parts) => {
            let (name, table) = parts.split_last()?;
            (table, name)
        }
        Expr::Function(function) => return of_call(function),
        _ => return None,
    };
    let name = column_name(name);
    let (called, _, hidden) = NAMES.into_iter().find(|(own, ..)| *own == name)?;
    Some(Mention {
        called,
        hidden,
        table: table.to_vec(),
        is_call: false,
    })
}

fn of_call(function: &Function) -> Option<Mention> {
    let no_arguments = match &function.args {
        FunctionArguments::List(list) => list.args.is_empty() && list.clauses.is_empty(),
        _ => false,
    };
    let name = only(&function.name).filter(|_| no_arguments && function.over.is_none())?;
    let (_, called, hidden) = NAMES.into_iter().find(|(_, own, _)| *own == name)?;
    Some(Mention {
        called,
        hidden,
        table: Vec::new(),
        is_call: true,
    })
}

/// Whether a statement names one of them and may read files.
pub(super) fn are_read(statement: &Sql) -> bool {
    #[derive(Default)]
    struct Seen {
        mentioned: bool,
        files: bool,
    }

    impl Visitor for Seen {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.mentioned = self.mentioned || mention(expr).is_some();
            ControlFlow::Continue(())
        }

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            if let TableFactor::Table { name, .. } = factor {
                let single = name.0.last().and_then(|part| part.as_ident());
                // Calls such as `read_csv(...)` are names by now.
                let is_file = |name: &Ident| {
                    is_literal(name) || looks_like_file(&name.value) || name.value.contains('(')
                };
                self.files = self.files || single.is_some_and(is_file);
            }
            ControlFlow::Continue(())
        }
    }

    let mut seen = Seen::default();
    let _ = statement.walk(&mut seen);
    seen.mentioned && seen.files
}

/// Writes them as the hidden columns that they are, unless a table has a column of that name.
///
/// # Errors
/// If several files are in a `from`, and it is not said which is meant.
pub(super) fn write_out<N: ContextProvider>(
    statement: &mut Sql,
    lookup: &Lookup<'_, N>,
) -> Result<()> {
    if !are_read(statement) {
        return Ok(());
    }
    outcome(statement.walk_mut(&mut Written {
        lookup,
        scopes: Vec::new(),
    }))
}

/// What a `from` names, and whether it is read from files.
type Source = from_sources::Source<bool>;

struct Written<'n, 'l, N> {
    lookup: &'l Lookup<'n, N>,
    /// What the queries around an expression name, the innermost last.
    scopes: Vec<Vec<Source>>,
}

impl<N: ContextProvider> VisitorMut for Written<'_, '_, N> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        // What the query is ordered by stands outside of its `select`.
        let sources = match query.body.as_ref() {
            SetExpr::Select(select) => self.sources(select),
            _ => Vec::new(),
        };
        self.scopes.push(sources);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Box<Error>> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        self.scopes.push(self.sources(select));
        for from in &mut select.from {
            self.join_by_names(from);
        }
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else {
                continue;
            };
            let Some(mention) = mention(expr) else {
                continue;
            };
            match self.column(&mention) {
                Ok(None) => {}
                Ok(Some(expr)) => {
                    *item = SelectItem::ExprWithAlias {
                        expr,
                        alias: Ident::with_quote('"', mention.called),
                    };
                }
                Err(error) => return flow(Err(error)),
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Box<Error>> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Box<Error>> {
        if table_of(factor).is_some_and(|name| self.is_file(name))
            && let TableFactor::Table {
                alias: Some(TableAlias { columns, .. }),
                ..
            } = factor
            && !columns.is_empty()
        {
            // Names for the columns of a file are those of its own; the hidden ones keep theirs.
            columns.extend(NAMES.map(|(_, _, hidden)| TableAliasColumnDef {
                name: Ident::with_quote('"', hidden),
                data_type: None,
            }));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        let Some(mention) = mention(expr) else {
            return ControlFlow::Continue(());
        };
        match self.column(&mention) {
            Ok(None) => {}
            Ok(Some(column)) => *expr = column,
            Err(error) => return flow(Err(error)),
        }
        ControlFlow::Continue(())
    }
}

impl<N: ContextProvider> Written<'_, '_, N> {
    /// The hidden column that is meant; none if no file is.
    fn column(&self, mention: &Mention) -> Result<Option<Expr>> {
        for scope in self.scopes.iter().rev() {
            let sources = || scope.iter().filter(|source| source.is(&mention.table));
            if !mention.is_call && sources().any(|source| source.has(mention.called)) {
                return Ok(None);
            }
            let mut files = sources().filter(|source| source.of);
            let Some(file) = files.next() else {
                continue;
            };
            if files.next().is_some() {
                let (column, ..) = NAMES
                    .into_iter()
                    .find(|(.., hidden)| *hidden == mention.hidden)
                    .unwrap_or(NAMES[0]);
                return Err(Error::coded(
                    "42702",
                    format!(
                        "{} is ambiguous: rows of several files are joined; write table.{column}",
                        mention.called
                    ),
                ));
            }
            return Ok(Some(file.column(mention.hidden)));
        }
        Ok(None)
    }

    fn sources(&self, select: &Select) -> Vec<Source> {
        let walk = FromWalk {
            lookup: self.lookup,
            of: |name: Option<&ObjectName>| name.is_some_and(|name| self.is_file(name)),
        };
        let mut found = Vec::new();
        for from in &select.from {
            walk.of_from(from, &mut found);
        }
        found
    }

    /// Whether a table is read from files with the hidden columns.
    fn is_file(&self, name: &ObjectName) -> bool {
        let provider = from_sources::provider(self.lookup, name);
        provider.is_some_and(|(_, provider)| {
            let table = provider.downcast_ref::<FileTable>();
            table.is_some_and(FileTable::has_places)
        })
    }

    /// Writes `natural join` as a join by the names that both sides have, without the hidden ones.
    fn join_by_names(&self, from: &mut TableWithJoins) {
        let Some(mut columns) = self.lookup.factor(&from.relation) else {
            return;
        };
        for join in &mut from.joins {
            let Some(other) = self.lookup.factor(&join.relation) else {
                return;
            };
            let there = |name: &String| other.wanted.iter().any(|own| own.name == *name);
            let own = columns.wanted.iter().map(|own| own.name.clone());
            let shared: Vec<String> = own.filter(there).collect();
            let shared = match constraint_mut(&mut join.join_operator) {
                Some(natural @ JoinConstraint::Natural) => {
                    *natural = by_names(&shared);
                    shared
                }
                Some(JoinConstraint::Using(names)) => names.iter().filter_map(only).collect(),
                _ => Vec::new(),
            };
            columns.join(other, &shared);
        }
    }
}

/// What joins by these columns; where there are none, of all rows.
fn by_names(shared: &[String]) -> JoinConstraint {
    if shared.is_empty() {
        return JoinConstraint::On(Expr::value(Value::Boolean(true)));
    }
    let names = shared.iter().map(|name| Ident::with_quote('"', name));
    JoinConstraint::Using(names.map(|name| ObjectName::from(vec![name])).collect())
}

fn constraint_mut(join: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}
