//! Plans of prepared queries that hold for any values of their parameters: PostgreSQL's generic plans. Planning takes many
//! times as long as a small query does, so one that runs again and again is planned once, and its parameters become
//! constants in the plan that the rules have made.
//!
//! Only where that comes to the same as planning with the values:
//! 1. A parameter stands in a filter, where it is compared or computed with: no type, name, order or number of rows depends
//!    on its value. Lowering, which estimates rows and asks indexes, sees the constants.
//! 2. Its value is written plainly, as its type writes it. NULL, and what else needs a conversion, is planned with.
//! 3. The query was quick when it ran with a plan of its own. Of others planning is a small part, and may gain by knowing
//!    the values.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::planner::Planner;
use arrow::datatypes::{DataType, IntervalUnit, SchemaRef};
use datafusion_common::DataFusionError;
use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion_optimizer::OptimizerRule;
use datafusion_optimizer::simplify_expressions::SimplifyExpressions;
use parking_lot::Mutex;
use sqlparser::ast::Statement as Sql;
use syntax::key_query::date;
use syntax::parameters::Readied;
use syntax::parse::{Statement, parse};
use syntax::plain::{plain_decimal, plain_interval};
use syntax::prepared::number;

use crate::error::{Error, Result};
use crate::optimize::checked::operands;
use crate::optimize::expressions::is_text;
use crate::optimize::likes::is_odd;
use crate::optimize::rules;
use crate::run::context::StatementContext;
use crate::run::kept_plans::{PlanKey, Planned, Slot};
use crate::run::shared_plans;
use crate::run::visible;

/// The longest that a quick query takes until its first rows come. Unoptimised, planning alone takes longer.
const QUICK: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 10 });

/// What is known of a prepared query with parameters.
#[derive(Debug, Default)]
pub(crate) struct GenericPlan(Mutex<State>);

#[derive(Clone, Debug, Default)]
enum State {
    /// It has not run yet, or took its time.
    #[default]
    Slow,
    Quick,
    Planned(Arc<Slot>),
    /// What it comes to depends on the values.
    Never,
}

impl GenericPlan {
    /// That of a query that is planned with its values each time.
    pub(crate) fn never() -> GenericPlan {
        GenericPlan(Mutex::new(State::Never))
    }

    /// Whether the next run goes by a plan for any values.
    pub(crate) fn is_wanted(&self) -> bool {
        matches!(*self.0.lock(), State::Quick | State::Planned(_))
    }

    /// Takes note of how long a run with a plan of its own took.
    pub(crate) fn ran(&self, took: Duration) {
        let mut state = self.0.lock();
        *state = match &*state {
            known @ (State::Never | State::Planned(_)) => known.clone(),
            _ if took <= QUICK => State::Quick,
            _ => State::Slow,
        };
    }

    /// Goes by a plan for any values from now on, however long it takes.
    pub(crate) fn want(&self) {
        let mut state = self.0.lock();
        if matches!(*state, State::Slow) {
            *state = State::Quick;
        }
    }

    /// Where its plan is kept, if there is one.
    pub(super) fn slot(&self) -> Option<Arc<Slot>> {
        match &*self.0.lock() {
            State::Planned(slot) => Some(Arc::clone(slot)),
            _ => None,
        }
    }

    /// Keeps its plan; with none it will never have one.
    pub(super) fn keep(&self, slot: Option<Arc<Slot>>) {
        *self.0.lock() = slot.map_or(State::Never, State::Planned);
    }
}

/// A run of a prepared query with values for its parameters.
pub(crate) struct GenericRun {
    pub generic: Arc<GenericPlan>,
    pub readied: Arc<Readied>,
    pub types: Vec<DataType>,
    /// Its columns, as it was described.
    pub columns: SchemaRef,
    pub values: Vec<ScalarValue>,
    /// The values as they came.
    pub texts: Vec<Option<String>>,
    /// What it is if nobody has prepared it.
    pub constants: Option<Constants>,
}

/// A query that is written with constants and runs by the plan of its [shape](syntax::shapes).
pub(crate) struct Constants {
    /// As it is written.
    pub text: String,
    /// What planning looked at when the types of its parameters were found.
    pub key: Arc<PlanKey>,
}

impl GenericRun {
    /// The plan for any values with these; none if the query is to be planned with them.
    ///
    /// # Errors
    /// Those of looking at a plan.
    pub(super) async fn planned(&self, context: &StatementContext) -> Result<Option<Planned>> {
        if let Some(own) = &self.constants
            && !context.plan_key().is_some_and(|key| key.is(&own.key))
        {
            return Ok(None);
        }
        let plans = &context.instance.plans;
        let slot = self.generic.slot();
        let kept = slot.and_then(|slot| slot.find(plans, || context.plan_key()));
        let planned = match kept {
            Some(planned) => planned,
            None => {
                let Some(key) = context.plan_key() else {
                    return Ok(None);
                };
                let made = self.made(context).await.ok().flatten();
                let slot = match &made {
                    Some(planned) => {
                        let workers = context.instance.workers();
                        plans.keep(Some(key), (planned.clone(), true), workers)?
                    }
                    None => None,
                };
                self.generic.keep(slot.clone());
                match (slot, made) {
                    (Some(_), Some(planned)) => planned,
                    _ => return Ok(None),
                }
            }
        };
        // An error in what follows from constants is told by planning with them.
        Ok(planned.with_values(&context.planner, &self.values).ok())
    }

    /// The plan for any values; none if they matter.
    async fn made(&self, context: &StatementContext) -> Result<Option<Planned>> {
        let query = self.readied.with_parameters(&self.types)?;
        let plan = context.plan(*query, None).await?;
        if shared_plans::has_parts(&plan)? {
            return Ok(None);
        }
        let optimised = rules::logical(&context.planner, &plan)?;
        let schema = visible::schema(optimised.schema().inner());
        let own = schema.fields().iter().zip(self.columns.fields());
        let alike = schema.fields().len() == self.columns.fields().len()
            && own
                .into_iter()
                .all(|(own, described)| own.data_type() == described.data_type());
        let fits = alike && is_for_any_values(&optimised)?;
        Ok(fits.then(|| Planned::new(plan, optimised)))
    }

    /// The query with its values.
    ///
    /// # Errors
    /// If one is not of its type.
    pub(super) fn written(&self) -> Result<Sql> {
        if let Some(own) = &self.constants {
            let parsed = parse(&own.text)?.pop();
            return query_of(parsed.map(|parsed| parsed.statement));
        }
        let texts: Vec<Option<&str>> = self.texts.iter().map(Option::as_deref).collect();
        query_of(Some(self.readied.bind(&self.types, &texts)?.statement))
    }
}

fn query_of(statement: Option<Statement>) -> Result<Sql> {
    match statement {
        Some(Statement::Sql(query)) => Ok(*query),
        _ => Err(Error::Defect {
            message: "a prepared query is none".into(),
        }),
    }
}

/// The values that texts of these types are; none if one of them would have to be converted, or is NULL.
pub(crate) fn values(types: &[DataType], texts: &[Option<&str>]) -> Option<Vec<ScalarValue>> {
    if types.len() != texts.len() {
        return None;
    }
    let values = types.iter().zip(texts);
    values
        .map(|(data_type, text)| value(data_type, (*text)?))
        .collect()
}

fn value(data_type: &DataType, text: &str) -> Option<ScalarValue> {
    fn whole<T: FromStr>(text: &str) -> Option<Option<T>> {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        plain.then(|| text.parse().ok())?.map(Some)
    }
    Some(match data_type {
        DataType::Int16 => ScalarValue::Int16(whole(text)?),
        DataType::Int32 => ScalarValue::Int32(whole(text)?),
        DataType::Int64 => ScalarValue::Int64(whole(text)?),
        // One that is an odd pattern is matched in another way, and blanks at the end say nothing beside a `char(n)`.
        DataType::Utf8View if !is_odd(text) && !text.ends_with(' ') => {
            ScalarValue::Utf8View(Some(text.to_owned()))
        }
        DataType::Date32 => ScalarValue::Date32(Some(date(text)?)),
        DataType::Decimal128(precision, scale) => {
            let (digits, places) = plain_decimal(text)?;
            if places != usize::try_from(*scale).ok()? {
                return None;
            }
            let fits = digits.unsigned_abs().checked_ilog10().unwrap_or(0) < u32::from(*precision);
            fits.then_some(ScalarValue::Decimal128(Some(digits), *precision, *scale))?
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            ScalarValue::IntervalMonthDayNano(Some(plain_interval(text)?))
        }
        DataType::Boolean => match text {
            "t" | "true" => ScalarValue::Boolean(Some(true)),
            "f" | "false" => ScalarValue::Boolean(Some(false)),
            _ => return None,
        },
        _ => return None,
    })
}

/// Whether a plan, as the rules have made it, comes to the same whatever the values of its parameters are.
///
/// # Errors
/// Those of looking at it.
pub(super) fn is_for_any_values(plan: &LogicalPlan) -> Result<bool> {
    let mut fits = true;
    plan.apply_with_subqueries(|node| {
        let filters = has_conditions(node);
        node.apply_expressions(|expr| {
            fits &= has_none(expr) || filters && is_condition(expr) || is_in_cases(expr);
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(fits)
}

/// Whether the expressions of a node decide which rows pass, and nothing else.
fn has_conditions(node: &LogicalPlan) -> bool {
    matches!(
        node,
        LogicalPlan::Filter(_) | LogicalPlan::TableScan(_) | LogicalPlan::Join(_)
    )
}

fn has_none(expr: &Expr) -> bool {
    let found = expr.exists(|part| Ok(matches!(part, Expr::Placeholder(_))));
    !found.unwrap_or(true)
}

/// The type of a parameter, with or without the cast that gives it one.
fn parameter(expr: &Expr) -> Option<&DataType> {
    match expr {
        Expr::Placeholder(own) => own.field.as_ref().map(|field| field.data_type()),
        Expr::Cast(cast) => match &*cast.expr {
            Expr::Placeholder(_) => Some(cast.field.data_type()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression is computed of parameters that are no texts and of constants alone. It is computed as soon as there are
/// values.
fn is_constant(expr: &Expr) -> bool {
    let mut fits = true;
    let looked = expr.apply(|part| {
        if let Some(data_type) = parameter(part) {
            fits &= !is_text(data_type);
            // A parameter has no type beside that of its cast.
            return Ok(TreeNodeRecursion::Jump);
        }
        fits &= !matches!(
            part,
            Expr::Placeholder(_)
                | Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::GroupingSet(_)
        );
        Ok(TreeNodeRecursion::Continue)
    });
    looked.is_ok() && fits
}

/// Whether a condition, or what is computed in it, has parameters only where their values change nothing else. A text may
/// mean anything where it is computed with, so it is compared alone, with what has no parameters.
fn is_condition(expr: &Expr) -> bool {
    if has_none(expr) || is_constant(expr) {
        return true;
    }
    if let Some(data_type) = parameter(expr) {
        return *data_type != DataType::Utf8View;
    }
    let text = |expr: &Expr| parameter(expr) == Some(&DataType::Utf8View);
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And | Operator::Or => is_condition(left) && is_condition(right),
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq => {
                text(left) && has_none(right)
                    || has_none(left) && text(right)
                    || is_condition(left) && is_condition(right)
            }
            _ => false,
        },
        Expr::Between(between) => [&between.expr, &between.low, &between.high]
            .iter()
            .all(|part| is_condition(part)),
        Expr::InList(list) => {
            let of_texts = has_none(&list.expr);
            let fits = |item: &Expr| of_texts && text(item) || is_condition(item);
            is_condition(&list.expr) && list.list.iter().all(fits)
        }
        Expr::Like(like) => {
            let is_plain = like.escape_char.is_none() && !like.case_insensitive;
            is_plain && has_none(&like.expr) && text(&like.pattern)
        }
        Expr::Not(inner) => is_condition(inner),
        Expr::Case(_) => is_in_cases(expr),
        // To another kind of number, to be compared.
        Expr::Cast(cast) => cast.field.data_type().is_integer() && is_condition(&cast.expr),
        // Sums and the like that report what is too large.
        other => {
            let sides = operands(other);
            sides.is_some_and(|(_, left, right)| is_condition(left) && is_condition(right))
        }
    }
}

/// Whether an expression has parameters only in conditions of `case`, where their values change nothing else.
fn is_in_cases(expr: &Expr) -> bool {
    let mut fits = true;
    let looked = expr.apply(|part| {
        Ok(match part {
            Expr::Placeholder(_) => {
                fits = false;
                TreeNodeRecursion::Stop
            }
            Expr::Case(case) if case.expr.is_none() => {
                let mut branches = case.when_then_expr.iter();
                fits &= branches.all(|(when, then)| is_condition(when) && is_in_cases(then));
                fits &= case.else_expr.as_deref().is_none_or(is_in_cases);
                TreeNodeRecursion::Jump
            }
            _ => TreeNodeRecursion::Continue,
        })
    });
    looked.is_ok() && fits
}

impl Planned {
    /// The plan with these values in the places of its parameters.
    ///
    /// # Errors
    /// Those of computing what follows from constants alone.
    pub(super) fn with_values(self, planner: &Planner, values: &[ScalarValue]) -> Result<Planned> {
        let plan = filled(self.plan, values, None)?;
        let optimised = filled(self.optimised, values, Some(planner))?;
        Ok(Planned::new(plan, optimised))
    }
}

/// The plan with constants for its parameters; with a planner, what follows from them is computed.
fn filled(
    plan: LogicalPlan,
    values: &[ScalarValue],
    planner: Option<&Planner>,
) -> Result<LogicalPlan> {
    let constant = |expr: Expr| -> std::result::Result<Transformed<Expr>, DataFusionError> {
        let id = match &expr {
            Expr::Placeholder(own) => &own.id,
            Expr::Cast(cast) => match &*cast.expr {
                Expr::Literal(value, _) if value.data_type() == *cast.field.data_type() => {
                    return Ok(Transformed::yes(Expr::Literal(value.clone(), None)));
                }
                _ => return Ok(Transformed::no(expr)),
            },
            _ => return Ok(Transformed::no(expr)),
        };
        let value = number(id).and_then(|number| values.get(number - 1));
        Ok(match value {
            Some(value) => Transformed::yes(Expr::Literal(value.clone(), None)),
            None => Transformed::no(expr),
        })
    };
    let rule = SimplifyExpressions::new();
    let filled = plan.transform_up_with_subqueries(|node| {
        let mut has_some = false;
        node.apply_expressions(|expr| {
            has_some |= !has_none(expr);
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !has_some {
            return Ok(Transformed::no(node));
        }
        let node = node.map_expressions(|expr| expr.transform_up(constant))?;
        match planner {
            Some(planner) => rule.rewrite(node.data, planner),
            None => Ok(node),
        }
    })?;
    Ok(filled.data)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    #[test]
    fn values_are_those_that_are_written_plainly() {
        let one = |data_type: DataType, text: &str| value(&data_type, text);
        assert_eq!(
            one(DataType::Int16, "-5"),
            Some(ScalarValue::Int16(Some(-5)))
        );
        assert_eq!(one(DataType::Int16, "40000"), None);
        assert_eq!(one(DataType::Int64, " 5"), None);
        assert_eq!(one(DataType::Int64, "+5"), None);
        assert_eq!(one(DataType::Int32, ""), None);
        assert_eq!(
            one(DataType::Date32, "1970-01-02"),
            Some(ScalarValue::Date32(Some(1)))
        );
        assert_eq!(one(DataType::Date32, "infinity"), None);
        assert_eq!(one(DataType::Boolean, "yes"), None);
        for (text, precision, scale, expected) in [
            ("1.5", 10, 2, None),
            ("1.50", 10, 2, Some(150)),
            ("-0.05", 2, 2, Some(-5)),
            ("123.45", 4, 2, None),
            (".5", 1, 1, None),
            ("1.5e1", 9, 3, None),
            ("5", 1, 0, None),
        ] {
            let decimal = |digits| ScalarValue::Decimal128(Some(digits), precision, scale);
            let found = one(DataType::Decimal128(precision, scale), text);
            assert_eq!(found, expected.map(decimal), "{text}");
        }
        let interval = |text| one(DataType::Interval(IntervalUnit::MonthDayNano), text);
        let is = |months, days| {
            let by = IntervalMonthDayNano::new(months, days, 0);
            Some(ScalarValue::IntervalMonthDayNano(Some(by)))
        };
        assert_eq!(interval("3 month"), is(3, 0));
        assert_eq!(interval("2 years"), is(24, 0));
        assert_eq!(interval("90 day"), is(0, 90));
        for text in ["90", "1 hour", "-1 day", "1.5 days", " day", "999999 days"] {
            assert_eq!(interval(text), None, "{text}");
        }
        let types = [DataType::Int64, DataType::Utf8View];
        assert!(values(&types, &[Some("1"), Some("a")]).is_some());
        assert_eq!(values(&types, &[Some("1"), None]), None);
        assert_eq!(values(&types, &[Some("1")]), None);
    }

    #[test]
    fn only_quick_queries_get_plans_for_any_values() {
        let plan = GenericPlan::default();
        assert!(!plan.is_wanted());
        plan.ran(QUICK * 2);
        assert!(!plan.is_wanted());
        plan.ran(QUICK / 2);
        assert!(plan.is_wanted());
        plan.keep(None);
        plan.ran(QUICK / 2);
        assert!(!plan.is_wanted());
    }
}
