//! The function that stands for the levels of an expression.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result, internal_err};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion_optimizer::simplify_expressions::ExprSimplifier;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr, create_physical_expr};
use parking_lot::Mutex;

use crate::optimize::stoppable::check;

/// An expression as a function of the columns in it, whose names are `0`, `1` and so on. Two are equal if their marks are: to
/// compare all that is in them, with the functions in it, would take as long as what they are made to avoid.
pub(super) struct Enclosed {
    body: Expr,
    /// The columns, each of which may be NULL as far as the body knows.
    columns: Arc<DFSchema>,
    /// Whether each of them could be NULL where the function was made.
    nullable: Vec<bool>,
    returns: FieldRef,
    signature: Signature,
    /// Whether the body is simplified.
    is_simple: bool,
    /// A hash of all of it.
    mark: [u64; 2],
    /// What computes the body, and the settings under which it was made.
    compiled: Mutex<Option<(Arc<ConfigOptions>, Arc<Compiled>)>>,
}

impl fmt::Debug for Enclosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.mark;
        write!(f, "nested#{first:016x}{second:016x}")
    }
}

impl PartialEq for Enclosed {
    fn eq(&self, other: &Enclosed) -> bool {
        self.mark == other.mark
    }
}

impl Eq for Enclosed {}

impl Hash for Enclosed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.mark.hash(state);
    }
}

impl Enclosed {
    pub(super) fn new(
        body: Expr,
        columns: Arc<DFSchema>,
        nullable: Vec<bool>,
        returns: FieldRef,
        signature: Signature,
        is_simple: bool,
    ) -> Enclosed {
        let hashed = |seed: u64| {
            let mut hasher = DefaultHasher::new();
            (
                seed,
                is_simple,
                &body,
                columns.fields(),
                &nullable,
                &returns,
            )
                .hash(&mut hasher);
            hasher.finish()
        };
        Enclosed {
            mark: [hashed(1), hashed(2)],
            body,
            columns,
            nullable,
            returns,
            signature,
            is_simple,
            compiled: Mutex::new(None),
        }
    }

    /// The same with a simple body.
    fn simple(&self, context: &SimplifyContext) -> Result<Enclosed> {
        check()?;
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(&self.columns))
            .with_config_options(Arc::clone(context.config_options()))
            .with_query_execution_start_time(context.query_execution_start_time())
            .build();
        let body = ExprSimplifier::new(context).simplify(self.body.clone())?;
        Ok(Enclosed::new(
            body,
            Arc::clone(&self.columns),
            self.nullable.clone(),
            Arc::clone(&self.returns),
            self.signature.clone(),
            true,
        ))
    }

    /// What computes the body.
    fn compile(&self, settings: &Arc<ConfigOptions>) -> Result<Arc<Compiled>> {
        let mut kept = self.compiled.lock();
        if let Some((under, compiled)) = &*kept
            && Arc::ptr_eq(under, settings)
        {
            return Ok(Arc::clone(compiled));
        }
        let simple;
        let body = if self.is_simple {
            &self.body
        } else {
            let context = SimplifyContext::builder()
                .with_config_options(Arc::clone(settings))
                .build();
            simple = self.simple(&context)?;
            &simple.body
        };
        let mut props = ExecutionProps::new();
        props.config_options = Some(Arc::clone(settings));
        let expr = create_physical_expr(
            body,
            &self.columns,
            &props,
            &PhysicalPlanningContext::default(),
        )?;
        let compiled = Arc::new(Compiled::new(expr, self.columns.inner())?);
        *kept = Some((Arc::clone(settings), Arc::clone(&compiled)));
        Ok(compiled)
    }
}

impl ScalarUDFImpl for Enclosed {
    fn name(&self) -> &str {
        "nested"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args = args.iter().map(|arg| arg.schema_name().to_string());
        let args: Vec<String> = args.collect();
        let [first, second] = self.mark;
        Ok(format!(
            "nested#{first:016x}{second:016x}({})",
            args.join(",")
        ))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.data_type().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let mut columns = args.arg_fields.iter().zip(&self.nullable);
        // A column that could not be NULL and now can, such as one behind an outer join.
        let is_new = columns.any(|(now, then)| now.is_nullable() && !then);
        Ok(if is_new {
            let returns = self.returns.as_ref().clone();
            Arc::new(returns.with_nullable(true))
        } else {
            Arc::clone(&self.returns)
        })
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if self.is_simple {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let simple = self.simple(context)?;
        Ok(ExprSimplifyResult::Simplified(
            Arc::new(ScalarUDF::from(simple)).call(args),
        ))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        check()?;
        let rows = arguments.number_rows;
        let schema = self.columns.inner();
        if arguments.args.len() != schema.fields().len() {
            return internal_err!("a nested expression over other columns");
        }
        let columns = arguments.args.iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| {
            let column = column.to_array(rows)?;
            if column.data_type() == field.data_type() {
                return Ok(column);
            }
            // Such as the value of a parameter.
            Ok(cast(&column, field.data_type())?)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
        let compiled = self.compile(&arguments.config_options)?;
        Ok(ColumnarValue::Array(
            compiled.evaluate(&batch)?.into_array(rows)?,
        ))
    }
}

/// What computes a body.
struct Compiled {
    expr: Arc<dyn PhysicalExpr>,
    /// Set if `expr` calls a function with the levels below more than once.
    shared: Option<Shared>,
}

/// A body that reads the values of the functions in it from columns behind its own. To call each function wherever it
/// stands would take, of `n` levels whose argument is written twice, 2^n evaluations.
struct Shared {
    calls: Vec<Arc<dyn PhysicalExpr>>,
    expr: Arc<dyn PhysicalExpr>,
    /// The columns of the body and those of the calls.
    schema: SchemaRef,
}

impl Compiled {
    fn new(expr: Arc<dyn PhysicalExpr>, columns: &SchemaRef) -> Result<Compiled> {
        let mut stands = 0;
        let mut calls: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
        let mut fields: Vec<FieldRef> = columns.fields().iter().cloned().collect();
        let shared = Arc::clone(&expr).transform_down(|part| {
            let call = part.downcast_ref::<ScalarFunctionExpr>();
            if call.is_none_or(|call| call.fun().inner().downcast_ref::<Enclosed>().is_none()) {
                return Ok(Transformed::no(part));
            }
            stands += 1;
            let known = calls.iter().position(|known| known.eq(&part));
            let at = columns.fields().len() + known.unwrap_or(calls.len());
            let name = at.to_string();
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(&name, at));
            if known.is_none() {
                let data = part.data_type(columns)?;
                fields.push(Arc::new(Field::new(name, data, true)));
                calls.push(part);
            }
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        })?;
        let shared = (calls.len() < stands).then(|| Shared {
            calls,
            expr: shared.data,
            schema: Arc::new(Schema::new(fields)),
        });
        Ok(Compiled { expr, shared })
    }

    /// The value for each row of `batch`.
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let Some(shared) = &self.shared else {
            return self.expr.evaluate(batch);
        };
        match shared.over(batch) {
            Ok(batch) => shared.expr.evaluate(&batch),
            // It may be of a row that reaches no call, such as one that takes another branch.
            Err(_) => {
                check()?;
                self.expr.evaluate(batch)
            }
        }
    }
}

impl Shared {
    /// `batch` with the values of the calls, for all of its rows.
    fn over(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let mut columns = batch.columns().to_vec();
        for call in &self.calls {
            columns.push(call.evaluate(batch)?.into_array(rows)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}
