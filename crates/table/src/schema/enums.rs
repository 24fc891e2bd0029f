//! Enum types: lists of labels in an order that whoever made them has chosen.
//!
//! A table stores a label's number, which it keeps for good. Where values are computed with, each is the place of its
//! label in the list, so that they compare as the list has them; scans and writes translate. The two are the same unless a
//! label was put between others.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, PrimitiveArray, StringArray, StructArray, UInt16Array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, UInt16Type};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::schema::names::titled;

/// A list of labels with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumType {
    /// Its name in the catalog.
    pub name: String,
    /// The labels, the least first.
    pub labels: Vec<Label>,
}

/// A label of an [`EnumType`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// What tables store for it: no other label of the type has or had it.
    pub number: u16,
    /// What people call it.
    pub text: String,
}

/// The name of the only field of an enum's Arrow type.
const FIELD: &str = "enum";
/// Where the metadata of that field has the name of the type.
const NAME: &str = "name";
/// And where it has the labels, as they are [written](EnumType::written).
const LABELS: &str = "labels";

impl EnumType {
    /// A type with these labels.
    pub fn new(name: &str, labels: impl IntoIterator<Item = String>) -> EnumType {
        let labels = labels.into_iter().zip(0..);
        EnumType {
            name: name.to_owned(),
            labels: labels
                .map(|(text, number)| Label { number, text })
                .collect(),
        }
    }

    /// The Arrow type of its values: places of labels within a struct, which has name and labels in its metadata.
    pub fn data_type(&self) -> DataType {
        let metadata = HashMap::from([
            (NAME.to_owned(), self.name.clone()),
            (LABELS.to_owned(), self.written()),
        ]);
        let field = Field::new(FIELD, DataType::UInt16, true).with_metadata(metadata);
        DataType::Struct(Fields::from(vec![field]))
    }

    /// The labels as one text: of each its number, the bytes of its text, and that.
    pub fn written(&self) -> String {
        let labels = self.labels.iter();
        labels
            .map(|label| format!("{} {} {}", label.number, label.text.len(), label.text))
            .collect()
    }

    /// A type with labels that were [written](EnumType::written) so; none if they were not.
    pub fn of_written(name: &str, labels: &str) -> Option<EnumType> {
        let mut rest = labels;
        let mut labels = Vec::new();
        while !rest.is_empty() {
            let (number, after) = rest.split_once(' ')?;
            let (length, after) = after.split_once(' ')?;
            let (text, after) = after.split_at_checked(length.parse().ok()?)?;
            labels.push(Label {
                number: number.parse().ok()?,
                text: text.to_owned(),
            });
            rest = after;
        }
        Some(EnumType {
            name: name.to_owned(),
            labels,
        })
    }

    /// The place of a label.
    pub fn place(&self, text: &str) -> Option<u16> {
        let place = self.labels.iter().position(|label| label.text == text)?;
        u16::try_from(place).ok()
    }

    /// The label at a place.
    pub fn label(&self, place: u16) -> Option<&str> {
        let label = self.labels.get(usize::from(place))?;
        Some(&label.text)
    }

    /// A number that no label has; none if all are taken.
    pub fn free_number(&self) -> Option<u16> {
        let greatest = self.labels.iter().map(|label| label.number).max();
        greatest.map_or(Some(0), |greatest| {
            greatest.checked_add(1).filter(|free| *free < u16::MAX)
        })
    }

    /// Whether it can be one: no two labels have a text or a number in common.
    pub(crate) fn is_sound(&self) -> bool {
        let mut texts = std::collections::HashSet::new();
        let mut numbers = std::collections::HashSet::new();
        let mut labels = self.labels.iter();
        labels.all(|label| texts.insert(&label.text) && numbers.insert(label.number))
    }

    /// Whether each label's number is its place.
    fn is_in_order(&self) -> bool {
        let mut labels = self.labels.iter().enumerate();
        labels.all(|(place, label)| place == usize::from(label.number))
    }

    /// Places as values.
    pub fn values(&self, places: UInt16Array) -> ArrayRef {
        let DataType::Struct(fields) = self.data_type() else {
            unreachable!("the type of an enum is a struct");
        };
        let nulls = places.nulls().cloned();
        Arc::new(StructArray::new(fields, vec![Arc::new(places)], nulls))
    }

    /// Values from the texts of labels.
    ///
    /// # Errors
    /// [`Error::NoLabel`] with the first text that is none.
    pub fn read(&self, texts: &StringArray) -> Result<ArrayRef> {
        let places: HashMap<&str, u16> = self
            .labels
            .iter()
            .zip(0..)
            .map(|(label, place)| (label.text.as_str(), place))
            .collect();
        let place = |text: Option<&str>| match text {
            None => Ok(None),
            Some(text) => match places.get(text) {
                Some(place) => Ok(Some(*place)),
                None => Err(Error::NoLabel {
                    name: titled(&self.name).into_owned(),
                    text: text.to_owned(),
                }),
            },
        };
        let places: UInt16Array = texts.iter().map(place).collect::<Result<_>>()?;
        Ok(self.values(places))
    }

    /// The texts of values.
    pub fn texts<'t>(&'t self, values: &ArrayRef) -> Vec<Option<&'t str>> {
        let places = places(values);
        places.iter().map(|place| self.label(place?)).collect()
    }

    /// The numbers that tables store for values.
    ///
    /// # Errors
    /// [`Error::Kind`] for values that are none.
    pub(crate) fn to_numbers(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let places = places(values);
        if let Some(most) = arrow::compute::max(&places)
            && usize::from(most) >= self.labels.len()
        {
            return Err(Error::Kind(format!("place {most} of type {}", self.name)));
        }
        if self.is_in_order() {
            return Ok(Arc::new(places));
        }
        let number = |place: Option<u16>| Some(self.labels.get(usize::from(place?))?.number);
        let numbers: UInt16Array = places.iter().map(number).collect();
        Ok(Arc::new(numbers))
    }

    /// The values that tables store these numbers for; none if one is of no label.
    pub(crate) fn of_numbers(&self, numbers: &ArrayRef) -> Option<ArrayRef> {
        let numbers = numbers.as_primitive_opt::<UInt16Type>()?;
        if self.is_in_order() {
            let most = arrow::compute::max(numbers);
            let known = most.is_none_or(|most| usize::from(most) < self.labels.len());
            return known.then(|| self.values(numbers.clone()));
        }
        let mut places = vec![None; usize::from(u16::MAX) + 1];
        for (place, label) in (0..).zip(&self.labels) {
            places[usize::from(label.number)] = Some(place);
        }
        let mut known = true;
        let place = |number: Option<u16>| {
            let place = places[usize::from(number?)];
            known &= place.is_some();
            place
        };
        let places: UInt16Array = numbers.iter().map(place).collect();
        known.then(|| self.values(places))
    }
}

/// The enum that values of an Arrow type are of, if they are of one.
pub fn enum_type(data_type: &DataType) -> Option<EnumType> {
    if !is_enum(data_type) {
        return None;
    }
    let DataType::Struct(fields) = data_type else {
        return None;
    };
    let metadata = fields.first()?.metadata();
    EnumType::of_written(metadata.get(NAME)?, metadata.get(LABELS)?)
}

/// Whether values of an Arrow type are of an enum.
pub fn is_enum(data_type: &DataType) -> bool {
    let DataType::Struct(fields) = data_type else {
        return false;
    };
    let [field] = &fields[..] else {
        return false;
    };
    field.name() == FIELD
        && *field.data_type() == DataType::UInt16
        && field.metadata().contains_key(LABELS)
}

/// The name in the catalog of the enum that values of an Arrow type are of, if they are of one.
pub fn enum_name(data_type: &DataType) -> Option<&str> {
    match data_type {
        DataType::Struct(fields) if is_enum(data_type) => {
            fields[0].metadata().get(NAME).map(String::as_str)
        }
        _ => None,
    }
}

/// The places of the labels of values of an enum.
pub fn places(values: &ArrayRef) -> UInt16Array {
    let values = values.as_struct();
    let places = values.column(0).as_primitive::<UInt16Type>();
    let nulls = NullBuffer::union(values.nulls(), places.nulls());
    PrimitiveArray::new(places.values().clone(), nulls)
}

/// `data_type` with `new` in the place of the enum of the same name, or of `name`; none if it is not in it.
pub(crate) fn replaced(data_type: &DataType, name: &str, new: &EnumType) -> Option<DataType> {
    match data_type {
        DataType::List(item) => {
            let item = replaced(item.data_type(), name, new)?;
            Some(DataType::List(Arc::new(Field::new_list_field(item, true))))
        }
        own if enum_name(own) == Some(name) => Some(new.data_type()),
        _ => None,
    }
}

/// The name in the catalog of the enum that values of an Arrow type, or items of such arrays, are of.
pub fn enum_within(data_type: &DataType) -> Option<&str> {
    match data_type {
        DataType::List(item) => enum_within(item.data_type()),
        own => enum_name(own),
    }
}

/// Texts as values of an enum, if `to` is one and `from` are texts.
pub(crate) fn from_texts(from: &ArrayRef, to: &DataType) -> Result<Option<ArrayRef>> {
    let text = |ty: &DataType| {
        matches!(
            ty,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        )
    };
    let texts = match from.data_type() {
        DataType::Dictionary(_, value) => text(value),
        own => text(own),
    };
    let Some(own) = enum_type(to).filter(|_| texts) else {
        return Ok(None);
    };
    let texts = cast(from, &DataType::Utf8)?;
    own.read(texts.as_string::<i32>()).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `b` was put before `a`, and `c:1` behind both.
    fn odd() -> EnumType {
        let label = |number, text: &str| Label {
            number,
            text: text.to_owned(),
        };
        EnumType {
            name: "s\u{1}odd".to_owned(),
            labels: vec![label(1, "b"), label(0, "a"), label(7, "c:1 2 é")],
        }
    }

    #[test]
    fn types_have_their_labels() {
        for own in [
            odd(),
            EnumType::new("plain", []),
            EnumType::new("x", ["".to_owned()]),
        ] {
            assert_eq!(enum_type(&own.data_type()), Some(own.clone()));
            assert_eq!(enum_name(&own.data_type()), Some(own.name.as_str()));
        }
        assert_eq!(enum_type(&DataType::Utf8View), None);
        assert_eq!(odd().free_number(), Some(8));
        assert_eq!(EnumType::new("e", []).free_number(), Some(0));
    }

    #[test]
    fn what_is_stored_is_read() {
        let texts = StringArray::from(vec![Some("c:1 2 é"), None, Some("a"), Some("b")]);
        let plain = EnumType::new("plain", ["a", "b", "c:1 2 é"].map(str::to_owned));
        for own in [odd(), plain] {
            let values = own.read(&texts).unwrap();
            let stored = own.to_numbers(&values).unwrap();
            let back = own.of_numbers(&stored).unwrap();
            assert_eq!(back.as_ref(), values.as_ref());
            let back: StringArray = own.texts(&back).into_iter().collect();
            assert_eq!(back, texts);
            let unknown: ArrayRef = Arc::new(UInt16Array::from(vec![5]));
            assert!(own.of_numbers(&unknown).is_none());
        }
        let stored = odd().to_numbers(&odd().read(&texts).unwrap()).unwrap();
        let numbers = UInt16Array::from(vec![Some(7), None, Some(0), Some(1)]);
        assert_eq!(stored.as_ref(), &numbers);
        let wrong = odd().read(&StringArray::from(vec!["mauve"])).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "invalid input value for enum s.odd: \"mauve\""
        );
    }
}
