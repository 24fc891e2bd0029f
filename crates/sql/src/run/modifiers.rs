//! What the columns of a query have of the types of tables beside their names: how many characters, and how many digits of a
//! second. It goes where PostgreSQL's modifiers of types go: through columns, and through what chooses from values that have
//! the same.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::{DFSchema, JoinType, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{Distinct, Expr, LogicalPlan, TableScan};
use syntax::lengths;
use table::{Definition, timetz_type};

use crate::functions::arguments::is_text;
use crate::functions::cut::{CUT_CHAR, CUT_TEXT};
use crate::functions::lists::names::{MAKE, SLICE, SUBSCRIPT};
use crate::functions::lists::types::item;
use crate::functions::rounding::ROUND;
use crate::messages::numbers::digits_modifier;
use crate::scan::provider::Provider;

/// What the type of a column says beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    /// Texts have at most so many characters.
    Length {
        /// How many.
        most: usize,
        /// Whether it is a `char(n)`, and no `varchar(n)`.
        of_char: bool,
    },
    /// Values are rounded to so many digits behind the second.
    Digits(u8),
}

impl Modifier {
    /// Whether values of this type can have it. Items of arrays have no lengths.
    fn fits(self, data_type: &DataType) -> bool {
        match self {
            Modifier::Length { .. } => is_text(data_type) && !data_type.is_null(),
            Modifier::Digits(_) => match item(data_type) {
                Some(item) => self.fits(item),
                None => {
                    let own = matches!(
                        data_type,
                        DataType::Timestamp(TimeUnit::Microsecond, _)
                            | DataType::Time64(_)
                            | DataType::Interval(_)
                    );
                    own || *data_type == timetz_type()
                }
            },
        }
    }

    /// The number by which PostgreSQL tells of it beside the number of this type.
    pub fn number(self, data_type: &DataType) -> i32 {
        match self {
            // Four bytes more, as PostgreSQL stores texts.
            Modifier::Length { most, .. } => i32::try_from(most.saturating_add(4)).unwrap_or(-1),
            Modifier::Digits(digits) => {
                let mut own = data_type;
                while let Some(item) = item(own) {
                    own = item;
                }
                digits_modifier(own, digits)
            }
        }
    }

    /// That of a column of a table.
    pub(crate) fn of_column(definition: &Definition, at: usize) -> Option<Modifier> {
        let column = definition.columns.get(at)?;
        // What is computed of a domain is of the type behind it.
        if column.domain.is_some() {
            return None;
        }
        if let Some(digits) = column.digits {
            return Some(Modifier::Digits(digits));
        }
        // Lengths are checks.
        if definition.checks.is_empty() {
            return None;
        }
        let (most, of_char) = lengths::of_column(definition, &column.name)?;
        Some(Modifier::Length { most, of_char })
    }
}

/// Those of the columns of a plan, or of a part of it.
type Modifiers = Vec<Option<Modifier>>;

/// The modifiers of the columns of a query that has this plan, which is not optimised.
pub(crate) fn of_plan(plan: &LogicalPlan) -> Modifiers {
    let mut walk = Walk::default();
    let found = walk.plan(plan);
    let fields = plan.schema().fields().iter();
    let found = fields
        .zip(found)
        .map(|(field, own)| own.filter(|own| own.fits(field.data_type())));
    found.collect()
}

/// Gives the columns of a table that a query makes what the query's have.
pub(crate) fn keep(definition: &mut Definition, found: &[Option<Modifier>]) {
    let mut texts = Vec::new();
    for (column, own) in definition.columns.iter_mut().zip(found) {
        match own {
            Some(Modifier::Digits(digits)) => column.digits = Some(*digits),
            Some(Modifier::Length { most, of_char }) => {
                texts.push((column.name.as_str(), *most as u64, *of_char));
            }
            None => {}
        }
    }
    let checks = lengths::of_columns(texts);
    definition.checks.extend(checks);
}

/// Tells which of the expressions of a node are of `char(n)`.
pub(super) struct Chars {
    walk: Walk,
    schema: DFSchema,
    below: Modifiers,
}

impl Chars {
    /// Those of a node that is not optimised.
    pub(super) fn of_inputs(node: &LogicalPlan) -> Chars {
        let mut walk = Walk::default();
        let inputs = node.inputs();
        let below = inputs.iter().flat_map(|input| walk.plan(input)).collect();
        Chars {
            schema: merge_schema(&inputs),
            walk,
            below,
        }
    }

    /// Whether an expression is of `char(n)`.
    pub(super) fn has(&mut self, expr: &Expr) -> bool {
        let own = self.walk.expr(expr, &self.schema, &self.below);
        matches!(own, Some(Modifier::Length { of_char: true, .. }))
    }
}

/// What the parts of a plan have.
#[derive(Default)]
struct Walk {
    /// Parts that stand in several places, by where they lie in memory: each is looked at once.
    known: HashMap<usize, Modifiers>,
    /// Queries that name themselves, and what their first rows have.
    recursive: Vec<(String, Modifiers)>,
}

impl Walk {
    fn plan(&mut self, plan: &LogicalPlan) -> Modifiers {
        let width = plan.schema().fields().len();
        let mut found = self.columns(plan);
        found.resize(width, None);
        found
    }

    fn input(&mut self, input: &Arc<LogicalPlan>) -> Modifiers {
        let address = Arc::as_ptr(input).addr();
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let found = self.plan(input);
        if Arc::strong_count(input) > 1 {
            self.known.insert(address, found.clone());
        }
        found
    }

    fn columns(&mut self, plan: &LogicalPlan) -> Modifiers {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::Projection(own) => self.exprs(own.expr.iter(), &own.input),
            LogicalPlan::Aggregate(own) => {
                let keys = own.group_expr.iter();
                let keys = keys.flat_map(|key| match key {
                    Expr::GroupingSet(sets) => sets.distinct_expr(),
                    key => vec![key],
                });
                self.exprs(keys, &own.input)
            }
            LogicalPlan::Distinct(Distinct::On(own)) => {
                self.exprs(own.select_expr.iter(), &own.input)
            }
            LogicalPlan::Window(own) => self.input(&own.input),
            LogicalPlan::Join(own) => match own.join_type {
                JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                    self.input(&own.right)
                }
                JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                    self.input(&own.left)
                }
                _ => {
                    let mut both = self.input(&own.left);
                    both.extend(self.input(&own.right));
                    both
                }
            },
            LogicalPlan::Union(own) => {
                let mut inputs = own.inputs.iter();
                let Some(first) = inputs.next() else {
                    return Vec::new();
                };
                let first = self.input(first);
                inputs.fold(first, |found, next| common(found, self.input(next)))
            }
            LogicalPlan::RecursiveQuery(own) => {
                let first = self.input(&own.static_term);
                self.recursive.push((own.name.clone(), first.clone()));
                let rest = self.input(&own.recursive_term);
                self.recursive.pop();
                common(first, rest)
            }
            LogicalPlan::Values(own) => {
                let none = DFSchema::empty();
                let rows = own.values.iter().map(|row| {
                    let row = row.iter().map(|value| self.expr(value, &none, &[]));
                    row.collect::<Modifiers>()
                });
                rows.reduce(common).unwrap_or_default()
            }
            LogicalPlan::Unnest(own) => {
                let below = self.input(&own.input);
                let of_lists = &own.list_type_columns;
                let places = own.dependency_indices.iter();
                let found = places.map(|at| {
                    // What functions over rows return has none.
                    let is_list = of_lists.iter().any(|(list, _)| list == at);
                    below.get(*at).copied().flatten().filter(|_| !is_list)
                });
                found.collect()
            }
            LogicalPlan::SubqueryAlias(own) => self.input(&own.input),
            LogicalPlan::Subquery(own) => self.input(&own.subquery),
            LogicalPlan::Filter(own) => self.input(&own.input),
            LogicalPlan::Sort(own) => self.input(&own.input),
            LogicalPlan::Limit(own) => self.input(&own.input),
            LogicalPlan::Repartition(own) => self.input(&own.input),
            LogicalPlan::Distinct(Distinct::All(input)) => self.input(input),
            _ => Vec::new(),
        }
    }

    fn scan(&self, scan: &TableScan) -> Modifiers {
        let mut working = self.recursive.iter().rev();
        let name = scan.table_name.table();
        let all = match scan.source.downcast_ref::<Provider>() {
            Some(provider) => {
                let definition = provider.table().definition();
                let places = 0..definition.columns.len();
                places
                    .map(|at| Modifier::of_column(definition, at))
                    .collect()
            }
            None => match working.find(|(own, _)| own == name) {
                Some((_, first)) => first.clone(),
                None => return Vec::new(),
            },
        };
        match &scan.projection {
            // Behind the columns are row ids.
            Some(places) => {
                let places = places.iter();
                places.map(|at| all.get(*at).copied().flatten()).collect()
            }
            None => all,
        }
    }

    fn exprs<'e>(
        &mut self,
        exprs: impl Iterator<Item = &'e Expr>,
        input: &Arc<LogicalPlan>,
    ) -> Modifiers {
        let below = self.input(input);
        exprs
            .map(|expr| self.expr(expr, input.schema(), &below))
            .collect()
    }

    fn expr(
        &mut self,
        expr: &Expr,
        schema: &DFSchema,
        below: &[Option<Modifier>],
    ) -> Option<Modifier> {
        match expr {
            Expr::Column(column) => {
                let at = schema.maybe_index_of_column(column)?;
                below.get(at).copied().flatten()
            }
            Expr::Alias(alias) => self.expr(&alias.expr, schema, below),
            Expr::Case(case) => {
                let branches = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
                let all = branches.chain(Some(case.else_expr.as_deref()?));
                self.choice(all, schema, below)
            }
            Expr::ScalarSubquery(own) => self.input(&own.subquery).first().copied().flatten(),
            Expr::ScalarFunction(call) => self.call(call, schema, below),
            _ => None,
        }
    }

    fn call(
        &mut self,
        call: &ScalarFunction,
        schema: &DFSchema,
        below: &[Option<Modifier>],
    ) -> Option<Modifier> {
        let length = |of_char| {
            let most = usize::try_from(whole(call.args.get(1)?)?).ok()?;
            Some(Modifier::Length { most, of_char })
        };
        match call.func.name() {
            CUT_TEXT => length(false),
            CUT_CHAR => length(true),
            ROUND => {
                let digits = whole(call.args.get(1)?)?;
                Some(Modifier::Digits(u8::try_from(digits).ok()?))
            }
            SUBSCRIPT | SLICE => self.expr(call.args.first()?, schema, below),
            MAKE | "coalesce" | "greatest" | "least" => {
                self.choice(call.args.iter(), schema, below)
            }
            _ => None,
        }
    }

    /// What all of these have.
    fn choice<'e>(
        &mut self,
        mut all: impl Iterator<Item = &'e Expr>,
        schema: &DFSchema,
        below: &[Option<Modifier>],
    ) -> Option<Modifier> {
        let first = self.expr(all.next()?, schema, below)?;
        let mut rest = all.map(|expr| self.expr(expr, schema, below));
        rest.all(|own| own == Some(first)).then_some(first)
    }
}

/// What both have.
fn common(one: Modifiers, other: Modifiers) -> Modifiers {
    let both = one.into_iter().zip(other);
    both.map(|(one, other)| one.filter(|_| one == other))
        .collect()
}

/// The whole number that a constant is.
fn whole(expr: &Expr) -> Option<u64> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    match value {
        ScalarValue::Int64(Some(number)) => u64::try_from(*number).ok(),
        ScalarValue::UInt64(Some(number)) => Some(*number),
        ScalarValue::Int32(Some(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}
