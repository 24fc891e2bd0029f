//! The operators that DataFusion's planner reads differently: `^` is the power; a date plus an interval is a timestamp, and so is a
//! date beside one; constants in quotes are read as what stands beside them; those of arrays, structs, uuids and JSON are
//! [functions](special), and so are fields of structs and [rows](crate::bind::rows) of tables.

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Column, DFSchema, Result, ScalarValue, TableReference};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawWindowExpr};
use datafusion_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};
use sqlparser::ast::BinaryOperator;
use syntax::rewrite;
use table::NotFinite;

use crate::bind::{conditions, rows, special, windows};
use crate::functions::arguments::MICROS;
use crate::functions::decimals::constant;
use crate::functions::lists::names::{DISTINCT, NOT_DISTINCT};
use crate::functions::lists::types::is_struct;
use crate::functions::temporal::extract;
use crate::functions::{domains, intervals, operands, temporal, unknown};

/// Operators that DataFusion's planner reads differently.
#[derive(Debug)]
pub(crate) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if let Some(clause) = rewrite::clause(&expr.op) {
            let condition = conditions::planned(clause, expr.left, schema);
            return condition.map(PlannerResult::Planned);
        }
        if rows::is_whole(&expr.op) {
            return rows::whole(expr, schema).map(PlannerResult::Planned);
        }
        if let Some(op) = distinction(&expr.op) {
            return self
                .distinguished(op, expr, schema)
                .map(PlannerResult::Planned);
        }
        let RawBinaryExpr { op, left, right } = match special::planned(expr, schema)? {
            PlannerResult::Planned(expr) => return Ok(PlannerResult::Planned(expr)),
            PlannerResult::Original(expr) => expr,
        };
        let (left, right) = read_beside(&op, left, right, schema);
        if let Some(found) = computed(&op, &left, &right, schema)? {
            return Ok(PlannerResult::Planned(found));
        }
        Ok(match op {
            BinaryOperator::BitwiseXor | BinaryOperator::PGExp => {
                let args = [left, right].map(|arg| number(arg, schema));
                PlannerResult::Planned(domains::power().call(args.to_vec()))
            }
            BinaryOperator::Plus | BinaryOperator::Minus => {
                let widened = |date: Expr| Expr::Cast(Cast::new(Box::new(date), MICROS));
                let (left, right) = match op {
                    BinaryOperator::Minus => at_midnight(left, right, schema),
                    _ => (left, right),
                };
                // The right side first: in a long sum it is the shorter one.
                if let Some(sum) = with_time(&op, &left, &right, schema)? {
                    return Ok(PlannerResult::Planned(sum));
                }
                let adds = op == BinaryOperator::Plus;
                let (left, right) = match kind(&right, schema) {
                    Kind::Interval if kind(&left, schema) == Kind::Date => (widened(left), right),
                    Kind::Interval => (in_micros(left, schema), right),
                    Kind::Date if adds && kind(&left, schema) == Kind::Interval => {
                        (left, widened(right))
                    }
                    Kind::Other if adds && kind(&left, schema) == Kind::Interval => {
                        (left, in_micros(right, schema))
                    }
                    _ => (left, right),
                };
                PlannerResult::Original(RawBinaryExpr { op, left, right })
            }
            BinaryOperator::Multiply => match kind(&right, schema) {
                Kind::Number if kind(&left, schema) == Kind::Interval => {
                    PlannerResult::Planned(intervals::interval_times(left, right))
                }
                Kind::Interval if kind(&left, schema) == Kind::Number => {
                    PlannerResult::Planned(intervals::interval_times(right, left))
                }
                _ => PlannerResult::Original(RawBinaryExpr { op, left, right }),
            },
            BinaryOperator::Divide => match kind(&right, schema) {
                Kind::Number if kind(&left, schema) == Kind::Interval => {
                    PlannerResult::Planned(intervals::interval_divided(left, right))
                }
                _ => PlannerResult::Original(RawBinaryExpr { op, left, right }),
            },
            op => PlannerResult::Original(RawBinaryExpr { op, left, right }),
        })
    }

    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let column = Expr::Column(Column::from((qualifier, field)));
        rows::field(column, names).map(PlannerResult::Planned)
    }

    fn plan_window(&self, expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        windows::planned(expr)
    }

    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(extract::extract(args)))
    }
}

/// Which of `is distinct from` and `is not distinct from` an operator is.
fn distinction(op: &BinaryOperator) -> Option<Operator> {
    match op {
        BinaryOperator::Custom(name) if name == DISTINCT => Some(Operator::IsDistinctFrom),
        BinaryOperator::Custom(name) if name == NOT_DISTINCT => Some(Operator::IsNotDistinctFrom),
        BinaryOperator::Spaceship => Some(Operator::IsNotDistinctFrom),
        _ => None,
    }
}

impl Operators {
    /// `is [not] distinct from`, whose sides are fitted to each other as those of `=` are. Beside NULL it asks whether the
    /// other side is NULL, whatever its type.
    ///
    /// # Errors
    /// If there is no `=` of such sides.
    fn distinguished(&self, op: Operator, expr: RawBinaryExpr, schema: &DFSchema) -> Result<Expr> {
        let two = |left: Expr, right: Expr| {
            Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
        };
        let RawBinaryExpr { left, right, .. } = expr;
        let is_row = |side: &Expr| side.get_type(schema).is_ok_and(|ty| is_struct(&ty));
        if is_row(&left) || is_row(&right) {
            // Rows are distinct by their fields, of which `is null` asks.
            let (left, right) = special::rows(left, right, schema)?;
            return Ok(two(left, right));
        }
        let null = |side: Expr| match op {
            Operator::IsDistinctFrom => Expr::IsNotNull(Box::new(side)),
            _ => Expr::IsNull(Box::new(side)),
        };
        let is_null = |side: &Expr| matches!(side, Expr::Literal(ScalarValue::Null, _));
        if is_null(&right) {
            return Ok(null(left));
        }
        if is_null(&left) {
            return Ok(null(right));
        }
        let equal = RawBinaryExpr {
            op: BinaryOperator::Eq,
            left: left.clone(),
            right: right.clone(),
        };
        let equal = match self.plan_binary_op(equal, schema)? {
            PlannerResult::Original(own) => return Ok(two(own.left, own.right)),
            PlannerResult::Planned(equal) => equal,
        };
        // A function compares them: none finds NULL equal to NULL.
        let same = (left.is_null().and(right.is_null())).or(equal.is_true());
        Ok(match op {
            Operator::IsDistinctFrom => Expr::Not(Box::new(same)),
            _ => same,
        })
    }
}

/// An operand of `^`: a text is read as a number.
fn number(operand: Expr, schema: &DFSchema) -> Expr {
    use DataType::{LargeUtf8, Utf8, Utf8View};
    match operand.get_type(schema) {
        Ok(Utf8 | LargeUtf8 | Utf8View) => {
            Expr::Cast(Cast::new(Box::new(operand), DataType::Float64))
        }
        _ => operand,
    }
}

/// Whether an expression is a constant in quotes.
fn is_quoted(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten().is_some(),
        _ => false,
    }
}

/// What a constant in quotes says that no decimal of up to 38 digits is.
fn not_finite(expr: &Expr) -> Option<NotFinite> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten().and_then(NotFinite::read),
        _ => None,
    }
}

/// The sides of a sum, a product or a quotient, of which a constant in quotes beside a number is read as one of its type.
fn numbers(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    // The digits of one decimal say nothing of those of another.
    let kind = |of: DataType| match of {
        DataType::Decimal128(_, scale) => DataType::Decimal128(38, scale.max(10)),
        DataType::Decimal256(_, scale) => DataType::Decimal256(76, scale.max(10)),
        of => of,
    };
    let read = |text: Expr, other: &Expr| {
        // Types are not looked for without need: that takes long in a long sum.
        if !is_quoted(&text) {
            return text;
        }
        match other.get_type(schema) {
            Ok(DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale))
                if not_finite(&text).is_some() =>
            {
                not_finite(&text).map_or(text, |own| constant(own, scale))
            }
            Ok(of) if of.is_numeric() => Expr::Cast(Cast::new(Box::new(text), kind(of))),
            _ => text,
        }
    };
    let own = read(left, &right);
    let other = read(right, &own);
    (own, other)
}

/// The sides of an operator, of which a constant in quotes is read as what stands beside it: an interval, a truth value or a
/// decimal where both are compared, a number where they are computed with. Others the planner reads so itself.
fn read_beside(op: &BinaryOperator, left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    use BinaryOperator::{Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Plus};
    if matches!(op, Plus | Minus) {
        let (left, right) = moments(*op == Plus, left, right, schema);
        return numbers(left, right, schema);
    }
    if matches!(op, Multiply | Divide | Modulo) {
        return numbers(left, right, schema);
    }
    if !matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
        return (left, right);
    }
    let is_text = is_quoted;
    let read = |text: Expr| {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        Expr::Cast(Cast::new(Box::new(text), interval))
    };
    match (is_text(&left), is_text(&right)) {
        (true, false) if kind(&right, schema) == Kind::Interval => (read(left), right),
        (false, true) if kind(&left, schema) == Kind::Interval => (left, read(right)),
        (true, false) => match right.get_type(schema) {
            Ok(beside) => (unknown::compared(left, &beside), right),
            Err(_) => (left, right),
        },
        (false, true) => match left.get_type(schema) {
            Ok(beside) => (left, unknown::compared(right, &beside)),
            Err(_) => (left, right),
        },
        _ => (left, right),
    }
}

/// The sides of a sum or a difference, of which a constant in quotes beside a date, a time, a timestamp or an interval is what
/// PostgreSQL takes it for: one of the same type in a difference, and an interval in a sum. What is added to a date might be several
/// things, and is none.
fn moments(plus: bool, left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let (is_left, beside) = match (is_quoted(&left), is_quoted(&right)) {
        (true, false) => (true, right.get_type(schema)),
        (false, true) => (false, left.get_type(schema)),
        _ => return (left, right),
    };
    let to = match beside {
        Ok(DataType::Interval(_)) => DataType::Interval(IntervalUnit::MonthDayNano),
        Ok(DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_)) if plus => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        Ok(
            own @ (DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Time32(_)
            | DataType::Time64(_)),
        ) if !plus => own,
        _ => return (left, right),
    };
    let read = |text: Expr| Expr::Cast(Cast::new(Box::new(text), to));
    if is_left {
        (read(left), right)
    } else {
        (left, read(right))
    }
}

/// What arithmetic gives of numbers for which the planner would find another type; none of others.
///
/// # Errors
/// Those of constants.
fn computed(
    op: &BinaryOperator,
    left: &Expr,
    right: &Expr,
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    if *op == BinaryOperator::PGBitwiseXor {
        return Ok(exclusive(left, right));
    }
    let op = match op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        _ => return Ok(None),
    };
    operands::operated(op, left, right, schema)
}

/// `a # b` where one side has the other in it, as the bits that either has without those that both have: the optimiser takes
/// `a # a` for 0 and `(a # b) # a` for `b`, also where `a` is NULL. None of other sides.
fn exclusive(left: &Expr, right: &Expr) -> Option<Expr> {
    let has = |side: &Expr, other: &Expr| {
        let found = side.exists(|part| Ok(part == other));
        // The closure does not fail.
        found.unwrap_or(false)
    };
    if !has(left, right) && !has(right, left) || left.is_volatile() || right.is_volatile() {
        return None;
    }
    let bits = |op: Operator| {
        let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
        Box::new(Expr::BinaryExpr(BinaryExpr::new(left, op, right)))
    };
    let (either, both) = (bits(Operator::BitwiseOr), bits(Operator::BitwiseAnd));
    Some(Expr::BinaryExpr(BinaryExpr::new(
        either,
        Operator::Minus,
        both,
    )))
}

/// A timestamp beside an interval: one that counts seconds or milliseconds counts microseconds, as the interval has them.
fn in_micros(stamp: Expr, schema: &DFSchema) -> Expr {
    match stamp.get_type(schema) {
        Ok(DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone)) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, zone);
            Expr::Cast(Cast::new(Box::new(stamp), micros))
        }
        _ => stamp,
    }
}

/// The sides of a difference, of which a date beside a timestamp is its midnight.
fn at_midnight(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let stamped = |date: Expr, to: DataType| Expr::Cast(Cast::new(Box::new(date), to));
    match right.get_type(schema) {
        Ok(DataType::Date32) => match left.get_type(schema) {
            Ok(to @ DataType::Timestamp(..)) => (left, stamped(right, to)),
            _ => (left, right),
        },
        Ok(to @ DataType::Timestamp(..)) => match left.get_type(schema) {
            Ok(DataType::Date32) => (stamped(left, to), right),
            _ => (left, right),
        },
        _ => (left, right),
    }
}

/// Sums and differences of times with dates and intervals; none of others.
///
/// # Errors
/// For two times that are added.
fn with_time(
    op: &BinaryOperator,
    left: &Expr,
    right: &Expr,
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    let Ok(r) = right.get_type(schema) else {
        return Ok(None);
    };
    // No time is added to a number, nor one subtracted from it.
    if r.is_numeric() {
        return Ok(None);
    }
    let Ok(l) = left.get_type(schema) else {
        return Ok(None);
    };
    temporal::sums::planned(*op == BinaryOperator::Plus, (left, &l), (right, &r))
}

/// The kinds of operands that operators of dates and intervals distinguish.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Date,
    Interval,
    Number,
    Other,
}

fn kind(expr: &Expr, schema: &DFSchema) -> Kind {
    match expr.get_type(schema) {
        Ok(DataType::Date32) => Kind::Date,
        Ok(DataType::Interval(_)) => Kind::Interval,
        Ok(ty) if ty.is_numeric() => Kind::Number,
        _ => Kind::Other,
    }
}
