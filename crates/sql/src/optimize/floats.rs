//! Exact numbers beside such as float, which they [become](crate::functions::number_types) before the planner would make decimals
//! of both: where they are compared and computed with, in lists, `case`, `values`, unions, joins and subqueries. Arguments of
//! functions are seen to by the functions. Products and quotients of decimals get their digits at the same time.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result, TableReference};
use datafusion_expr::expr::{Between, InList, InSubquery, SetComparison};
use datafusion_expr::expr_schema::cast_subquery;
use datafusion_expr::{
    BinaryExpr, Case, Cast, DmlStatement, Expr, ExprSchemable, Join, LogicalPlan, Operator,
    Projection, Union, Values,
};
use datafusion_optimizer::AnalyzerRule;

use crate::functions::number_types::{beside, united};
use crate::functions::operands::{as_type, operated, sides, whole};
use crate::optimize::expressions::rewritten_node;
use crate::optimize::multiset::is_set;
use crate::optimize::reals;

/// The analyzer rule. It must come before type coercion.
#[derive(Debug)]
pub(crate) struct Floats;

impl AnalyzerRule for Floats {
    fn name(&self) -> &str {
        "floats"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        settled(plan)
    }
}

/// `plan` in which numbers beside each other have one type where some float, and products and quotients of decimals
/// [their digits](crate::functions::decimals::operators).
///
/// # Errors
/// Those of finding types.
pub(crate) fn settled(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !concerns(&plan)? {
        return Ok(plan);
    }
    // What lies above a node whose types have changed has other types, too.
    let changed = Cell::new(false);
    let node = |plan: LogicalPlan| {
        let plan = expressions(plan)?;
        let plan = plan.transform_data(inputs)?;
        let plan = plan.transform_data(reals::sums)?;
        changed.set(changed.get() || plan.transformed);
        if changed.get() {
            plan.map_data(LogicalPlan::recompute_schema)
        } else {
            Ok(plan)
        }
    };
    Ok(plan.transform_up_with_subqueries(node)?.data)
}

/// A node with its expressions rewritten.
fn expressions(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |= expr.exists(|expr| Ok(brings_together(expr)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !found {
        return Ok(Transformed::no(plan));
    }
    rewritten_node(plan, &rewrite)
}

/// Whether values stand beside each other in an expression, or it is of a function that takes doubles alone.
fn brings_together(expr: &Expr) -> bool {
    if let Expr::ScalarFunction(call) = expr {
        return reals::is_of_doubles(call);
    }
    matches!(
        expr,
        Expr::BinaryExpr(_)
            | Expr::Between(_)
            | Expr::InList(_)
            | Expr::Case(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_)
    )
}

/// Whether a plan may have numbers that float, a product or a quotient: most have none.
fn concerns(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    let go_on = |found: bool| {
        if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        }
    };
    plan.apply_with_subqueries(|node| {
        let mut fields = node.schema().fields().iter();
        found |= fields.any(|field| field.data_type().is_floating());
        if let LogicalPlan::TableScan(scan) = node {
            let schema = scan.source.schema();
            let mut fields = schema.fields().iter();
            found |= fields.any(|field| field.data_type().is_floating());
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                found |= match expr {
                    Expr::Literal(value, _) => value.data_type().is_floating(),
                    Expr::Cast(cast) => cast.field.data_type().is_floating(),
                    Expr::TryCast(cast) => cast.field.data_type().is_floating(),
                    Expr::BinaryExpr(binary) => {
                        matches!(binary.op, Operator::Multiply | Operator::Divide)
                    }
                    // It may return one.
                    Expr::ScalarFunction(_)
                    | Expr::AggregateFunction(_)
                    | Expr::WindowFunction(_) => true,
                    _ => false,
                };
                Ok(go_on(found))
            })
        })?;
        Ok(go_on(found))
    })?;
    Ok(found)
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) => binary_expr(binary, schema),
        Expr::Between(between) => Ok(within(between, schema)),
        Expr::InList(list) => Ok(in_list(list, schema)),
        Expr::Case(case) => Ok(of_case(case, schema)),
        Expr::InSubquery(subquery) => in_subquery(subquery, schema),
        Expr::SetComparison(comparison) => set_comparison(comparison, schema),
        Expr::ScalarFunction(call) => Ok(reals::as_doubles(call, schema)),
        other => Ok(Transformed::no(other)),
    }
}

fn binary_expr(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(
        match operated(binary.op, &binary.left, &binary.right, schema)? {
            Some(found) => Transformed::yes(found),
            None => Transformed::no(Expr::BinaryExpr(binary)),
        },
    )
}

/// `between` is two comparisons, each of its own type.
fn within(between: Between, schema: &DFSchema) -> Transformed<Expr> {
    let compared = |op: Operator, bound: &Expr| {
        let found = sides(op, &between.expr, bound, schema);
        let is_mixed = found.is_some();
        let (left, right) = found.unwrap_or_else(|| ((*between.expr).clone(), bound.clone()));
        (left, right, is_mixed)
    };
    let (left, low, first) = compared(Operator::GtEq, &between.low);
    let (other, high, second) = compared(Operator::LtEq, &between.high);
    if !first && !second {
        return Transformed::no(Expr::Between(between));
    }
    if left == other {
        let [expr, low, high] = [left, low, high].map(Box::new);
        return Transformed::yes(Expr::Between(Between::new(
            expr,
            between.negated,
            low,
            high,
        )));
    }
    let inside = whole(left, Operator::GtEq, low).and(whole(other, Operator::LtEq, high));
    Transformed::yes(if between.negated { !inside } else { inside })
}

/// The types of all of these; `None` if one is not known.
fn types<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Option<Vec<DataType>> {
    let types = exprs.into_iter().map(|expr| expr.get_type(schema).ok());
    types.collect()
}

/// The type of values that stand together, if some float and others are exact.
fn together<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Option<(Vec<DataType>, DataType)> {
    let types = types(exprs, schema)?;
    let to = united(&types)?;
    Some((types, to))
}

/// `in` of one value is a comparison; of several, these and what is searched for have one type, as in PostgreSQL.
fn in_list(list: InList, schema: &DFSchema) -> Transformed<Expr> {
    let all = std::iter::once(&*list.expr).chain(&list.list);
    let Some((types, mut to)) = together(all, schema) else {
        return Transformed::no(Expr::InList(list));
    };
    if list.list.len() == 1 {
        to = DataType::Float64;
    }
    let mut types = types.iter();
    let mut of = |expr: Expr| match types.next() {
        Some(own) => as_type(expr, own, &to),
        None => expr,
    };
    let expr = Box::new(of(*list.expr));
    let items = list.list.into_iter().map(of).collect();
    Transformed::yes(Expr::InList(InList::new(expr, items, list.negated)))
}

fn of_case(mut case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let results = case.when_then_expr.iter().map(|(_, result)| &**result);
    let results = together(results.chain(case.else_expr.as_deref()), schema);
    let tests = case.expr.as_deref().and_then(|operand| {
        let tests = case.when_then_expr.iter().map(|(test, _)| &**test);
        together(std::iter::once(operand).chain(tests), schema)
    });
    if results.is_none() && tests.is_none() {
        return Transformed::no(Expr::Case(case));
    }
    let put = |place: &mut Box<Expr>, own: &DataType, to: &DataType| {
        let expr = std::mem::take(&mut **place);
        **place = as_type(expr, own, to);
    };
    if let Some((types, to)) = results {
        let places = case.when_then_expr.iter_mut().map(|(_, result)| result);
        for (place, own) in places.chain(case.else_expr.as_mut()).zip(&types) {
            put(place, own, &to);
        }
    }
    // What is compared is so in double precision.
    if let Some((types, _)) = tests {
        let places = case.when_then_expr.iter_mut().map(|(test, _)| test);
        for (place, own) in case.expr.iter_mut().chain(places).zip(&types) {
            put(place, own, &DataType::Float64);
        }
    }
    Transformed::yes(Expr::Case(case))
}

/// The type in which `expr` is compared with the values of a subquery, if only one of both floats.
fn with_subquery(
    expr: &Expr,
    plan: &LogicalPlan,
    schema: &DFSchema,
) -> Option<(DataType, DataType)> {
    let own = expr.get_type(schema).ok()?;
    let field = plan.schema().fields().first()?;
    let to = beside(&own, field.data_type())?;
    Some((own, to))
}

fn in_subquery(mut own: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some((from, to)) = with_subquery(&own.expr, &own.subquery.subquery, schema) else {
        return Ok(Transformed::no(Expr::InSubquery(own)));
    };
    own.expr = Box::new(as_type(*own.expr, &from, &to));
    own.subquery = cast_subquery(own.subquery, &to)?;
    Ok(Transformed::yes(Expr::InSubquery(own)))
}

fn set_comparison(mut own: SetComparison, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some((from, to)) = with_subquery(&own.expr, &own.subquery.subquery, schema) else {
        return Ok(Transformed::no(Expr::SetComparison(own)));
    };
    own.expr = Box::new(as_type(*own.expr, &from, &to));
    own.subquery = cast_subquery(own.subquery, &to)?;
    Ok(Transformed::yes(Expr::SetComparison(own)))
}

/// A node whose inputs, keys or rows have numbers of different kinds beside each other.
fn inputs(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        // Their columns take the types of both sides.
        LogicalPlan::Join(join) if is_set(&join) => Ok(Transformed::no(LogicalPlan::Join(join))),
        LogicalPlan::Join(join) => Ok(keys(join)),
        LogicalPlan::Union(all) => union(all),
        LogicalPlan::Values(rows) => values(rows),
        LogicalPlan::Dml(statement) => stored(statement),
        other => Ok(Transformed::no(other)),
    }
}

/// The rows that a statement writes, with the types of its table: the planner knew others when it cast them.
fn stored(mut statement: DmlStatement) -> Result<Transformed<LogicalPlan>> {
    let table = statement.target.schema();
    let wanted = |at: usize, own: &Field| {
        let field = table.fields().get(at)?;
        let differs = field.name() == own.name() && field.data_type() != own.data_type();
        let numbers = own.data_type().is_numeric() && field.data_type().is_numeric();
        (differs && numbers).then(|| field.data_type().clone())
    };
    let columns = statement.input.schema().iter().enumerate();
    let types: Vec<Option<DataType>> = columns.map(|(at, (_, own))| wanted(at, own)).collect();
    if types.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Dml(statement)));
    }
    let columns = statement.input.schema().iter().zip(types);
    let exprs = columns.map(|(column, to)| {
        let own = Expr::Column(Column::from(column));
        match to {
            Some(to) => {
                let (table, field) = column;
                Expr::Cast(Cast::new(Box::new(own), to))
                    .alias_qualified(table.cloned(), field.name())
            }
            None => own,
        }
    });
    let exprs: Vec<Expr> = exprs.collect();
    let cast = Projection::try_new(exprs, statement.input)?;
    statement.input = Arc::new(LogicalPlan::Projection(cast));
    Ok(Transformed::yes(LogicalPlan::Dml(statement)))
}

fn keys(mut join: Join) -> Transformed<LogicalPlan> {
    let mut changed = false;
    for (left, right) in &mut join.on {
        let types = (
            left.get_type(join.left.schema()),
            right.get_type(join.right.schema()),
        );
        let (Ok(l), Ok(r)) = types else {
            continue;
        };
        if let Some(to) = beside(&l, &r) {
            *left = as_type(std::mem::take(left), &l, &to);
            *right = as_type(std::mem::take(right), &r, &to);
            changed = true;
        }
    }
    let join = LogicalPlan::Join(join);
    if changed {
        Transformed::yes(join)
    } else {
        Transformed::no(join)
    }
}

/// The columns of a union, of which each is as in all its inputs.
fn union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let width = union.schema.fields().len();
    let column = |at: usize| {
        let fields = union.inputs.iter().map(|input| {
            let fields = input.schema().fields();
            fields.get(at).map(|field| field.data_type())
        });
        let types: Option<Vec<&DataType>> = fields.collect();
        types.and_then(united)
    };
    let wanted: Vec<Option<DataType>> = (0..width).map(column).collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.into_iter().map(|input| {
        let columns = input.schema().iter().zip(&wanted);
        let exprs = columns.map(|(column, to)| {
            let own = Expr::Column(Column::from(column));
            match to {
                Some(to) if column.1.data_type() != to => {
                    let (table, field) = column;
                    as_type(own, field.data_type(), to)
                        .alias_qualified(table.cloned(), field.name())
                }
                _ => own,
            }
        });
        let exprs: Vec<Expr> = exprs.collect();
        let cast = Projection::try_new(exprs, input)?;
        Ok(Arc::new(LogicalPlan::Projection(cast)))
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let fields = union.schema.iter().zip(&wanted);
    let fields = fields.map(|((table, field), to)| {
        let field = match to {
            Some(to) => Arc::new(field.as_ref().clone().with_data_type(to.clone())),
            None => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let fields: Vec<(Option<TableReference>, Arc<Field>)> = fields.collect();
    let schema = DFSchema::new_with_metadata(fields, union.schema.metadata().clone())?;
    Ok(Transformed::yes(LogicalPlan::Union(Union {
        inputs,
        schema: Arc::new(schema),
    })))
}

/// The columns of `values`, in which the planner has made decimals of all numbers of a column with some that float.
fn values(values: Values) -> Result<Transformed<LogicalPlan>> {
    let none = DFSchema::empty();
    let wanted: Vec<Option<DataType>> = (values.schema.fields().iter().enumerate())
        .map(|(at, field)| {
            let cells = values.values.iter().filter_map(|row| row.get(at));
            let types = cells.map(|cell| uncast(cell, field.data_type()).get_type(&none).ok());
            let types: Option<Vec<DataType>> = types.collect();
            let is_decimal = field.data_type().is_decimal();
            types.filter(|_| is_decimal).and_then(|all| united(&all))
        })
        .collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Values(values)));
    }
    let mut rows = values.values;
    let mut fields = Vec::with_capacity(wanted.len());
    for (at, (field, to)) in values.schema.fields().iter().zip(wanted).enumerate() {
        let Some(to) = to else {
            fields.push(field.as_ref().clone());
            continue;
        };
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            let own = uncast(cell, field.data_type()).clone();
            let from = own.get_type(&none)?;
            *cell = match own {
                Expr::Literal(value, metadata) if value.is_null() => {
                    Expr::Literal((&to).try_into()?, metadata)
                }
                own => as_type(own, &from, &to),
            };
        }
        fields.push(field.as_ref().clone().with_data_type(to));
    }
    let schema = DFSchema::from_unqualified_fields(fields.into(), HashMap::new())?;
    Ok(Transformed::yes(LogicalPlan::Values(Values {
        schema: Arc::new(schema),
        values: rows,
    })))
}

/// A cell of `values` without the cast of a number that floats to the type of its column.
fn uncast<'e>(cell: &'e Expr, column: &DataType) -> &'e Expr {
    match cell {
        Expr::Cast(cast) if cast.field.data_type() == column => {
            let from = cast.expr.get_type(&DFSchema::empty());
            if from.is_ok_and(|from| from.is_floating()) {
                &cast.expr
            } else {
                cell
            }
        }
        cell => cell,
    }
}
