//! Integer arithmetic that fails instead of wrapping around.
//!
//! DataFusion adds 1 to the largest `bigint` and gets the smallest. [`CheckedArithmetic`] replaces `+`, `-` and
//! `*` of integers by functions that report the overflow. Decimals and dates are checked by DataFusion already,
//! and sums of integers are not: `sum(bigint)` still wraps.

use std::sync::{Arc, LazyLock};

use arrow::compute::kernels::numeric::{add, mul, sub};
use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

/// Checked operators in one another. The time that DataFusion takes to find the type of nested functions grows
/// exponentially with their depth; operators around this many are left to wrap.
const MAX_NESTING: usize = 8;

/// The analyzer rule; it must come after type coercion, which makes both operands of one type.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(check_plan)?.data)
    }
}

fn check_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(
            scan.table_name.clone(),
            &scan.source.schema(),
        )?);
    }
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let checked = expr.transform_up(|expr| Ok(check(expr, &schema)))?;
        Ok(checked.update_data(|expr| name.restore(expr)))
    })
}

fn check(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return Transformed::no(expr);
    };
    let function = match op {
        Operator::Plus => &PLUS,
        Operator::Minus => &MINUS,
        Operator::Multiply => &TIMES,
        _ => return Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    };
    let nested = nesting(&left).max(nesting(&right));
    let integers = nested < MAX_NESTING
        && match (left.get_type(schema), right.get_type(schema)) {
            (Ok(l), Ok(r)) => l == r && l.is_integer(),
            _ => false,
        };
    match integers {
        true => Transformed::yes(function.call(vec![*left, *right])),
        false => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}

/// How many checked operators stand in one another at the top of `expr`; [`MAX_NESTING`] for an operator that
/// was left alone because of that.
fn nesting(expr: &Expr) -> usize {
    match expr {
        Expr::ScalarFunction(call) if call.func.inner().is::<Checked>() => {
            1 + call.args.iter().map(nesting).max().unwrap_or(0)
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Plus | Operator::Minus | Operator::Multiply,
            right,
        }) => {
            let inside = nesting(left).max(nesting(right));
            if inside > 0 { MAX_NESTING } else { 0 }
        }
        _ => 0,
    }
}

/// The operator and its operands, if `expr` is a checked one.
pub(crate) fn operands(expr: &Expr) -> Option<(&'static str, &Expr, &Expr)> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let checked = call.func.inner().downcast_ref::<Checked>()?;
    match &call.args[..] {
        [a, b] => Some((checked.operator, a, b)),
        _ => None,
    }
}

static PLUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Checked::new("+").into()));
static MINUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Checked::new("-").into()));
static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(Checked::new("*").into()));

/// One of the operators as a function of two integers of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operator: &'static str,
    signature: Signature,
}

impl Checked {
    fn new(operator: &'static str) -> Checked {
        Checked {
            operator,
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.operator
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = arguments.args.as_slice() else {
            return datafusion::common::internal_err!("{} takes two operands", self.operator);
        };
        match self.operator {
            "+" => apply(left, right, add),
            "-" => apply(left, right, sub),
            _ => apply(left, right, mul),
        }
    }
}
