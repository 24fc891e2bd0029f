//! The types of the values that tables store.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, IntervalUnit, TimeUnit};

use crate::schema::enums::{enum_within, is_enum};

/// Where the metadata of a field has the name in the catalog of the [domain](crate::Column::domain) that a column is of.
pub const DOMAIN: &str = "atoll:domain";

/// The type in which values of type `from` are stored, and which scans deliver: texts and binaries
/// become views, dictionaries the type of their values, decimals of up to 38 digits `Decimal128`, all kinds of lists `List`, intervals
/// months, days and nanoseconds. 16 bytes are a [uuid](uuid_type), 12 a [time with a zone](timetz_type). Structs stay as they
/// are, with fields that may all be NULL; one is [JSON](json_type), and some are [enums](crate::enum_type). Maps get the names
/// that [`map_type`] gives. `None` if such values cannot be stored.
pub fn stored_type(from: &DataType) -> Option<DataType> {
    of_depth(from, MOST_DIMENSIONS, MOST_LEVELS)
}

/// The most dimensions of an array.
const MOST_DIMENSIONS: usize = 6;

/// The most levels of arrays and structs in one another.
const MOST_LEVELS: usize = 32;

/// The same for a value within which arrays may stand directly in one another so deep, and arrays and structs to so many
/// levels.
fn of_depth(from: &DataType, depth: usize, levels: usize) -> Option<DataType> {
    use DataType::*;
    Some(match from {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => from.clone(),
        Float32 | Float64 | Date32 | Time32(_) | Time64(_) | Timestamp(_, _) => from.clone(),
        Decimal128(_, _) => from.clone(),
        Float16 => Float32,
        Date64 => Timestamp(TimeUnit::Millisecond, None),
        Decimal32(p, s) | Decimal64(p, s) => Decimal128(*p, *s),
        Decimal256(p, s) if *p <= 38 => Decimal128(*p, *s),
        Decimal256(_, _) => from.clone(),
        Utf8 | LargeUtf8 | Utf8View | Null => Utf8View,
        FixedSizeBinary(16) => uuid_type(),
        FixedSizeBinary(12) => timetz_type(),
        Interval(_) => Interval(IntervalUnit::MonthDayNano),
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => BinaryView,
        Dictionary(_, value) => return of_depth(value, depth, levels),
        List(item)
        | LargeList(item)
        | FixedSizeList(item, _)
        | ListView(item)
        | LargeListView(item) => {
            let item = of_depth(
                item.data_type(),
                depth.checked_sub(1)?,
                levels.checked_sub(1)?,
            )?;
            List(Arc::new(Field::new_list_field(item, true)))
        }
        Struct(_) if is_enum(from) => from.clone(),
        Struct(fields) => match json_kind(from) {
            Some(kind) => kind.data_type(),
            None => Struct(stored_fields(fields, levels.checked_sub(1)?)?),
        },
        Map(..) => {
            let (key, value) = map_parts(from)?;
            let key = of_depth(key, MOST_DIMENSIONS, levels.checked_sub(1)?)?;
            let value = of_depth(value, MOST_DIMENSIONS, levels.checked_sub(1)?)?;
            // Whoever changes an enum finds it in columns and arrays.
            let fits = is_map_key(&key) && enum_within(&value).is_none();
            fits.then(|| map_type(key, value))?
        }
        _ => return None,
    })
}

/// The type of maps from keys to values of these types: values may be NULL, keys not.
pub fn map_type(key: DataType, value: DataType) -> DataType {
    let fields = Fields::from(vec![
        Field::new("key", key, false),
        Field::new("value", value, true),
    ]);
    let entries = Field::new("entries", DataType::Struct(fields), false);
    DataType::Map(Arc::new(entries), false)
}

/// The types of the keys and of the values of a map, if it is one.
pub fn map_parts(data_type: &DataType) -> Option<(&DataType, &DataType)> {
    let DataType::Map(entries, _) = data_type else {
        return None;
    };
    match entries.data_type() {
        DataType::Struct(fields) => match &fields[..] {
            [key, value] => Some((key.data_type(), value.data_type())),
            _ => None,
        },
        _ => None,
    }
}

/// Whether values of a stored type may be keys of maps: what has parts may not, nor JSON and intervals, which are equal in
/// more than one form.
pub fn is_map_key(data_type: &DataType) -> bool {
    !matches!(
        data_type,
        DataType::List(_) | DataType::Struct(_) | DataType::Map(..) | DataType::Interval(_)
    )
}

/// The fields of a struct as they are stored: at least one, no two of a name, and each may be NULL.
fn stored_fields(fields: &Fields, levels: usize) -> Option<Fields> {
    let mut names = HashSet::new();
    if fields.is_empty() || !fields.iter().all(|field| names.insert(field.name())) {
        return None;
    }
    let stored = fields.iter().map(|field| {
        if enum_within(field.data_type()).is_some() {
            // Whoever changes an enum finds it in columns and arrays.
            return None;
        }
        let data_type = of_depth(field.data_type(), MOST_DIMENSIONS, levels)?;
        Some(Field::new(field.name(), data_type, true))
    });
    stored.collect()
}

/// The type of uuids: 16 bytes.
pub fn uuid_type() -> DataType {
    DataType::FixedSizeBinary(16)
}

/// The type of times with a zone: 12 bytes, which are in the order of the values. What they are is for whoever makes them to
/// say.
pub fn timetz_type() -> DataType {
    DataType::FixedSizeBinary(12)
}

/// The two types of JSON. Both are texts within a struct of one field, whose name tells them apart, and from structs that
/// people have: so they are taken neither for one another nor for texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// As it was written: `json`.
    Text,
    /// In the form of `jsonb`.
    Normal,
}

impl JsonKind {
    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            JsonKind::Text => "json",
            JsonKind::Normal => "jsonb",
        }
    }

    /// The name of the field that the text is. Nobody calls a field so.
    fn field(self) -> &'static str {
        match self {
            JsonKind::Text => "\u{1}json",
            JsonKind::Normal => "\u{1}jsonb",
        }
    }

    /// The type.
    pub fn data_type(self) -> DataType {
        let text = Field::new(self.field(), DataType::Utf8View, true);
        DataType::Struct(Fields::from(vec![text]))
    }
}

/// The type `json`.
pub fn json_type() -> DataType {
    JsonKind::Text.data_type()
}

/// The type `jsonb`.
pub fn jsonb_type() -> DataType {
    JsonKind::Normal.data_type()
}

/// Which of JSON's types this is, if it is one.
pub fn json_kind(data_type: &DataType) -> Option<JsonKind> {
    let DataType::Struct(fields) = data_type else {
        return None;
    };
    let [field] = &fields[..] else {
        return None;
    };
    if *field.data_type() != DataType::Utf8View {
        return None;
    }
    let kinds = [JsonKind::Text, JsonKind::Normal];
    kinds.into_iter().find(|kind| kind.field() == field.name())
}
