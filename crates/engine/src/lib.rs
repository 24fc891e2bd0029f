//! The query engine: plans relational queries into pipelines and runs them on all workers.
//!
//! A language (SQL, LAQ) lowers a query to a [`Rel`] over the numbered vectors of a [`Query`]. The engine plans it:
//! it orders the joins (which relation is the probe side, which become join tables), tests predicates on stored
//! codes where it can, and cuts pipelines where all rows must be there before the next operator may start. It then
//! runs the stages one after the other, each on all workers at once, a vector of 2,048 rows at a time. An
//! [`Execution`] chooses the executor: *fused*, each worker takes one morsel after another through all operators of
//! a pipeline; *stream*, the operators are concurrent tasks that pass blocks of rows on; *staged*, some tasks set
//! up the blocks of a ring and others process them.
//!
//! In the terms of linear algebra (the LAQ paper), a column of a scan is a bitmap matrix over its dictionary or a
//! decimal vector; a [`Rel::Filter`] makes a filtered bit vector, a [`Rel::Join`] is a `dot`, a [`Rel::Map`] is a
//! `lift`, and a [`Rel::Fold`] combines its keys by `krao` and folds its functions along them.
//!
//! ```
//! use std::sync::Arc;
//! # use arrow::array::{AsArray, Int64Array, RecordBatch};
//! # use arrow::datatypes::{DataType, Field, Int64Type, Schema};
//! use engine::{Expr, Fold, Function, Output, Query, Rel, Runtime, Type};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let batch = RecordBatch::try_from_iter([
//!     ("k", Arc::new(Int64Array::from(vec![1, 2, 1])) as _),
//!     ("v", Arc::new(Int64Array::from(vec![10, 20, 30])) as _),
//! ])?;
//! let int = Type::of(&DataType::Int64, false).unwrap();
//! let mut query = Query::default();
//! let (k, v) = (query.add("k", int.clone()), query.add("v", int.clone()));
//! let sum = query.add("sum", int);
//! let rows = Rel::Values { vars: vec![k, v], batch };
//! let folds = vec![Fold { var: sum, function: Function::Sum, arg: Some(v) }];
//! let root = Rel::Fold { input: Box::new(rows), keys: vec![k], folds };
//! let root = Rel::Sort {
//!     input: Box::new(root),
//!     keys: vec![engine::Key { var: k, descending: false, nulls_first: true }],
//!     skip: 0,
//!     fetch: None,
//! };
//! let field = |name: &str| Field::new(name, DataType::Int64, false);
//! let output = Output { vars: vec![k, sum], schema: Arc::new(Schema::new(vec![field("k"), field("sum")])) };
//!
//! # let live = topology::Machine::live()?;
//! # let workers = workers::Workers::new(workers::Layout::of(&live, &live, 2, false))?;
//! let runtime = Runtime {
//!     nearness: workers.layout().nearness().clone(),
//!     traffic: Arc::new(memory::Traffic::new(workers.nodes())),
//!     budget: memory::Budget::new(64 << 20),
//!     workers: workers.clone(),
//!     stop: engine::Stop::default(),
//! };
//! let prepared = engine::prepare(query, root, output)?;
//! let answer = workers.block_on(async move { prepared.run(&runtime).await })?;
//! assert_eq!(answer[0].column(1).as_primitive::<Int64Type>().values(), &[40, 20]);
//! # Ok(())
//! # }
//! ```

mod cancel;
mod error;
mod execute;
mod executor;
mod expr;
mod logical;
mod memory;
mod operators;
mod options;
mod physical;
pub mod profile;
mod runtime;
pub mod time_line;
mod vector;

use std::sync::Arc;

use arrow::array::RecordBatch;
use tokio::sync::mpsc::Sender;

pub use algebra::filter::Op as Compare;
pub use cancel::Stop;
pub use error::{Error, Result};
pub use execute::rounds::Rounds;
pub use executor::Executor;
pub use expr::arithmetic::{arithmetic, cast, widen, year};
pub use expr::build::{alike, and, call, case, compare, in_set, is_null, not, or};
pub use expr::extreme::extreme;
pub use expr::ranged::{of_float, ranged};
pub use expr::{
    Arithmetic, Call, CalledPart, Calls, DateField, Expr, Extreme, FloatFunction, Literal, Node,
    PerLabel, Ranged, WholeFunction, is_fallible,
};
pub use logical::aggregate::{Fold, Function, Key, PairFunction, RowNumbers, RowOrder};
pub use logical::aggregate_call::{AggregateCall, Quantile};
pub use logical::external::{ExternalPart, ExternalParts, ExternalScan, ExternalSource};
pub use logical::opening::{Opening, WorkingRows};
pub use logical::parts::{Merged, Part};
pub use logical::relation::{AsOf, Column, Output, Query, Rel, Scan};
pub use logical::row_function::{Made, MadeRows, RowFunction, RowPieces};
pub use logical::scan::ScannedPart;
pub use logical::window::{
    Distance, FrameBounds, FrameEdge, FrameExclusion, FrameRow, FrameUnits, WindowFold,
    WindowFunction,
};
pub use logical::working::WorkingTable;
pub use options::{Allocation, BLOCK_ROWS, Execution, NumaPolicy, SpillTo};
pub use physical::explain::{PipelineOutline, StageOutline};
pub use physical::sampling::sample;
pub use profile::ProfileCollector;
pub use runtime::Runtime;
pub use time_line::TimeLine;
pub use vector::strings::Strings;
pub use vector::value::{Kind, Type, Values, Var, Vector};

/// A planned query, which can be run any number of times.
#[derive(Debug)]
pub struct Prepared {
    program: Arc<physical::program::Program>,
    columns: Vec<Column>,
    types: Arc<[Type]>,
    output: Output,
}

/// Plans `root`; the vectors of `output` are the columns of the answer.
///
/// # Errors
/// [`Error::Unsupported`] if the query needs something that the engine cannot do.
pub fn prepare(mut query: Query, root: Rel, output: Output) -> Result<Prepared> {
    let program = physical::planner::plan(&mut query, root, &output)?;
    Ok(Prepared {
        program: Arc::new(program),
        types: query.vars.iter().map(|column| column.ty.clone()).collect(),
        columns: query.vars,
        output,
    })
}

impl Prepared {
    /// Runs the query by the fused executor on the workers of `runtime` and returns the batches of its answer.
    /// Await it on one of these workers.
    ///
    /// # Errors
    /// Those of reading tables and of evaluating expressions; [`Error::Memory`] if the memory limit is too low. The
    /// query has released all its memory when it returns an error.
    pub async fn run(&self, runtime: &Runtime) -> Result<Vec<RecordBatch>> {
        let (batches, _) = self.run_by(runtime, &Execution::default()).await?;
        Ok(batches)
    }

    /// Like [`run`](Prepared::run), with the executor and settings of `execution`. Also returns the executor's
    /// report, a line each.
    ///
    /// # Errors
    /// Those of [`Prepared::run`], and of [`Execution::check`].
    pub async fn run_by(
        &self,
        runtime: &Runtime,
        execution: &Execution,
    ) -> Result<(Vec<RecordBatch>, Vec<String>)> {
        let (sender, mut rows) = tokio::sync::mpsc::channel(1);
        let mut batches = Vec::new();
        let taking = async {
            while let Some(batch) = rows.recv().await {
                batches.push(batch);
            }
        };
        let (report, ()) = tokio::join!(self.send(runtime, execution, sender), taking);
        Ok((batches, report?))
    }

    /// Whether it reads rows that are there only once, so that it cannot run again.
    pub fn reads_once(&self) -> bool {
        self.program.sources().any(|source| source.is_once())
    }

    /// Like [`run_by`](Prepared::run_by), but sends batches of the answer (at most 8,192 rows each) to `sender` as
    /// soon as they are computed, unless the answer must be sorted first. If an error comes later, the rows sent
    /// before it are still correct.
    ///
    /// # Errors
    /// Those of [`Prepared::run_by`]; [`Error::Cancelled`] if the receiver is dropped.
    pub async fn send(
        &self,
        runtime: &Runtime,
        execution: &Execution,
        sender: Sender<RecordBatch>,
    ) -> Result<Vec<String>> {
        execution.check()?;
        let (program, types) = (&self.program, self.types.clone());
        let report = execute::run(program, types, &self.output, runtime, execution, sender).await;
        let named = |text: &str| physical::explain::named(text, &self.columns);
        if let Some(profile) = &execution.profile {
            profile.name(named);
        }
        if let Some(line) = &execution.time_line {
            line.name(named);
        }
        report
    }

    /// A run of the query in rounds, each with other rows in its working table of this number. `opening` is what the recursive query is
    /// opened with.
    ///
    /// # Errors
    /// [`Error::Memory`] if the memory limit is too low.
    pub fn rounds(&self, working: u64, opening: &Opening<'_>) -> Result<Rounds> {
        let types = self.types.clone();
        Rounds::new(&self.program, types, &self.output, working, opening)
    }

    /// Whether its rows depend on those of the working table of this number.
    pub fn reads_working_table(&self, number: u64) -> bool {
        self.program.reads_working_table(number)
    }

    /// How many labels the dictionaries of its coded strings have. What it has found out of each label, such as the value of a
    /// function, it keeps from one run to the next.
    pub fn labels(&self) -> usize {
        let dictionaries = self.types.iter().filter_map(|ty| ty.labels.as_ref());
        let mut known: Vec<_> = dictionaries
            .map(|own| (Arc::as_ptr(own), own.labels().len()))
            .collect();
        known.sort_unstable();
        known.dedup();
        known.iter().map(|(_, labels)| labels).sum()
    }

    /// The columns of the answer.
    pub fn schema(&self) -> &arrow::datatypes::SchemaRef {
        &self.output.schema
    }

    /// The program in readable form, a line each: stages in the order they run, with their pipelines, operators and
    /// sinks.
    pub fn explain(&self) -> Vec<String> {
        physical::explain::lines(&self.program, &self.columns)
    }

    /// The same as data: the stages in the order in which they run. The last one makes the rows of the answer.
    pub fn outline(&self) -> Vec<StageOutline> {
        physical::explain::outline(&self.program, &self.columns)
    }
}
