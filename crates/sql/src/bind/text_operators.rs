//! Operators of texts that PostgreSQL means otherwise than the planner: `~` and its kin, `substring`, and `||` beside bytes.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator, ScalarUDF, lit};
use sqlparser::ast::BinaryOperator;

use crate::functions::arguments::is_bytea;
use crate::functions::regexps;
use crate::functions::regular::plain_source;
use crate::functions::unknown::quoted;
use crate::functions::widened::substr;

/// A backslash that is meant literally, as `plain_source` writes it.
const BACKSLASH: &str = r"\x{5c}";

/// The planner of these operators.
#[derive(Debug)]
pub(crate) struct TextOperators;

impl ExprPlanner for TextOperators {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let (alike, negated) = match expr.op {
            BinaryOperator::StringConcat => {
                read_as_bytes(&mut expr, schema);
                return Ok(PlannerResult::Original(expr));
            }
            BinaryOperator::PGRegexMatch => (false, false),
            BinaryOperator::PGRegexIMatch => (true, false),
            BinaryOperator::PGRegexNotMatch => (false, true),
            BinaryOperator::PGRegexNotIMatch => (true, true),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let found = matched(expr.left, expr.right, alike, negated)?;
        Ok(PlannerResult::Planned(found))
    }

    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(substr().call(args)))
    }
}

/// Reads a constant in quotes beside a `bytea` as one, as in PostgreSQL.
fn read_as_bytes(expr: &mut RawBinaryExpr, schema: &DFSchema) {
    let is_bytes = |side: &Expr| side.get_type(schema).is_ok_and(|ty| is_bytea(&ty));
    let constant = match (is_bytes(&expr.left), is_bytes(&expr.right)) {
        (true, false) => &mut expr.right,
        (false, true) => &mut expr.left,
        _ => return,
    };
    if quoted(constant).is_some() {
        let text = std::mem::take(constant);
        *constant = Expr::Cast(Cast::new(Box::new(text), DataType::Binary));
    }
}

/// `text ~ pattern`: the planner's operator where the pattern is written out and the library that this one has tells what
/// matches it, since that operator finds rows by the beginning of a text; a function otherwise.
fn matched(text: Expr, pattern: Expr, alike: bool, negated: bool) -> Result<Expr> {
    static IS_MATCH: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(regexps::matching().into()));
    let source = match quoted(&pattern) {
        Some(pattern) => plain_source(pattern, alike)?,
        None => None,
    };
    // The planner writes plain texts as patterns of `like`, where a backslash means something.
    if let Some(source) = source.filter(|source| !source.contains(BACKSLASH)) {
        let op = if negated {
            Operator::RegexNotMatch
        } else {
            Operator::RegexMatch
        };
        return Ok(Expr::BinaryExpr(BinaryExpr::new(
            Box::new(text),
            op,
            Box::new(lit(source)),
        )));
    }
    let options = lit(if alike { "i" } else { "" });
    let found = IS_MATCH.call(vec![text, pattern, options]);
    Ok(if negated {
        Expr::Not(Box::new(found))
    } else {
        found
    })
}
