//! The least and the greatest value of whole columns, which zone maps tell without a page that is read.
//!
//! Where rows were deleted, or the tail has some, the zone maps of all other blocks leave only those values to be looked at
//! that lie beyond.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::{Aggregate, Expr as Sql, LogicalPlan, TableScan};
use engine::{Rel, Result, Type};
use table::{Extremes, Filter, Form, Table, Test};

use crate::lower::call::failed;
use crate::lower::expr::Scope;
use crate::lower::first_rows::Computed;
use crate::lower::lowering::{Lowered, Lowering, mapped};
use crate::scan::numbers::scalar;

/// What an aggregate asks of all rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Least(usize),
    Greatest(usize),
    Rows,
}

impl Asked {
    fn column(self) -> Option<usize> {
        match self {
            Asked::Least(column) | Asked::Greatest(column) => Some(column),
            Asked::Rows => None,
        }
    }
}

/// Lets all rows pass: where it is evaluated it is of no use.
#[derive(Debug)]
struct Beyond;

impl Test for Beyond {
    fn evaluate(
        &self,
        _: &[ArrayRef],
        rows: usize,
    ) -> std::result::Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>> {
        Ok(BooleanArray::from(vec![true; rows]))
    }
}

impl Lowering<'_> {
    /// The one row of an aggregate that asks for extremes of whole columns, and maybe for the number of rows; none of another
    /// one.
    pub(super) fn extremes(&mut self, aggregate: &Aggregate) -> Result<Option<Lowered>> {
        let Some(scan) = scan_of(&aggregate.input) else {
            return Ok(None);
        };
        let Some(table) = self.whole_table(scan) else {
            return Ok(None);
        };
        let asked = aggregate.aggr_expr.iter();
        let asked: Option<Vec<Asked>> = asked.map(|own| asked_of(own, &table)).collect();
        let Some(asked) =
            asked.filter(|asked| !asked.is_empty() && aggregate.group_expr.is_empty())
        else {
            return Ok(None);
        };
        let mut known = Vec::with_capacity(asked.len());
        for own in asked {
            let extremes = match own.column() {
                Some(column) => match table.extremes(column) {
                    Some(extremes) => Some((column, extremes)),
                    None => return Ok(None),
                },
                None => None,
            };
            known.push((own, extremes));
        }
        let is_whole = |known: Option<(usize, Extremes)>| known.is_none_or(|(_, own)| own.whole);
        if known.iter().all(|(_, known)| is_whole(*known)) {
            return self.told(aggregate, &table, &known);
        }
        let (_, first) = known[0];
        match first {
            Some(own) if known.iter().all(|(_, other)| *other == first) => {
                self.beyond(aggregate, &table, own)
            }
            _ => Ok(None),
        }
    }

    /// The table of a scan of all its rows.
    fn whole_table(&self, scan: &TableScan) -> Option<Arc<Table>> {
        let source = self.sources.get(&(std::ptr::from_ref(scan) as usize))?;
        let table = source.provider.table();
        let whole = scan.filters.is_empty() && scan.fetch.is_none() && table.chosen().is_none();
        whole.then(|| Arc::clone(table))
    }

    /// The row, all of which is known.
    fn told(
        &mut self,
        aggregate: &Aggregate,
        table: &Table,
        known: &[(Asked, Option<(usize, Extremes)>)],
    ) -> Result<Option<Lowered>> {
        let mut columns = Vec::new();
        for ((asked, known), field) in known.iter().zip(aggregate.schema.fields()) {
            let value = match (asked, known) {
                (Asked::Least(_), Some((_, known))) => known.bounds.0,
                (Asked::Greatest(_), Some((_, known))) => known.bounds.1,
                _ => table.rows().into(),
            };
            match array(&[value], field.data_type())? {
                Some(column) => columns.push((field.name().clone(), column)),
                None => return Ok(None),
            }
        }
        self.given(batch(columns)?).map(Some)
    }

    /// The extremes of a column of which most are known: those of what is known and of the rows that may have others.
    fn beyond(
        &mut self,
        aggregate: &Aggregate,
        table: &Table,
        (column, known): (usize, Extremes),
    ) -> Result<Option<Lowered>> {
        let (least, greatest) = known.bounds;
        let schema = table.schema();
        let data_type = schema.field(column).data_type();
        let Some(array) = array(&[least, greatest], data_type)? else {
            return Ok(None);
        };
        let (given, own) =
            self.given(batch(vec![(schema.field(column).name().clone(), array)])?)?;
        let (mut rel, read) = self.rel(&aggregate.input)?;
        let ([own], [read], Rel::Scan(scan)) = (&own[..], &read[..], &mut rel) else {
            return Ok(None);
        };
        let Some(ty) = Type::of(data_type, true) else {
            return Ok(None);
        };
        if [*own, *read]
            .iter()
            .any(|var| self.query.ty(*var).kind != ty.kind)
        {
            return Ok(None);
        }
        let ranges = [(i128::MIN, least - 1), (greatest + 1, i128::MAX)];
        let name = schema.field(column).name();
        scan.shown
            .push(format!("{name} beyond what zone maps tell"));
        scan.filters.push(Filter {
            columns: vec![column],
            test: Arc::new(Beyond),
            form: Form::Ranges(Arc::new(ranges)),
            gauge: None,
        });
        scan.expected = scan.expected.min(1.0);
        let both = self.query.add(name, ty);
        let rel = Rel::Union {
            inputs: vec![(given, vec![*own]), (rel, vec![*read])],
            vars: vec![both],
        };
        let vars = [both];
        let scope = Scope {
            schema: aggregate.input.schema(),
            vars: &vars,
        };
        let mut computed = Computed::default();
        let folds = self.folds(aggregate, scope, &[], &mut computed)?;
        let out = folds.iter().map(|fold| fold.var).collect();
        let rel = Rel::Fold {
            input: Box::new(mapped(rel, computed.exprs)),
            keys: vec![],
            folds,
        };
        Ok(Some((rel, out)))
    }
}

/// The scan of which `plan` has all rows and columns.
fn scan_of(plan: &LogicalPlan) -> Option<&TableScan> {
    match plan {
        LogicalPlan::TableScan(scan) => Some(scan),
        LogicalPlan::SubqueryAlias(alias) => scan_of(&alias.input),
        _ => None,
    }
}

/// What one aggregate asks of `table`, if that is known without its rows.
fn asked_of(aggregate: &Sql, table: &Table) -> Option<Asked> {
    let call = match aggregate {
        Sql::Alias(alias) => return asked_of(&alias.expr, table),
        Sql::AggregateFunction(call) => call,
        _ => return None,
    };
    let own = &call.params;
    let plain = own.filter.is_none() && own.order_by.is_empty() && own.null_treatment.is_none();
    let [arg] = &own.args[..] else { return None };
    if !plain {
        return None;
    }
    match (call.func.name(), arg) {
        ("count", Sql::Literal(value, _)) => {
            (!own.distinct && !value.is_null()).then_some(Asked::Rows)
        }
        ("min", Sql::Column(column)) => position(table, &column.name).map(Asked::Least),
        ("max", Sql::Column(column)) => position(table, &column.name).map(Asked::Greatest),
        _ => None,
    }
}

/// The position of a column whose values are in the order of the numbers that are stored.
fn position(table: &Table, name: &str) -> Option<usize> {
    use DataType::*;
    let at = table.schema().index_of(name).ok()?;
    match table.schema().field(at).data_type() {
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Date32 | Time32(_)
        | Time64(_) | Timestamp(..) | Decimal128(..) => Some(at),
        _ => None,
    }
}

/// Stored numbers as values of their type.
fn array(values: &[i128], data_type: &DataType) -> Result<Option<ArrayRef>> {
    if matches!(
        data_type,
        DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(..)
    ) {
        let numbers = values.iter().map(|own| i64::try_from(*own).ok());
        let Some(numbers) = numbers.collect::<Option<Vec<i64>>>() else {
            return Ok(None);
        };
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        let narrow = matches!(data_type, DataType::Time32(_));
        let numbers = if narrow {
            cast(&numbers, &DataType::Int32)?
        } else {
            numbers
        };
        return Ok(Some(cast(&numbers, data_type)?));
    }
    let scalars = values.iter().map(|own| scalar(*own, data_type));
    let Some(scalars) = scalars.collect::<Option<Vec<ScalarValue>>>() else {
        return Ok(None);
    };
    ScalarValue::iter_to_array(scalars)
        .map(Some)
        .map_err(failed)
}

/// One row, or several, of these columns.
fn batch(columns: Vec<(String, ArrayRef)>) -> Result<RecordBatch> {
    let field = |(name, own): &(String, ArrayRef)| Field::new(name, own.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let columns = columns.into_iter().map(|(_, own)| own).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}
