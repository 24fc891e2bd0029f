//! What the planner asks while it turns a statement into a plan: types and operators with PostgreSQL's meaning.
//!
//! * [`Types`]: a `timestamp` counts microseconds, so that years 1 to 294,246 fit; `float` has 64 bits.
//! * [`Operators`]: `^` is the power; a date plus an interval is a timestamp; those of arrays, structs, uuids and JSON are
//!   [functions](special), and so are fields of structs and [rows](crate::frontend::rows) of tables.

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::datatype::DataTypeExt;
use datafusion::common::{Column, DFSchema, Result, TableReference, plan_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, TypePlanner};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType as SqlType, ExactNumberInfo, ObjectName,
    TimezoneInfo,
};

use table::{Tables, json_type, jsonb_type, titled, uuid_type};

use crate::error::Error;
use crate::frontend::{rows, special};
use crate::functions::arguments::{MICROS, UTC};
use crate::functions::intervals;
use crate::names::{base, column_name, exact, written};
use crate::search_path::SearchPath;

/// Types that DataFusion's planner reads differently or not at all.
#[derive(Debug)]
pub(crate) struct Types {
    /// Those that people have made, by how statements may [write](written) their names.
    made: HashMap<String, DataType>,
}

impl Types {
    /// With the types of a catalog, whose names are looked up in `path`.
    pub(crate) fn of(tables: &Tables, path: &SearchPath) -> Types {
        let mut made = HashMap::new();
        for name in tables.types() {
            let Some(own) = tables.named_type(name) else {
                continue;
            };
            if path.resolve_type(tables, base(name)) == name {
                made.insert(base(name).to_owned(), own.data_type());
            }
            made.insert(exact(name), own.data_type());
        }
        Types { made }
    }

    fn made(&self, name: &ObjectName) -> Option<&DataType> {
        self.made.get(&written(name).ok()?)
    }
}

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        let data_type = match sql_type {
            SqlType::Timestamp(digits, zone) => {
                let zone = matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone);
                timestamp(*digits, zone)?
            }
            SqlType::Datetime(digits) => timestamp(*digits, false)?,
            SqlType::Float(digits) => match digits {
                ExactNumberInfo::Precision(1..=24) => DataType::Float32,
                ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => DataType::Float64,
                _ => return plan_err!("float(n) takes 1 to 53 bits"),
            },
            SqlType::Character(_)
            | SqlType::CharacterVarying(_)
            | SqlType::CharVarying(_)
            | SqlType::Nvarchar(_) => DataType::Utf8View,
            SqlType::Dec(digits) => match *digits {
                ExactNumberInfo::None => DataType::Decimal128(38, 10),
                ExactNumberInfo::Precision(precision) => decimal(precision, 0)?,
                ExactNumberInfo::PrecisionAndScale(precision, scale) => decimal(precision, scale)?,
            },
            SqlType::Time(Some(digits), _) => {
                return plan_err!(
                    "not supported: a column of type time({digits}): a time has all its digits; ::time({digits}) rounds values"
                );
            }
            // DuckDB's names.
            SqlType::UTinyInt => DataType::UInt8,
            SqlType::USmallInt => DataType::UInt16,
            SqlType::UBigInt => DataType::UInt64,
            SqlType::Uuid => uuid_type(),
            SqlType::JSON => json_type(),
            SqlType::JSONB => jsonb_type(),
            SqlType::Array(ArrayElemTypeDef::SquareBracket(item, Some(_))) => {
                return plan_err!(
                    "not supported: the length of an array in its type: write {item}[]"
                );
            }
            SqlType::Blob(_) | SqlType::Varbinary(_) | SqlType::Binary(_) => DataType::Binary,
            SqlType::Custom(name, modifiers) if modifiers.is_empty() => {
                match named_type(name).or_else(|| self.made(name).cloned()) {
                    Some(own) => own,
                    None => {
                        let name = written(name)?;
                        let message = format!("type \"{}\" does not exist", titled(&name));
                        return Err(Error::coded("42704", message).into());
                    }
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(data_type.into_nullable_field_ref()))
    }
}

/// Types that the parser does not know: PostgreSQL's of texts, where a `name` is one of any length here, and DuckDB's names
/// of whole numbers without a sign, as far as it does not.
fn named_type(name: &ObjectName) -> Option<DataType> {
    let [part] = &name.0[..] else {
        return None;
    };
    let word = part.as_ident().map(column_name)?;
    Some(match word.as_str() {
        "name" | "bpchar" => DataType::Utf8View,
        "uinteger" => DataType::UInt32,
        _ => return None,
    })
}

fn decimal(precision: u64, scale: i64) -> Result<DataType> {
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(p @ 1..=38), Ok(s @ 0..)) if s as u8 <= p => Ok(DataType::Decimal128(p, s)),
        _ => plan_err!(
            "dec({precision}, {scale}) is not supported: it takes up to 38 digits, no more of them after the point than in all"
        ),
    }
}

fn timestamp(digits: Option<u64>, zone: bool) -> Result<DataType> {
    let unit = match digits {
        Some(0) => TimeUnit::Second,
        Some(3) => TimeUnit::Millisecond,
        None | Some(6) => TimeUnit::Microsecond,
        Some(9) => TimeUnit::Nanosecond,
        Some(n) => {
            return plan_err!(
                "not supported: a column of type timestamp({n}): there are 0, 3, 6 and 9 digits; ::timestamp({n}) rounds values"
            );
        }
    };
    Ok(DataType::Timestamp(unit, zone.then(|| UTC.into())))
}

/// Operators that DataFusion's planner reads differently.
#[derive(Debug)]
pub(crate) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if rows::is_whole(&expr.op) {
            return rows::whole(expr, schema).map(PlannerResult::Planned);
        }
        let RawBinaryExpr { op, left, right } = match special::planned(expr, schema)? {
            PlannerResult::Planned(expr) => return Ok(PlannerResult::Planned(expr)),
            PlannerResult::Original(expr) => expr,
        };
        Ok(match op {
            BinaryOperator::BitwiseXor | BinaryOperator::PGExp => {
                let args = [left, right].map(|arg| number(arg, schema));
                PlannerResult::Planned(datafusion::functions::math::power().call(args.to_vec()))
            }
            BinaryOperator::Plus | BinaryOperator::Minus => {
                let widened = |date: Expr| Expr::Cast(Cast::new(Box::new(date), MICROS));
                // The right side first: in a long sum it is the shorter one.
                let (left, right) = match kind(&right, schema) {
                    Kind::Interval if kind(&left, schema) == Kind::Date => (widened(left), right),
                    Kind::Date
                        if op == BinaryOperator::Plus && kind(&left, schema) == Kind::Interval =>
                    {
                        (left, widened(right))
                    }
                    _ => (left, right),
                };
                PlannerResult::Original(RawBinaryExpr { op, left, right })
            }
            BinaryOperator::Multiply => match kind(&right, schema) {
                Kind::Number if kind(&left, schema) == Kind::Interval => {
                    PlannerResult::Planned(intervals::interval_times(left, right))
                }
                Kind::Interval if kind(&left, schema) == Kind::Number => {
                    PlannerResult::Planned(intervals::interval_times(right, left))
                }
                _ => PlannerResult::Original(RawBinaryExpr { op, left, right }),
            },
            op => PlannerResult::Original(RawBinaryExpr { op, left, right }),
        })
    }

    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let column = Expr::Column(Column::from((qualifier, field)));
        rows::field(column, names).map(PlannerResult::Planned)
    }
}

/// An operand of `^`: a text is read as a number.
fn number(operand: Expr, schema: &DFSchema) -> Expr {
    use DataType::{LargeUtf8, Utf8, Utf8View};
    match operand.get_type(schema) {
        Ok(Utf8 | LargeUtf8 | Utf8View) => {
            Expr::Cast(Cast::new(Box::new(operand), DataType::Float64))
        }
        _ => operand,
    }
}

/// The kinds of operands that operators of dates and intervals distinguish.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Date,
    Interval,
    Number,
    Other,
}

fn kind(expr: &Expr, schema: &DFSchema) -> Kind {
    match expr.get_type(schema) {
        Ok(DataType::Date32) => Kind::Date,
        Ok(DataType::Interval(_)) => Kind::Interval,
        Ok(ty) if ty.is_numeric() => Kind::Number,
        _ => Kind::Other,
    }
}
