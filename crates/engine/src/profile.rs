//! What a run did, in numbers, for whoever asks ([`Execution::ledger`](crate::Execution)): rows, bytes, operations and
//! time of each operator, blocks made and used again, what tasks were asleep for.
//!
//! Nothing is measured for nobody. What tasks of the streaming and the staged executor did is counted anyway and only
//! handed over. Operators of the fused one are timed vector by vector, which costs some per cent: what is to be
//! compared in time runs without a ledger.
//!
//! *Operations* are those of the operator, not the processor's: a comparison, a sum, a product, a look-up, a key
//! combined with others, a value added to its group, a value widened or gathered each count one per row. *Bytes* are
//! what kernels read and write: of pages the stored width, of vectors and masks theirs.

use parking_lot::Mutex;

use crate::executor::Executor;

/// Where runs are noted.
#[derive(Debug, Default)]
pub struct Ledger {
    records: Mutex<Vec<Record>>,
}

/// How one stage ran (of a staged run, one pipeline of it).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The stage's number.
    pub stage: usize,
    /// What ran it; small stages are run fused, whatever was asked for.
    pub executor: Executor,
    /// From its begin to its end.
    pub seconds: f64,
    /// Most rows of an execution block; 0 where there are none (fused).
    pub block_rows: usize,
    /// Execution blocks that were allocated.
    pub blocks_made: u64,
    /// How often one was used again.
    pub blocks_reused: u64,
    /// Operators that are tasks of their own (stream, staged).
    pub operators: Vec<OperatorProfile>,
    /// What workers did one after the other (fused).
    pub kernels: Vec<Kernel>,
}

/// An operator whose tasks run beside those of others.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OperatorProfile {
    /// As `explain analyze` names it.
    pub name: String,
    /// Its tasks.
    pub tasks: Vec<Task>,
}

/// What one task did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// Blocks handed on; of the last operator, taken.
    pub blocks: u64,
    /// Their rows.
    pub rows: u64,
    /// Seconds of work.
    pub busy: f64,
    /// Seconds asleep because nothing came from the operator before it.
    pub for_input: f64,
    /// How often.
    pub times_for_input: u64,
    /// Seconds asleep because the operator behind it had no room.
    pub for_output: f64,
    /// How often.
    pub times_for_output: u64,
}

/// What all workers did in one operator of a pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Kernel {
    /// The operator and what it works on.
    pub name: String,
    /// Rows that came to it.
    pub rows: u64,
    /// Operations on them.
    pub operations: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Bytes of pages among them.
    pub page_bytes: u64,
    /// Seconds, added up over the workers.
    pub seconds: f64,
}

impl Ledger {
    /// One more stage has run.
    pub(crate) fn note(&self, record: Record) {
        self.records.lock().push(record);
    }

    /// Puts names in the place of the numbers of vectors.
    pub(crate) fn name(&self, named: impl Fn(&str) -> String) {
        for record in self.records.lock().iter_mut() {
            for kernel in &mut record.kernels {
                kernel.name = named(&kernel.name);
            }
        }
    }

    /// What has been noted since the last time, in the order in which stages ended.
    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.records.lock())
    }
}
