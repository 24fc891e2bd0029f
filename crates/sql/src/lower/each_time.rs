//! Values that differ each time, such as `random()`: computed once for each row that gets there.
//!
//! A [`RowFunction`] of the engine is neither moved nor called again, whatever runs around it. What counts or changes something as it
//! goes, as `nextval` does, sees one row after the other, in the order of the relation below, and, as in PostgreSQL, after they are
//! sorted.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::concat;
use arrow::datatypes::SchemaRef;
use datafusion_common::Column;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{
    Aggregate, Expr as Sql, GroupingSet, LogicalPlan, Projection, Sort, SortExpr, Window,
};
use datafusion_physical_expr::PhysicalExpr;
use engine::{Made, MadeRows, Rel, Result, RowFunction, RowPieces, Type, Var};

use crate::lower::call::failed;
use crate::lower::expr::{Compiled, Scope};
use crate::lower::lowering::{Lowered, Lowering, unsupported};
use crate::optimize::checked::type_of;

/// The functions whose values differ each time but depend on no order.
const FREE: [&str; 6] = [
    "random",
    "uuid",
    "gen_random_uuid",
    "uuid_generate_v4",
    "clock_timestamp",
    "timeofday",
];

/// How many calls of functions in `e` must come one after the other.
fn ordered_calls(e: &Sql) -> usize {
    let mut found = 0;
    // The closure does not fail.
    let _ = e.apply(|e| {
        if let Sql::ScalarFunction(call) = e
            && e.is_volatile_node()
            && !FREE.contains(&call.func.name())
        {
            found += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// Computes expressions for each row.
#[derive(Debug)]
struct Computed {
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    /// How many calls must come one after the other. Where there are several, all those of a row come before those of the next.
    ordered: usize,
    /// How `explain` shows it.
    name: String,
}

/// Keeps the rows for which a condition is true.
#[derive(Debug)]
struct Chosen(Computed);

impl Computed {
    fn values(&self, args: &[ArrayRef], rows: usize) -> Made<Vec<ArrayRef>> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, args.to_vec(), &options)?;
        if self.ordered < 2 {
            return self.of_batch(&batch);
        }
        let mut all = Vec::with_capacity(rows);
        for row in 0..rows {
            all.push(self.of_batch(&batch.slice(row, 1))?);
        }
        if all.is_empty() {
            return self.of_batch(&batch);
        }
        let column = |place: usize| -> Made<ArrayRef> {
            let cells: Vec<&dyn Array> = all.iter().map(|row| row[place].as_ref()).collect();
            Ok(concat(&cells)?)
        };
        (0..self.exprs.len()).map(column).collect()
    }

    fn of_batch(&self, batch: &RecordBatch) -> Made<Vec<ArrayRef>> {
        let mut columns = Vec::with_capacity(self.exprs.len());
        for expr in &self.exprs {
            columns.push(expr.evaluate(batch)?.into_array(batch.num_rows())?);
        }
        Ok(columns)
    }
}

impl RowFunction for Computed {
    fn call(&self, args: &[ArrayRef], rows: usize, most: usize) -> Made<RowPieces> {
        let columns = self.values(args, rows)?;
        let pieces = (0..rows).step_by(most.max(1)).map(move |start| {
            let count = most.min(rows - start);
            Ok(MadeRows {
                of: (start as u32..(start + count) as u32).collect(),
                columns: columns.iter().map(|all| all.slice(start, count)).collect(),
            })
        });
        Ok(Box::new(pieces))
    }

    fn is_volatile(&self) -> bool {
        true
    }

    fn is_serial(&self) -> bool {
        self.ordered > 0
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl RowFunction for Chosen {
    fn call(&self, args: &[ArrayRef], rows: usize, most: usize) -> Made<RowPieces> {
        let mut picks = Vec::new();
        for condition in self.0.values(args, rows)? {
            let condition = condition.as_boolean();
            let own = condition.iter().enumerate();
            picks = own
                .filter(|(_, is_true)| *is_true == Some(true))
                .map(|(row, _)| row as u32)
                .collect();
        }
        let picks = UInt32Array::from(picks);
        let count = picks.len();
        let pieces = (0..count).step_by(most.max(1)).map(move |start| {
            let own = picks.slice(start, most.min(count - start));
            Ok(MadeRows {
                of: own.values().to_vec(),
                columns: vec![],
            })
        });
        Ok(Box::new(pieces))
    }

    fn is_volatile(&self) -> bool {
        true
    }

    fn is_serial(&self) -> bool {
        self.0.is_serial()
    }

    fn name(&self) -> String {
        self.0.name.clone()
    }
}

impl Lowering<'_> {
    /// `rel` with the values of those of `all` that differ each time, which are computed together. Returns the vector of each of them.
    ///
    /// # Errors
    /// [`engine::Error::Unsupported`] if the engine has no such values.
    pub(super) fn each_time(
        &mut self,
        rel: Rel,
        all: &[&Sql],
        scope: Scope<'_>,
    ) -> Result<(Rel, Vec<Option<Var>>)> {
        let is_volatile: Vec<bool> = all.iter().map(|e| e.is_volatile()).collect();
        let own = all.iter().zip(&is_volatile).filter(|(_, own)| **own);
        let own: Vec<&Sql> = own.map(|(e, _)| *e).collect();
        if own.is_empty() {
            return Ok((rel, vec![None; all.len()]));
        }
        let (args, computed) = self.computed(&own, scope)?;
        let mut vars = Vec::with_capacity(own.len());
        for e in &own {
            let data = type_of(e, scope.schema).map_err(failed)?;
            let Some(ty) = Type::of(&data, true) else {
                return unsupported(format!("values of type {data}"));
            };
            vars.push(self.query.add(e.schema_name().to_string(), ty));
        }
        let rel = Rel::Expand {
            input: Box::new(rel),
            function: Arc::new(computed),
            args,
            vars: vars.clone(),
        };
        let mut vars = vars.into_iter();
        let found = is_volatile
            .into_iter()
            .map(|own| if own { vars.next() } else { None });
        Ok((rel, found.collect()))
    }

    /// The rows of `rel` for which a condition is true that differs each time.
    ///
    /// # Errors
    /// As [`each_time`](Self::each_time).
    pub(super) fn chosen_each_time(
        &mut self,
        rel: Rel,
        condition: &Sql,
        scope: Scope<'_>,
    ) -> Result<Rel> {
        let (args, computed) = self.computed(&[condition], scope)?;
        Ok(Rel::Expand {
            input: Box::new(rel),
            function: Arc::new(Chosen(computed)),
            args,
            vars: vec![],
        })
    }

    /// `aggregate` over a projection that computes what it reads and what differs each time; `None` if nothing does.
    ///
    /// # Errors
    /// [`engine::Error::Unsupported`] if DataFusion cannot make such a plan.
    pub(super) fn each_time_below(&self, aggregate: &Aggregate) -> Result<Option<Aggregate>> {
        let all = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
        if !all.clone().any(Sql::is_volatile) {
            return Ok(None);
        }
        let mut below = Below::over(&aggregate.input);
        let groups = aggregate.group_expr.iter();
        let groups = groups.map(|key| below.key(key)).collect();
        let mut calls = Vec::with_capacity(aggregate.aggr_expr.len());
        for call in &aggregate.aggr_expr {
            let replaced = call.clone().transform_down(|e| match e {
                Sql::AggregateFunction(mut call) => {
                    let params = &mut call.params;
                    below.all(&mut params.args);
                    params.filter = params.filter.take().map(|e| Box::new(below.named(*e)));
                    below.keys(&mut params.order_by);
                    Ok(Transformed::new(
                        Sql::AggregateFunction(call),
                        true,
                        TreeNodeRecursion::Jump,
                    ))
                }
                other => Ok(Transformed::no(other)),
            });
            calls.push(replaced.map_err(failed)?.data);
        }
        let input = below.projected(&aggregate.input)?;
        let schema = Arc::clone(&aggregate.schema);
        let made = Aggregate::try_new_with_schema(input, groups, calls, schema);
        made.map(Some).map_err(failed)
    }

    /// The input of `window` with more columns, for what its functions read that differs each time, and the functions over it; `None`
    /// if nothing does.
    ///
    /// # Errors
    /// [`engine::Error::Unsupported`] if DataFusion cannot make such a plan.
    pub(super) fn each_time_within(
        window: &Window,
    ) -> Result<Option<(Arc<LogicalPlan>, Vec<Sql>)>> {
        if !window.window_expr.iter().any(Sql::is_volatile) {
            return Ok(None);
        }
        let mut below = Below::over(&window.input);
        let mut calls = Vec::with_capacity(window.window_expr.len());
        for call in &window.window_expr {
            let replaced = call.clone().transform_down(|e| match e {
                Sql::WindowFunction(mut call) => {
                    let params = &mut call.params;
                    below.all(&mut params.args);
                    below.all(&mut params.partition_by);
                    params.filter = params.filter.take().map(|e| Box::new(below.named(*e)));
                    below.keys(&mut params.order_by);
                    Ok(Transformed::new(
                        Sql::WindowFunction(call),
                        true,
                        TreeNodeRecursion::Jump,
                    ))
                }
                other => Ok(Transformed::no(other)),
            });
            calls.push(replaced.map_err(failed)?.data);
        }
        Ok(Some((below.projected(&window.input)?, calls)))
    }

    /// The rows of a projection, sorted before its columns at the places `late` are computed.
    pub(super) fn sorted_before(
        &mut self,
        sort: &Sort,
        projection: &Projection,
        late: &[usize],
    ) -> Result<Lowered> {
        let (rel, vars) = self.rel(&projection.input)?;
        let scope = Scope {
            schema: projection.input.schema(),
            vars: &vars,
        };
        let (rel, mut out) = self.projected_without(rel, projection, late, scope)?;
        // No key reads a column that is not there yet.
        let known: Vec<Var> = out.iter().map(|var| var.unwrap_or_default()).collect();
        let of_keys = Scope {
            schema: sort.input.schema(),
            vars: &known,
        };
        let (rel, keys) = self.keys(rel, &sort.expr, of_keys)?;
        let rel = Rel::Sort {
            input: Box::new(rel),
            keys,
            skip: 0,
            fetch: sort.fetch,
        };
        let own: Vec<&Sql> = late.iter().map(|place| &projection.expr[*place]).collect();
        let (rel, made) = self.each_time(rel, &own, scope)?;
        for (place, var) in late.iter().zip(made) {
            out[*place] = var;
        }
        Ok((rel, out.into_iter().flatten().collect()))
    }

    fn computed(
        &mut self,
        all: &[&Sql],
        scope: Scope<'_>,
    ) -> Result<(Vec<engine::Expr>, Computed)> {
        let ordered: usize = all.iter().map(|e| ordered_calls(e)).sum();
        let Compiled {
            args,
            exprs,
            schema,
        } = self.compiled(all, scope)?;
        let names: Vec<String> = exprs.iter().map(ToString::to_string).collect();
        let computed = Computed {
            exprs,
            schema,
            ordered,
            name: names.join(", "),
        };
        Ok((args, computed))
    }
}

/// What is computed below a node: all columns of its input, and what differs each time.
struct Below(Vec<Sql>);

impl Below {
    fn over(input: &LogicalPlan) -> Below {
        Below(
            input
                .schema()
                .columns()
                .into_iter()
                .map(Sql::Column)
                .collect(),
        )
    }

    /// The column that stands for `e`, if it differs each time.
    fn named(&mut self, e: Sql) -> Sql {
        if !e.is_volatile() {
            return e;
        }
        let name = format!("each time {}", self.0.len());
        self.0.push(e.alias(&name));
        Sql::Column(Column::from_name(name))
    }

    /// The same of a key of groups. What sets of keys have in common is one column.
    fn key(&mut self, key: &Sql) -> Sql {
        let mut known: Vec<(Sql, Sql)> = Vec::new();
        let mut all = |keys: &[Sql]| -> Vec<Sql> {
            let own = keys.iter().map(|e| {
                if let Some((_, column)) = known.iter().find(|(other, _)| other == e) {
                    return column.clone();
                }
                let column = self.named(e.clone());
                known.push((e.clone(), column.clone()));
                column
            });
            own.collect()
        };
        match key {
            Sql::GroupingSet(set) => Sql::GroupingSet(match set {
                GroupingSet::Rollup(keys) => GroupingSet::Rollup(all(keys)),
                GroupingSet::Cube(keys) => GroupingSet::Cube(all(keys)),
                GroupingSet::GroupingSets(sets) => {
                    GroupingSet::GroupingSets(sets.iter().map(|keys| all(keys)).collect())
                }
            }),
            key => self.named(key.clone()),
        }
    }

    fn all(&mut self, all: &mut Vec<Sql>) {
        let own = std::mem::take(all).into_iter();
        *all = own.map(|e| self.named(e)).collect();
    }

    fn keys(&mut self, keys: &mut [SortExpr]) {
        for key in keys {
            key.expr = self.named(key.expr.clone());
        }
    }

    fn projected(self, input: &Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
        let input = Projection::try_new(self.0, Arc::clone(input)).map_err(failed)?;
        Ok(Arc::new(LogicalPlan::Projection(input)))
    }
}

/// The places of the columns of `projection` that count or change something as rows go, and that `sort` does not read: PostgreSQL
/// computes them of sorted rows.
pub(super) fn late(sort: &Sort, projection: &Projection) -> Vec<usize> {
    let keys = sort.expr.iter().flat_map(|key| key.expr.column_refs());
    let read: Vec<Option<usize>> = keys
        .map(|column| projection.schema.maybe_index_of_column(column))
        .collect();
    let places = 0..projection.expr.len();
    places
        .filter(|place| {
            ordered_calls(&projection.expr[*place]) > 0 && !read.contains(&Some(*place))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion_physical_expr::expressions::Column as Physical;

    use super::*;

    fn pieces(function: &dyn RowFunction, values: ArrayRef) -> Vec<Vec<u32>> {
        let rows = values.len();
        let made = function.call(&[values], rows, 2).unwrap();
        made.map(|piece| piece.unwrap().of).collect()
    }

    fn of(data: DataType) -> Computed {
        Computed {
            exprs: vec![Arc::new(Physical::new("a", 0))],
            schema: Arc::new(Schema::new(vec![Field::new("a", data, true)])),
            ordered: 0,
            name: "a".into(),
        }
    }

    #[test]
    fn rows_come_in_their_order_and_in_pieces() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        assert_eq!(pieces(&of(DataType::Int64), numbers), [vec![0, 1], vec![2]]);
        let chosen = Chosen(of(DataType::Boolean));
        let some = vec![Some(true), None, Some(true), Some(false), Some(true)];
        let some: ArrayRef = Arc::new(BooleanArray::from(some));
        assert_eq!(pieces(&chosen, some), [vec![0, 2], vec![4]]);
    }
}
