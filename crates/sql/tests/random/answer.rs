//! What a query gave, and whether two answers are the same.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// A value that can be compared with that of another engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Text(String),
    Float(f64),
}

#[derive(Debug)]
pub enum Outcome {
    Rows {
        types: Vec<String>,
        rows: Vec<Vec<Cell>>,
        ran_on: &'static str,
    },
    /// Arithmetic that left its type, or divided by zero.
    Arithmetic(String),
    Failed(String),
}

impl Outcome {
    pub fn of(result: sql::Result<Vec<sql::Answer>>) -> Outcome {
        let answer = result.map(|mut answers| answers.pop().expect("one statement"));
        match answer {
            Ok(answer) => Outcome::Rows {
                types: types(&answer.schema),
                rows: rows(&answer.batches),
                ran_on: answer.statistics.ran_on,
            },
            Err(e) => Outcome::failed(e),
        }
    }

    /// What DataFusion's operators have given, whose columns may have other names.
    pub fn of_peer(result: sql::Result<(SchemaRef, Vec<RecordBatch>)>) -> Outcome {
        match result {
            Ok((schema, batches)) => Outcome::Rows {
                types: types(&schema),
                rows: rows(&batches),
                ran_on: "datafusion",
            },
            Err(e) => Outcome::failed(e),
        }
    }

    fn failed(e: sql::Error) -> Outcome {
        match e {
            sql::Error::Arithmetic { message, .. } => Outcome::Arithmetic(message),
            e => Outcome::Failed(e.to_string()),
        }
    }
}

fn types(schema: &SchemaRef) -> Vec<String> {
    let fields = schema.fields().iter();
    fields.map(|field| field.data_type().to_string()).collect()
}

fn rows(batches: &[RecordBatch]) -> Vec<Vec<Cell>> {
    let options = FormatOptions::default();
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| {
                (
                    column,
                    ArrayFormatter::try_new(column.as_ref(), &options).unwrap(),
                )
            })
            .collect();
        for row in 0..batch.num_rows() {
            let cell = |(column, format): &(&arrow::array::ArrayRef, ArrayFormatter<'_>)| {
                if column.is_null(row) {
                    return Cell::Null;
                }
                match column.data_type() {
                    DataType::Float64 => {
                        Cell::Float(column.as_primitive::<Float64Type>().value(row))
                    }
                    _ => Cell::Text(format.value(row).to_string()),
                }
            };
            rows.push(columns.iter().map(cell).collect());
        }
    }
    rows
}

impl Cell {
    /// What cells are sorted by: floats by their first digits.
    fn key(&self) -> (u8, String) {
        match self {
            Cell::Null => (0, String::new()),
            Cell::Text(text) => (1, text.clone()),
            Cell::Float(v) if v.is_nan() => (2, "NaN".into()),
            Cell::Float(v) => (2, format!("{:.8e}", v + 0.0)),
        }
    }

    fn equals(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Float(a), Cell::Float(b)) => {
                a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
            }
            (a, b) => a == b,
        }
    }
}

/// The first difference between the rows, in words; `order` are the columns (from 0) that they are sorted by.
pub fn difference(mine: &[Vec<Cell>], theirs: &[Vec<Cell>], order: &[usize]) -> Option<String> {
    if mine.len() != theirs.len() {
        return Some(format!("{} rows, but {}", mine.len(), theirs.len()));
    }
    for (number, (a, b)) in mine.iter().zip(theirs).enumerate() {
        for column in order {
            if !a[*column].equals(&b[*column]) {
                return Some(format!(
                    "sorted row {number}, column {column}: {:?}, but {:?}",
                    a[*column], b[*column]
                ));
            }
        }
    }
    let sorted = |rows: &[Vec<Cell>]| {
        let mut keyed: Vec<_> = rows
            .iter()
            .map(|row| (row.iter().map(Cell::key).collect::<Vec<_>>(), row.clone()))
            .collect();
        keyed.sort_by(|a, b| a.0.cmp(&b.0));
        keyed
    };
    let (mine, theirs) = (sorted(mine), sorted(theirs));
    for ((_, a), (_, b)) in mine.iter().zip(&theirs) {
        if a.len() != b.len() || !a.iter().zip(b).all(|(a, b)| a.equals(b)) {
            return Some(format!("a row {a:?}, but {b:?}"));
        }
    }
    None
}
