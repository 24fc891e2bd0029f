//! Values on the way of a path.

use std::borrow::Cow;

use messages::{Error, Result};
use table::JsonKind;

use crate::json::cut::{self, Kind};
use crate::json::normal::quote;
use crate::json::walk::member;

/// A value on the way.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item<'t> {
    Null,
    Boolean(bool),
    /// A number in the form of `jsonb`.
    Number(Cow<'t, str>),
    Text(String),
    /// The text of an array or an object.
    Array(Cow<'t, str>),
    Object(Cow<'t, str>),
}

impl<'t> Item<'t> {
    /// The value that a text in the form of `jsonb` is.
    ///
    /// # Errors
    /// For escapes that stand for no character.
    pub(super) fn of(text: &'t str) -> Result<Item<'t>> {
        let text = text.trim();
        Ok(match Kind::of(text) {
            Kind::Null => Item::Null,
            Kind::Boolean => Item::Boolean(text == "true"),
            Kind::Number => Item::Number(Cow::Borrowed(text)),
            Kind::Text => Item::Text(cut::characters(text).map_err(Error::from)?),
            Kind::Array => Item::Array(Cow::Borrowed(text)),
            Kind::Object => Item::Object(Cow::Borrowed(text)),
        })
    }

    fn owned<'o>(self) -> Item<'o> {
        let own = |text: Cow<'t, str>| Cow::Owned(text.into_owned());
        match self {
            Item::Null => Item::Null,
            Item::Boolean(own) => Item::Boolean(own),
            Item::Number(text) => Item::Number(own(text)),
            Item::Text(text) => Item::Text(text),
            Item::Array(text) => Item::Array(own(text)),
            Item::Object(text) => Item::Object(own(text)),
        }
    }

    /// As the text of a `jsonb`.
    pub(super) fn text(&self) -> String {
        match self {
            Item::Null => "null".into(),
            Item::Boolean(own) => own.to_string(),
            Item::Number(text) | Item::Array(text) | Item::Object(text) => text.to_string(),
            Item::Text(text) => {
                let mut out = String::new();
                quote(text, &mut out);
                out
            }
        }
    }

    /// Whether it holds others.
    pub(super) fn is_container(&self) -> bool {
        matches!(self, Item::Array(_) | Item::Object(_))
    }

    /// The items of an array and the values of an object; none of others.
    pub(super) fn children(&self) -> Result<Vec<Item<'t>>> {
        fn within(text: &str, array: bool) -> Vec<&str> {
            if array {
                return cut::items(text);
            }
            let members = cut::members(text).into_iter();
            members.map(|(_, value)| value).collect()
        }
        let (text, array) = match self {
            Item::Array(text) => (text, true),
            Item::Object(text) => (text, false),
            _ => return Ok(vec![]),
        };
        match text {
            Cow::Borrowed(text) => within(text, array).into_iter().map(Item::of).collect(),
            Cow::Owned(text) => within(text, array)
                .into_iter()
                .map(|child| Item::of(child).map(Item::owned))
                .collect(),
        }
    }

    /// The value of a member; none where it is no object, or has none.
    pub(super) fn member(&self, key: &str) -> Result<Option<Item<'t>>> {
        let Item::Object(text) = self else {
            return Ok(None);
        };
        match text {
            Cow::Borrowed(text) => {
                let found = member(text, key, JsonKind::Text).map_err(Error::from)?;
                found.map(Item::of).transpose()
            }
            Cow::Owned(text) => {
                let found = member(text, key, JsonKind::Text).map_err(Error::from)?;
                found.map(|own| Item::of(own).map(Item::owned)).transpose()
            }
        }
    }

    /// What `.type()` calls it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Item::Null => "null",
            Item::Boolean(_) => "boolean",
            Item::Number(_) => "number",
            Item::Text(_) => "string",
            Item::Array(_) => "array",
            Item::Object(_) => "object",
        }
    }
}
