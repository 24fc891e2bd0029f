//! The types of JSON's values, found from some of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};
use table::json_type;

use crate::csv::infer::Kinds;
use crate::json::tokens::{Kind, Tokens};

/// Values within so many others are not looked at: what holds them is JSON.
const DEEPEST: usize = 64;

/// A number beyond what a double holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange(pub String);

/// What was seen of the values in one place.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Of numbers, texts and truth values.
    scalars: Kinds,
    /// The items of lists, if there was one.
    items: Option<Box<Shape>>,
    /// The members of objects, if there was one.
    members: Option<Members>,
    /// Whether there is more in it than is looked at.
    deep: bool,
}

/// The members of objects, in the order in which they came.
#[derive(Debug, Default)]
struct Members {
    all: Vec<(String, Shape)>,
    places: HashMap<String, usize>,
}

impl Members {
    fn of(&mut self, name: String) -> Option<&mut Shape> {
        let place = *self.places.entry(name).or_insert_with_key(|name| {
            self.all.push((name.clone(), Shape::default()));
            self.all.len() - 1
        });
        self.all.get_mut(place).map(|(_, shape)| shape)
    }
}

impl Shape {
    /// Adds a value, which is well formed.
    ///
    /// # Errors
    /// The number that is too large for any type.
    pub fn add(&mut self, tokens: &mut Tokens<'_>) -> Result<(), OutOfRange> {
        self.add_within(tokens, 0)
    }

    fn add_within(&mut self, tokens: &mut Tokens<'_>, depth: usize) -> Result<(), OutOfRange> {
        let kind = tokens.kind();
        if depth > DEEPEST && matches!(kind, Kind::Object | Kind::List) {
            self.deep = true;
            tokens.value();
            return Ok(());
        }
        match kind {
            Kind::Null => {
                tokens.value();
            }
            Kind::Boolean => {
                tokens.value();
                self.scalars.add(Kinds::of("true"));
            }
            Kind::String => {
                // So floats are written that JSON has no numbers for.
                let kinds = match tokens.value() {
                    br#""NaN""# => Kinds::of("NaN"),
                    br#""Infinity""# | br#""-Infinity""# => Kinds::of("Infinity"),
                    _ => Kinds::of(""),
                };
                self.scalars.add(kinds);
            }
            Kind::Number => {
                let text = String::from_utf8_lossy(tokens.value()).into_owned();
                let kinds = Kinds::of(&text);
                let whole = text
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'-');
                let is_finite = || text.parse::<f64>().is_ok_and(f64::is_finite);
                if kinds.is_text() && !whole && !is_finite() {
                    return Err(OutOfRange(text));
                }
                self.scalars.add(kinds);
            }
            Kind::List => {
                let items = self.items.get_or_insert_default();
                tokens.enter();
                while tokens.more() {
                    items.add_within(tokens, depth + 1)?;
                }
            }
            Kind::Object => {
                let members = self.members.get_or_insert_default();
                tokens.enter();
                while tokens.more() {
                    let name = tokens.name();
                    if let Some(member) = members.of(name) {
                        member.add_within(tokens, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The members of the objects, with the type of each: JSON where values are of several kinds, which no other type
    /// holds.
    pub fn columns(&self) -> impl Iterator<Item = (&str, DataType)> {
        let members = self.members.iter().flat_map(|members| &members.all);
        members.map(|(name, shape)| {
            let data_type = shape.data_type().unwrap_or_else(json_type);
            (name.as_str(), data_type)
        })
    }

    /// The type that holds all values exactly; none if there is no such one but JSON.
    fn data_type(&self) -> Option<DataType> {
        let kinds = [
            !self.scalars.is_empty(),
            self.items.is_some(),
            self.members.is_some(),
        ];
        if self.deep || kinds.iter().filter(|kind| **kind).count() > 1 {
            return None;
        }
        if let Some(items) = &self.items {
            let item = Field::new_list_field(items.data_type()?, true);
            return Some(DataType::List(Arc::new(item)));
        }
        let Some(members) = &self.members else {
            return Some(self.scalars.data_type());
        };
        let fields = members.all.iter().map(|(name, shape)| {
            let data_type = shape.data_type()?;
            Some(Field::new(name, data_type, true))
        });
        let fields: Fields = fields.collect::<Option<Vec<_>>>()?.into();
        (!fields.is_empty()).then_some(DataType::Struct(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[&str]) -> DataType {
        let mut shape = Shape::default();
        for value in values {
            let row = format!("{{\"a\":{value}}}");
            shape.add(&mut Tokens::new(row.as_bytes())).unwrap();
        }
        let (_, data_type) = shape.columns().next().unwrap();
        data_type
    }

    #[test]
    fn values_suggest_types() {
        use DataType::*;
        let list = |item: DataType| List(Arc::new(Field::new_list_field(item, true)));
        for (values, wanted) in [
            (&["1", "null", "-2"][..], Int64),
            (&["null"], Utf8View),
            (&["1", "2.5"], Float64),
            (&["1", "\"x\""], Utf8View),
            (&["true", "false"], Boolean),
            (&["true", "1"], Utf8View),
            (&["18446744073709551617", "1"], Decimal128(38, 0)),
            (&["9007199254740993", "1.5"], Utf8View),
            (&["\"2024-01-01\""], Utf8View),
            (&["1.5", "\"NaN\"", "\"-Infinity\""], Float64),
            (&["\"NaN\"", "\"x\""], Utf8View),
            (&["[]", "[1,null]"], list(Int64)),
            (&["[[1],[]]"], list(list(Int64))),
            (
                &["{\"b\":1}", "{\"c\":\"x\"}", "null"],
                Struct(
                    vec![
                        Field::new("b", Int64, true),
                        Field::new("c", Utf8View, true),
                    ]
                    .into(),
                ),
            ),
            // What drifts is JSON, and so is what it stands in.
            (&["1", "[1]"], json_type()),
            (&["{\"b\":1}", "5"], json_type()),
            (&["[1,{\"b\":2}]"], json_type()),
            (&["{\"b\":[1,[2]]}"], json_type()),
            (&["{}"], json_type()),
            (
                &[&format!("{}{}", "[".repeat(1000), "]".repeat(1000))],
                json_type(),
            ),
        ] {
            assert_eq!(column(values), wanted, "{values:?}");
        }
        let mut shape = Shape::default();
        let far = shape.add(&mut Tokens::new(b"{\"a\":[1e400]}"));
        assert_eq!(far, Err(OutOfRange("1e400".into())));
    }
}
