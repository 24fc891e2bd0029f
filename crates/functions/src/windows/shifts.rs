//! `lag` and `lead` with `ignore nulls`, over whole partitions.
//!
//! DataFusion computes them as rows come, too, where a window needs no more than some rows around. With `ignore nulls` it counts the
//! distances to the next values wrongly then, and a `limit` above takes rows away that they need.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::{LimitEffect, PartitionEvaluator, Signature, WindowUDF, WindowUDFImpl};
use datafusion_physical_expr::PhysicalExpr;

use crate::registry::Registry;

/// Both functions.
pub(crate) fn all(registry: &Registry) -> Vec<Arc<WindowUDF>> {
    let all = ["lag", "lead"].into_iter().filter_map(|name| {
        let inner = Arc::clone(registry.windows().get(name)?);
        Some(Arc::new(WindowUDF::new_from_impl(Shift { inner })))
    });
    all.collect()
}

/// One of DataFusion's functions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shift {
    inner: Arc<WindowUDF>,
}

impl WindowUDFImpl for Shift {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.inner().expressions(args)
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let ignores_nulls = args.ignore_nulls();
        let inner = self.inner.inner().partition_evaluator(args)?;
        Ok(if ignores_nulls {
            Box::new(Whole(inner))
        } else {
            inner
        })
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.inner.inner().field(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.inner().coerce_types(types)
    }

    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        // How many rows are passed over depends on what they hold.
        LimitEffect::Unknown
    }
}

/// Sees all rows of a partition at once.
#[derive(Debug)]
struct Whole(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for Whole {
    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.0.get_range(row, rows)
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }
}
