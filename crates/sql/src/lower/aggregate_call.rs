//! DataFusion's aggregates as calls of Atoll's own engine.
//!
//! The engine keeps the values of each group and gives them to an accumulator of DataFusion: of a call that reads a single
//! column that column, of another one a struct of all columns that it reads, which is NULL in rows that its filter does not
//! let through.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StructArray, UInt32Array, make_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortColumn, cast, lexsort_to_indices, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{DFSchema, DataFusionError, ScalarValue};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion_expr::Expr as Sql;
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Accumulator, ColumnarValue};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};
use engine::{AggregateCall, Call, Expr, Function, Literal, Quantile, Result, Type, Var};

use crate::functions::present;
use crate::functions::ranked::Places;
use crate::lower::call::failed;
use crate::lower::expr::Scope;
use crate::lower::lowering::{Lowering, unsupported};
use crate::optimize::expressions::has_subquery;

/// What the engine's calls give.
type Called<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An aggregate of DataFusion over the columns of `schema`.
#[derive(Debug)]
struct Aggregate {
    function: Arc<AggregateFunctionExpr>,
    /// What an accumulator gets of each row: its arguments, then what its rows are ordered by.
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    /// Whether the columns are those of a struct.
    is_packed: bool,
    folds: bool,
    /// What it reads of sorted values, if it is a quantile of such as can be sorted.
    places: Option<Places>,
    /// What its accumulators hold and give is counted here.
    memory: Arc<dyn MemoryPool>,
}

/// Fails if the texts of a list are longer together than a value may be. Equal texts may lie in one place, so that memory does
/// not tell.
fn is_no_more_than_a_value(value: &ScalarValue) -> Called<()> {
    if let ScalarValue::List(list) = value
        && let Some(texts) = list.values().as_string_view_opt()
    {
        // The first 32 bits of a view are the length of its text.
        let bytes: u64 = texts
            .views()
            .iter()
            .map(|view| u64::from(*view as u32))
            .sum();
        if bytes > present::MAX_VALUE as u64 {
            present::fits(bytes as usize)?;
        }
    }
    Ok(())
}

/// Rows that an accumulator gets at a time: between them its memory is looked at.
const PIECE: usize = 8_192;

/// Bytes of a piece of one value.
const PIECE_BYTES: usize = 4 << 20;

impl Aggregate {
    fn columns(&self, values: &ArrayRef) -> Called<Vec<ArrayRef>> {
        let columns = if self.is_packed {
            values.as_struct().columns().to_vec()
        } else {
            vec![Arc::clone(values)]
        };
        let mut typed = Vec::with_capacity(columns.len());
        for (column, field) in columns.into_iter().zip(self.schema.fields()) {
            // A cast that changes no number leaves the vector what it was.
            typed.push(if column.data_type() == field.data_type() {
                column
            } else {
                cast(&column, field.data_type())?
            });
        }
        Ok(typed)
    }

    /// The values of a group in the order that the function wants. Rows that are equal in it stay in their order, and what is
    /// the same in all rows orders nothing.
    fn ordered(&self, values: &mut [ColumnarValue], rows: usize) -> Called<()> {
        let order = self.function.order_bys();
        // What is computed `within group` sorts its values itself.
        let sorts_itself = self.function.fun().supports_within_group_clause();
        let keys = values.iter().skip(values.len() - order.len()).zip(order);
        let mut columns: Vec<SortColumn> = keys
            .filter_map(|(values, key)| match values {
                ColumnarValue::Array(values) => Some(SortColumn {
                    values: Arc::clone(values),
                    options: Some(key.options),
                }),
                ColumnarValue::Scalar(_) => None,
            })
            .collect();
        if columns.is_empty() || sorts_itself || rows < 2 {
            return Ok(());
        }
        columns.push(SortColumn {
            values: Arc::new(UInt32Array::from_iter_values(0..u32::try_from(rows)?)),
            options: None,
        });
        let picks = lexsort_to_indices(&columns, None)?;
        for values in values {
            if let ColumnarValue::Array(values) = values {
                *values = take(values, &picks, None)?;
            }
        }
        Ok(())
    }

    /// Gives an accumulator all rows of a group, piece by piece, and looks after each at the memory that it holds beside `made`
    /// bytes of results, and at the stop flag.
    fn accumulate(
        &self,
        accumulator: &mut dyn Accumulator,
        values: &[ColumnarValue],
        rows: usize,
        (held, made): (&MemoryReservation, usize),
    ) -> Called<()> {
        let most = most_rows(values);
        for begin in (0..rows).step_by(most) {
            present::check().map_err(DataFusionError::from)?;
            let rows_here = most.min(rows - begin);
            let mut piece = Vec::with_capacity(values.len());
            for values in values {
                piece.push(match values {
                    ColumnarValue::Array(values) => values.slice(begin, rows_here),
                    ColumnarValue::Scalar(value) => value.to_array_of_size(rows_here)?,
                });
            }
            accumulator.update_batch(&piece)?;
            if rows > most {
                held.try_resize(made + accumulator.size())?;
            }
        }
        Ok(())
    }
}

/// Rows that an accumulator gets at a time: fewer if a value that is the same in all of them is large.
fn most_rows(values: &[ColumnarValue]) -> usize {
    let scalars = values.iter().filter_map(|values| match values {
        ColumnarValue::Scalar(value) => Some(value.size()),
        ColumnarValue::Array(_) => None,
    });
    let bytes: usize = scalars.sum();
    PIECE.min(PIECE_BYTES / bytes.max(1)).max(1)
}

/// `values` in the rows of a group.
fn of_group(values: &ColumnarValue, group: &Range<usize>) -> ColumnarValue {
    match values {
        ColumnarValue::Array(values) => {
            ColumnarValue::Array(values.slice(group.start, group.len()))
        }
        same @ ColumnarValue::Scalar(_) => same.clone(),
    }
}

impl AggregateCall for Aggregate {
    fn call(&self, values: &ArrayRef, groups: &[Range<usize>]) -> Called<ArrayRef> {
        let options = RecordBatchOptions::new().with_row_count(Some(values.len()));
        let columns = self.columns(values)?;
        let rows = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        let mut all = Vec::with_capacity(self.exprs.len());
        for expr in &self.exprs {
            all.push(expr.evaluate(&rows)?);
        }
        let mut results = Vec::with_capacity(groups.len());
        let held = MemoryConsumer::new(self.function.name()).register(&self.memory);
        let mut made = 0;
        for group in groups {
            let mut accumulator = self.function.create_accumulator()?;
            let mut own: Vec<_> = all.iter().map(|values| of_group(values, group)).collect();
            self.ordered(&mut own, group.len())?;
            self.accumulate(accumulator.as_mut(), &own, group.len(), (&held, made))?;
            let result = accumulator.evaluate()?;
            is_no_more_than_a_value(&result)?;
            made += result.size();
            held.try_resize(made)?;
            results.push(result);
        }
        Ok(ScalarValue::iter_to_array(results)?)
    }

    fn ignores_nulls(&self) -> bool {
        self.is_packed || self.folds
    }

    fn folds(&self) -> bool {
        self.folds
    }

    fn name(&self) -> String {
        self.function.name().into()
    }

    fn quantile(&self) -> Option<&dyn Quantile> {
        self.places.is_some().then_some(self)
    }
}

impl Quantile for Aggregate {
    fn ranked(&self, values: &ArrayRef) -> Called<ArrayRef> {
        let options = RecordBatchOptions::new().with_row_count(Some(values.len()));
        let columns = self.columns(values)?;
        let rows = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        let value = self.exprs.first().ok_or("a quantile of no values")?;
        let value = value.evaluate(&rows)?.into_array(values.len())?;
        let nulls = NullBuffer::union(value.logical_nulls().as_ref(), values.nulls());
        let value = make_array(value.to_data().into_builder().nulls(nulls).build()?);
        let places = self.places.ok_or("no quantile")?;
        Ok(places.ranked(&value))
    }

    fn places(&self, count: usize) -> Option<(usize, usize)> {
        self.places.and_then(|places| places.among(count))
    }

    fn result(&self, both: &ArrayRef, count: usize) -> Called<ArrayRef> {
        let places = self.places.ok_or("no quantile")?;
        Ok(places.result(both, count)?)
    }
}

/// A struct of the columns that an aggregate reads, NULL in rows that its filter does not let through.
#[derive(Debug)]
struct Packed {
    filter: Option<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
}

impl Call for Packed {
    fn call(&self, args: &[ArrayRef], rows: usize) -> Called<ArrayRef> {
        let nulls = match &self.filter {
            None => None,
            Some(filter) => {
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let batch = RecordBatch::try_new_with_options(
                    self.schema.clone(),
                    args.to_vec(),
                    &options,
                )?;
                let passing = filter.evaluate(&batch)?.into_array(rows)?;
                let passing = passing.as_boolean();
                Some(NullBuffer::new(match passing.nulls() {
                    Some(known) => passing.values() & known.inner(),
                    None => passing.values().clone(),
                }))
            }
        };
        let fields = self.schema.fields().clone();
        Ok(Arc::new(StructArray::try_new(
            fields,
            args.to_vec(),
            nulls,
        )?))
    }

    fn name(&self) -> String {
        "row".into()
    }
}

/// The filter of an aggregate's rows, if it has one.
type RowFilter = Option<Arc<dyn PhysicalExpr>>;

impl Lowering<'_> {
    /// An aggregate as a call of DataFusion's accumulator for all values of a group.
    ///
    /// # Errors
    /// [`engine::Error::Unsupported`] if the engine has no such values, and for arguments with subqueries.
    pub(super) fn called(
        &mut self,
        call: &AggregateFunction,
        scope: Scope<'_>,
        exprs: &mut Vec<(Var, Expr)>,
    ) -> Result<(Function, Option<Var>)> {
        let params = &call.params;
        let e = Sql::AggregateFunction(call.clone());
        let order = params.order_by.iter().map(|key| &key.expr);
        let read: Vec<&Sql> = params
            .args
            .iter()
            .chain(order)
            .chain(params.filter.as_deref())
            .collect();
        if read.iter().any(|e| has_subquery(e) || e.is_volatile()) {
            return unsupported(format!("the aggregate {e}"));
        }
        let mut positions = Vec::new();
        for column in read.iter().flat_map(|e| e.column_refs()) {
            positions.push(scope.schema.index_of_column(column).map_err(failed)?);
        }
        positions.sort_unstable();
        positions.dedup();
        let fields = positions.iter().map(|position| {
            let (table, field) = scope.schema.qualified_field(*position);
            let field = field.as_ref().clone().with_nullable(true);
            (table.cloned(), Arc::new(field))
        });
        let own = DFSchema::new_with_metadata(fields.collect(), Default::default());
        let own = own.map_err(failed)?;
        let schema: SchemaRef = Arc::clone(own.inner());
        let (function, filter) = self.accumulated(&e, &own, &schema)?;
        let (arg, schema, is_packed) = match (&positions[..], &filter) {
            ([], None) => {
                // Rows without columns are as many as these.
                let rows = Expr::literal(Literal::Bool(true), &DataType::Boolean)?;
                let field = Field::new("rows", DataType::Boolean, true);
                (rows, Arc::new(Schema::new(vec![field])), false)
            }
            ([position], None) => (self.query.expr(scope.vars[*position]), schema, false),
            _ => {
                let arg = |position: &usize| {
                    let mut arg = self.query.expr(scope.vars[*position]);
                    arg.ty.data = scope.schema.field(*position).data_type().clone();
                    arg
                };
                let args = positions.iter().map(arg).collect();
                let data = DataType::Struct(schema.fields().clone());
                let packed = Packed {
                    filter,
                    schema: Arc::clone(&schema),
                };
                (engine::call(args, Arc::new(packed), &data)?, schema, true)
            }
        };
        let arg = self.var(arg, format!("what {e} reads"), exprs);
        Ok((
            self.aggregate_call(function, schema, is_packed, false),
            Some(arg),
        ))
    }

    /// An aggregate of one value that gives of the results for parts what it gives of all, such as `bit_and`: its values are
    /// folded as they come.
    ///
    /// # Errors
    /// [`engine::Error::Unsupported`] if it is another one, or the engine has no such values.
    pub(super) fn folded(
        &mut self,
        call: &AggregateFunction,
        scope: Scope<'_>,
        exprs: &mut Vec<(Var, Expr)>,
        result: &DataType,
    ) -> Result<(Function, Option<Var>)> {
        let [arg] = &call.params.args[..] else {
            return unsupported("an aggregate of several values");
        };
        let name = format!("what {} reads", Sql::AggregateFunction(call.clone()));
        let mut value = self.expr(arg, scope)?;
        if let Some(filter) = call.params.filter.as_deref() {
            let filter = self.expr(filter, scope)?;
            value = chosen(filter, value)?;
        }
        let value = self.text(value)?;
        if value.ty.data != *result {
            // Of parts it would get values of another type.
            return self.called(call, scope, exprs);
        }
        let field = Field::new("value", result.clone(), true);
        let own = DFSchema::from_unqualified_fields(vec![field].into(), Default::default());
        let own = own.map_err(failed)?;
        let mut alone = call.clone();
        alone.params.args = vec![Sql::Column("value".into())];
        (alone.params.filter, alone.params.order_by) = (None, vec![]);
        let schema: SchemaRef = Arc::clone(own.inner());
        let (function, _) = self.accumulated(&Sql::AggregateFunction(alone), &own, &schema)?;
        let arg = self.var(value, name, exprs);
        Ok((
            self.aggregate_call(function, schema, false, true),
            Some(arg),
        ))
    }

    /// The function that makes the accumulators of `e`, and the filter of its rows.
    fn accumulated(
        &self,
        e: &Sql,
        own: &DFSchema,
        schema: &Schema,
    ) -> Result<(Arc<AggregateFunctionExpr>, RowFilter)> {
        let context = PhysicalPlanningContext::default();
        let props = self.planner.execution_props();
        let lowered = LoweredAggregateBuilder::new(e, own, schema, props, &context).build();
        let lowered = lowered.map_err(failed)?;
        // There are functions that are only there for some types, or never in this form.
        let made = lowered.aggregate.create_accumulator();
        made.map_err(|e| match e {
            // An error of ours, for an argument that is none.
            DataFusionError::External(own) => engine::Error::Call(own),
            e => failed(e),
        })?;
        Ok((lowered.aggregate, lowered.filter))
    }

    fn aggregate_call(
        &mut self,
        function: Arc<AggregateFunctionExpr>,
        schema: SchemaRef,
        is_packed: bool,
        folds: bool,
    ) -> Function {
        let mut exprs = function.expressions();
        exprs.extend(function.order_bys().iter().map(|key| Arc::clone(&key.expr)));
        let of = exprs
            .first()
            .and_then(|value| value.data_type(&schema).ok());
        let places = Places::of(&function).ok().flatten();
        let call = Aggregate {
            places: places.filter(|places| of.is_some_and(|of| places.is_of(&of))),
            function,
            exprs,
            schema,
            is_packed,
            folds,
            memory: Arc::clone(self.task.memory_pool()),
        };
        self.query.aggregates.push(Arc::new(call));
        Function::Call(self.query.aggregates.len() - 1)
    }
}

/// Whether a function gives results of this type that its accumulator cannot.
pub(super) fn is_beyond_accumulators(function: Function, result: &Type) -> bool {
    let picks = matches!(
        function,
        Function::Min | Function::Max | Function::First(_) | Function::Call(_)
    );
    // Floats of 32 bits would have to be rounded.
    !picks && (result.is_opaque() || result.data == DataType::Float32)
}

/// The value where `filter` is true, otherwise NULL, which functions ignore.
pub(super) fn chosen(filter: Expr, value: Expr) -> Result<Expr> {
    let data = value.ty.data.clone();
    let null = Expr::literal(Literal::Null, &data)?;
    engine::case(vec![(filter, value)], null, &data)
}
