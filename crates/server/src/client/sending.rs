//! The rows of a statement, on their way to a client.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use sql::{Local, Origins};

use crate::errors;
use crate::shared::Place;
use crate::values::row::Rows;
use crate::values::types;
use crate::wire::backend::{self, Column, Report};

/// Where rows come from.
pub(crate) enum Source {
    /// A statement that runs.
    Running(Box<atoll::Rows>),
    /// Rows that are there already.
    Here(SchemaRef, VecDeque<RecordBatch>),
}

impl Source {
    pub(crate) fn schema(&self) -> &SchemaRef {
        match self {
            Source::Running(rows) => rows.schema(),
            Source::Here(schema, _) => schema,
        }
    }

    /// Which of its columns are columns of a table.
    pub(crate) fn origins(&self) -> Origins {
        match self {
            Source::Running(rows) => rows.origins().clone(),
            Source::Here(..) => Origins::default(),
        }
    }

    /// Whether it has columns, and so rows.
    pub(crate) fn has_rows(&self) -> bool {
        !self.schema().fields().is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<atoll::Result<RecordBatch>> {
        match self {
            Source::Running(rows) => rows.next(),
            Source::Here(_, batches) => batches.pop_front().map(Ok),
        }
    }

    /// What the command is called when `sent` rows of it were sent.
    pub(crate) fn tag(&self, sent: u64) -> String {
        match self {
            Source::Here(..) => format!("SELECT {sent}"),
            Source::Running(rows) => tag(rows.verb(), rows.changed(), self.has_rows(), sent),
        }
    }
}

/// What a command is called that has changed so many rows, or returned some.
fn tag(verb: &str, changed: Option<u64>, rows: bool, sent: u64) -> String {
    match (verb, changed) {
        ("INSERT", changed) => format!("INSERT 0 {}", changed.unwrap_or(sent)),
        ("UPDATE" | "DELETE" | "MERGE" | "COPY", changed) => {
            format!("{verb} {}", changed.unwrap_or(sent))
        }
        ("SELECT", changed) => format!("SELECT {}", changed.unwrap_or(sent)),
        ("EXECUTE", _) if rows => format!("SELECT {sent}"),
        (verb, _) => verb.to_string(),
    }
}

/// Rows that are sent piece by piece.
pub(crate) struct Sending {
    pub source: Source,
    /// What the client was told of the columns, if it was.
    told: Option<Vec<u32>>,
    formats: Vec<bool>,
    /// A batch of which some rows are sent.
    pub batch: Option<(Rows, usize)>,
    pub sent: u64,
    /// Its place among those that wait in the middle of their rows.
    pub place: Option<Place>,
}

/// Which columns are binary: `wanted` is none for all text, one for all, or one for each.
///
/// # Errors
/// If there is another number of them.
pub(crate) fn formats(wanted: &[bool], columns: usize) -> Result<Vec<bool>, Report> {
    match wanted {
        [] => Ok(vec![false; columns]),
        [all] => Ok(vec![*all; columns]),
        each if each.len() == columns => Ok(each.to_vec()),
        each => Err(Report::error(
            errors::PROTOCOL,
            format!("{} formats for {columns} columns", each.len()),
        )),
    }
}

/// The columns as the protocol describes them.
pub(crate) fn described(schema: &SchemaRef, origins: &Origins, formats: &[bool]) -> Vec<Column> {
    let fields = schema.fields().iter().enumerate();
    fields
        .map(|(at, field)| {
            let binary = formats.get(at).copied().unwrap_or(false);
            types::column(field, (origins.of(at), origins.modifier(at)), binary)
        })
        .collect()
}

impl Sending {
    /// Rows of `source` in these formats; the client was told that the columns have the types `told`.
    ///
    /// # Errors
    /// If the client was told of other columns.
    pub(crate) fn new(
        source: Source,
        wanted: &[bool],
        told: Option<Vec<u32>>,
    ) -> Result<Sending, Report> {
        let columns = source.schema().fields().len();
        if told
            .as_ref()
            .is_some_and(|told| told.len() != columns && columns > 0)
        {
            return Err(Report::error(errors::NOT_SUPPORTED, backend::CHANGED));
        }
        Ok(Sending {
            formats: if columns == 0 {
                Vec::new()
            } else {
                formats(wanted, columns)?
            },
            source,
            told,
            batch: None,
            sent: 0,
            place: None,
        })
    }
}

impl Sending {
    /// Which columns are binary from the next row on.
    pub(crate) fn set_formats(&mut self, formats: Vec<bool>) {
        if let Some((rows, _)) = &mut self.batch {
            rows.set_formats(&formats);
        }
        self.formats = formats;
    }

    /// The rows of a batch, with the types that the client was told, and dates and times written as the session has them.
    pub(crate) fn encoded(&self, batch: &RecordBatch, local: Local) -> Result<Rows, Report> {
        Ok(self.rows_of(batch)?.of(local))
    }

    fn rows_of(&self, batch: &RecordBatch) -> Result<Rows, Report> {
        let Some(told) = &self.told else {
            return Rows::new(batch, self.formats.clone()).map_err(unwritten);
        };
        let fields = batch.schema();
        let same = |(at, oid): (usize, &u32)| types::oid(fields.field(at).data_type()) == *oid;
        if told.iter().enumerate().all(same) {
            return Rows::new(batch, self.formats.clone()).map_err(unwritten);
        }
        let columns = batch.columns().iter().zip(told).map(|(column, oid)| {
            if types::oid(column.data_type()) == *oid {
                return Ok(column.clone());
            }
            let to = types::declared(*oid)
                .ok()
                .flatten()
                .unwrap_or(DataType::Utf8);
            arrow::compute::cast(column, &to)
        });
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(unwritten)?;
        let names = fields.fields().iter().map(|field| field.name().as_str());
        let named = names
            .zip(columns)
            .map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(named).map_err(unwritten)?;
        Rows::new(&batch, self.formats.clone()).map_err(unwritten)
    }
}

/// The report of a value that cannot be written.
pub(crate) fn unwritten(e: arrow::error::ArrowError) -> Report {
    Report::error(errors::INTERNAL, e.to_string())
}
