//! The record of a table's definition.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Field, IntervalUnit, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::record::damaged;
use crate::format::record::encode;
use crate::schema::{
    Check, Column, Deferral, Definition, EnumType, ForeignKey, Generated, Index, JsonKind, Key,
    OnCommit, Rule, enum_type, is_enum, is_map_key, json_kind, json_type, jsonb_type, map_parts,
    map_type, timetz_type, uuid_type,
};

/// [`DataType`] in the catalog's own numbering, so that the format does not move with Arrow's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TypeRecord {
    Boolean,
    Int(u8),
    UInt(u8),
    Float(u8),
    Decimal(u8, i8),
    Date,
    /// Decimal power of the unit (0, 3, 6, 9).
    Time(u8),
    Timestamp(u8, Option<String>),
    Text,
    Binary,
    /// Since 0.3: builds before refuse tables that have it.
    List(Box<TypeRecord>),
    Uuid,
    Json,
    Jsonb,
    /// Names and types of the fields. Builds before refuse tables that have it.
    Struct(Vec<(String, TypeRecord)>),
    /// Likewise.
    Interval,
    TimeTz,
    /// Likewise: the name and the labels.
    Enum(EnumType),
    /// Decimals of 39 to 76 digits. Likewise.
    WideDecimal(u8, i8),
    /// Maps from keys to values. Likewise.
    Map(Box<TypeRecord>, Box<TypeRecord>),
    /// Likewise: a domain's name, and the type behind it. Only columns are of one.
    Domain(String, Box<TypeRecord>),
}

impl TypeRecord {
    /// The record of a type; none for one that has no place in the catalog.
    pub(crate) fn of(data_type: &DataType) -> Option<TypeRecord> {
        use DataType::*;
        Some(match data_type {
            Boolean => TypeRecord::Boolean,
            Int8 => TypeRecord::Int(1),
            Int16 => TypeRecord::Int(2),
            Int32 => TypeRecord::Int(4),
            Int64 => TypeRecord::Int(8),
            UInt8 => TypeRecord::UInt(1),
            UInt16 => TypeRecord::UInt(2),
            UInt32 => TypeRecord::UInt(4),
            UInt64 => TypeRecord::UInt(8),
            Float32 => TypeRecord::Float(4),
            Float64 => TypeRecord::Float(8),
            Decimal128(p, s) => TypeRecord::Decimal(*p, *s),
            Decimal256(p, s) => TypeRecord::WideDecimal(*p, *s),
            Date32 => TypeRecord::Date,
            Time32(unit) | Time64(unit) => TypeRecord::Time(power(unit)),
            Timestamp(unit, zone) => {
                TypeRecord::Timestamp(power(unit), zone.as_ref().map(|z| z.to_string()))
            }
            Utf8View => TypeRecord::Text,
            BinaryView => TypeRecord::Binary,
            List(item) => TypeRecord::List(Box::new(TypeRecord::of(item.data_type())?)),
            FixedSizeBinary(16) => TypeRecord::Uuid,
            FixedSizeBinary(12) => TypeRecord::TimeTz,
            Interval(IntervalUnit::MonthDayNano) => TypeRecord::Interval,
            Map(..) => {
                let (key, value) = map_parts(data_type)?;
                let of = |part| Some(Box::new(TypeRecord::of(part)?));
                TypeRecord::Map(of(key)?, of(value)?)
            }
            Struct(_) if is_enum(data_type) => TypeRecord::Enum(enum_type(data_type)?),
            Struct(fields) => match json_kind(data_type) {
                Some(JsonKind::Text) => TypeRecord::Json,
                Some(JsonKind::Normal) => TypeRecord::Jsonb,
                None => {
                    let fields = fields.iter().map(|field| {
                        Some((field.name().clone(), TypeRecord::of(field.data_type())?))
                    });
                    TypeRecord::Struct(fields.collect::<Option<_>>()?)
                }
            },
            _ => return None,
        })
    }

    /// The same of the type of a column.
    fn of_column(column: &Column) -> Option<TypeRecord> {
        let own = TypeRecord::of(&column.data_type)?;
        Some(match &column.domain {
            Some(domain) => TypeRecord::Domain(domain.clone(), Box::new(own)),
            None => own,
        })
    }

    /// The type of a record; none for one that is damaged.
    pub(crate) fn data_type(&self) -> Option<DataType> {
        Some(match self {
            TypeRecord::Boolean => DataType::Boolean,
            TypeRecord::Int(1) => DataType::Int8,
            TypeRecord::Int(2) => DataType::Int16,
            TypeRecord::Int(4) => DataType::Int32,
            TypeRecord::Int(8) => DataType::Int64,
            TypeRecord::UInt(1) => DataType::UInt8,
            TypeRecord::UInt(2) => DataType::UInt16,
            TypeRecord::UInt(4) => DataType::UInt32,
            TypeRecord::UInt(8) => DataType::UInt64,
            TypeRecord::Float(4) => DataType::Float32,
            TypeRecord::Float(8) => DataType::Float64,
            TypeRecord::Decimal(p, s) => DataType::Decimal128(*p, *s),
            TypeRecord::WideDecimal(p @ 39..=DECIMAL256_MAX_PRECISION, s) => {
                DataType::Decimal256(*p, *s)
            }
            TypeRecord::Date => DataType::Date32,
            TypeRecord::Time(p @ (0 | 3)) => DataType::Time32(unit(*p)?),
            TypeRecord::Time(p) => DataType::Time64(unit(*p)?),
            TypeRecord::Timestamp(p, zone) => {
                DataType::Timestamp(unit(*p)?, zone.as_deref().map(Into::into))
            }
            TypeRecord::Text => DataType::Utf8View,
            TypeRecord::Binary => DataType::BinaryView,
            TypeRecord::List(item) => {
                DataType::List(Arc::new(Field::new_list_field(item.data_type()?, true)))
            }
            TypeRecord::Map(key, value) => {
                let key = key.data_type().filter(is_map_key)?;
                map_type(key, value.data_type()?)
            }
            TypeRecord::Uuid => uuid_type(),
            TypeRecord::TimeTz => timetz_type(),
            TypeRecord::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            TypeRecord::Json => json_type(),
            TypeRecord::Jsonb => jsonb_type(),
            TypeRecord::Struct(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, own)| Some(Field::new(name, own.data_type()?, true)));
                DataType::Struct(fields.collect::<Option<_>>()?)
            }
            TypeRecord::Enum(own) if own.is_sound() => own.data_type(),
            _ => return None,
        })
    }
}

fn power(unit: &TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn unit(power: u8) -> Option<TimeUnit> {
    Some(match power {
        0 => TimeUnit::Second,
        3 => TimeUnit::Millisecond,
        6 => TimeUnit::Microsecond,
        9 => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// A [`Definition`] as the catalog keeps it.
#[derive(Serialize, Deserialize)]
pub(crate) struct DefinitionRecord {
    name: String,
    columns: Vec<(String, TypeRecord, bool)>,
    primary_key: Vec<usize>,
    foreign_keys: Vec<ForeignKey>,
}

/// What may stand behind it, since 0.2: earlier versions read over it.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct More {
    /// Columns that have one, by position.
    defaults: Vec<(usize, String)>,
    checks: Vec<Check>,
}

/// What may stand behind that: versions that do not know it read over it.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Held {
    keys: Vec<Key>,
    rules: Vec<Rule>,
}

/// And behind that, also read over by versions that do not know it.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Made {
    /// Columns that are, by position.
    generated: Vec<(usize, Generated)>,
    /// Sequences, each with the position of its column.
    sequences: Vec<(usize, String)>,
}

/// And behind that: versions that do not know it read over it.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Named {
    indexes: Vec<Index>,
}

/// And behind that, likewise: a version that does not know it rounds no values of such columns.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Rounded {
    /// Columns whose values have so many digits behind the second, by position.
    digits: Vec<(usize, u8)>,
}

/// And behind that, likewise: a version that does not know it looks at such constraints at the end of each statement, as if
/// they were simple and all rows agreed.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Qualified {
    /// Rules that say more, by their place among the rules.
    rules: Vec<(usize, QualifiedRule)>,
    /// Places of the checks that rows from before need not pass.
    unchecked: Vec<usize>,
    /// Expressions and conditions of indexes, by their places.
    indexes: Vec<(usize, IndexTexts)>,
    on_commit: OnCommit,
}

/// And behind that, likewise: a version that does not know it writes rows as they come.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Ordered {
    /// Columns by whose values rows lie in order, by position.
    columns: Vec<usize>,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
struct IndexTexts {
    items: Vec<(String, String)>,
    predicate: Option<String>,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
struct QualifiedRule {
    delete_columns: Vec<usize>,
    full: bool,
    deferral: Deferral,
    unchecked: bool,
}

impl Qualified {
    fn of(definition: &Definition) -> Qualified {
        let rules = definition.rules.iter().enumerate();
        let rules = rules.map(|(at, rule)| {
            let own = QualifiedRule {
                delete_columns: rule.delete_columns.clone(),
                full: rule.full,
                deferral: rule.deferral,
                unchecked: rule.unchecked,
            };
            (at, own)
        });
        let checks = definition.checks.iter().enumerate();
        let indexes = definition.indexes.iter().enumerate();
        let indexes = indexes.map(|(at, index)| {
            let own = IndexTexts {
                items: index.items.clone(),
                predicate: index.predicate.clone(),
            };
            (at, own)
        });
        Qualified {
            on_commit: definition.on_commit,
            indexes: indexes
                .filter(|(_, own)| *own != IndexTexts::default())
                .collect(),
            rules: rules
                .filter(|(_, own)| *own != QualifiedRule::default())
                .collect(),
            unchecked: checks
                .filter_map(|(at, check)| check.unchecked.then_some(at))
                .collect(),
        }
    }

    fn put(self, definition: &mut Definition) -> Option<()> {
        for (at, own) in self.rules {
            let rule = definition.rules.get_mut(at)?;
            rule.delete_columns = own.delete_columns;
            rule.full = own.full;
            rule.deferral = own.deferral;
            rule.unchecked = own.unchecked;
            let key = definition.foreign_keys.get(rule.foreign_key)?;
            let beyond = |at: &usize| *at >= key.columns.len();
            if rule.delete_columns.iter().any(beyond) {
                return None;
            }
        }
        definition.on_commit = self.on_commit;
        for (at, own) in self.indexes {
            let index = definition.indexes.get_mut(at)?;
            index.items = own.items;
            index.predicate = own.predicate;
        }
        for at in self.unchecked {
            definition.checks.get_mut(at)?.unchecked = true;
        }
        Some(())
    }
}

impl Ordered {
    /// Takes it from the end of a record, where it is if there is any.
    fn read(bytes: &[u8], definition: &mut Definition) -> Option<()> {
        if bytes.is_empty() {
            return Some(());
        }
        let own: Ordered = postcard::from_bytes(bytes).ok()?;
        let count = definition.columns.len();
        definition.order = own.columns;
        definition.order.iter().all(|at| *at < count).then_some(())
    }
}

impl Rounded {
    fn of(definition: &Definition) -> Rounded {
        let columns = definition.columns.iter().enumerate();
        let digits = columns.filter_map(|(at, column)| Some((at, column.digits?)));
        Rounded {
            digits: digits.collect(),
        }
    }

    fn put(self, definition: &mut Definition) -> Option<()> {
        for (position, digits) in self.digits {
            definition.columns.get_mut(position)?.digits = Some(digits);
        }
        Some(())
    }
}

impl Made {
    fn of(definition: &Definition) -> Made {
        let mut made = Made::default();
        for (at, column) in definition.columns.iter().enumerate() {
            made.generated
                .extend(column.generated.iter().map(|own| (at, own.clone())));
            made.sequences
                .extend(column.sequences.iter().map(|own| (at, own.clone())));
        }
        made
    }

    fn put(self, definition: &mut Definition) -> Option<()> {
        for (position, own) in self.generated {
            definition.columns.get_mut(position)?.generated = Some(own);
        }
        for (position, own) in self.sequences {
            definition.columns.get_mut(position)?.sequences.push(own);
        }
        Some(())
    }
}

impl DefinitionRecord {
    /// The definition of table `name` from its record.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] if there is none, or it does not decode.
    pub(crate) fn read(record: Option<&[u8]>, name: &str) -> Result<Definition> {
        record
            .and_then(DefinitionRecord::decode)
            .ok_or_else(|| damaged(name, "its definition"))
    }

    fn decode(bytes: &[u8]) -> Option<Definition> {
        let (record, rest) = postcard::take_from_bytes::<DefinitionRecord>(bytes).ok()?;
        let mut definition = record.definition()?;
        if !rest.is_empty() {
            let (more, rest): (More, _) = postcard::take_from_bytes(rest).ok()?;
            for (position, default) in more.defaults {
                definition.columns.get_mut(position)?.default = Some(default);
            }
            definition.checks = more.checks;
            if !rest.is_empty() {
                let (held, rest): (Held, _) = postcard::take_from_bytes(rest).ok()?;
                definition.keys = held.keys;
                definition.rules = held.rules;
                if !rest.is_empty() {
                    let (made, rest): (Made, _) = postcard::take_from_bytes(rest).ok()?;
                    made.put(&mut definition)?;
                    if !rest.is_empty() {
                        let (named, rest): (Named, _) = postcard::take_from_bytes(rest).ok()?;
                        definition.indexes = named.indexes;
                        if !rest.is_empty() {
                            let (rounded, rest): (Rounded, _) =
                                postcard::take_from_bytes(rest).ok()?;
                            rounded.put(&mut definition)?;
                            if !rest.is_empty() {
                                let (own, rest): (Qualified, _) =
                                    postcard::take_from_bytes(rest).ok()?;
                                own.put(&mut definition)?;
                                Ordered::read(rest, &mut definition)?;
                            }
                        }
                    }
                }
            }
        }
        Some(definition)
    }

    /// The bytes of the record of a definition.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a type that has no place in the catalog.
    pub(crate) fn write(definition: &Definition) -> Result<Vec<u8>> {
        let record = DefinitionRecord::of(definition).ok_or_else(|| Error::Mismatch {
            table: definition.name.clone(),
            what: "a type has no place in the catalog".to_owned(),
        })?;
        let mut bytes = encode(&record, &definition.name)?;
        let columns = definition.columns.iter().enumerate();
        let defaults = columns.filter_map(|(at, column)| Some((at, column.default.clone()?)));
        let more = More {
            defaults: defaults.collect(),
            checks: definition.checks.clone(),
        };
        let held = Held {
            keys: definition.keys.clone(),
            rules: definition.rules.clone(),
        };
        let made = Made::of(definition);
        let named = Named {
            indexes: definition.indexes.clone(),
        };
        let rounded = Rounded::of(definition);
        let qualified = Qualified::of(definition);
        let ordered = Ordered {
            columns: definition.order.clone(),
        };
        let has_ordered = ordered != Ordered::default();
        let has_qualified = has_ordered || qualified != Qualified::default();
        let has_rounded = has_qualified || rounded != Rounded::default();
        let has_named = has_rounded || named != Named::default();
        let has_made = has_named || made != Made::default();
        let has_held = has_made || held != Held::default();
        if has_held || more != More::default() {
            bytes.extend(encode(&more, &definition.name)?);
        }
        if has_held {
            bytes.extend(encode(&held, &definition.name)?);
        }
        if has_made {
            bytes.extend(encode(&made, &definition.name)?);
        }
        if has_named {
            bytes.extend(encode(&named, &definition.name)?);
        }
        if has_rounded {
            bytes.extend(encode(&rounded, &definition.name)?);
        }
        if has_qualified {
            bytes.extend(encode(&qualified, &definition.name)?);
        }
        if has_ordered {
            bytes.extend(encode(&ordered, &definition.name)?);
        }
        Ok(bytes)
    }

    fn of(definition: &Definition) -> Option<DefinitionRecord> {
        let columns = definition
            .columns
            .iter()
            .map(|c| Some((c.name.clone(), TypeRecord::of_column(c)?, c.nullable)))
            .collect::<Option<Vec<_>>>()?;
        Some(DefinitionRecord {
            name: definition.name.clone(),
            columns,
            primary_key: definition.primary_key.clone(),
            foreign_keys: definition.foreign_keys.clone(),
        })
    }

    fn definition(self) -> Option<Definition> {
        let columns = self
            .columns
            .into_iter()
            .map(|(name, record, nullable)| {
                let (record, domain) = match record {
                    TypeRecord::Domain(domain, record) => (*record, Some(domain)),
                    record => (record, None),
                };
                Some(Column {
                    name,
                    data_type: record.data_type()?,
                    nullable,
                    default: None,
                    generated: None,
                    sequences: vec![],
                    digits: None,
                    domain,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Definition {
            name: self.name,
            columns,
            primary_key: self.primary_key,
            foreign_keys: self.foreign_keys,
            keys: vec![],
            rules: vec![],
            checks: vec![],
            indexes: vec![],
            on_commit: OnCommit::Preserve,
            order: vec![],
        })
    }
}
