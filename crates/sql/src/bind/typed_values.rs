//! Constants in quotes in `values` beside values of which it is written what type they have, by a cast, as `date '2020-01-01'` or
//! as a number: they are values of it, too.

use std::ops::ControlFlow;

use catalog::search_path::SearchPath;
use sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Query, SetExpr, Statement as Sql, TimezoneInfo,
    Value, Values, VisitorMut,
};
use syntax::names::written;
use syntax::walk::WalkMut;
use table::Tables;

use crate::functions::temporal::make::READ_INTERVAL;

/// Casts such constants. The rows of an `insert` have the types of its columns.
pub(crate) fn cast(statement: &mut Sql, tables: &Tables, path: &SearchPath) {
    let rows = match statement {
        Sql::Insert(insert) => insert.source.as_deref(),
        _ => None,
    };
    let rows = rows.filter(|rows| matches!(*rows.body, SetExpr::Values(_)));
    let mut typed = Typed {
        tables,
        path,
        inserted: rows.map(std::ptr::from_ref),
    };
    let _ = statement.walk_mut(&mut typed);
}

struct Typed<'t> {
    tables: &'t Tables,
    path: &'t SearchPath,
    /// The rows of an `insert`, told by where they lie.
    inserted: Option<*const Query>,
}

impl VisitorMut for Typed<'_> {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.inserted != Some(std::ptr::from_ref(&*query)) {
            self.body(&mut query.body);
        }
        ControlFlow::Continue(())
    }
}

impl Typed<'_> {
    fn body(&self, body: &mut SetExpr) {
        match body {
            SetExpr::Values(values) => self.values(values),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            _ => {}
        }
    }

    fn values(&self, values: &mut Values) {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        for at in 0..width {
            let items = || {
                values
                    .rows
                    .iter()
                    .filter_map(move |row| row.content.get(at))
            };
            if !items().any(|item| quoted(item).is_some()) {
                continue;
            }
            let Some(of) = self.together(items()) else {
                continue;
            };
            for row in &mut values.rows {
                if let Some(item) = row.content.get_mut(at)
                    && let Some(text) = quoted(item)
                {
                    *item = typed(text.to_string(), &of);
                }
            }
        }
    }

    /// The type that is written of the values of a column; none if there is none, or several are.
    fn together<'e>(&self, items: impl Iterator<Item = &'e Expr>) -> Option<Type> {
        let mut found: Option<Type> = None;
        for own in items.filter_map(|item| self.of(item)) {
            found = Some(match found {
                None => own,
                Some(before) => before.with(own)?,
            });
        }
        found
    }

    /// The type that is written of a value.
    fn of(&self, expr: &Expr) -> Option<Type> {
        match expr {
            Expr::Nested(inner) => self.of(inner),
            Expr::Cast { data_type, .. } => self.of_type(data_type),
            Expr::TypedString(typed) => self.of_type(&typed.data_type),
            Expr::Interval(_) => Some(INTERVAL),
            // What the rewrite makes of one in quotes.
            Expr::Function(call) => match call.name.0.as_slice() {
                [name] => name
                    .as_ident()
                    .is_some_and(|name| name.value == READ_INTERVAL)
                    .then_some(INTERVAL),
                _ => None,
            },
            Expr::Value(value) => match &value.value {
                Value::Boolean(_) => Some(Type::Of(DataType::Boolean)),
                Value::Number(digits, _) if digits.contains('.') => Some(Type::Number),
                _ => None,
            },
            _ => None,
        }
    }

    /// The type of a cast, without digits and lengths: those are of the value that is cast.
    fn of_type(&self, data_type: &DataType) -> Option<Type> {
        let plain = match data_type {
            DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => {
                return Some(Type::Number);
            }
            DataType::Timestamp(_, zone) => DataType::Timestamp(None, *zone),
            DataType::Time(_, zone) => DataType::Time(None, *zone),
            DataType::Interval { .. } => return Some(INTERVAL),
            DataType::Custom(name, _) => {
                let name = self.path.resolve_type(self.tables, &written(name).ok()?);
                self.tables.named_type(&name)?;
                data_type.clone()
            }
            DataType::Date
            | DataType::Bool
            | DataType::Boolean
            | DataType::SmallInt(None)
            | DataType::Int(None)
            | DataType::Integer(None)
            | DataType::BigInt(None)
            | DataType::Int2(None)
            | DataType::Int4(None)
            | DataType::Int8(None)
            | DataType::Real
            | DataType::Float4
            | DataType::Float8
            | DataType::DoublePrecision
            | DataType::Uuid
            | DataType::JSON
            | DataType::JSONB
            | DataType::Bytea => data_type.clone(),
            _ => return None,
        };
        Some(Type::Of(plain))
    }
}

/// The type of intervals.
const INTERVAL: Type = Type::Of(DataType::Interval {
    fields: None,
    precision: None,
});

/// What constants in quotes are read as.
#[derive(Clone, Debug, PartialEq)]
enum Type {
    Of(DataType),
    /// A decimal with the digits that it is written with.
    Number,
}

impl Type {
    /// The type of values of this and another one.
    fn with(self, other: Type) -> Option<Type> {
        let zoned = |own: &Type| {
            matches!(
                own,
                Type::Of(DataType::Timestamp(
                    _,
                    TimezoneInfo::Tz | TimezoneInfo::WithTimeZone
                ))
            )
        };
        let stamp = |own: &Type| matches!(own, Type::Of(DataType::Timestamp(..)));
        let moment = |own: &Type| stamp(own) || *own == Type::Of(DataType::Date);
        if self == other {
            return Some(self);
        }
        if !moment(&self) || !moment(&other) {
            return None;
        }
        let first = zoned(&self) || !zoned(&other) && stamp(&self);
        Some(if first { self } else { other })
    }
}

/// A constant in quotes as one of a type.
fn typed(text: String, of: &Type) -> Expr {
    let number = |text: &str| {
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
        !whole.is_empty() && digits(whole) && digits(behind)
    };
    let data_type = match of {
        Type::Number if number(&text) => return Expr::value(Value::Number(text, false)),
        Type::Number => DataType::Numeric(ExactNumberInfo::None),
        Type::Of(data_type) => data_type.clone(),
    };
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
        data_type,
        array: false,
        format: None,
    }
}

/// The text of a constant in quotes.
fn quoted(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => quoted(inner),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
