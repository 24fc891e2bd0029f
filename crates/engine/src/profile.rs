//! The profile of a run, collected by [`Execution::profile`](crate::Execution): rows, bytes, operations and time of
//! each operator, blocks allocated and reused, and how long tasks waited.
//!
//! Without a collector nothing extra is measured. The streaming and staged executors count what their tasks do in any
//! case; the collector only takes the counts over. The fused executor times each operator vector by vector, which costs
//! a few per cent, so runs that are compared in time should collect none.
//!
//! *Operations* are those of the operator, not of the processor: a comparison, a sum, a product, a probe, a key
//! combined with others, a value added to its group, a value widened or gathered each count one per row. *Bytes*
//! are what kernels read and write: the stored width for pages, the in-memory width for vectors and masks.

use parking_lot::Mutex;

use crate::executor::Executor;

/// Collects the profiles of runs.
#[derive(Debug, Default)]
pub struct ProfileCollector {
    records: Mutex<Vec<Record>>,
}

/// The profile of one stage (of a staged run: of one of its pipelines).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The stage's number.
    pub stage: usize,
    /// The executor that ran it. Small stages are always run fused.
    pub executor: Executor,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// Most rows in an execution block; 0 for the fused executor, which has none.
    pub block_rows: usize,
    /// Execution blocks that were allocated.
    pub blocks_made: u64,
    /// How many times a block was reused.
    pub blocks_reused: u64,
    /// The operators, each with its tasks (streaming and staged executors only).
    pub operators: Vec<OperatorProfile>,
    /// The operators in the order each worker runs them (fused executor only).
    pub kernels: Vec<Kernel>,
}

/// An operator whose tasks run concurrently with those of other operators.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OperatorProfile {
    /// Its name in `explain analyze`.
    pub name: String,
    /// Its tasks.
    pub tasks: Vec<Task>,
}

/// Counters of one task.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// Blocks handed on; for the last operator, blocks taken in.
    pub blocks: u64,
    /// Rows of these blocks.
    pub rows: u64,
    /// Seconds of work.
    pub busy: f64,
    /// Seconds spent waiting for input.
    pub for_input: f64,
    /// How many times it waited for input.
    pub times_for_input: u64,
    /// Seconds spent waiting for room in the output channel.
    pub for_output: f64,
    /// How many times it waited for room.
    pub times_for_output: u64,
}

/// What all workers together did in one operator of a pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Kernel {
    /// The operator and its arguments.
    pub name: String,
    /// Rows that reached it.
    pub rows: u64,
    /// Operations on these rows.
    pub operations: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// How many of these bytes were bytes of pages.
    pub page_bytes: u64,
    /// Seconds, summed over the workers.
    pub seconds: f64,
    /// Whether it is the end of its pipeline: its rows are those that the stage collected or folded.
    pub last: bool,
}

impl ProfileCollector {
    /// Adds the record of a finished stage.
    pub(crate) fn note(&self, record: Record) {
        self.records.lock().push(record);
    }

    /// Replaces the numbers of vectors in operator names, such as `#7`, by what `named` gives for them.
    pub(crate) fn name(&self, named: impl Fn(&str) -> String) {
        for record in self.records.lock().iter_mut() {
            for kernel in &mut record.kernels {
                kernel.name = named(&kernel.name);
            }
        }
    }

    /// Takes all records added since the last call, in the order in which the stages ended.
    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.records.lock())
    }
}
