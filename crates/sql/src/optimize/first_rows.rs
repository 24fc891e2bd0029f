//! The first row of each group: `row_number() over (partition by p order by o) = 1`, and the limits of one row that a
//! subquery in `from` has (which are planned as this). Numbering sorts all rows; the first row of each group is an
//! aggregate, which keeps one row of each.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, Result, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, WindowFunction};
use datafusion_expr::expr_rewriter::unalias;
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    Aggregate, Expr, ExprSchemable, Filter, LogicalPlan, Operator, Projection, Window,
    WindowFunctionDefinition, lit,
};
use datafusion_functions_aggregate::first_last::first_value_udaf;
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};
use engine::RowNumbers;

use crate::optimize::as_of::known::Known;

/// Most columns of a row that are found this way: beyond, sorting is as fast.
const MOST: usize = 64;

/// The optimizer rule.
#[derive(Debug)]
pub(crate) struct FirstRows;

impl FirstRows {
    pub(crate) const NAME: &str = "first_rows";
}

impl OptimizerRule for FirstRows {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = &plan else {
            return Ok(Transformed::no(plan));
        };
        if let LogicalPlan::Projection(columns) = filter.input.as_ref() {
            let rewritten = below_columns(filter, columns)?;
            return Ok(rewritten.map_or_else(|| Transformed::no(plan), Transformed::yes));
        }
        let LogicalPlan::Window(window) = filter.input.as_ref() else {
            return Ok(Transformed::no(plan));
        };
        Ok(match first_of_groups(filter, window)? {
            Some(plan) => Transformed::yes(plan),
            None => Transformed::no(plan),
        })
    }
}

/// The first rows of groups where a projection lies between the filter and the window: columns that nobody reads but the window
/// are left out there. The filter goes below it, and becomes an aggregate if one row of each group is asked for.
fn below_columns(filter: &Filter, columns: &Projection) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Window(window) = columns.input.as_ref() else {
        return Ok(None);
    };
    let mut below: HashMap<Column, Expr> = HashMap::new();
    for (e, (qualifier, field)) in columns.expr.iter().zip(columns.schema.iter()) {
        let inner = unalias(e.clone());
        if !matches!(inner, Expr::Column(_)) {
            return Ok(None);
        }
        below.insert(Column::new(qualifier.cloned(), field.name()), inner);
    }
    let predicate = filter.predicate.clone().transform(|e| {
        let own = match &e {
            Expr::Column(column) => below.get(column).cloned(),
            _ => None,
        };
        Ok(own.map_or_else(|| Transformed::no(e), Transformed::yes))
    })?;
    let filter = Filter::try_new(predicate.data, Arc::clone(&columns.input))?;
    if numbered(&filter)?.is_none() {
        return Ok(None);
    }
    let first = first_of_groups(&filter, window)?;
    let rows = first.unwrap_or(LogicalPlan::Filter(filter));
    let (exprs, schema) = (columns.expr.clone(), Arc::clone(&columns.schema));
    let plan = Projection::try_new_with_schema(exprs, Arc::new(rows), schema)?;
    Ok(Some(LogicalPlan::Projection(plan)))
}

/// The filter of a window's rows as an aggregate, if it keeps the first row of each group.
fn first_of_groups(filter: &Filter, window: &Window) -> Result<Option<LogicalPlan>> {
    let Some(numbered) =
        numbered(filter)?.filter(|own| own.most == 1 && own.numbers == RowNumbers::Rows)
    else {
        return Ok(None);
    };
    let params = &numbered.function.params;
    if Known::of(window, &params.partition_by, &params.order_by).is_some() {
        // The engine finds these without numbers.
        return Ok(None);
    }
    let Numbered { number, others, .. } = numbered;
    let inner = window.input.schema();
    let groups = &numbered.function.params.partition_by;
    let first = |column: &Column| {
        let args = vec![Expr::Column(column.clone())];
        let order = numbered.function.params.order_by.clone();
        Expr::AggregateFunction(AggregateFunction::new_udf(
            first_value_udaf(),
            args,
            false,
            None,
            order,
            None,
        ))
    };
    let mut firsts = Vec::new();
    // For each column of the input its place among what the aggregate gives.
    let places: Vec<usize> = inner
        .columns()
        .iter()
        .map(|column| {
            let own = Expr::Column(column.clone());
            groups
                .iter()
                .position(|key| *key == own)
                .unwrap_or_else(|| {
                    firsts.push(first(column));
                    groups.len() + firsts.len() - 1
                })
        })
        .collect();
    if firsts.len() > MOST {
        return Ok(None);
    }
    let aggregate = Aggregate::try_new(Arc::clone(&window.input), groups.clone(), firsts)?;
    let mut fields: Vec<Expr> = places
        .into_iter()
        .zip(inner.iter())
        .map(|(place, (qualifier, field))| {
            let made = Column::from(aggregate.schema.qualified_field(place));
            Expr::Column(made).alias_qualified(qualifier.cloned(), field.name())
        })
        .collect();
    fields.push(lit(1u64).alias_qualified(number.relation.clone(), &number.name));
    let input = Arc::new(LogicalPlan::Aggregate(aggregate));
    let rows = LogicalPlan::Projection(Projection::try_new(fields, input)?);
    Ok(Some(match conjunction(others) {
        Some(others) => LogicalPlan::Filter(Filter::try_new(others, Arc::new(rows))?),
        None => rows,
    }))
}

/// A filter that keeps the first rows of groups by their number.
pub(crate) struct Numbered<'f> {
    /// The window below the filter.
    pub window: &'f Window,
    /// Its only function: `row_number()`, `rank()` or `dense_rank()`.
    pub function: WindowFunction,
    pub numbers: RowNumbers,
    /// The column of the numbers.
    number: Column,
    /// The greatest number that may pass.
    pub most: i128,
    /// The conditions besides those that all rows up to this number fulfil.
    pub others: Vec<Expr>,
}

/// The filter as one that keeps the first rows of groups, if it is one.
pub(crate) fn numbered(filter: &Filter) -> Result<Option<Numbered<'_>>> {
    let LogicalPlan::Window(window) = filter.input.as_ref() else {
        return Ok(None);
    };
    let Some(function) = row_number(window)? else {
        return Ok(None);
    };
    let numbers = match function.fun.name() {
        "rank" => RowNumbers::Ranks,
        "dense_rank" => RowNumbers::DenseRanks,
        _ => RowNumbers::Rows,
    };
    let before = window.input.schema().fields().len();
    let number = Column::from(window.schema.qualified_field(before));
    let (mut most, mut others) = (i128::MAX, Vec::new());
    for condition in split_conjunction_owned(filter.predicate.clone()) {
        let Some((op, with)) = of_number(&condition, &number) else {
            // It stays, but tells how far numbers may go.
            most = most.min(upper(&condition, &number).unwrap_or(i128::MAX));
            others.push(condition);
            continue;
        };
        match op {
            Operator::Lt => most = most.min(with - 1),
            Operator::LtEq => most = most.min(with),
            Operator::Eq => most = most.min(with),
            _ => {}
        }
        let is_told = match op {
            Operator::Lt | Operator::LtEq => true,
            Operator::Eq => with == 1,
            Operator::Gt => with < 1,
            Operator::GtEq => with <= 1,
            _ => false,
        };
        if !is_told {
            others.push(condition);
        }
    }
    // If no row may pass, there is nothing to gain.
    Ok((1..i128::MAX).contains(&most).then_some(Numbered {
        window,
        function,
        numbers,
        number,
        most,
        others,
    }))
}

/// The greatest number for which a condition of alternatives can hold, such as `n = 1 or n = 3`, if it says one.
fn upper(condition: &Expr, number: &Column) -> Option<i128> {
    match condition {
        Expr::BinaryExpr(binary) if binary.op == Operator::Or => {
            let left = upper(&binary.left, number)?;
            Some(left.max(upper(&binary.right, number)?))
        }
        Expr::BinaryExpr(binary) if binary.op == Operator::And => {
            let sides = [upper(&binary.left, number), upper(&binary.right, number)];
            sides.into_iter().flatten().min()
        }
        Expr::InList(list) if !list.negated && is_number(&list.expr, number) => {
            let all = list.list.iter().map(constant);
            all.collect::<Option<Vec<i128>>>()?.into_iter().max()
        }
        _ => match of_number(condition, number)? {
            (Operator::Lt, with) => Some(with - 1),
            (Operator::LtEq | Operator::Eq, with) => Some(with),
            _ => None,
        },
    }
}

/// The window's function, if that is a single `row_number()`, `rank()` or `dense_rank()` of groups that can be keys of an aggregate.
fn row_number(window: &Window) -> Result<Option<WindowFunction>> {
    let [one] = &window.window_expr[..] else {
        return Ok(None);
    };
    let Expr::WindowFunction(own) = unalias(one.clone()) else {
        return Ok(None);
    };
    let WindowFunctionDefinition::WindowUDF(function) = &own.fun else {
        return Ok(None);
    };
    let params = &own.params;
    let is_plain = matches!(function.name(), "row_number" | "rank" | "dense_rank")
        && params.filter.is_none()
        && !params.partition_by.is_empty()
        && !params.partition_by.iter().any(Expr::is_volatile);
    if !is_plain {
        return Ok(None);
    }
    let schema = window.input.schema();
    for key in &params.partition_by {
        // Floats may be equal and yet differ (0 and -0): which of them the row has must not be lost.
        if key.get_type(schema)?.is_floating() {
            return Ok(None);
        }
    }
    Ok(Some(*own))
}

/// How a condition compares the number of a row with which constant, if it does that.
fn of_number(condition: &Expr, number: &Column) -> Option<(Operator, i128)> {
    let Expr::BinaryExpr(binary) = condition else {
        return None;
    };
    let (left, right) = (&binary.left, &binary.right);
    match (is_number(left, number), is_number(right, number)) {
        (true, false) => Some((binary.op, constant(right)?)),
        (false, true) => Some((binary.op.swap()?, constant(left)?)),
        _ => None,
    }
}

/// Whether an expression is the number, perhaps as another type of whole numbers.
fn is_number(expr: &Expr, number: &Column) -> bool {
    match expr {
        Expr::Column(column) => column == number,
        Expr::Cast(cast) => {
            let wide = matches!(cast.field.data_type(), DataType::Int64 | DataType::UInt64);
            wide && is_number(&cast.expr, number)
        }
        _ => false,
    }
}

fn constant(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(n)), _) => Some(i128::from(*n)),
        Expr::Literal(ScalarValue::UInt64(Some(n)), _) => Some(i128::from(*n)),
        Expr::Literal(ScalarValue::Int32(Some(n)), _) => Some(i128::from(*n)),
        _ => None,
    }
}
