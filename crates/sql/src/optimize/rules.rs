//! Which rules for logical plans run on a plan. Each rule walks the whole plan, whether or not it finds anything, and
//! planning is a tenth of the time of small queries: so rules run only on plans that have something for them.

use std::collections::HashSet;
use std::sync::Arc;

use crate::planner::Planner;
use datafusion_common::Result;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::{Distinct, Expr, JoinType, LogicalPlan, Operator};
use datafusion_optimizer::{Optimizer, OptimizerConfig, OptimizerRule};

use crate::optimize::checked::operands;
use crate::optimize::correlated;
use crate::optimize::deep;
use crate::optimize::first_rows::FirstRows;
use crate::optimize::nullsafe::{EqualKeys, NullSafeKeys};
use crate::optimize::recursion_checks;
use crate::optimize::same_windows;
use crate::optimize::special;
use crate::optimize::stoppable::Stoppable;
use crate::optimize::sums;
use crate::optimize::volatile::MoveFilters;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Rules of DataFusion that never run.
///
/// * `eliminate_duplicated_expr` drops sort keys that others determine, but for groups over joins it believes that one
///   key determines the rest: `order by x.a, y.b` lost `y.b`.
/// * The next two are for fields of structs, which tables do not have; the fourth adds tests of join keys for NULL.
/// * `rewrite_set_comparison` confuses the columns of `t` in `t.i > any (select i from t)`;
///   [`membership`](crate::optimize::membership) does its work.
const NEVER: [&str; 5] = [
    "eliminate_duplicated_expr",
    "extract_leaf_expressions",
    "push_down_leaf_projections",
    "filter_null_join_keys",
    "rewrite_set_comparison",
];

/// Rules that find nothing in a second pass.
const ONCE: [&str; 5] = [
    sums::NAME,
    same_windows::NAME,
    "eliminate_group_by_constant",
    "common_sub_expression_eliminate",
    "single_distinct_aggregation_to_group_by",
];

/// Something that a plan may have and a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Subquery,
    Distinct,
    DistinctAggregate,
    /// Sums of computed values.
    Sum,
    Union,
    Limit,
    OuterJoin,
    /// A query in `from`.
    Derived,
    Window,
    /// `is not distinct from`.
    NullSafe,
}

/// Plans with one of these get a second pass: the first brings joins and filters together that were apart.
const TWICE: [Part; 4] = [Part::Subquery, Part::Union, Part::OuterJoin, Part::Derived];

/// What a rule is for; `None` if it may find something in any plan.
fn subject(rule: &str) -> Option<Part> {
    Some(match rule {
        "decorrelate_predicate_subquery"
        | "scalar_subquery_to_join"
        | "decorrelate_lateral_join" => Part::Subquery,
        "replace_distinct_aggregate" => Part::Distinct,
        "single_distinct_aggregation_to_group_by" => Part::DistinctAggregate,
        sums::NAME => Part::Sum,
        same_windows::NAME | FirstRows::NAME => Part::Window,
        NullSafeKeys::NAME => Part::NullSafe,
        "optimize_unions" | "unions_to_filter" => Part::Union,
        "eliminate_limit" | "push_down_limit" => Part::Limit,
        "eliminate_outer_join" => Part::OuterJoin,
        _ => return None,
    })
}

/// What `plan` has, or will have once its subqueries are joins.
fn parts(plan: &LogicalPlan) -> Result<HashSet<Part>> {
    let mut parts = HashSet::new();
    let mut projections = 0;
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Projection(_) => projections += 1,
            LogicalPlan::Subquery(_) => _ = parts.insert(Part::Subquery),
            LogicalPlan::Distinct(Distinct::All(_) | Distinct::On(_)) => {
                parts.insert(Part::Distinct);
            }
            LogicalPlan::Union(_) => _ = parts.insert(Part::Union),
            LogicalPlan::Limit(_) => _ = parts.insert(Part::Limit),
            LogicalPlan::Window(_) => _ = parts.insert(Part::Window),
            LogicalPlan::Join(join) => {
                if matches!(
                    join.join_type,
                    JoinType::Left | JoinType::Right | JoinType::Full
                ) {
                    parts.insert(Part::OuterJoin);
                }
                // Made from a subquery.
                if join.join_type == JoinType::LeftMark {
                    parts.insert(Part::Subquery);
                }
            }
            _ => {}
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                match expr {
                    Expr::Exists(_) | Expr::InSubquery(_) => _ = parts.insert(Part::Subquery),
                    Expr::BinaryExpr(binary) if binary.op == Operator::IsNotDistinctFrom => {
                        parts.insert(Part::NullSafe);
                    }
                    Expr::ScalarSubquery(_) => {
                        parts.extend([Part::Subquery, Part::OuterJoin]);
                    }
                    Expr::AggregateFunction(function) if function.params.distinct => {
                        parts.insert(Part::DistinctAggregate);
                    }
                    Expr::AggregateFunction(function)
                        if function.params.args.iter().any(|e| operands(e).is_some()) =>
                    {
                        parts.insert(Part::Sum);
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    if projections > 1 {
        parts.insert(Part::Derived);
    }
    Ok(parts)
}

/// All rules that ever run, in their order.
pub(crate) fn all() -> Vec<Rule> {
    let mut rules = Optimizer::new().rules;
    rules.retain(|rule| !NEVER.contains(&rule.name()));
    for rule in &mut rules {
        match rule.name() {
            "push_down_filter" => *rule = Arc::new(MoveFilters::default()),
            "extract_equijoin_predicate" => *rule = Arc::new(EqualKeys::default()),
            _ => {}
        }
    }
    // First: other rules give names to what sums have in common.
    rules.insert(0, Arc::new(sums::RULE));
    // Before what equal windows have in common is taken out: whole windows, which are no values of a row.
    let common = rules
        .iter()
        .position(|rule| rule.name() == "common_sub_expression_eliminate");
    rules.insert(common.unwrap_or(rules.len()), Arc::new(same_windows::RULE));
    // Behind what leaves out columns that nobody reads: each column of a row costs an aggregate.
    rules.push(Arc::new(FirstRows));
    rules.push(Arc::new(NullSafeKeys::default()));
    let stoppable = |rule: Rule| Arc::new(Stoppable(rule)) as Rule;
    rules.into_iter().map(stoppable).collect()
}

/// `plan` analysed and optimised, in one pass of the rules, or in two if it has nested queries or outer joins. A third
/// pass would only find that nothing changes any more.
pub(crate) fn logical(planner: &Planner, plan: &LogicalPlan) -> Result<LogicalPlan> {
    correlated::own_aggregates(plan)?;
    recursion_checks::terms(plan)?;
    let analyzer = planner.analyzer();
    let is_deep = deep::is_deep(plan)?;
    let plan = if is_deep {
        deep::analyzed(analyzer, plan.clone(), &planner.options())?
    } else {
        analyzer.execute_and_check(plan.clone(), &planner.options(), |_, _| {})?
    };
    let parts = parts(&plan)?;
    let all = planner.rules();
    let found = |rule: &&Rule| subject(rule.name()).is_none_or(|part| parts.contains(&part));
    let (last, all): (Vec<&Rule>, Vec<&Rule>) =
        (all.iter().filter(found)).partition(|rule| rule.name() == NullSafeKeys::NAME);
    let mut rules: Vec<Rule> = all.iter().copied().cloned().collect();
    if TWICE.iter().any(|part| parts.contains(part)) {
        let again = |rule: &&&Rule| !ONCE.contains(&rule.name());
        rules.extend(all.iter().filter(again).copied().cloned());
    }
    rules.extend(last.into_iter().cloned());
    // Both passes in one list: what surrounds a pass takes as long as several rules.
    let plan = if is_deep {
        deep::optimised(&rules, plan, planner)?
    } else {
        Optimizer::with_rules(rules).optimize(plan, planner, |_, _| {})?
    };
    if parts.contains(&Part::Subquery) {
        correlated::all_joined(&plan)?;
    }
    special::joins(&plan)?;
    Ok(plan)
}
