//! Answers as texts that tests compare.

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sql::Answer;

/// The rows as texts, sorted.
pub fn rows(answer: &Answer) -> Vec<String> {
    rows_of(&answer.batches)
}

/// The same of batches.
pub fn rows_of(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut all = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let values: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
            all.push(values.join("|"));
        }
    }
    all.sort();
    all
}
