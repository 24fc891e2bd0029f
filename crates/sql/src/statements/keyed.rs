//! `update t set a = 1, n = n + 1 where id = 5` and `delete from t where id = 5 and version = 2`: the row is found by its key,
//! and made without a plan, which takes many times as long. What is done with it is what is done with the rows of a plan.
//!
//! Any statement that says more is planned, and so is one that a value of is refused: the plan gives the error.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt64Array};
use arrow::compute::kernels::cmp;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, Field, Int64Type, Schema, SchemaRef, TimeUnit};
use sqlparser::ast::{AssignmentTarget, BinaryOperator, Delete, Expr, Ident, TableFactor, Update};
use syntax::key_query::{Named, equalities};
use syntax::lengths;
use syntax::names::{base, column_name};
use table::{Column, Definition, Privileges, ROW_COLUMN, Table, is_enum, uuid_type};

use crate::bind::row_values::{Cell, Given, RowValue, scaled, whole};
use crate::error::Result;
use crate::functions::temporal::local::Local;
use crate::run::context::StatementContext;
use crate::run::row_values::RowValues;
use crate::statements::constant_rows::{cast_to, open_schema, plain};
use crate::statements::gathered_columns::array;
use crate::statements::scope::Scope;
use crate::statements::using::is_aliased;

/// What a statement finds by a key: rows as a plan of it has them, of which there is one at most. The last column is the number
/// of the row.
pub(super) struct Found {
    pub schema: SchemaRef,
    pub row: Option<RecordBatch>,
}

/// A table, and a statement that changes it.
type Changing<'s, S> = (&'s Arc<Table>, &'s S);

/// The new row of an `update`, whose assignments have been folded and filled; none if it is to be planned.
///
/// # Errors
/// Those of reading the index and the row.
pub(super) async fn updated(
    scope: &Scope<'_>,
    context: &mut StatementContext,
    (table, statement): Changing<'_, Update>,
) -> Result<Option<Found>> {
    let definition = table.definition();
    let Update {
        table: target,
        from: None,
        selection: Some(condition),
        output: None,
        or: None,
        limit: None,
        order_by,
        ..
    } = statement
    else {
        return Ok(None);
    };
    let is_whole = target.joins.is_empty() && order_by.is_empty();
    if scope.always_plans() || !is_whole || !is_bare(&target.relation) {
        return Ok(None);
    }
    let own = Own::new(context, definition);
    let Some(assigned) = assigned(&own, statement) else {
        return Ok(None);
    };
    let Some(assigned) = compiled(context, definition, assigned).await else {
        return Ok(None);
    };
    let Some(number) = numbered(context, (table, &own), condition).await? else {
        return Ok(None);
    };
    let schema = with_number(open_schema(definition).fields().iter().cloned());
    let Some(number) = number.first().copied() else {
        return Ok(Some(Found { schema, row: None }));
    };
    let old = read(context, table, (number, &all(definition))).await?;
    let Some(mut new) = assigned.values(definition, &old) else {
        return Ok(None);
    };
    new.push(Arc::new(UInt64Array::from(vec![number])));
    context.clock.ran_on = "index";
    let row = Some(RecordBatch::try_new(Arc::clone(&schema), new)?);
    Ok(Some(Found { schema, row }))
}

/// The row of a `delete`, or its number alone if it is not `whole`; none if the statement is to be planned.
///
/// # Errors
/// As [`updated`].
pub(super) async fn deleted(
    scope: &Scope<'_>,
    context: &mut StatementContext,
    (table, statement): Changing<'_, Delete>,
    whole: bool,
) -> Result<Option<Found>> {
    let definition = table.definition();
    let Delete {
        tables,
        using: None,
        selection: Some(condition),
        output: None,
        limit: None,
        order_by,
        ..
    } = statement
    else {
        return Ok(None);
    };
    let is_whole = tables.is_empty() && order_by.is_empty();
    if scope.always_plans() || !is_whole || is_aliased(statement) {
        return Ok(None);
    }
    let own = Own::new(context, definition);
    let Some(number) = numbered(context, (table, &own), condition).await? else {
        return Ok(None);
    };
    let open = open_schema(definition);
    let fields = open.fields().iter().filter(|_| whole).cloned();
    let schema = with_number(fields);
    let Some(number) = number.first().copied() else {
        return Ok(Some(Found { schema, row: None }));
    };
    let mut row = if whole {
        read(context, table, (number, &all(definition))).await?
    } else {
        Vec::new()
    };
    row.push(Arc::new(UInt64Array::from(vec![number])));
    context.clock.ran_on = "index";
    let row = Some(RecordBatch::try_new(Arc::clone(&schema), row)?);
    Ok(Some(Found { schema, row }))
}

/// These columns and the number of a row.
fn with_number(columns: impl Iterator<Item = Arc<Field>>) -> SchemaRef {
    let number = Arc::new(Field::new(ROW_COLUMN, DataType::UInt64, false));
    Arc::new(Schema::new(columns.chain([number]).collect::<Vec<_>>()))
}

/// Whether a table is named, and no more is said of it.
fn is_bare(table: &TableFactor) -> bool {
    matches!(
        table,
        TableFactor::Table {
            alias: None,
            args: None,
            version: None,
            sample: None,
            json_path: None,
            with_ordinality: false,
            ..
        }
    )
}

/// The columns that a statement means, and how it reads values of them.
struct Own<'d> {
    definition: &'d Definition,
    local: Local,
}

impl Own<'_> {
    fn new<'d>(context: &StatementContext, definition: &'d Definition) -> Own<'d> {
        Own {
            definition,
            local: context.local(),
        }
    }

    /// The place of a column; none if it is not one of the table.
    fn column(&self, named: &Named<'_>) -> Option<usize> {
        let table = named.table.map(column_name);
        if table.is_some_and(|table| table != base(&self.definition.name)) {
            return None;
        }
        self.definition.position(&column_name(named.column)).ok()
    }

    /// A value of a column, as an array of one; none if it would have to be converted.
    fn value(&self, value: &RowValue, column: usize) -> Option<ArrayRef> {
        let given = Given {
            local: self.local,
            ..Given::NONE
        };
        let data_type = &self.definition.columns.get(column)?.data_type;
        array(value.value(given, data_type)?, data_type).ok()
    }
}

/// Whether values of this type are equal where those that the index has for them are.
fn is_found(data_type: &DataType) -> bool {
    match data_type {
        DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Utf8View
        | DataType::Boolean
        | DataType::Date32
        | DataType::Decimal128(..)
        | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _) => true,
        own => *own == uuid_type() || is_enum(own),
    }
}

/// The number of the row that a condition names by a key, and by the values of other columns if it likes, if there is one; none
/// if it is another condition.
async fn numbered(
    context: &StatementContext,
    (table, own): (&Arc<Table>, &Own<'_>),
    condition: &Expr,
) -> Result<Option<Vec<u64>>> {
    let definition = own.definition;
    // A condition reads the table.
    if context.may(&definition.name, Privileges::SELECT).is_err() {
        return Ok(None);
    }
    let Some(equal) = equalities(condition) else {
        return Ok(None);
    };
    let equal = equal
        .iter()
        .map(|(column, value)| Some((own.column(column)?, RowValue::of(value)?)));
    let Some(equal) = equal.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    // Of each column one value is looked at.
    let columns: HashSet<usize> = equal.iter().map(|(at, _)| *at).collect();
    if columns.len() != equal.len() {
        return Ok(None);
    }
    let of = |column: usize| equal.iter().find(|(at, _)| *at == column);
    let mut keys = definition.keys.iter();
    let key = keys.find(|key| key.columns.iter().all(|at| of(*at).is_some()));
    let Some(key) = key.filter(|key| table.has_index(key)) else {
        return Ok(None);
    };
    let is_of_key = |at: usize| key.columns.contains(&at);
    let value = |at: usize| {
        let (_, value) = of(at)?;
        let column = definition.columns.get(at)?;
        let data_type = &column.data_type;
        let is_blank = matches!(value, RowValue::Text(text) if text.ends_with(' '));
        if is_blank && lengths::is_char(definition, &column.name) {
            return None;
        }
        let is_asked = is_found(data_type) && (is_of_key(at) || !is_enum(data_type));
        own.value(value, at).filter(|_| is_asked)
    };
    let values = key.columns.iter().map(|at| value(*at));
    let others = equal.iter().map(|(at, _)| *at);
    let others: Vec<usize> = others.filter(|at| !is_of_key(*at)).collect();
    let wanted = others.iter().map(|at| value(*at));
    let (Some(values), Some(wanted)) = (
        values.collect::<Option<Vec<_>>>(),
        wanted.collect::<Option<Vec<_>>>(),
    ) else {
        return Ok(None);
    };
    let found = table.find(key, &values).await?;
    let found: Vec<u64> = found.into_iter().flatten().collect();
    let (Some(number), false) = (found.first(), others.is_empty()) else {
        return Ok(Some(found));
    };
    let own = read(context, table, (*number, &others)).await?;
    let mut pairs = own.iter().zip(&wanted);
    let is_equal = pairs.all(|(own, wanted)| is_equal(own, wanted));
    Ok(Some(if is_equal { found } else { Vec::new() }))
}

/// Whether two arrays of one have the same value; NULL is equal to nothing.
fn is_equal(own: &ArrayRef, wanted: &ArrayRef) -> bool {
    let equal = cmp::eq(own, wanted);
    equal.is_ok_and(|equal| equal.is_valid(0) && equal.value(0))
}

/// Columns of the row of this number.
async fn read(
    context: &StatementContext,
    table: &Arc<Table>,
    (number, columns): (u64, &[usize]),
) -> Result<Vec<ArrayRef>> {
    let node = workers::here().map_or(0, |here| here.node);
    let traffic = context.clock.traffic();
    Ok(table.row(columns, number, (traffic, node)).await?)
}

/// The places of all columns.
fn all(definition: &Definition) -> Vec<usize> {
    (0..definition.columns.len()).collect()
}

/// What a column becomes.
enum New<'s> {
    Value(ArrayRef),
    /// The value of a column and this much more, of decimals without the point.
    More(usize, i128),
    /// What is computed from the row.
    Computed(&'s Expr),
}

/// What the columns become that a statement assigns; none if one is assigned in another way.
fn assigned<'s>(own: &Own<'_>, statement: &'s Update) -> Option<Vec<(usize, New<'s>)>> {
    let assigned = statement.assignments.iter().map(|assignment| {
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            return None;
        };
        let column = name.0.last()?.as_ident()?;
        let column = own.definition.position(&column.value).ok()?;
        let Column {
            data_type,
            domain: None,
            ..
        } = own.definition.columns.get(column)?
        else {
            return None;
        };
        let value = plain(&assignment.value, cast_to(data_type).as_ref());
        let new = match RowValue::of(value) {
            Some(value) => New::Value(own.value(&value, column)?),
            None => match more(own, value, column) {
                Some((from, more)) => New::More(from, more),
                None => New::Computed(value),
            },
        };
        Some((column, new))
    });
    assigned.collect()
}

/// The column and the number in `n + 1` and `n - 1`, for a column of the same type; none in anything else.
fn more(own: &Own<'_>, value: &Expr, column: usize) -> Option<(usize, i128)> {
    let value = match value {
        Expr::Nested(inner) => return more(own, inner, column),
        Expr::BinaryOp { left, op, right } => (left, op, right),
        _ => return None,
    };
    let (left, op, right) = value;
    let sign = match op {
        BinaryOperator::Plus => 1,
        BinaryOperator::Minus => -1,
        _ => return None,
    };
    let from = own.column(&Named::of(left)?)?;
    let data_type = &own.definition.columns.get(column)?.data_type;
    if own.definition.columns.get(from)?.data_type != *data_type {
        return None;
    }
    let right = RowValue::of(right)?;
    let number = match data_type {
        DataType::Int16 | DataType::Int32 | DataType::Int64 => right.number()?.into(),
        // The sum of others may have more digits than there are.
        DataType::Decimal128(..=18, ..=10) => {
            let is_number = matches!(right, RowValue::Digits(_)) || right.number().is_some();
            match right.value(Given::NONE, data_type).filter(|_| is_number)? {
                Cell::Scaled(number) => number,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some((from, sign * number))
}

/// What columns become, ready to be computed.
struct Assigned<'s> {
    columns: Vec<(usize, New<'s>)>,
    /// In the order of those that are computed.
    computed: Option<RowValues>,
}

/// Compiles what is computed from the row; none if it may mean something else in another statement, or fails.
async fn compiled<'s>(
    context: &mut StatementContext,
    definition: &Definition,
    columns: Vec<(usize, New<'s>)>,
) -> Option<Assigned<'s>> {
    let (mut items, mut types) = (Vec::new(), Vec::new());
    for (column, new) in &columns {
        if let New::Computed(value) = new {
            items.push((*value).clone());
            types.push(definition.columns.get(*column)?.data_type.clone());
        }
    }
    if items.is_empty() {
        return Some(Assigned {
            columns,
            computed: None,
        });
    }
    let name = Ident::with_quote('"', &definition.name);
    let schema = definition.schema();
    let rows = (&name, &schema);
    if !RowValues::are_plain(context, rows, &items) {
        return None;
    }
    let computed = RowValues::new(context, rows, None, items, &[]).await;
    let computed = computed.ok()?;
    // Which types may be assigned to which others is for the planner to say.
    let is_own =
        |from: &DataType, to: &DataType| from == to || from.is_integer() && to.is_integer();
    let mut all = computed.types().iter().zip(&types);
    all.all(|(from, to)| is_own(from, to)).then_some(Assigned {
        columns,
        computed: Some(computed),
    })
}

impl Assigned<'_> {
    /// The new values of all columns of a row; none if one is refused.
    fn values(&self, definition: &Definition, old: &[ArrayRef]) -> Option<Vec<ArrayRef>> {
        let schema = definition.schema();
        let computed = match &self.computed {
            None => Vec::new(),
            Some(computed) => {
                let row = RecordBatch::try_new(Arc::clone(&schema), old.to_vec());
                computed.evaluate(&row.ok()?).ok()?
            }
        };
        let mut computed = computed.into_iter();
        let mut new = old.to_vec();
        for (column, value) in &self.columns {
            let data_type = &definition.columns.get(*column)?.data_type;
            let value = match value {
                New::Value(value) => Arc::clone(value),
                New::More(from, more) => array(sum(old.get(*from)?, *more)?, data_type).ok()?,
                New::Computed(_) => exact(&computed.next()?, data_type)?,
            };
            let is_own = value.data_type() == data_type && value.len() == 1;
            // A NULL where none may be is refused by the plan, with its words.
            let is_lost = value.is_null(0) && !schema.field(*column).is_nullable();
            if !is_own || is_lost {
                return None;
            }
            *new.get_mut(*column)? = value;
        }
        Some(new)
    }
}

/// Whole numbers as ones of another type, or values of the type as they are; none if one is not in the range.
fn exact(values: &ArrayRef, data_type: &DataType) -> Option<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(values, data_type, &options).ok()
}

/// The only value of an array and this much more; none if it is out of the range of its type.
fn sum(old: &ArrayRef, more: i128) -> Option<Cell<'static>> {
    if old.is_null(0) {
        return Some(Cell::Null);
    }
    if let DataType::Decimal128(precision, _) = old.data_type() {
        let old = old.as_primitive_opt::<Decimal128Type>()?.value(0);
        return scaled(old.checked_add(more)?, *precision);
    }
    let numbers = cast(old, &DataType::Int64).ok()?;
    let numbers: &Int64Array = numbers.as_primitive_opt::<Int64Type>()?;
    let sum = i128::from(numbers.value(0)).checked_add(more)?;
    whole(sum.try_into().ok()?, old.data_type())
}
