//! Rows of constants that an `insert` brings, `values (1, 'x'), (2, '{}'::jsonb)`: made without a plan, which takes many times as
//! long.
//!
//! Constants are read [as casts read them](crate::bind::read_values). A row that has anything else, or a value that is
//! refused, has all of them planned.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use sqlparser::ast::{CastKind, DataType as SqlType, Expr, Insert, Query, SetExpr};
use sqlparser::parser::Parser;
use syntax::dialect::DIALECT;
use table::{Definition, Generated};

use crate::bind::left_out::LeftOut;
use crate::bind::row_values::{Cell, Given, RowValue, whole};
use crate::error::Result;
use crate::functions::arguments::UTC;
use crate::functions::lists::types::is_special;
use crate::functions::uuid;
use crate::messages::types::exact_name;
use crate::run::context::StatementContext;
use crate::statements::gathered_columns::Columns;

/// Rows that become one batch at a time.
const TOGETHER: usize = 1024;

/// Where the values of a column come from.
enum Source {
    /// The rows have them in this place.
    Row(usize),
    Default(LeftOut),
}

/// The rows of an `insert` of constants, in the columns of the table; none if something has to be planned. `named` are the
/// columns that its rows have, and its defaults have been filled in.
///
/// # Errors
/// Those of asking sequences.
pub(super) fn of_insert(
    context: &StatementContext,
    statement: &Insert,
    definition: &Definition,
    named: &[String],
) -> Result<Option<RecordBatch>> {
    let found = rows(statement, definition, named).zip(sources(definition, named));
    let Some((rows, sources)) = found else {
        return Ok(None);
    };
    let given = Given {
        local: context.local(),
        ..Given::NONE
    };
    let schema = open_schema(definition);
    let beginning = context.beginning().map(|at| {
        let at = TimestampMicrosecondArray::from_iter_values([at.timestamp_micros()]);
        Arc::new(at.with_timezone(UTC)) as ArrayRef
    });
    let known = (given, beginning.as_ref());
    let cells = rows
        .iter()
        .map(|values| cells(values, &sources, definition, known))
        .collect::<Option<Vec<_>>>();
    let Some(mut cells) = cells else {
        return Ok(None);
    };
    if !number(context, definition, &mut cells)? {
        return Ok(None);
    }
    let (mut columns, mut batches) = (Columns::new(Arc::clone(&schema)), Vec::new());
    for row in cells {
        columns.push(row)?;
        if columns.rows() == TOGETHER {
            batches.push(columns.finish()?);
        }
    }
    batches.push(columns.finish()?);
    Ok(Some(concat_batches(&schema, &batches)?))
}

/// The columns of a table, each of which may be NULL: what is not is looked at when rows are written.
pub(super) fn open_schema(definition: &Definition) -> SchemaRef {
    let schema = definition.schema();
    let fields = schema.fields().iter();
    let fields = fields.map(|own| own.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// What the rows say; none if it is not constants alone.
fn rows(
    statement: &Insert,
    definition: &Definition,
    named: &[String],
) -> Option<Vec<Vec<RowValue>>> {
    let source = statement.source.as_deref()?;
    let Query {
        body,
        with: None,
        order_by: None,
        limit_clause: None,
        fetch: None,
        ..
    } = source
    else {
        return None;
    };
    let SetExpr::Values(values) = body.as_ref() else {
        return None;
    };
    let twice = |at: usize| named[..at].contains(&named[at]);
    if (0..named.len()).any(twice) {
        return None;
    }
    let types = named.iter().map(|name| {
        let at = definition.position(name).ok()?;
        Some(cast_to(&definition.columns.get(at)?.data_type))
    });
    let types = types.collect::<Option<Vec<_>>>()?;
    let rows = values.rows.iter().map(|row| {
        let values = row.content.iter().zip(&types);
        let values = values.map(|(value, own)| RowValue::of(plain(value, own.as_ref())));
        let values = values.collect::<Option<Vec<_>>>()?;
        (row.content.len() == named.len()).then_some(values)
    });
    rows.collect()
}

/// The type that values of a column are cast to before a statement is planned, if they are.
pub(super) fn cast_to(data_type: &DataType) -> Option<SqlType> {
    if !is_special(data_type) {
        return None;
    }
    let parser = Parser::new(&DIALECT).try_with_sql(&exact_name(data_type));
    parser.ok()?.parse_data_type().ok()
}

/// A value without its cast to the type of its own column, which changes no constant.
pub(super) fn plain<'e>(value: &'e Expr, own: Option<&SqlType>) -> &'e Expr {
    match value {
        Expr::Nested(inner) => plain(inner, own),
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr,
            data_type,
            array: false,
            format: None,
        } if own == Some(data_type) => plain(expr, own),
        other => other,
    }
}

/// Where the values of each column come from; none if one is computed.
fn sources(definition: &Definition, named: &[String]) -> Option<Vec<Source>> {
    let source = |column: &table::Column| match named.iter().position(|own| *own == column.name) {
        // A composite value is made of others.
        Some(_) if column.domain.is_some() && is_special(&column.data_type) => None,
        Some(at) => Some(Source::Row(at)),
        // It may have the default of the domain.
        None if column.domain.is_some() => None,
        None => match LeftOut::of(column) {
            LeftOut::Computed => None,
            own => Some(Source::Default(own)),
        },
    };
    definition.columns.iter().map(source).collect()
}

/// A row as the table has it; none if a value would have to be converted, or is NULL where none is.
fn cells<'r>(
    values: &'r [RowValue],
    sources: &'r [Source],
    definition: &Definition,
    (given, beginning): (Given<'r>, Option<&ArrayRef>),
) -> Option<Vec<Cell<'r>>> {
    let schema = definition.schema();
    let columns = definition.columns.iter().zip(schema.fields());
    let cell = |((column, field), source): ((&table::Column, &Arc<Field>), &'r Source)| {
        let cell = match source {
            Source::Row(at) => values.get(*at)?.value(given, &column.data_type)?,
            Source::Default(LeftOut::Value(value)) => value.value(given, &column.data_type)?,
            Source::Default(LeftOut::Next(name)) => Cell::Next(name),
            Source::Default(LeftOut::Random) => Cell::One(uuid::random().ok()?),
            Source::Default(LeftOut::Beginning) => Cell::One(Arc::clone(beginning?)),
            Source::Default(_) => return None,
        };
        let is_computed = matches!(column.generated, Some(Generated::Stored { .. }));
        let lacks = matches!(cell, Cell::Null) && !field.is_nullable() && !is_computed;
        (!lacks).then_some(cell)
    };
    columns.zip(sources).map(cell).collect()
}

/// Puts the next numbers of sequences into rows; false if a column has not the range for its number.
fn number(
    context: &StatementContext,
    definition: &Definition,
    rows: &mut [Vec<Cell<'_>>],
) -> Result<bool> {
    for row in rows {
        for (cell, column) in row.iter_mut().zip(&definition.columns) {
            let Cell::Next(name) = cell else {
                continue;
            };
            let next = match context.numbers_of_kept() {
                Some(numbers) => numbers.next(name, 1)?,
                None => Vec::new(),
            };
            let number = next.first().copied();
            match number.and_then(|own| whole(own, &column.data_type)) {
                Some(own) => *cell = own,
                None => return Ok(false),
            }
        }
    }
    Ok(true)
}
