//! The types that a file has for the columns that `copy ... to` writes.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_expr::{Cast, Expr, LogicalPlan, LogicalPlanBuilder};
use table::{is_enum, is_wide, json_kind, map_parts, map_type};

use crate::error::Result;
use crate::functions::arguments::is_bytea;
use crate::functions::convert::written as as_written;
use crate::functions::decimals::only_finite;
use crate::functions::lists::types::is_special;
use crate::functions::temporal::moments::written_in_file;

/// `plan` with columns that a file of this format can hold: JSON and enums are text, in CSV arrays and structs are, and uuids but in
/// formats that have bytes. So are dates and timestamps, which may be infinite.
pub(super) fn as_in_file(plan: LogicalPlan, format: &str) -> Result<LogicalPlan> {
    if format == "text" {
        return as_texts(plan);
    }
    let fields = plan.schema().fields();
    let as_text = |ty: &DataType| {
        matches!(format, "csv" | "json") && matches!(ty, DataType::Date32 | DataType::Timestamp(..))
    };
    let bytes = |ty: &DataType| matches!(format, "csv" | "json") && is_bytea(ty);
    let odd = |ty: &DataType| {
        let interval = matches!(ty, DataType::Interval(_));
        is_special(ty) || is_wide(ty) || interval || as_text(ty) || bytes(ty)
    };
    if !fields.iter().any(|field| odd(field.data_type())) {
        return Ok(plan);
    }
    let columns = plan.schema().iter().map(|(table, field)| {
        let column = Expr::from((table, field));
        let wanted = type_in_file(field.data_type(), format);
        if as_text(field.data_type()) {
            written_in_file(column).alias(field.name())
        } else if bytes(field.data_type()) {
            as_written(column, &wanted).alias(field.name())
        } else if is_wide(&wanted) {
            // Readers of the file would take what is no number for one.
            let kept = only_finite(column, &format!("a file of the format {format}"));
            if wanted == *field.data_type() {
                kept.alias(field.name())
            } else {
                Expr::Cast(Cast::new(Box::new(kept), wanted)).alias(field.name())
            }
        } else if wanted == *field.data_type() {
            column
        } else {
            Expr::Cast(Cast::new(Box::new(column), wanted)).alias(field.name())
        }
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

/// `plan` with texts that are those of a cast to text, as PostgreSQL's text format has them; but for booleans, which it writes in
/// another way.
fn as_texts(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = plan.schema().iter().map(|(table, field)| {
        let column = Expr::from((table, field));
        let text = match field.data_type() {
            DataType::Boolean => return column,
            bytes if is_bytea(bytes) => as_written(column, &DataType::Utf8View),
            _ => Expr::Cast(Cast::new(Box::new(column), DataType::Utf8View)),
        };
        text.alias(field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

fn type_in_file(data_type: &DataType, format: &str) -> DataType {
    let within = |field: &FieldRef| {
        let data_type = type_in_file(field.data_type(), format);
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    match data_type {
        DataType::List(_) | DataType::Struct(_) | DataType::Map(..) if format == "csv" => {
            DataType::Utf8View
        }
        // It may be NaN, or infinite.
        DataType::Decimal256(..) if format == "csv" => DataType::Utf8View,
        // Of JSON, keys are texts.
        DataType::Map(..) => match map_parts(data_type) {
            Some((key, value)) => {
                let key = match format {
                    "json" => DataType::Utf8View,
                    _ => type_in_file(key, format),
                };
                map_type(key, type_in_file(value, format))
            }
            None => data_type.clone(),
        },
        DataType::Struct(_) if json_kind(data_type).is_some() || is_enum(data_type) => {
            DataType::Utf8View
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(within).collect()),
        DataType::List(item) => DataType::List(within(item)),
        DataType::FixedSizeBinary(_)
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
            if !matches!(format, "parquet" | "arrow") =>
        {
            DataType::Utf8View
        }
        // A time with a zone; nor have files intervals of months, days and nanoseconds.
        DataType::FixedSizeBinary(12) => DataType::Utf8View,
        DataType::Interval(_) if format != "arrow" => DataType::Utf8View,
        plain => plain.clone(),
    }
}
