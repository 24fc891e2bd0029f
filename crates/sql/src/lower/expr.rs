//! Lowering of expressions.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::expr::{InList, ScalarFunction};
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{
    BinaryExpr, Case, Expr as Sql, ExprSchemable, LogicalPlan, Operator, Subquery,
};
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};
use engine::{Arithmetic, Compare, Error, Expr, Kind, Literal, Node, Rel, Result, Type, Var};

use crate::functions::decimals::operators::QUOTIENT;
use crate::functions::same::SAME;
use crate::functions::single::of_single;
use crate::lower::call::{Function, Same, failed};
use crate::lower::lowering::{Lowering, mapped};
use crate::optimize::checked::{operands, type_of};
use crate::optimize::expressions::has_subquery;

/// What names stand for: the columns of a schema, and the vector of each.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'s> {
    pub schema: &'s DFSchema,
    pub vars: &'s [Var],
}

/// Expressions of DataFusion.
pub(super) struct Compiled {
    /// The vectors that they read, one for each column of the schema.
    pub args: Vec<Expr>,
    pub exprs: Vec<Arc<dyn PhysicalExpr>>,
    pub schema: SchemaRef,
}

/// `e` with columns in the places of its subqueries, which `found` gets with these columns. They are found before, whether a row needs
/// them or not.
///
/// # Errors
/// [`Error::Unsupported`] for a subquery that gives no value.
fn parameters_of(e: &Sql, found: &mut Vec<(Arc<Field>, Subquery)>) -> Result<Sql> {
    let replaced = e.clone().transform_down(|e| match e {
        Sql::ScalarSubquery(subquery) => {
            // No column is called so.
            let name = format!("\u{1}subquery {}", found.len());
            let data = subquery.subquery.schema().field(0).data_type().clone();
            found.push((Arc::new(Field::new(&name, data, true)), subquery));
            Ok(Transformed::yes(Sql::Column(Column::from_name(name))))
        }
        other => Ok(Transformed::no(other)),
    });
    let replaced = replaced.map_err(failed)?.data;
    if has_subquery(&replaced) {
        return Err(Error::Unsupported("a subquery that gives no value".into()));
    }
    Ok(replaced)
}

impl Lowering<'_> {
    /// The conjuncts of a predicate.
    pub fn conjuncts(&mut self, predicate: &Sql, scope: Scope<'_>) -> Result<Vec<Expr>> {
        split_conjunction(predicate)
            .into_iter()
            .map(|part| self.expr(part, scope))
            .collect()
    }

    /// `e` computed by kernels where there are any, otherwise by a call of DataFusion's expression.
    pub fn expr(&mut self, e: &Sql, scope: Scope<'_>) -> Result<Expr> {
        let parameters = self.query.parameters.len();
        match self.native(e, scope) {
            Err(Error::Unsupported(why)) => {
                self.query.parameters.truncate(parameters);
                if has_subquery(e) {
                    let call = self.call_of_subqueries(e, scope);
                    return call.map_err(|_| {
                        self.query.parameters.truncate(parameters);
                        Error::Unsupported(why)
                    });
                }
                let call = self.call(e, scope)?;
                Ok(self.quotient(call, e, scope))
            }
            done => done,
        }
    }

    /// `call`, which is `e`, with the bounds of its values if it is a quotient of decimals: its type has all 38 digits, of which
    /// most quotients need few, and sums of them must have room.
    fn quotient(&mut self, mut call: Expr, e: &Sql, scope: Scope<'_>) -> Expr {
        let Sql::ScalarFunction(function) = e else {
            return call;
        };
        let (QUOTIENT, [a, b]) = (function.func.name(), &function.args[..]) else {
            return call;
        };
        let (Ok(a), Ok(b)) = (self.expr(a, scope), self.expr(b, scope)) else {
            return call;
        };
        let is_number = |e: &Expr| matches!(e.ty.kind, Kind::Int | Kind::Wide);
        // No divisor is nearer to zero than one unit of its last digit.
        let digits = i32::from(call.ty.scale()) - i32::from(a.ty.scale()) + i32::from(b.ty.scale());
        let factor = u32::try_from(digits).ok();
        let factor = factor.and_then(|digits| 10i128.checked_pow(digits));
        let most =
            a.ty.bounds
                .0
                .unsigned_abs()
                .max(a.ty.bounds.1.unsigned_abs());
        let most = i128::try_from(most).ok();
        let most = factor.and_then(|factor| most?.checked_mul(factor)?.checked_add(1));
        if let Some(most) = most.filter(|_| is_number(&a) && is_number(&b)) {
            let narrow = call.ty.clone().within((-most, most));
            if narrow.kind == call.ty.kind {
                call.ty = narrow;
            }
        }
        call
    }

    /// `e` computed by kernels.
    fn native(&mut self, e: &Sql, scope: Scope<'_>) -> Result<Expr> {
        if let Some(compared) = self.part_compared(e, scope)? {
            return Ok(compared);
        }
        match e {
            Sql::Column(column) => {
                let position = scope.schema.index_of_column(column).map_err(failed)?;
                Ok(self.query.expr(scope.vars[position]))
            }
            Sql::Alias(alias) => self.expr(&alias.expr, scope),
            Sql::Literal(value, _) => literal(value),
            Sql::Not(inner) => Ok(engine::not(self.expr(inner, scope)?)),
            Sql::IsNull(inner) => Ok(engine::is_null(self.expr(inner, scope)?)),
            Sql::IsNotNull(inner) => Ok(engine::not(engine::is_null(self.expr(inner, scope)?))),
            Sql::BinaryExpr(binary) => self.binary(binary, e, scope),
            Sql::Between(between) => {
                let e = self.expr(&between.expr, scope)?;
                let low = self.expr(&between.low, scope)?;
                let high = self.expr(&between.high, scope)?;
                let inside = engine::and(vec![
                    engine::compare(Compare::Ge, e.clone(), low)?,
                    engine::compare(Compare::Le, e, high)?,
                ]);
                Ok(if between.negated {
                    engine::not(inside)
                } else {
                    inside
                })
            }
            Sql::InList(list) => self.in_list(list, scope),
            Sql::Case(case) => self.case(case, e, scope),
            Sql::Cast(cast) => {
                let data = e.get_type(scope.schema).map_err(failed)?;
                let from = type_of(&cast.expr, scope.schema).map_err(failed)?;
                match self.cast_by_kernel((&cast.expr, &from), e, &data, scope)? {
                    Some(found) => Ok(found),
                    None => engine::cast(self.expr(&cast.expr, scope)?, &data),
                }
            }
            Sql::ScalarFunction(function) => self.function(function, e, scope),
            Sql::ScalarSubquery(subquery) => self.scalar_subquery(subquery),
            other => Err(Error::Unsupported(format!("the expression {other}"))),
        }
    }

    fn binary(&mut self, binary: &BinaryExpr, e: &Sql, scope: Scope<'_>) -> Result<Expr> {
        let BinaryExpr { left, op, right } = binary;
        let compare = match op {
            Operator::And | Operator::Or => None,
            Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide => None,
            Operator::Modulo => None,
            Operator::Eq => Some(Compare::Eq),
            Operator::NotEq => Some(Compare::Ne),
            Operator::Lt => Some(Compare::Lt),
            Operator::LtEq => Some(Compare::Le),
            Operator::Gt => Some(Compare::Gt),
            Operator::GtEq => Some(Compare::Ge),
            _ => return Err(Error::Unsupported(format!("the operator {op}"))),
        };
        if let Operator::Divide | Operator::Modulo = op {
            let data = e.get_type(scope.schema).map_err(failed)?;
            if let Some(found) = self.divided(binary, e, &data, scope)? {
                return Ok(found);
            }
        }
        if *op == Operator::Modulo {
            return Err(Error::Unsupported(format!("the operator {op}")));
        }
        let (a, b) = (self.expr(left, scope)?, self.expr(right, scope)?);
        match (op, compare) {
            (_, Some(compare)) => engine::compare(compare, a, b),
            (Operator::And, _) => Ok(engine::and(vec![a, b])),
            (Operator::Or, _) => Ok(engine::or(vec![a, b])),
            _ => {
                let data = e.get_type(scope.schema).map_err(failed)?;
                engine::arithmetic(arithmetic(op), a, b, &data)
            }
        }
    }

    fn in_list(&mut self, list: &InList, scope: Scope<'_>) -> Result<Expr> {
        let e = self.expr(&list.expr, scope)?;
        let mut set = Vec::with_capacity(list.list.len());
        for item in &list.list {
            let item = self.expr(item, scope)?;
            let (_, item) = engine::alike(e.clone(), item)?;
            match item.constant() {
                Some(Literal::Int(value)) if item.ty.scale() == e.ty.scale() => set.push(*value),
                _ => return Err(Error::Unsupported("a list of such values".into())),
            }
        }
        let inside = engine::in_set(e, set)?;
        Ok(if list.negated {
            engine::not(inside)
        } else {
            inside
        })
    }

    /// The functions that have kernels.
    fn function(&mut self, function: &ScalarFunction, e: &Sql, scope: Scope<'_>) -> Result<Expr> {
        let data = type_of(e, scope.schema).map_err(failed)?;
        if let Some(part) = self.part(function, &data, scope)? {
            return Ok(part);
        }
        match (function.func.name(), &function.args[..]) {
            ("date_part", [Sql::Literal(part, _), date])
                if is_year(part) && is_date(date, scope) =>
            {
                engine::year(self.expr(date, scope)?, &data)
            }
            (SAME, [own, _]) => self.expr(own, scope),
            (name @ ("+" | "-" | "*"), [a, b]) if operands(e).is_some() => {
                let (a, b) = (self.expr(a, scope)?, self.expr(b, scope)?);
                let op = match name {
                    "+" => Arithmetic::Add,
                    "-" => Arithmetic::Sub,
                    _ => Arithmetic::Mul,
                };
                engine::arithmetic(op, a, b, &data)
            }
            ("/", [a, by]) if operands(e).is_some() && is_divisor(by) => {
                let (a, by) = (self.expr(a, scope)?, self.expr(by, scope)?);
                engine::arithmetic(Arithmetic::Div, a, by, &data)
            }
            _ => self.by_kernel(function, e, &data, scope),
        }
    }

    /// The call `e` of a function of type `data` by a kernel for most of its values.
    fn by_kernel(
        &mut self,
        function: &ScalarFunction,
        e: &Sql,
        data: &DataType,
        scope: Scope<'_>,
    ) -> Result<Expr> {
        match self.kernel(function, e, data, scope)? {
            Some(found) => Ok(found),
            None => Err(Error::Unsupported(format!(
                "the function {}",
                function.func.name()
            ))),
        }
    }

    /// A subquery as a parameter of the query, which is found before the query runs.
    fn scalar_subquery(&mut self, subquery: &Subquery) -> Result<Expr> {
        if !subquery.outer_ref_columns.is_empty() {
            return Err(Error::Unsupported("a correlated subquery".into()));
        }
        let (rel, var) = match only_row(&subquery.subquery) {
            // That there is one row at most is looked at where parameters are found.
            Some(only) => self.only_value(only)?,
            None => {
                let (rel, vars) = self.rel(&subquery.subquery)?;
                let var = vars.first();
                let var =
                    var.ok_or_else(|| Error::Unsupported("a subquery without columns".into()))?;
                (rel, *var)
            }
        };
        // Its label would be one of a dictionary that others have not got.
        let value = self.text(self.query.expr(var))?;
        let mut exprs = Vec::new();
        let var = self.var(value, "value", &mut exprs);
        let rel = mapped(rel, exprs);
        let ty = self.query.ty(var).clone().nullable(true);
        self.query.parameters.push((rel, var));
        let node = Node::Parameter(self.query.parameters.len() - 1);
        Ok(Expr { node, ty })
    }

    /// The rows and the value of which `plan`, an aggregate, gives the only one. What another place computes is read there.
    fn only_value(&mut self, plan: &LogicalPlan) -> Result<(Rel, Var)> {
        let reading = self.common.reading(plan);
        let shared = reading.and_then(|reading| {
            let shared = self.common.shared.get(reading.shared)?;
            Some((shared.plan.clone(), *reading.columns.first()?))
        });
        let (plan, column) = match &shared {
            Some((single, column)) => (single.plan(), *column),
            None => (plan, 0),
        };
        let LogicalPlan::Aggregate(aggregate) = plan else {
            return Err(Error::Unsupported("a value of such rows".into()));
        };
        let value = aggregate.aggr_expr.get(column).and_then(of_single);
        let value = value.ok_or_else(|| Error::Unsupported("a value of such rows".into()))?;
        let (rel, vars) = self.rel(&aggregate.input)?;
        let scope = Scope {
            schema: aggregate.input.schema(),
            vars: &vars,
        };
        let value = self.expr(value, scope)?;
        let mut exprs = Vec::new();
        let var = self.var(value, "value", &mut exprs);
        Ok((mapped(rel, exprs), var))
    }

    fn case(&mut self, case: &Case, e: &Sql, scope: Scope<'_>) -> Result<Expr> {
        if case.expr.is_some() {
            return Err(Error::Unsupported("`case` with an operand".into()));
        }
        let data = e.get_type(scope.schema).map_err(failed)?;
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (when, then) in &case.when_then_expr {
            branches.push((self.expr(when, scope)?, self.expr(then, scope)?));
        }
        let last = match &case.else_expr {
            Some(last) => self.expr(last, scope)?,
            None => Expr::literal(Literal::Null, &data)?,
        };
        // A branch must not fail for a row that takes another.
        let all = branches
            .iter()
            .flat_map(|(when, then)| [when, then])
            .skip(1)
            .chain([&last]);
        if all.into_iter().any(engine::is_fallible) {
            return Err(Error::Unsupported("branches that may fail".into()));
        }
        engine::case(branches, last, &data)
    }

    /// `e` as a call over the columns that it reads.
    pub(super) fn call(&mut self, e: &Sql, scope: Scope<'_>) -> Result<Expr> {
        let data = type_of(e, scope.schema).map_err(failed)?;
        self.call_with(e, &data, scope, vec![])
    }

    /// `e` as a call over the columns that it reads and the values of the subqueries in it, which are found before.
    fn call_of_subqueries(&mut self, e: &Sql, scope: Scope<'_>) -> Result<Expr> {
        let data = type_of(e, scope.schema).map_err(failed)?;
        let mut subqueries = Vec::new();
        let replaced = parameters_of(e, &mut subqueries)?;
        let more = self.values_of(subqueries)?;
        self.call_with(&replaced, &data, scope, more)
    }

    fn values_of(
        &mut self,
        subqueries: Vec<(Arc<Field>, Subquery)>,
    ) -> Result<Vec<(Arc<Field>, Expr)>> {
        let mut values = Vec::with_capacity(subqueries.len());
        for (field, subquery) in subqueries {
            let mut value = self.scalar_subquery(&subquery)?;
            value.ty.data = field.data_type().clone();
            values.push((field, value));
        }
        Ok(values)
    }

    /// Expressions of DataFusion over the columns that any of them reads, and over the values of the subqueries in them, which are
    /// found before.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a subquery that gives no value.
    pub(super) fn compiled(&mut self, all: &[&Sql], scope: Scope<'_>) -> Result<Compiled> {
        let mut subqueries = Vec::new();
        let mut replaced = Vec::with_capacity(all.len());
        for e in all {
            replaced.push(parameters_of(e, &mut subqueries)?);
        }
        let mut more = self.values_of(subqueries)?;
        for e in &mut replaced {
            self.part_values(e, scope, &mut more)?;
        }
        let replaced: Vec<&Sql> = replaced.iter().collect();
        self.compiled_with(&replaced, scope, more)
    }

    /// `e`, of type `data`, as a call over columns, and over more values, which have their names in `e`.
    fn call_with(
        &mut self,
        e: &Sql,
        data: &DataType,
        scope: Scope<'_>,
        mut more: Vec<(Arc<Field>, Expr)>,
    ) -> Result<Expr> {
        if has_subquery(e) || e.is_volatile() {
            return Err(Error::Unsupported(format!("the expression {e}")));
        }
        let mut e = e.clone();
        self.part_values(&mut e, scope, &mut more)?;
        let Compiled {
            args,
            exprs,
            schema,
        } = self.compiled_with(&[&e], scope, more)?;
        let [expr] = &exprs[..] else {
            return Err(Error::Unsupported(format!("the expression {e}")));
        };
        let expr = Arc::clone(expr);
        engine::call(args, Arc::new(Function { expr, schema }), data)
    }

    /// The same of expressions without subqueries, over more values, too, which have their names in the expressions.
    fn compiled_with(
        &self,
        all: &[&Sql],
        scope: Scope<'_>,
        more: Vec<(Arc<Field>, Expr)>,
    ) -> Result<Compiled> {
        let is_more = |column: &Column| {
            let own = more.iter().find(|(field, _)| *field.name() == column.name);
            column.relation.is_none() && own.is_some()
        };
        let mut positions = Vec::new();
        for e in all {
            if has_subquery(e) {
                return Err(Error::Unsupported(format!("the expression {e}")));
            }
            for column in e.column_refs().into_iter().filter(|own| !is_more(own)) {
                positions.push(scope.schema.index_of_column(column).map_err(failed)?);
            }
        }
        positions.sort_unstable();
        positions.dedup();
        let fields = positions.iter().map(|position| {
            let (table, field) = scope.schema.qualified_field(*position);
            (table.cloned(), Arc::clone(field))
        });
        let fields = fields.chain(more.iter().map(|(field, _)| (None, Arc::clone(field))));
        let schema = DFSchema::new_with_metadata(fields.collect(), Default::default());
        let schema = schema.map_err(failed)?;
        // The rules for plans have given all of an expression its types: to look for them again at each level takes the fourth power
        // of the number of levels in time.
        let (props, context) = (
            self.planner.execution_props(),
            PhysicalPlanningContext::default(),
        );
        let exprs = all
            .iter()
            .map(|e| create_physical_expr(e, &schema, props, &context).map_err(failed));
        // A cast that changes no number leaves the vector what it was; the function wants what the schema says.
        let arg = |position: &usize| {
            let mut arg = self.query.expr(scope.vars[*position]);
            arg.ty.data = scope.schema.field(*position).data_type().clone();
            arg
        };
        let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
        let fields: Vec<Field> = schema.fields().iter().map(nullable).collect();
        Ok(Compiled {
            args: positions
                .iter()
                .map(arg)
                .chain(more.into_iter().map(|(_, value)| value))
                .collect(),
            exprs: exprs.collect::<Result<_>>()?,
            schema: Arc::new(Schema::new(fields)),
        })
    }

    /// The vector of `e`. If `e` is not a vector yet, a new one is added, and to `exprs` how to compute it.
    pub fn var(&mut self, e: Expr, name: impl Into<String>, exprs: &mut Vec<(Var, Expr)>) -> Var {
        match e.as_var() {
            Some(var) => var,
            None => {
                let var = self.query.add(name, e.ty.clone());
                exprs.push((var, e));
                var
            }
        }
    }

    /// `e`, decoded if it is a string that is coded by a dictionary.
    pub fn text(&self, e: Expr) -> Result<Expr> {
        let (data, nullable) = (e.ty.data.clone(), e.ty.nullable);
        match e.ty.kind {
            Kind::Code => {
                let mut e = engine::call(vec![e], Arc::new(Same), &data)?;
                e.ty.nullable = nullable;
                Ok(e)
            }
            _ => Ok(e),
        }
    }
}

fn is_date(e: &Sql, scope: Scope<'_>) -> bool {
    type_of(e, scope.schema).is_ok_and(|ty| ty == DataType::Date32)
}

/// Whether a number is a constant that floats may be divided by.
fn is_divisor(by: &Sql) -> bool {
    matches!(by, Sql::Literal(ScalarValue::Float64(Some(by)), _) if *by != 0.0)
}

fn is_year(part: &ScalarValue) -> bool {
    let text = match part {
        ScalarValue::Utf8(Some(t))
        | ScalarValue::Utf8View(Some(t))
        | ScalarValue::LargeUtf8(Some(t)) => t,
        _ => return false,
    };
    text.eq_ignore_ascii_case("year")
}

fn arithmetic(op: &Operator) -> Arithmetic {
    match op {
        Operator::Plus => Arithmetic::Add,
        Operator::Minus => Arithmetic::Sub,
        Operator::Multiply => Arithmetic::Mul,
        _ => Arithmetic::Div,
    }
}

pub(super) fn literal(value: &ScalarValue) -> Result<Expr> {
    let data = value.data_type();
    if value.is_null() {
        return match data {
            DataType::Null => Err(Error::Unsupported("NULL of no type".into())),
            _ => Expr::literal(Literal::Null, &data),
        };
    }
    let ty = Type::of(&data, false)
        .ok_or_else(|| Error::Unsupported(format!("values of type {data}")))?;
    let array = value.to_array().map_err(failed)?;
    let literal = match ty.kind {
        Kind::Int | Kind::Wide => {
            let mut wide = Vec::new();
            table::wides_of(&array, &mut wide)?;
            Literal::Wide(wide[0])
        }
        Kind::Float => match value {
            ScalarValue::Float64(Some(v)) => Literal::Float(*v),
            ScalarValue::Float32(Some(v)) => Literal::Float((*v).into()),
            _ => return Err(Error::Unsupported("such floats".into())),
        },
        Kind::Bool => Literal::Bool(matches!(value, ScalarValue::Boolean(Some(true)))),
        Kind::Text | Kind::Code => match value {
            ScalarValue::Utf8(Some(t)) | ScalarValue::Utf8View(Some(t)) => Literal::Text(t.clone()),
            _ => return Err(Error::Unsupported("such texts".into())),
        },
    };
    Expr::literal(literal, &data)
}

/// The aggregate that gives the only row and value of `plan`, if that is all it does.
fn only_row(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => only_row(&alias.input),
        LogicalPlan::Projection(projection) => match &projection.expr[..] {
            [Sql::Column(_)] => only_row(&projection.input),
            _ => None,
        },
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            match &aggregate.aggr_expr[..] {
                [single] => of_single(single).map(|_| plan),
                _ => None,
            }
        }
        _ => None,
    }
}
