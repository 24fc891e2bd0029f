//! Refuses clauses of calls that do not apply to their function. The planner would ignore them.

use std::ops::ControlFlow;

use crate::planner::Planner;
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, NullTreatment, Visit, Visitor,
};
use syntax::flow::{flow, outcome};
use syntax::grammar::sets;
use syntax::names::column_name;
use syntax::walk::Walk;

use crate::error::{Error, Result};
use crate::functions::{descriptions, objects, privileges, sequences, settings};

/// Functions of PostgreSQL that there are not, why, and what to do instead.
const REFUSED: [(&str, &str); 3] = [
    (
        "setseed",
        "`setseed` is not supported: several workers draw random numbers at once, in no order that a seed would fix; keep what was drawn in a table",
    ),
    (
        "trim_scale",
        "`trim_scale` is not supported: all values of a column have the same number of digits behind the point; cast to numeric(p, s), or take zeros off the text, rtrim(rtrim(n::text, '0'), '.')",
    ),
    (
        "normalize",
        "`normalize` is not supported: texts are kept as they come; normalise them before they are written",
    ),
];

/// Refuses `upper(distinct a)`, `upper(a) over ()`, `row_number() filter (...)`, `sum(*)` and the like.
pub(crate) fn check(tree: &impl Visit, planner: &Planner) -> Result<()> {
    outcome(tree.walk(&mut Calls { planner }))
}

struct Calls<'s> {
    planner: &'s Planner,
}

impl Visitor for Calls<'_> {
    type Break = Box<Error>;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<Error>> {
        match expr {
            Expr::Function(function) => flow(self.call(function)),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// What stands around the arguments of a call.
#[derive(Default)]
struct Clauses {
    distinct: bool,
    ordered: bool,
    nulls: Option<NullTreatment>,
    everything: bool,
    /// How many arguments there are.
    arguments: usize,
    /// `t.*`, which an outer join may leave without a row.
    of_table: bool,
}

fn clauses(function: &Function) -> Clauses {
    let mut found = Clauses {
        nulls: function.null_treatment,
        ..Clauses::default()
    };
    if let FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment,
        args,
        clauses,
    }) = &function.args
    {
        found.arguments = args.len();
        found.distinct = *duplicate_treatment == Some(DuplicateTreatment::Distinct);
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(_) => found.ordered = true,
                FunctionArgumentClause::IgnoreOrRespectNulls(nulls) => found.nulls = Some(*nulls),
                _ => {}
            }
        }
        found.of_table = args.iter().any(|arg| {
            matches!(
                arg,
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_))
            )
        });
        found.everything = args.iter().any(|arg| {
            matches!(
                arg,
                FunctionArg::Unnamed(
                    FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_)
                )
            )
        });
    }
    found
}

/// Refuses `t.*` of a table that is not in the same query, and `count(a, b)`, of which the planner would count the rows without
/// NULL in any argument.
fn check_arguments(name: &str, clauses: &Clauses) -> Result<()> {
    if clauses.of_table {
        return Err(Error::unsupported(
            "`t.*` as an argument is supported of tables and queries in the `from` of the same query: write the name `t`, or a column of it",
        ));
    }
    let arguments = clauses.arguments;
    if name != "count" || arguments < 2 {
        return Ok(());
    }
    Err(Error::coded(
        "42883",
        format!(
            "the function \"count\" takes one argument, not {arguments}: count rows of them, count((a, b))"
        ),
    ))
}

impl Calls<'_> {
    /// Whether a function of this name gives a value for each row.
    fn is_scalar(&self, name: &str) -> bool {
        self.planner.functions.scalar(name).is_some()
            || sequences::is_name(name)
            || descriptions::is_name(name)
            || objects::is_name(name)
            || privileges::is_name(name)
            || settings::is_name(name)
    }

    fn call(&self, function: &Function) -> Result<()> {
        let [part] = &function.name.0[..] else {
            return Ok(());
        };
        let Some(name) = part.as_ident().map(column_name) else {
            return Ok(());
        };
        if let Some((_, why)) = REFUSED.iter().find(|(own, _)| *own == name) {
            return Err(Error::unsupported(*why));
        }
        let clauses = clauses(function);
        check_arguments(&name, &clauses)?;
        let refused = |what: &str| {
            Err(Error::coded(
                "42809",
                format!("the function \"{name}\" takes no {what}"),
            ))
        };
        if clauses.everything && name != "count" {
            return refused("`*`");
        }
        let window = function.over.is_some();
        let aggregate = self.planner.functions.aggregates().contains_key(&name);
        if sets::is_in_arguments(function) && (window || aggregate) {
            let kind = if window { "window" } else { "aggregate" };
            return Err(Error::unsupported(format!(
                "{kind} function calls cannot contain set-returning function calls: move them into a subquery in `from`"
            )));
        }
        // In the order in which the planner looks functions up.
        let scalar = self.is_scalar(&name) && !(window && aggregate);
        let there = [
            (clauses.distinct, "`distinct`"),
            (clauses.ordered, "`order by`"),
            (function.filter.is_some(), "`filter`"),
            (clauses.nulls.is_some(), "`ignore nulls` or `respect nulls`"),
            (!function.within_group.is_empty(), "`within group`"),
        ];
        let first = there.iter().find(|(there, _)| *there);
        if scalar {
            return match first {
                Some((_, what)) => refused(what),
                None if window => refused("`over`"),
                None => Ok(()),
            };
        }
        if !window {
            return Ok(());
        }
        // PostgreSQL has neither, and what the planner makes of them depends on the function.
        if clauses.distinct {
            return refused("`distinct` with `over`");
        }
        if aggregate {
            let of_values = matches!(name.as_str(), "first_value" | "last_value" | "nth_value");
            return match clauses.nulls {
                Some(_) if !of_values => refused("`ignore nulls` or `respect nulls` with `over`"),
                _ => Ok(()),
            };
        }
        let of_values = matches!(
            name.as_str(),
            "first_value" | "last_value" | "nth_value" | "lead" | "lag"
        );
        match first {
            Some((_, "`ignore nulls` or `respect nulls`")) if of_values => Ok(()),
            Some((_, what)) => refused(what),
            None => Ok(()),
        }
    }
}
