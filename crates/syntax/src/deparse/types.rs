//! The types of the parts of expressions, and which of them PostgreSQL casts to which.

use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, Ident, ObjectNamePart,
    TimezoneInfo,
};

use crate::key_query::date;
use crate::names::column_name;

/// The types of columns by their names; none of columns that there are not.
pub type TypeOf<'t> = dyn Fn(&str) -> Option<Type> + 't;

/// What columns are written as, with their types; none of columns that there are not.
pub(super) type Resolve<'t> = dyn Fn(&[Ident]) -> Option<(String, Type)> + 't;

/// A type, as far as texts of expressions need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `smallint`.
    Smallint,
    /// `integer`.
    Integer,
    /// `bigint`.
    Bigint,
    /// `numeric`.
    Numeric,
    /// `real`.
    Real,
    /// `double precision`.
    Double,
    /// `text`.
    Text,
    /// `character varying`.
    Varchar,
    /// `char(n)`.
    Bpchar,
    /// `boolean`.
    Boolean,
    /// `date`.
    Date,
    /// `timestamp without time zone`.
    Timestamp,
    /// `timestamp with time zone`.
    Timestamptz,
    /// Arrays of texts.
    Texts,
    /// Another, whose constants are not written.
    Other,
    /// Constants in quotes have none.
    Unknown,
    /// Where types are not looked at.
    Any,
}

impl Type {
    /// That of a type with this number in `pg_type`.
    pub fn of_number(number: i64) -> Type {
        match number {
            21 => Type::Smallint,
            23 => Type::Integer,
            20 => Type::Bigint,
            1700 => Type::Numeric,
            700 => Type::Real,
            701 => Type::Double,
            25 => Type::Text,
            1043 => Type::Varchar,
            1042 => Type::Bpchar,
            16 => Type::Boolean,
            1082 => Type::Date,
            1114 => Type::Timestamp,
            1184 => Type::Timestamptz,
            _ => Type::Other,
        }
    }

    /// That which a cast names.
    pub(super) fn of(data_type: &DataType) -> Option<Type> {
        Some(match data_type {
            DataType::SmallInt(None) | DataType::Int2(None) => Type::Smallint,
            DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => Type::Integer,
            DataType::BigInt(None) | DataType::Int8(None) => Type::Bigint,
            DataType::Numeric(ExactNumberInfo::None)
            | DataType::Decimal(ExactNumberInfo::None)
            | DataType::Dec(ExactNumberInfo::None) => Type::Numeric,
            DataType::Real | DataType::Float4 => Type::Real,
            DataType::DoublePrecision
            | DataType::Float8
            | DataType::Double(ExactNumberInfo::None) => Type::Double,
            DataType::Text => Type::Text,
            DataType::Varchar(None)
            | DataType::CharacterVarying(None)
            | DataType::CharVarying(None) => Type::Varchar,
            DataType::Boolean | DataType::Bool => Type::Boolean,
            DataType::Date => Type::Date,
            DataType::Timestamp(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
                Type::Timestamp
            }
            DataType::Timestamp(None, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
                Type::Timestamptz
            }
            DataType::Array(ArrayElemTypeDef::SquareBracket(item, None))
                if Type::of(item) == Some(Type::Text) =>
            {
                Type::Texts
            }
            DataType::Custom(name, modifiers) if modifiers.is_empty() => match &name.0[..] {
                [ObjectNamePart::Identifier(name)] if column_name(name) == "bpchar" => Type::Bpchar,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// That which a cast to a type of some digits or characters names, and what SQL calls it with these; none of other types.
    pub(super) fn limited(data_type: &DataType) -> Option<(Type, String)> {
        let characters = |length: &Option<CharacterLength>| match length {
            Some(CharacterLength::IntegerLength { length, unit: None }) => Some(*length),
            _ => None,
        };
        Some(match data_type {
            DataType::Numeric(digits) | DataType::Decimal(digits) | DataType::Dec(digits) => {
                let title = match digits {
                    ExactNumberInfo::Precision(all) => format!("numeric({all},0)"),
                    ExactNumberInfo::PrecisionAndScale(all, places) => {
                        format!("numeric({all},{places})")
                    }
                    ExactNumberInfo::None => return None,
                };
                (Type::Numeric, title)
            }
            DataType::Varchar(length)
            | DataType::CharacterVarying(length)
            | DataType::CharVarying(length) => {
                let length = characters(length)?;
                (Type::Varchar, format!("character varying({length})"))
            }
            DataType::Char(length) | DataType::Character(length) => {
                let length = match length {
                    None => 1,
                    length => characters(length)?,
                };
                (Type::Bpchar, format!("character({length})"))
            }
            DataType::Timestamp(
                Some(places),
                zone @ (TimezoneInfo::None
                | TimezoneInfo::WithoutTimeZone
                | TimezoneInfo::Tz
                | TimezoneInfo::WithTimeZone),
            ) => match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => (
                    Type::Timestamp,
                    format!("timestamp({places}) without time zone"),
                ),
                _ => (
                    Type::Timestamptz,
                    format!("timestamp({places}) with time zone"),
                ),
            },
            _ => return None,
        })
    }

    /// What SQL calls it.
    pub(super) fn title(self) -> Option<String> {
        let title = match self {
            Type::Smallint => "smallint",
            Type::Integer => "integer",
            Type::Bigint => "bigint",
            Type::Numeric => "numeric",
            Type::Real => "real",
            Type::Double => "double precision",
            Type::Text => "text",
            Type::Varchar => "character varying",
            Type::Bpchar => "bpchar",
            Type::Boolean => "boolean",
            Type::Date => "date",
            Type::Timestamp => "timestamp without time zone",
            Type::Timestamptz => "timestamp with time zone",
            Type::Texts => "text[]",
            Type::Other | Type::Unknown | Type::Any => return None,
        };
        Some(title.to_owned())
    }

    /// Whether it is one of whole numbers.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Type::Smallint | Type::Integer | Type::Bigint)
    }

    fn is_float(self) -> bool {
        matches!(self, Type::Real | Type::Double)
    }

    /// Whether it is one of numbers.
    pub(super) fn is_number(self) -> bool {
        self.is_whole() || self.is_float() || self == Type::Numeric
    }

    fn is_moment(self) -> bool {
        matches!(self, Type::Date | Type::Timestamp | Type::Timestamptz)
    }

    /// The type of two values of these between which an operator stands, or that is computed of them.
    pub(super) fn of_both(one: Type, other: Type) -> Option<Type> {
        use Type::{Any, Bigint, Bpchar, Double, Integer, Numeric, Text, Unknown, Varchar};
        Some(match (one, other) {
            (Any, _) | (_, Any) => Any,
            (Unknown | Varchar | Text, Unknown | Varchar | Text) => Text,
            (Bpchar, Text) | (Text, Bpchar) => Text,
            (Unknown, known) | (known, Unknown) => known,
            (a, b) if a == b => a,
            (a, b) if a.is_whole() && b.is_whole() => {
                if a == Bigint || b == Bigint {
                    Bigint
                } else {
                    Integer
                }
            }
            (a, b) if a.is_float() && b.is_number() || b.is_float() && a.is_number() => Double,
            (a, b) if a.is_number() && b.is_number() => Numeric,
            // Operators compare moments of all kinds.
            (a, b) if a.is_moment() && b.is_moment() => Any,
            _ => return None,
        })
    }

    /// Whether a value of this type beside one of the `other` is cast to the type of both.
    pub(super) fn is_cast_to(self, both: Type, other: Type) -> bool {
        match both {
            Type::Any => false,
            // There are operators for two types of whole numbers, and for two that float.
            _ if self.is_whole() && other.is_whole() => false,
            _ if self.is_float() && other.is_number() => false,
            both => self != both && self != Type::Unknown,
        }
    }

    /// The type of a sum of values of this type, or of their mean.
    pub(super) fn of_total(self, is_sum: bool) -> Type {
        match self {
            Type::Smallint | Type::Integer if is_sum => Type::Bigint,
            Type::Real | Type::Double if is_sum => self,
            Type::Real | Type::Double => Type::Double,
            Type::Any => Type::Any,
            _ => Type::Numeric,
        }
    }

    /// What items of a list that a value of this type is looked for in are cast to, if one of them has type `item`: none if it
    /// stays, and no answer where the value is cast.
    pub(super) fn of_items(self, item: Type) -> Option<Option<Type>> {
        let level = |own: Type| match own {
            Type::Smallint | Type::Integer => Some(0),
            Type::Bigint => Some(1),
            Type::Numeric => Some(2),
            Type::Real => Some(3),
            Type::Double => Some(4),
            _ => None,
        };
        match (level(self), level(item)) {
            _ if self == item => Some(None),
            (Some(own), Some(other)) if own == other => Some(None),
            (Some(own), Some(other)) if own > other => Some(Some(self)),
            _ => None,
        }
    }

    /// A constant in quotes that is cast to such a [limited](Type::limited) type as PostgreSQL writes it; none if that may be in
    /// another way.
    pub(super) fn limited_constant(self, text: &str, title: &str) -> Option<String> {
        if self != Type::Numeric {
            let whole = self.constant(text)?;
            let own = whole.strip_suffix(&format!("::{}", self.title()?))?;
            return Some(format!("{own}::{title}"));
        }
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let leads = |part: &str| digits(part) && (part == "0" || !part.starts_with('0'));
        let (sign, number) = match text.strip_prefix('-') {
            Some(number) => ("-", number),
            None => ("", text),
        };
        match number.split_once('.') {
            Some((whole, rest)) if leads(whole) && digits(rest) && sign.is_empty() => {
                Some(format!("{number}::{title}"))
            }
            Some((whole, rest)) if leads(whole) && digits(rest) => {
                Some(format!("'{text}'::{title}"))
            }
            None if leads(number) && text != "-0" => Some(format!("'{text}'::{title}")),
            _ => None,
        }
    }

    /// A constant in quotes of this type as PostgreSQL writes it; none if that may be in another way.
    pub(super) fn constant(self, text: &str) -> Option<String> {
        let labelled = |text: &str| {
            let title = self.title()?;
            Some(format!("'{}'::{title}", text.replace('\'', "''")))
        };
        match self {
            Type::Text | Type::Varchar | Type::Bpchar => labelled(text),
            Type::Integer => {
                let number: i32 = text.parse().ok()?;
                match number {
                    0.. => Some(number.to_string()),
                    _ => labelled(&number.to_string()),
                }
            }
            Type::Smallint => labelled(&text.parse::<i16>().ok()?.to_string()),
            Type::Bigint => labelled(&text.parse::<i64>().ok()?.to_string()),
            Type::Double | Type::Real if matches!(text, "NaN" | "Infinity" | "-Infinity") => {
                labelled(text)
            }
            Type::Boolean if matches!(text, "true" | "t") => Some("true".to_owned()),
            Type::Boolean if matches!(text, "false" | "f") => Some("false".to_owned()),
            Type::Date => date(text).and_then(|_| labelled(text)),
            Type::Timestamp => {
                let (day, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
                let digits =
                    |part: &str| part.len() == 2 && part.bytes().all(|c| c.is_ascii_digit());
                let is_plain = time.split(':').count() == 3 && time.split(':').all(digits);
                date(day).filter(|_| is_plain)?;
                labelled(&format!("{day} {time}"))
            }
            _ => None,
        }
    }
}
