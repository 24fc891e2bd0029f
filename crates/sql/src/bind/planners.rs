//! The types that the planner asks for while it turns a statement into a plan, with PostgreSQL's meaning: a `timestamp` counts
//! microseconds, so that years 1 to 294,246 fit; `float` has 64 bits. What [operators](crate::bind::symbols) mean is asked
//! for, too.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, IntervalUnit, TimeUnit};
use datafusion_common::DataFusionError;
use datafusion_common::config::ConfigOptions;
use datafusion_common::datatype::DataTypeExt;
use datafusion_common::{Result, TableReference, plan_err};
use datafusion_expr::planner::{ContextProvider, TypePlanner};
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion_sql::planner::SqlToRel;
use sqlparser::ast::{
    ArrayElemTypeDef, ColumnDef, DataType as SqlType, ExactNumberInfo, Ident, ObjectName,
    TimezoneInfo,
};

use catalog::search_path::SearchPath;
use syntax::domains::data_type;
use syntax::names::{base, column_name, exact, written};
use table::{
    DOMAIN, SECOND_DIGITS, Tables, is_map_key, json_type, jsonb_type, map_type, timetz_type,
    titled, uuid_type,
};

use crate::error::Error;
use crate::functions::arguments::UTC;
use crate::functions::lists::types::{list_of, plain};
use crate::functions::temporal::shift;
use crate::messages::numbers::item_named;
use crate::messages::types::type_name;

/// Types that DataFusion's planner reads differently or not at all.
#[derive(Clone, Debug)]
pub(crate) struct Types {
    /// Those that people have made, by how statements may [write](written) their names.
    made: HashMap<String, Made>,
}

/// A type that people have made.
#[derive(Clone, Debug)]
struct Made {
    data_type: DataType,
    /// The name in the catalog of the domain or composite type that it is.
    domain: Option<String>,
    /// Whether it is a composite type.
    composite: bool,
}

impl Types {
    /// With the types of a catalog, whose names are looked up in `path`.
    pub(crate) fn of(tables: &Tables, path: &SearchPath) -> Types {
        let mut made = HashMap::new();
        let enums = tables.types().into_iter().filter_map(|name| {
            let data_type = tables.named_type(name)?.data_type();
            let made = Made {
                data_type,
                domain: None,
                composite: false,
            };
            Some((name, made))
        });
        let domains = tables.domains().into_iter().filter_map(|name| {
            let own = tables.domain(name)?;
            let made = Made {
                data_type: own.data_type.clone(),
                domain: Some(name.to_owned()),
                composite: own.composite,
            };
            Some((name, made))
        });
        for (name, own) in enums.chain(domains) {
            if path.resolve_type(tables, base(name)) == name {
                made.insert(base(name).to_owned(), own.clone());
            }
            made.insert(exact(name), own);
        }
        Types { made }
    }

    /// The type of a part of another type.
    ///
    /// # Errors
    /// If there is none of that name.
    fn of_part(&self, sql_type: &SqlType) -> Result<DataType> {
        let column = ColumnDef {
            name: Ident::new("part"),
            data_type: sql_type.clone(),
            options: vec![],
        };
        let types = OnlyTypes {
            types: Arc::new(self.clone()),
            options: ConfigOptions::default(),
        };
        let schema = SqlToRel::new(&types).build_schema(vec![column])?;
        Ok(schema.field(0).data_type().clone())
    }

    /// The type of maps with these keys and values.
    ///
    /// # Errors
    /// If there is none.
    fn map_of(&self, key: &SqlType, value: &SqlType) -> Result<DataType> {
        let (key, value) = (plain(&self.of_part(key)?), plain(&self.of_part(value)?));
        if !is_map_key(&key) {
            return plan_err!(
                "not supported: maps with keys of type {}: keys are numbers, texts, bytes, dates, times, booleans or uuids",
                type_name(&key)
            );
        }
        Ok(map_type(key, value))
    }

    fn made(&self, name: &ObjectName) -> Option<&Made> {
        self.made.get(&written(name).ok()?)
    }

    /// The domain that a type is, by the name in the catalog.
    fn domain(&self, sql_type: &SqlType) -> Option<&str> {
        match sql_type {
            SqlType::Custom(name, modifiers) if modifiers.is_empty() => {
                self.made(name)?.domain.as_deref()
            }
            _ => None,
        }
    }

    /// Whether a type is a composite type.
    fn is_composite(&self, sql_type: &SqlType) -> bool {
        matches!(sql_type, SqlType::Custom(name, _) if self.made(name).is_some_and(|own| own.composite))
    }

    /// A type that is no word of the parser's.
    fn named(&self, name: &ObjectName) -> Result<FieldRef> {
        if let Some(own) = named_type(name) {
            return Ok(own.into_nullable_field_ref());
        }
        let Some(Made {
            data_type, domain, ..
        }) = self.made(name).cloned()
        else {
            let name = written(name)?;
            if let Some(item) = item_named(&name) {
                let item = plain(&self.of_part(&data_type(item).map_err(DataFusionError::from)?)?);
                return Ok(list_of(item).into_nullable_field_ref());
            }
            let message = format!("type \"{}\" does not exist", titled(&name));
            return Err(Error::coded("42704", message).into());
        };
        let field = data_type.into_nullable_field_ref();
        let Some(domain) = domain else {
            return Ok(field);
        };
        let metadata = [(DOMAIN.to_string(), domain)];
        Ok(Arc::new(
            field.as_ref().clone().with_metadata(metadata.into()),
        ))
    }

    /// Refuses domains as items of arrays, and domains and composite types in maps and as fields of structs: they would not be
    /// tested, and nothing would say that these depend on them.
    fn within(&self, sql_type: &SqlType) -> Result<()> {
        let found = match sql_type {
            SqlType::Array(_) if self.is_composite(item_of(sql_type)) => None,
            SqlType::Array(_) => self.domain(innermost(sql_type)),
            SqlType::Struct(fields, _) => {
                let mut fields = fields.iter();
                fields.find_map(|field| self.domain(innermost(&field.field_type)))
            }
            SqlType::Map(key, value) => {
                let of_value = || self.domain(innermost(value));
                self.domain(key).or_else(of_value)
            }
            _ => None,
        };
        match found {
            None => Ok(()),
            Some(name) => Err(Error::unsupported(format!(
                "arrays, maps and structs of domains, and maps and structs of composite types, are not supported: name the type behind \"{}\"",
                titled(name)
            ))
            .into()),
        }
    }
}

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        self.within(sql_type)?;
        let data_type = match sql_type {
            SqlType::Timestamp(digits, zone) => {
                return Ok(Some(timestamp(*digits, has_zone(*zone))));
            }
            SqlType::Datetime(digits) => return Ok(Some(timestamp(*digits, false))),
            SqlType::Float(digits) => match digits {
                ExactNumberInfo::Precision(1..=24) => DataType::Float32,
                ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => DataType::Float64,
                _ => return plan_err!("float(n) takes 1 to 53 bits"),
            },
            SqlType::Character(_)
            | SqlType::CharacterVarying(_)
            | SqlType::CharVarying(_)
            | SqlType::Nvarchar(_) => DataType::Utf8View,
            SqlType::Numeric(digits) | SqlType::Decimal(digits) | SqlType::Dec(digits) => {
                numeric(*digits)?
            }
            SqlType::Time(digits, zone) => {
                let of = if has_zone(*zone) {
                    timetz_type()
                } else {
                    shift::TIME
                };
                return Ok(Some(rounded(of, *digits)));
            }
            SqlType::Interval {
                fields: None,
                precision,
            } => {
                let of = DataType::Interval(IntervalUnit::MonthDayNano);
                return Ok(Some(rounded(of, *precision)));
            }
            SqlType::Interval {
                fields: Some(fields),
                ..
            } => {
                return plan_err!(
                    "not supported: a column of type interval {}: write interval",
                    fields.to_string().to_lowercase()
                );
            }
            // DuckDB's names.
            SqlType::UTinyInt => DataType::UInt8,
            SqlType::USmallInt => DataType::UInt16,
            SqlType::UBigInt => DataType::UInt64,
            SqlType::Map(key, value) => self.map_of(key, value)?,
            SqlType::Uuid => uuid_type(),
            SqlType::JSON => json_type(),
            SqlType::JSONB => jsonb_type(),
            SqlType::Array(ArrayElemTypeDef::SquareBracket(item, Some(_))) => {
                return plan_err!(
                    "not supported: the length of an array in its type: write {item}[]"
                );
            }
            // The array is rounded: its items have no digits of their own.
            SqlType::Array(ArrayElemTypeDef::SquareBracket(item, None))
                if second_digits(innermost(item)).is_some() =>
            {
                let of = list_of(plain(&self.of_part(item)?));
                return Ok(Some(rounded(of, second_digits(innermost(item)))));
            }
            SqlType::Blob(_) | SqlType::Varbinary(_) | SqlType::Binary(_) => DataType::Binary,
            SqlType::Custom(name, modifiers) if modifiers.is_empty() => {
                return self.named(name).map(Some);
            }
            _ => return Ok(None),
        };
        Ok(Some(data_type.into_nullable_field_ref()))
    }
}

/// The type that a statement names without types that people have made, where its values are neither cut nor rounded as its
/// name says.
pub(crate) fn built_in(sql_type: &SqlType) -> Option<DataType> {
    if !is_bare(sql_type) {
        return None;
    }
    let none = Types {
        made: HashMap::new(),
    };
    none.of_part(sql_type).ok()
}

/// Whether a name is one of ours that says nothing of lengths, and of digits only what its values have anyway.
fn is_bare(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Text
        | SqlType::Varchar(None)
        | SqlType::CharacterVarying(None)
        | SqlType::SmallInt(None)
        | SqlType::Int2(None)
        | SqlType::Int(None)
        | SqlType::Int4(None)
        | SqlType::Integer(None)
        | SqlType::BigInt(None)
        | SqlType::Int8(None)
        | SqlType::Boolean
        | SqlType::Bool
        | SqlType::Real
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::DoublePrecision
        | SqlType::Date
        | SqlType::Time(None, _)
        | SqlType::Timestamp(None, _)
        | SqlType::Interval {
            fields: None,
            precision: None,
        }
        | SqlType::Uuid
        | SqlType::JSON
        | SqlType::JSONB
        | SqlType::Bytea
        | SqlType::Numeric(ExactNumberInfo::None | ExactNumberInfo::PrecisionAndScale(..))
        | SqlType::Decimal(ExactNumberInfo::None | ExactNumberInfo::PrecisionAndScale(..)) => true,
        SqlType::Double(digits) => *digits == ExactNumberInfo::None,
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, None)) => is_bare(item),
        _ => false,
    }
}

/// The type of the items of arrays that are written `type[]`; of others the type itself.
fn item_of(sql_type: &SqlType) -> &SqlType {
    match sql_type {
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => item_of(item),
        other => other,
    }
}

/// The type of the items of arrays, however many dimensions these have; of others the type itself.
fn innermost(sql_type: &SqlType) -> &SqlType {
    match sql_type {
        SqlType::Array(
            ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item),
        ) => innermost(item),
        other => other,
    }
}

/// What the planner has to know of types, and nothing else.
struct OnlyTypes {
    types: Arc<Types>,
    options: ConfigOptions,
}

impl ContextProvider for OnlyTypes {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        plan_err!("there is no table {name} in a type")
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::clone(&self.types) as Arc<dyn TypePlanner>)
    }

    fn get_function_meta(&self, _: &str) -> Option<Arc<ScalarUDF>> {
        None
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, _: &str) -> Option<Arc<AggregateUDF>> {
        None
    }

    fn get_window_meta(&self, _: &str) -> Option<Arc<WindowUDF>> {
        None
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        vec![]
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        vec![]
    }

    fn udaf_names(&self) -> Vec<String> {
        vec![]
    }

    fn udwf_names(&self) -> Vec<String> {
        vec![]
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
        "oid" => DataType::Int64,
        "uinteger" => DataType::UInt32,
        _ => return None,
    })
}

/// The type of decimals with these digits.
fn numeric(digits: ExactNumberInfo) -> Result<DataType> {
    match digits {
        ExactNumberInfo::None => Ok(DataType::Decimal128(38, 10)),
        ExactNumberInfo::Precision(precision) => decimal(precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => decimal(precision, scale),
    }
}

fn decimal(precision: u64, scale: i64) -> Result<DataType> {
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(p @ 1..=38), Ok(s @ 0..)) if s as u8 <= p => Ok(DataType::Decimal128(p, s)),
        (Ok(p @ 39..=76), Ok(s @ 0..)) if s as u8 <= p => Ok(DataType::Decimal256(p, s)),
        _ => plan_err!(
            "numeric({precision}, {scale}) is not supported: it takes up to 76 digits, no more of them after the point than in all"
        ),
    }
}

fn has_zone(zone: TimezoneInfo) -> bool {
    matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone)
}

/// A type whose values are rounded to so many digits behind the second, which the column keeps.
fn rounded(of: DataType, digits: Option<u64>) -> FieldRef {
    let field = of.into_nullable_field_ref();
    match digits {
        None => field,
        // More there are not, as in PostgreSQL.
        Some(digits) => {
            let metadata = [(SECOND_DIGITS.to_string(), digits.min(6).to_string())];
            Arc::new(field.as_ref().clone().with_metadata(metadata.into()))
        }
    }
}

/// The digits behind the second to which values of a type are rounded that is none of its own for them.
fn second_digits(sql_type: &SqlType) -> Option<u64> {
    match sql_type {
        SqlType::Timestamp(Some(0 | 3 | 9), _) => None,
        SqlType::Timestamp(digits, _) | SqlType::Time(digits, _) => *digits,
        SqlType::Interval {
            fields: None,
            precision,
        } => *precision,
        _ => None,
    }
}

/// Seconds, milliseconds and nanoseconds are types of their own.
fn timestamp(digits: Option<u64>, zone: bool) -> FieldRef {
    let unit = match digits {
        Some(0) => TimeUnit::Second,
        Some(3) => TimeUnit::Millisecond,
        Some(9) => TimeUnit::Nanosecond,
        _ => TimeUnit::Microsecond,
    };
    let of = DataType::Timestamp(unit, zone.then(|| UTC.into()));
    match digits {
        Some(1 | 2 | 4..=8 | 10..) => rounded(of, digits),
        _ => of.into_nullable_field_ref(),
    }
}
