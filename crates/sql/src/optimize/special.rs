//! Arrays, structs, uuids, enums and JSON in a plan, where DataFusion would take them for something else.
//!
//! * Constants in quotes take the type of what they stand beside: in lists, in `case`, and as [arguments](crate::optimize::arguments),
//!   also beside [dates and numbers](crate::functions::unknown); and in [unions](crate::optimize::unions).
//! * `is null` of a struct is about its fields, and its [order](crate::optimize::sort_keys) is PostgreSQL's.
//! * A `json` is no key: rows are not grouped, joined, ordered or told apart by it; by a `jsonb` they are by [what stands for
//!   it](crate::optimize::json_keys).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::expr::{Between, InList};
use datafusion_expr::utils::disjunction;
use datafusion_expr::{
    BinaryExpr, Case, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, SubqueryAlias, Union,
};
use datafusion_optimizer::AnalyzerRule;
use table::{is_enum, json_kind};

use crate::functions::enums::place;
use crate::functions::lists::names::MAPS_EQUAL;
use crate::functions::lists::types::{has, is_list, is_map, is_special, is_struct, together};
use crate::functions::{special, unknown};
use crate::messages::types::{standard_name, type_name};
use crate::optimize::arguments::arguments;
use crate::optimize::enums;
use crate::optimize::expressions::{fits, fitted, rewritten, special_of};
use crate::optimize::json_keys::{is_jsonb, keyed};
use crate::optimize::mixed;
use crate::optimize::sort_keys::ordered;
use crate::optimize::unions;

/// The analyzer rule. It must come before type coercion.
#[derive(Debug)]
pub(crate) struct Special;

impl AnalyzerRule for Special {
    fn name(&self) -> &str {
        "special"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_down_with_subqueries(unwrapped)?.data;
        let plan = unions::typed(plan)?;
        let plan = ordered(keyed(rewritten(plan, adapt)?)?)?;
        plan.apply_with_subqueries(|node| {
            check(node)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        enums::ordered(plan)
    }
}

/// `node` with its inputs in place of lateral subqueries, unless they stand beside what they may depend on, at the right of a
/// join: `unnest` in `from` is always planned as one.
fn unwrapped(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let bare = |plan: LogicalPlan| match plan {
        LogicalPlan::Subquery(subquery) => {
            Ok(Transformed::yes(Arc::unwrap_or_clone(subquery.subquery)))
        }
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => {
                let own = SubqueryAlias::try_new(Arc::clone(&subquery.subquery), alias.alias)?;
                Ok(Transformed::yes(LogicalPlan::SubqueryAlias(own)))
            }
            _ => Ok(Transformed::no(LogicalPlan::SubqueryAlias(alias))),
        },
        plan => Ok(Transformed::no(plan)),
    };
    match node {
        LogicalPlan::Join(mut join) => {
            let left = bare(Arc::unwrap_or_clone(join.left))?;
            join.left = Arc::new(left.data);
            let join = LogicalPlan::Join(join);
            Ok(if left.transformed {
                Transformed::yes(join)
            } else {
                Transformed::no(join)
            })
        }
        // It stands at the right of a join: elsewhere what is above has taken it away.
        LogicalPlan::SubqueryAlias(alias)
            if matches!(alias.input.as_ref(), LogicalPlan::Subquery(_)) =>
        {
            Ok(Transformed::no(LogicalPlan::SubqueryAlias(alias)))
        }
        node => node.map_children(bare),
    }
}

/// Whether JSON is in values of this type.
fn has_json(ty: &DataType) -> bool {
    has(ty, |ty| json_kind(ty).is_some())
}

/// Whether values of this type have parts, so that other functions than DataFusion's compare them.
fn has_parts(ty: &DataType) -> bool {
    is_list(ty) || is_struct(ty)
}

/// The columns that the expressions of a node see.
struct Seen<'n>(Vec<&'n DFSchema>);

impl Seen<'_> {
    fn of(&self, expr: &Expr) -> Option<DataType> {
        let mut schemas = self.0.iter();
        schemas.find_map(|schema| expr.get_type(*schema).ok())
    }

    /// Refuses JSON among values that are compared.
    fn refuse<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>, what: &str) -> Result<()> {
        let mut types = exprs.into_iter().filter_map(|expr| self.of(expr));
        types.try_for_each(|ty| refuse(&ty, what))
    }
}

impl Seen<'_> {
    /// Refuses a struct by which a join would find rows: DataFusion's does not find all.
    fn searched(&self, expr: &Expr, what: &str) -> Result<()> {
        match self.of(expr).filter(|ty| has(ty, is_struct)) {
            Some(ty) => plan_err!(
                "not supported: {what} a struct, {}: name its fields, or write a condition with `=`",
                type_name(&ty)
            ),
            None => Ok(()),
        }
    }
}

fn refuse(ty: &DataType, what: &str) -> Result<()> {
    let in_struct = |ty: &DataType| {
        is_struct(ty)
            && has(ty, |ty| {
                ty.is_floating() || matches!(ty, DataType::Interval(_))
            })
    };
    if has(ty, in_struct) {
        return plan_err!(
            "not supported: {what} operator for structs with floats or intervals, such as {}: name their fields",
            type_name(ty)
        );
    }
    if has(ty, is_map) {
        return plan_err!(
            "could not identify {what} operator for type {}: take map_entries(...) of it",
            type_name(ty)
        );
    }
    if has_json(ty) {
        return plan_err!(
            "could not identify {what} operator for type {}: take a text of it, ->> or ::text",
            type_name(ty)
        );
    }
    Ok(())
}

const EQUALITY: &str = "an equality";
const ORDERING: &str = "an ordering";

/// Refuses joins by structs that an optimised plan has, as those that subqueries become.
pub(super) fn joins(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = node {
            let seen = Seen(vec![join.left.schema().as_ref()]);
            let mut keys = join.on.iter();
            keys.try_for_each(|(key, _)| seen.searched(key, "a join by"))?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Refuses JSON where rows are compared.
fn check(node: &LogicalPlan) -> Result<()> {
    let inputs = node.inputs();
    let seen = Seen(inputs.iter().map(|input| input.schema().as_ref()).collect());
    match node {
        LogicalPlan::Aggregate(aggregate) => seen.refuse(&aggregate.group_expr, EQUALITY)?,
        LogicalPlan::Sort(sort) => seen.refuse(sort.expr.iter().map(|key| &key.expr), ORDERING)?,
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let mut fields = input.schema().fields().iter();
            fields.try_for_each(|field| refuse(field.data_type(), EQUALITY))?;
        }
        LogicalPlan::Distinct(Distinct::On(on)) => seen.refuse(&on.on_expr, EQUALITY)?,
        LogicalPlan::Join(join) => {
            for (left, right) in &join.on {
                seen.refuse([left, right], EQUALITY)?;
                seen.searched(left, "a join by")?;
                if let (Some(l), Some(r)) = (seen.of(left), seen.of(right))
                    && (is_special(&l) || is_special(&r))
                    && l != r
                {
                    return plan_err!(
                        "operator does not exist: {} = {}",
                        type_name(&l),
                        type_name(&r)
                    );
                }
            }
        }
        LogicalPlan::Union(union) => alike(union)?,
        _ => {}
    }
    node.apply_expressions(|expr| {
        expr.apply(|expr| {
            compares(expr, &seen)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// Refuses inputs of which one has a special type where another has a different one.
fn alike(union: &Union) -> Result<()> {
    for (at, field) in union.schema.fields().iter().enumerate() {
        let types = union.inputs.iter().filter_map(|input| {
            let field = input.schema().fields().get(at)?;
            Some(field.data_type().clone())
        });
        let types: Vec<DataType> = types.filter(|ty| *ty != DataType::Null).collect();
        if let Some(odd) = types.iter().find(|ty| is_special(ty))
            && let Some(other) = types.iter().find(|ty| *ty != odd)
        {
            return plan_err!(
                "UNION types {} and {} cannot be matched in column \"{}\": cast one",
                type_name(odd),
                type_name(other),
                field.name()
            );
        }
    }
    Ok(())
}

/// Refuses JSON that an expression compares, and arrays that `array_agg` would put into one another.
fn compares(expr: &Expr, seen: &Seen<'_>) -> Result<()> {
    match expr {
        Expr::AggregateFunction(function) => {
            let params = &function.params;
            let orders = matches!(function.func.name(), "min" | "max" | "mode");
            if params.distinct {
                seen.refuse(&params.args, EQUALITY)?;
            }
            if orders {
                seen.refuse(&params.args, ORDERING)?;
            }
            let mut types = params.args.iter().filter_map(|arg| seen.of(arg));
            if orders && types.any(|ty| has(&ty, is_struct)) {
                let name = function.func.name();
                return plan_err!("not supported: {name} of structs: name a field");
            }
            let mut keys = params.order_by.iter().map(|key| &key.expr);
            seen.refuse(keys.clone(), ORDERING)?;
            // DataFusion compares what it has gathered in another way than rows.
            if let Some(ty) = keys.find_map(|key| seen.of(key).filter(|ty| has(ty, is_struct))) {
                return plan_err!(
                    "not supported: {} ordered by a struct, {}: name its fields",
                    function.func.name(),
                    type_name(&ty)
                );
            }
            let first = params.args.first().and_then(|arg| seen.of(arg));
            if function.func.name() == "array_agg" && first.is_some_and(|ty| is_list(&ty)) {
                return plan_err!("not supported: array_agg of arrays");
            }
            Ok(())
        }
        Expr::WindowFunction(function) => {
            let sorts = function.params.order_by.iter().map(|key| &key.expr);
            seen.refuse(&function.params.partition_by, EQUALITY)?;
            seen.refuse(sorts, ORDERING)
        }
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            seen.refuse([left.as_ref(), right.as_ref()], EQUALITY)
        }
        Expr::InList(list) => seen.refuse([list.expr.as_ref()], EQUALITY),
        Expr::InSubquery(subquery) => {
            seen.refuse([subquery.expr.as_ref()], EQUALITY)?;
            seen.searched(&subquery.expr, "a subquery that is searched for")
        }
        Expr::SetComparison(comparison) => {
            seen.refuse([comparison.expr.as_ref()], EQUALITY)?;
            seen.searched(&comparison.expr, "a subquery that is searched for")
        }
        _ => Ok(()),
    }
}

fn adapt(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) if enums::has_one(&binary, schema) => {
            enums::compared(binary, schema)
        }
        Expr::InList(list) => in_list(list, schema),
        Expr::Between(between) => within(between, schema),
        Expr::InSubquery(subquery) => enums::member(subquery, schema),
        Expr::WindowFunction(function) => enums::window(function, schema),
        Expr::AggregateFunction(function) => enums::aggregate(function, schema),
        Expr::Case(case) => of_case(case, schema),
        Expr::ScalarFunction(function) => arguments(function, schema),
        Expr::IsNull(inner) if is_row(&inner, schema) => called("row is null", vec![*inner]),
        Expr::IsNotNull(inner) if is_row(&inner, schema) => called("row is not null", vec![*inner]),
        Expr::BinaryExpr(binary) => distinct(binary, schema),
        expr => Ok(Transformed::no(expr)),
    }
}

fn is_row(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|ty| is_struct(&ty))
}

fn called(name: &str, args: Vec<Expr>) -> Result<Transformed<Expr>> {
    Ok(Transformed::yes(special(name)?.call(args)))
}

/// `is distinct from` of structs, whose types must be one.
fn distinct(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let alike = matches!(
        binary.op,
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
    );
    let [left, right] = [&*binary.left, &*binary.right].map(|side| side.get_type(schema));
    let takes = |ty: &Result<DataType>| ty.as_ref().is_ok_and(|ty| is_struct(ty) || is_jsonb(ty));
    if !alike || !(takes(&left) || takes(&right)) {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    }
    let to = together(&[left?, right?])?;
    if !is_jsonb(&to) {
        refuse(&to, EQUALITY)?;
    }
    let BinaryExpr { left, op, right } = binary;
    let side = |expr: Box<Expr>| fitted(*expr, &to, schema).map(Box::new);
    let binary = BinaryExpr::new(side(left)?, op, side(right)?);
    Ok(Transformed::yes(Expr::BinaryExpr(binary)))
}

/// That two values are compared of which one is of a special type.
fn comparable(left: &Expr, op: &str, right: &Expr, schema: &DFSchema) -> Result<()> {
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(());
    };
    let is_any = |ty: &DataType| *ty == DataType::Null;
    let fit = !is_special(&l) && !is_special(&r)
        || l == r
        || is_any(&l)
        || is_any(&r)
        || fits(left, &l, &r)
        || fits(right, &r, &l);
    if fit {
        return Ok(());
    }
    plan_err!(
        "operator does not exist: {} {op} {}",
        standard_name(&l),
        standard_name(&r)
    )
}

fn in_list(list: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let all = std::iter::once(&*list.expr).chain(&list.list);
    let Some(to) = special_of(all, schema)? else {
        return Ok(unknown_in_list(list, schema));
    };
    let op = if list.negated { "<>" } else { "=" };
    for item in &list.list {
        comparable(&list.expr, op, item, schema)?;
    }
    let InList {
        expr,
        list,
        negated,
    } = list;
    let expr = fitted(*expr, &to, schema)?;
    let items = list.into_iter().map(|item| fitted(item, &to, schema));
    let items = items.collect::<Result<Vec<_>>>()?;
    if !has_parts(&to) && !is_map(&to) {
        let (expr, items) = if is_enum(&to) {
            (place(expr), items.into_iter().map(place).collect())
        } else {
            (expr, items)
        };
        return Ok(Transformed::yes(Expr::InList(InList {
            expr: Box::new(expr),
            list: items,
            negated,
        })));
    }
    let equal = special(if is_map(&to) { MAPS_EQUAL } else { "array eq" })?;
    let equals = items
        .into_iter()
        .map(|item| equal.call(vec![expr.clone(), item]));
    let Some(found) = disjunction(equals) else {
        return plan_err!("`in` takes values");
    };
    let found = if negated { !found } else { found };
    Ok(Transformed::yes(found))
}

/// `in` with the constants in quotes read as what stands beside them.
fn unknown_in_list(list: InList, schema: &DFSchema) -> Transformed<Expr> {
    let all: Vec<&Expr> = std::iter::once(&*list.expr).chain(&list.list).collect();
    let Some(typed) = unknown::typed(&all, schema) else {
        return Transformed::no(Expr::InList(list));
    };
    let mut typed = typed.into_iter();
    let expr = typed.next().map_or(list.expr, Box::new);
    let list = InList::new(expr, typed.collect(), list.negated);
    Transformed::yes(Expr::InList(list))
}

fn within(between: Between, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let all = [&*between.expr, &*between.low, &*between.high];
    let Some(to) = special_of(all, schema)? else {
        return Ok(match unknown::typed(&all, schema).as_deref() {
            Some([expr, low, high]) => {
                let [expr, low, high] = [expr, low, high].map(|own| Box::new(own.clone()));
                Transformed::yes(Expr::Between(Between::new(
                    expr,
                    between.negated,
                    low,
                    high,
                )))
            }
            _ => Transformed::no(Expr::Between(between)),
        });
    };
    let Between {
        expr,
        negated,
        low,
        high,
    } = between;
    comparable(&expr, if negated { "<" } else { ">=" }, &low, schema)?;
    comparable(&expr, if negated { ">" } else { "<=" }, &high, schema)?;
    if !is_jsonb(&to) {
        refuse(&to, ORDERING)?;
    }
    let expr = fitted(*expr, &to, schema)?;
    let (low, high) = (fitted(*low, &to, schema)?, fitted(*high, &to, schema)?);
    let (expr, low, high) = if is_enum(&to) {
        (place(expr), place(low), place(high))
    } else {
        (expr, low, high)
    };
    let compare = |left: Expr, op: Operator, name: &str, right: Expr| {
        if has_parts(&to) {
            return Ok::<_, datafusion_common::DataFusionError>(
                special(name)?.call(vec![left, right]),
            );
        }
        Ok(Expr::BinaryExpr(BinaryExpr::new(
            Box::new(left),
            op,
            Box::new(right),
        )))
    };
    let least = compare(expr.clone(), Operator::GtEq, "array ge", low)?;
    let most = compare(expr, Operator::LtEq, "array le", high)?;
    let inside = least.and(most);
    Ok(Transformed::yes(if negated { !inside } else { inside }))
}

fn of_case(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let values = case.when_then_expr.iter().map(|(_, value)| &**value);
    let values = special_of(values.chain(case.else_expr.as_deref()), schema)?;
    let tests = case.when_then_expr.iter().map(|(test, _)| &**test);
    let tests = match &case.expr {
        Some(operand) => special_of(std::iter::once(&**operand).chain(tests), schema)?,
        None => None,
    };
    if values.is_none() {
        mixed::results(&case, schema)?;
    }
    if values.is_none() && tests.is_none() {
        return Ok(unknown_in_case(case, schema));
    }
    if tests
        .as_ref()
        .is_some_and(|ty| !is_jsonb(ty) && (has_json(ty) || has_parts(ty)))
    {
        return plan_err!(
            "not supported: `case` of an array, a struct or JSON: write `case when a = b`"
        );
    }
    let fit = |expr: &mut Box<Expr>, to: &Option<DataType>| {
        if let Some(to) = to {
            **expr = fitted((**expr).clone(), to, schema)?;
        }
        Ok::<_, datafusion_common::DataFusionError>(())
    };
    let by_place = tests.as_ref().is_some_and(is_enum);
    let fit_test = |expr: &mut Box<Expr>| {
        if let Some(to) = &tests {
            let own = fitted((**expr).clone(), to, schema)?;
            **expr = if by_place { place(own) } else { own };
        }
        Ok::<_, datafusion_common::DataFusionError>(())
    };
    if let Some(operand) = &mut case.expr {
        fit_test(operand)?;
    }
    for (test, value) in &mut case.when_then_expr {
        if case.expr.is_some() {
            fit_test(test)?;
        }
        fit(value, &values)?;
    }
    if let Some(other) = &mut case.else_expr {
        fit(other, &values)?;
    }
    Ok(Transformed::yes(Expr::Case(case)))
}

/// `case` with the constants in quotes that it compares, or gives, read as what stands beside them.
fn unknown_in_case(mut case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let results = case.when_then_expr.iter().map(|(_, result)| &**result);
    let results: Vec<&Expr> = results.chain(case.else_expr.as_deref()).collect();
    let results = unknown::typed(&results, schema);
    let tests = case.expr.as_deref().and_then(|operand| {
        let tests = case.when_then_expr.iter().map(|(test, _)| &**test);
        let tests: Vec<&Expr> = std::iter::once(operand).chain(tests).collect();
        unknown::typed(&tests, schema)
    });
    let changed = results.is_some() || tests.is_some();
    if let Some(typed) = results {
        let places = case.when_then_expr.iter_mut().map(|(_, result)| result);
        for (place, own) in places.chain(case.else_expr.as_mut()).zip(typed) {
            **place = own;
        }
    }
    if let Some(typed) = tests {
        let places = case.when_then_expr.iter_mut().map(|(test, _)| test);
        for (place, own) in case.expr.iter_mut().chain(places).zip(typed) {
            **place = own;
        }
    }
    if changed {
        Transformed::yes(Expr::Case(case))
    } else {
        Transformed::no(Expr::Case(case))
    }
}
