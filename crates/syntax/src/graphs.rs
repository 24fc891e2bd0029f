//! Calls that read graphs in a query: `bfs('web', 42)` and the like.

use std::collections::HashMap;
use std::ops::ControlFlow;

use graph::RankOptions;
use messages::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Statement, TableFactor,
    UnaryOperator, Value, VisitorMut,
};

use crate::readers::{text, value_of};
use crate::walk::WalkMut;

/// What a call makes of a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// The graphs of the store.
    Graphs,
    /// Its vertices, with how many edges they have.
    Vertices {
        /// The name of the graph.
        graph: String,
    },
    /// Its edges.
    Edges {
        /// The name of the graph.
        graph: String,
    },
    /// How far each vertex is from a source that can be reached.
    Bfs {
        /// The name of the graph.
        graph: String,
        /// The vertex that the search begins with.
        source: i64,
    },
    /// The rank of each vertex.
    Pagerank {
        /// The name of the graph.
        graph: String,
        /// How the ranks are computed.
        options: RankOptions,
    },
    /// The component of each vertex.
    Components {
        /// The name of the graph.
        graph: String,
    },
    /// How many triangles there are.
    Triangles {
        /// The name of the graph.
        graph: String,
    },
}

/// The functions, with how each is called.
const FUNCTIONS: [(&str, &str); 7] = [
    ("graphs", "no arguments"),
    ("vertices", "the name of a graph: vertices('web')"),
    ("edges", "the name of a graph: edges('web')"),
    (
        "bfs",
        "the name of a graph and the id of a vertex: bfs('web', 42)",
    ),
    (
        "pagerank",
        "the name of a graph, and perhaps options: pagerank('web', damping=0.85, tolerance=1e-4, rounds=20)",
    ),
    ("components", "the name of a graph: components('web')"),
    ("triangles", "the name of a graph: triangles('web')"),
];

/// Whether `name` is one of the functions that read graphs.
pub(crate) fn reads(name: &ObjectName) -> bool {
    function(name).is_some()
}

fn function(name: &ObjectName) -> Option<(&'static str, &'static str)> {
    let called = name.to_string().to_lowercase();
    FUNCTIONS.into_iter().find(|(known, _)| *known == called)
}

/// Replaces each call such as `bfs(...)` in `statement` by a table named after the text of the call, and returns the
/// call behind each of these names.
pub fn take(statement: &mut Statement) -> Result<HashMap<String, Call>> {
    let mut taking = Taking::default();
    match statement.walk_mut(&mut taking) {
        ControlFlow::Continue(()) => Ok(taking.calls),
        ControlFlow::Break(error) => Err(error),
    }
}

#[derive(Default)]
struct Taking {
    calls: HashMap<String, Call>,
}

impl VisitorMut for Taking {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table {
            name,
            args: given,
            alias,
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let Some(args) = given else {
            return ControlFlow::Continue(());
        };
        let Some((function, usage)) = function(name) else {
            return ControlFlow::Continue(());
        };
        let list: Vec<String> = args.args.iter().map(ToString::to_string).collect();
        let text = format!("{function}({})", list.join(", "));
        match call(function, usage, &args.args) {
            Ok(call) => self.calls.insert(text.clone(), call),
            Err(error) => return ControlFlow::Break(error),
        };
        *name = ObjectName::from(vec![Ident::with_quote('"', text)]);
        *given = None;
        // As in PostgreSQL the function's name is that of the table, for `bfs.level`.
        if alias.is_none() {
            *alias = Some(named(function));
        }
        ControlFlow::Continue(())
    }
}

/// The alias of a call that has none.
fn named(function: &str) -> sqlparser::ast::TableAlias {
    sqlparser::ast::TableAlias {
        explicit: false,
        name: Ident::new(function),
        columns: Vec::new(),
        at: None,
    }
}

fn call(function: &str, usage: &str, args: &[FunctionArg]) -> Result<Call> {
    let wrong = || Error::coded("42883", format!("{function} takes {usage}"));
    let mut given = Vec::new();
    let mut options = Vec::new();
    for arg in args {
        match arg {
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(value),
                ..
            } => options.push((name.value.to_lowercase(), value)),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            })) => match left.as_ref() {
                Expr::Identifier(name) => options.push((name.value.to_lowercase(), &**right)),
                _ => return Err(wrong()),
            },
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) if options.is_empty() => {
                given.push(value);
            }
            _ => return Err(wrong()),
        }
    }
    if function != "pagerank" && !options.is_empty() {
        return Err(wrong());
    }
    let graph = |expr: &Expr| text(expr).ok_or_else(wrong);
    match (function, given.as_slice()) {
        ("graphs", []) => Ok(Call::Graphs),
        ("vertices", [name]) => Ok(Call::Vertices {
            graph: graph(name)?,
        }),
        ("edges", [name]) => Ok(Call::Edges {
            graph: graph(name)?,
        }),
        ("components", [name]) => Ok(Call::Components {
            graph: graph(name)?,
        }),
        ("triangles", [name]) => Ok(Call::Triangles {
            graph: graph(name)?,
        }),
        ("bfs", [name, source]) => Ok(Call::Bfs {
            graph: graph(name)?,
            source: number(source).ok_or_else(wrong)?,
        }),
        ("pagerank", [name]) => Ok(Call::Pagerank {
            graph: graph(name)?,
            options: rank_options(&options)?,
        }),
        _ => Err(wrong()),
    }
}

fn rank_options(given: &[(String, &Expr)]) -> Result<RankOptions> {
    let mut options = RankOptions::default();
    for (name, value) in given {
        let wrong = |wanted: &str| {
            // As it was written: a number with an exponent is a cast by now.
            let value = digits(value).unwrap_or_else(|| value.to_string());
            Error::coded(
                "22023",
                format!("pagerank: {name} takes {wanted}, not {value}"),
            )
        };
        match name.as_str() {
            "damping" => {
                let share = number::<f64>(value).filter(|share| (0.0..=1.0).contains(share));
                options.damping = share.ok_or_else(|| wrong("a number from 0 to 1"))?;
            }
            "tolerance" => {
                let change = number::<f64>(value).filter(|change| *change >= 0.0);
                options.tolerance = change.ok_or_else(|| wrong("a number from 0 on"))?;
            }
            "rounds" => {
                options.rounds = number(value).ok_or_else(|| wrong("a whole number from 0 on"))?;
            }
            _ => {
                return Err(Error::coded(
                    "22023",
                    format!("pagerank has no option {name}; it has: damping, tolerance, rounds"),
                ));
            }
        }
    }
    Ok(options)
}

/// A literal number, perhaps with a sign. One with an exponent has become a cast of its text.
fn number<T: std::str::FromStr>(expr: &Expr) -> Option<T> {
    digits(expr)?.parse().ok()
}

/// A literal number as it is written.
fn digits(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => digits(inner),
        Expr::Cast { expr: inner, .. } => text(inner).or_else(|| digits(inner)),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: inner,
        } => Some(format!("-{}", digits(inner)?)),
        _ => match value_of(expr)? {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
    }
}
