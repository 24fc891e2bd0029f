//! What external sources are opened with.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::options::Execution;
use crate::runtime::Runtime;

/// What an external source is opened with.
#[derive(Debug)]
pub struct Opening<'o> {
    /// Which of how many readers this is.
    pub share: (usize, usize),
    /// What the query runs with that reads it.
    pub runtime: &'o Runtime,
    /// How that query runs.
    pub execution: &'o Execution,
    /// The rows of the working tables of the recursive queries that it runs for.
    pub working: &'o WorkingRows,
}

/// The rows of working tables, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct WorkingRows(Vec<(u64, Arc<[RecordBatch]>)>);

impl WorkingRows {
    /// The rows of this working table; none if no recursive query runs that has it.
    pub fn of(&self, number: u64) -> Option<&Arc<[RecordBatch]>> {
        let mut all = self.0.iter();
        all.find(|(other, _)| *other == number)
            .map(|(_, rows)| rows)
    }

    /// Sets the rows of a working table.
    pub fn put(&mut self, number: u64, rows: Arc<[RecordBatch]>) {
        self.0.retain(|(other, _)| *other != number);
        self.0.push((number, rows));
    }
}
