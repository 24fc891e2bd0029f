//! Statements with rows of parameters.

use std::sync::Arc;

use adbc_core::error::Result;
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use atoll::{Frames, PreparedStatement, Session};

use crate::cancel::Execution;
use crate::error::{invalid, told};
use crate::insert;
use crate::numbered::Numbered;
use crate::parameter::Rows;
use crate::rows::Source;

/// What a statement calls the rows of its parameters.
const FRAME: &str = "the parameters";

/// Rows that were bound to a statement.
pub(crate) type Bound = Box<dyn RecordBatchReader + Send>;

/// A statement that was prepared for parameters of these types.
pub(crate) struct Prepared {
    pub(crate) types: Vec<Option<DataType>>,
    /// None of a text without a statement.
    pub(crate) statement: Option<PreparedStatement>,
}

/// Checks that there are as many columns as parameters.
///
/// # Errors
/// If there are not.
pub(crate) fn check_width(statement: &PreparedStatement, width: usize) -> Result<()> {
    let count = statement.parameters().len();
    if count == width {
        return Ok(());
    }
    Err(invalid(format!(
        "the statement has {count} parameters, and {width} columns are bound"
    )))
}

/// Runs a statement that returns no rows with each row of parameters, and returns how many rows it has written, if that is
/// known.
///
/// # Errors
/// The first failure.
pub(crate) fn each(
    session: &Session,
    execution: &Execution,
    statement: &PreparedStatement,
    text: &Numbered,
    bound: Bound,
) -> Result<Option<u64>> {
    let mut rows = Rows::new(bound);
    let mut changed = Some(0);
    while let Some(row) = rows.take()? {
        let done = execution.run(|| {
            let values: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
            let run = session.run(statement, &values);
            let mut answer = run.map_err(|error| text.placed(error))?;
            match answer.next() {
                Some(Err(error)) => Err(error),
                _ => Ok(answer.changed()),
            }
        })?;
        changed = changed.zip(done).map(|(all, some)| all + some);
    }
    Ok(changed)
}

/// Appends all rows of parameters at once, if the statement is an insert of one row of them; gives them back otherwise.
///
/// # Errors
/// Those of the statement, of which nothing is done then.
pub(crate) fn at_once(
    session: &Session,
    execution: &Execution,
    text: &Numbered,
    bound: Bound,
) -> Result<std::result::Result<Option<u64>, Bound>> {
    let width = bound.schema().fields().len();
    let frame = format!("\"{FRAME}\"");
    let Some(insert) = insert::of_rows(&text.text, width, &frame) else {
        return Ok(Err(bound));
    };
    let mut frames = Frames::default();
    let added = frames.add_reader(FRAME, Box::new(Renamed::new(bound)));
    told(added.map_err(atoll::Error::from))?;
    let session = session.with_frames(frames);
    let changed = execution.run(|| session.query(&insert).map(|rows| rows.changed()))?;
    Ok(Ok(changed))
}

/// The rows of a query with each row of parameters, one after the other, and its columns; none if no row is bound.
///
/// # Errors
/// If the query fails with the first row.
pub(crate) fn queried(
    session: &Session,
    execution: &Arc<Execution>,
    statement: &PreparedStatement,
    text: &Numbered,
    bound: Bound,
) -> Result<Option<(SchemaRef, Source)>> {
    let mut rows = Rows::new(bound);
    let (session, here) = (session.clone(), Arc::clone(execution));
    let (statement, text) = (statement.clone(), text.clone());
    let mut open = move || -> Result<Option<atoll::Rows>> {
        let Some(row) = rows.take()? else {
            return Ok(None);
        };
        let values: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
        let run = || session.run(&statement, &values);
        here.run(|| run().map_err(|error| text.placed(error)))
            .map(Some)
    };
    let Some(first) = open()? else {
        return Ok(None);
    };
    let schema = Arc::clone(first.schema());
    let mut current = first;
    let execution = Arc::clone(execution);
    let source: Source = Box::new(move || {
        loop {
            match execution.run(|| current.next().transpose())? {
                Some(batch) => return Ok(Some(batch)),
                None => match open()? {
                    Some(next) => current = next,
                    None => return Ok(None),
                },
            }
        }
    });
    Ok(Some((schema, source)))
}

/// Rows whose columns are called `1`, `2` and so on.
struct Renamed {
    schema: SchemaRef,
    rows: Bound,
}

impl Renamed {
    fn new(rows: Bound) -> Renamed {
        let schema = rows.schema();
        let fields = schema.fields().iter().enumerate();
        let fields = fields.map(|(at, field)| {
            let field = field.as_ref().clone();
            field.with_name((at + 1).to_string())
        });
        Renamed {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            rows,
        }
    }
}

impl Iterator for Renamed {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.rows.next()?;
        Some(batch.and_then(|batch| {
            RecordBatch::try_new(Arc::clone(&self.schema), batch.columns().to_vec())
        }))
    }
}

impl RecordBatchReader for Renamed {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
