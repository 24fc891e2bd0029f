//! Selections and column readers: which rows of a source a batch holds, and reading their columns when they are
//! needed (late materialisation).

use std::ops::Range;
use std::sync::Arc;

use algebra::VECTOR_ROWS;
use table::{Cursor, PartValues, Rows};

use crate::error::{Error, Result};
use crate::logical::scan::{Scan, ScannedPart};
use crate::operators::external_scan::Arrived;
use crate::vector::batch::Batch;
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Type, Values, Var, Vector};

/// A selection vector: which rows of the source a batch holds.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    run: Option<Range<usize>>,
    list: Vec<u32>,
}

impl Selection {
    /// Of no rows, with room for a list of so many.
    pub fn with_room(rows: usize) -> Selection {
        Selection {
            run: None,
            list: Vec::with_capacity(rows),
        }
    }

    /// Selects the next rows of `cursor`; false at the end.
    pub fn advance(&mut self, cursor: &mut Cursor<'_>) -> bool {
        match cursor.next_rows(VECTOR_ROWS, &mut self.list) {
            None => false,
            Some(run) => {
                self.run = run;
                true
            }
        }
    }

    pub fn start(&mut self, run: Range<usize>) {
        self.run = Some(run);
    }

    /// Selects these rows.
    pub fn list(&mut self, rows: &[u32]) {
        self.run = None;
        self.list.clear();
        self.list.extend_from_slice(rows);
    }

    pub fn rows(&self) -> Rows<'_> {
        match &self.run {
            Some(run) => Rows::Run(run.clone()),
            None => Rows::Some(&self.list),
        }
    }

    /// The rows from one to another of this selection.
    pub fn cut(&self, part: Range<usize>) -> Selection {
        match &self.run {
            Some(run) => Selection {
                run: Some(run.start + part.start..run.start + part.end),
                list: Vec::new(),
            },
            None => Selection {
                run: None,
                list: self.list[part].to_vec(),
            },
        }
    }

    /// The rows at `picks` of this selection, which ascend and may repeat.
    pub fn pick(&self, picks: &[u32]) -> Selection {
        let list = match &self.run {
            Some(run) => picks.iter().map(|p| run.start as u32 + p).collect(),
            None => picks.iter().map(|p| self.list[*p as usize]).collect(),
        };
        Selection { run: None, list }
    }
}

/// The vectors of a scan.
#[derive(Debug)]
pub(crate) struct ScanVars {
    /// One per column.
    pub columns: Vec<Var>,
    /// One per part of documents.
    pub parts: Vec<ScannedPart>,
    /// That of the row ids, if it gives them.
    pub row_ids: Option<Var>,
}

impl ScanVars {
    /// Those of `scan`.
    pub fn of(scan: &Scan) -> ScanVars {
        ScanVars {
            columns: scan.columns.iter().map(|(var, _)| *var).collect(),
            parts: scan.parts.clone(),
            row_ids: scan.row_ids,
        }
    }

    /// The values of `var` at `rows`; `None` if the scan does not have it.
    fn read(
        &self,
        cursor: &Cursor<'_>,
        var: Var,
        ty: &Type,
        rows: &Rows<'_>,
    ) -> Result<Option<Vector>> {
        if self.row_ids == Some(var) {
            return row_ids(cursor, ty, rows).map(Some);
        }
        if let Some(column) = self.columns.iter().position(|own| *own == var) {
            return read(cursor, column, ty, rows).map(Some);
        }
        let part = self.parts.iter().position(|own| own.var == var);
        let Some(number) = part else {
            return Ok(None);
        };
        let call = &self.parts[number].call;
        let found = match cursor.part(number, rows)? {
            PartValues::Parts(parts) => call.of_parts(&parts),
            PartValues::Documents(documents) => call.call(&[documents], rows.len()),
        };
        Vector::from_arrow(&found.map_err(Error::Call)?, ty).map(Some)
    }
}

/// Reads columns that are not in a batch yet.
#[derive(Clone, Copy)]
pub(crate) enum ColumnReader<'a, 'p> {
    /// The columns of a scan.
    Scan(&'a Cursor<'p>, &'a ScanVars),
    /// Materialised rows.
    Materialized(&'a Materialized),
    /// Rows received from an external source.
    Arrived(&'a Arrived),
    /// The rows of a join table, with their row numbers as this vector.
    JoinTable(&'a crate::operators::join_table::JoinTable, Option<Var>),
}

impl ColumnReader<'_, '_> {
    /// Reads column `var` for the selected rows into `batch`; does nothing if the source does not have it.
    pub fn load(
        &self,
        var: Var,
        ty: &Type,
        selection: &Selection,
        batch: &mut Batch,
    ) -> Result<()> {
        let vector = match self {
            ColumnReader::Scan(cursor, vars) => {
                match vars.read(cursor, var, ty, &selection.rows())? {
                    Some(vector) => vector,
                    None => return Ok(()),
                }
            }
            ColumnReader::Materialized(stored) => match stored.columns.get(&var) {
                Some(vector) => at(vector, &selection.rows())?,
                None => return Ok(()),
            },
            ColumnReader::Arrived(arrived) => match arrived.read(var, ty, &selection.rows())? {
                Some(vector) => vector,
                None => return Ok(()),
            },
            ColumnReader::JoinTable(_, Some(row)) if *row == var => {
                let numbers = match selection.rows() {
                    Rows::Run(run) => run.map(|row| row as i64).collect(),
                    Rows::Some(rows) => rows.iter().map(|row| i64::from(*row)).collect(),
                };
                Vector::new(Values::Int(numbers))
            }
            ColumnReader::JoinTable(join_table, _) => match join_table.column(var) {
                Ok(vector) => at(vector, &selection.rows())?,
                Err(_) => return Ok(()),
            },
        };
        batch.set(var, vector);
        Ok(())
    }
}

/// The ids of `rows`.
fn row_ids(cursor: &Cursor<'_>, ty: &Type, rows: &Rows<'_>) -> Result<Vector> {
    let mut ids = Vec::with_capacity(rows.len());
    cursor.row_ids(rows, &mut ids)?;
    let values = match ty.kind {
        Kind::Wide => Values::Wide(ids.into_iter().map(i128::from).collect()),
        Kind::Int => {
            let narrow = ids.into_iter().map(i64::try_from);
            let narrow = narrow.collect::<std::result::Result<_, _>>();
            Values::Int(narrow.map_err(|_| Error::internal("a row id beyond its type"))?)
        }
        _ => return Err(Error::internal("row ids that are no numbers")),
    };
    Ok(Vector::new(values))
}

fn at(vector: &Vector, rows: &Rows<'_>) -> Result<Vector> {
    match rows {
        Rows::Some(rows) => vector.at(rows),
        Rows::Run(run) => Ok(vector.run(run.clone())),
    }
}

fn read(cursor: &Cursor<'_>, column: usize, ty: &Type, rows: &Rows<'_>) -> Result<Vector> {
    let mut valid = Vec::new();
    let values = match ty.kind {
        Kind::Text => return Vector::from_arrow(&cursor.array(column, rows)?, ty),
        Kind::Float => {
            let mut out = Vec::with_capacity(rows.len());
            cursor.floats(column, rows, &mut out)?;
            Values::Float(out)
        }
        Kind::Int => {
            let mut out = Vec::with_capacity(rows.len());
            cursor.ints(column, rows, &mut out)?;
            Values::Int(out)
        }
        Kind::Wide => {
            let mut out = Vec::with_capacity(rows.len());
            cursor.wides(column, rows, &mut out)?;
            Values::Wide(out)
        }
        Kind::Code => {
            let mut out = Vec::with_capacity(rows.len());
            cursor.codes(column, rows, &mut out)?;
            Values::Code(out)
        }
        Kind::Bool => {
            let mut out = Vec::with_capacity(rows.len());
            cursor.ints(column, rows, &mut out)?;
            Values::Bool(out.into_iter().map(|v| v != 0).collect())
        }
    };
    let some = ty.nullable && cursor.valid(column, rows, &mut valid);
    Ok(Vector {
        values,
        valid: some.then_some(valid),
    })
}

/// Splits `rows` rows into pieces of `size` rows.
pub(crate) fn pieces(rows: usize, size: usize) -> Arc<[Range<usize>]> {
    (0..rows.div_ceil(size))
        .map(|i| i * size..((i + 1) * size).min(rows))
        .collect()
}
