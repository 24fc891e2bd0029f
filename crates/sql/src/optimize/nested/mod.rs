//! Expressions within each other, many levels deep, of the kinds that are written out several times while they are planned.
//!
//! DataFusion turns `a between b and c` into two comparisons with a copy of `a` in each, a `case` of booleans into operators with
//! several copies of each condition, and `coalesce` into a `case` with two of each argument; and it asks a cast, `like` or `case` for
//! what is in it twice, once for its type and once whether it may be NULL. With every level around them all of these multiply.
//! So [`Nested`] puts every few levels of such an expression into a [function](enclosed::Enclosed) of the columns that they read: a copy of
//! it is a copy of a pointer, what it is is known without a look into it, and it has only a few levels of its own. It is
//! computed where and when the levels would be; where a copy of it stands in the levels above, once for all of them.
//!
//! Expressions of at most [`MOST`] levels stay as they are.

mod enclosed;

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, ScalarUDF, Signature, Volatility};
use datafusion_optimizer::AnalyzerRule;

use crate::optimize::checked::operands;
use crate::optimize::stoppable::check;
use syntax::depth;

use enclosed::Enclosed;

/// The most levels of an expression that is left as it is.
const MOST: usize = 12;

/// How many levels go into a function.
const STEP: usize = 6;

/// The analyzer rule. It must be the last: the others look into expressions.
#[derive(Debug)]
pub(crate) struct Nested;

impl AnalyzerRule for Nested {
    fn name(&self) -> &str {
        "nested_expressions"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(node)?.data)
    }
}

/// A node of a plan without expressions of more than [`MOST`] levels. Its columns keep their names.
fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut deepest = 0;
    plan.apply_expressions(|expr| {
        deepest = deepest.max(levels(expr)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if deepest <= MOST {
        return Ok(Transformed::no(plan));
    }
    // What a scan is asked for, it looks into.
    if matches!(plan, LogicalPlan::TableScan(_)) {
        return Ok(Transformed::no(plan));
    }
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    let whole = |expr: Expr| {
        let name = names.save(&expr);
        Ok(Transformed::yes(name.restore(cut(expr, &schema)?.expr)))
    };
    depth::with_room(depth::ROOMY, || {
        plan.map_expressions(|expr| match expr {
            // Its columns are those of the keys in it, which have names of their own.
            Expr::GroupingSet(_) => expr.map_children(whole),
            expr => whole(expr),
        })
    })
}

/// How many levels an expression counts for itself.
fn weight(expr: &Expr) -> usize {
    match expr {
        Expr::Case(case) => case.when_then_expr.len().clamp(1, 2),
        Expr::ScalarFunction(_) => usize::from(operands(expr).is_none()),
        Expr::Between(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::InList(_)
        | Expr::Cast(_)
        | Expr::TryCast(_) => 1,
        _ => 0,
    }
}

/// How many levels there are in an expression.
fn levels(expr: &Expr) -> Result<usize> {
    let mut most = 0;
    expr.apply_children(|child| {
        most = most.max(levels(child)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(most + weight(expr))
}

/// An expression in which functions stand for what is deep inside.
struct Cut {
    expr: Expr,
    /// Its levels, without those in functions.
    levels: usize,
    /// Whether a function can stand for it.
    is_closed: bool,
    /// Whether it reads a column.
    reads: bool,
}

/// Whether a node, and not what is in it, can be computed by a function of columns.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_)
        | Expr::OuterReferenceColumn(..)
        | Expr::Literal(..)
        | Expr::BinaryExpr(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Negative(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::InList(_) => true,
        // Other rules look for those, such as `nextval`.
        Expr::ScalarFunction(call) => call.func.signature().volatility != Volatility::Volatile,
        Expr::Placeholder(placeholder) => placeholder.field.is_some(),
        _ => false,
    }
}

/// Whether a node is an argument of the function that it goes into.
fn is_argument(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::Placeholder(_)
    )
}

/// `expr` with a function in place of every [`STEP`] levels in it, from the leaves up.
fn cut(expr: Expr, schema: &DFSchema) -> Result<Cut> {
    check()?;
    let (mut levels, mut is_closed) = (0, is_plain(&expr));
    let mut reads = is_argument(&expr);
    let own = weight(&expr);
    let children = expr.map_children(|child| {
        let child = cut(child, schema)?;
        levels = levels.max(child.levels);
        is_closed &= child.is_closed;
        reads |= child.reads;
        Ok(Transformed::yes(child.expr))
    })?;
    let (expr, levels) = (children.data, levels + own);
    let is_function = own > 0 && levels >= STEP && is_closed && reads;
    Ok(Cut {
        expr: if is_function {
            enclosed(expr, schema)?
        } else {
            expr
        },
        levels: if is_function { 0 } else { levels },
        is_closed,
        reads,
    })
}

/// A function that stands for `expr`, called with what `expr` reads.
fn enclosed(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let field = expr.to_field(schema)?.1;
    let returns = Field::new("", field.data_type().clone(), field.is_nullable());
    let mut volatility = Volatility::Immutable;
    let mut arguments: Vec<Expr> = Vec::new();
    let (mut fields, mut nullable) = (Vec::new(), Vec::new());
    let body = expr.transform_up(|part| {
        if let Expr::ScalarFunction(call) = &part {
            volatility = volatility.max(call.func.signature().volatility);
        }
        if !is_argument(&part) {
            return Ok(Transformed::no(part));
        }
        let at = match arguments.iter().position(|known| *known == part) {
            Some(at) => at,
            None => {
                let data = part.get_type(schema)?;
                fields.push(Field::new(fields.len().to_string(), data, true));
                nullable.push(part.nullable(schema)?);
                arguments.push(part);
                arguments.len() - 1
            }
        };
        let column = Column::new_unqualified(at.to_string());
        Ok(Transformed::yes(Expr::Column(column)))
    })?;
    let function = Enclosed::new(
        body.data,
        Arc::new(DFSchema::try_from(Schema::new(fields))?),
        nullable,
        Arc::new(returns),
        Signature::user_defined(volatility),
        false,
    );
    Ok(Arc::new(ScalarUDF::from(function)).call(arguments))
}
