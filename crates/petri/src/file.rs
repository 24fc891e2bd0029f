//! Nets as TOML.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::net::{Flow, MAX_INSCRIPTIONS, Place, Shape, Transition, part};
use crate::{Error, Expression, Kind, Net, Result, Type, Value};

/// The longest text of a net, in bytes.
pub const MAX_TEXT: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    readings: Vec<Arc<str>>,
    #[serde(default)]
    require: Vec<String>,
    #[serde(default)]
    parameters: BTreeMap<Arc<str>, Constant>,
    #[serde(default, rename = "type")]
    types: Vec<TypeEntry>,
    #[serde(default, rename = "place")]
    places: Vec<PlaceEntry>,
    #[serde(default, rename = "transition")]
    transitions: Vec<TransitionEntry>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Constant {
    Flag(bool),
    Number(f64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypeEntry {
    name: Arc<str>,
    symbol: Option<String>,
    holds: String,
    least: Option<Written>,
    most: Option<Written>,
    #[serde(default)]
    of: Vec<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceEntry {
    name: Arc<str>,
    #[serde(rename = "type")]
    token: Arc<str>,
    #[serde(default)]
    about: String,
    reading: Option<Arc<str>>,
    #[serde(default)]
    start: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransitionEntry {
    name: Arc<str>,
    #[serde(default)]
    about: String,
    guard: Option<String>,
    #[serde(default)]
    pre: BTreeMap<String, OneOrMore>,
    #[serde(default)]
    post: BTreeMap<String, OneOrMore>,
}

/// An expression, which may be a bare number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(Written),
    More(Vec<Written>),
}

impl Written {
    fn expression(&self) -> Result<Expression> {
        match self {
            Written::Number(number) => Expression::parse(&number.to_string()),
            Written::Text(text) => Expression::parse(text),
        }
    }
}

impl Net {
    /// Reads a net; [`ELASTIC`](crate::ELASTIC) is one, and explains the format.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the line where it is not the TOML of a net, [`Error::Expression`],
    /// and what else is wrong with it.
    pub fn parse(text: &str) -> Result<Net> {
        if text.len() > MAX_TEXT {
            return Err(Error::TooMany {
                what: "bytes in the text of a net",
                limit: MAX_TEXT,
            });
        }
        let file: File = toml::from_str(text).map_err(|error| Error::File {
            why: one_line(text, &error),
        })?;
        let types = all(&file.types, read_type)?;
        let places = all(&file.places, |entry| read_place(entry, &file, &types))?;
        let transitions = all(&file.transitions, |entry| read_transition(entry, &places))?;
        let parameters = file.parameters.into_iter().map(|(name, constant)| {
            let value = match constant {
                Constant::Flag(flag) => Value::Flag(flag),
                Constant::Text(text) => Value::Text(text.into()),
                Constant::Number(number) => Value::number(number)
                    .ok_or_else(|| part(&format!("parameter {name}"), "it is not finite"))?,
            };
            Ok((name, value))
        });
        let parameters = parameters.collect::<Result<Vec<_>>>()?;
        let shape = Shape {
            name: file.name,
            about: file.about,
            readings: file.readings,
            require: all(&file.require, |text| Expression::parse(text))?,
            types,
            places,
            transitions,
        };
        Net::new(shape, parameters)
    }
}

fn all<A, B>(of: &[A], read: impl FnMut(&A) -> Result<B>) -> Result<Vec<B>> {
    of.iter().map(read).collect()
}

/// What is wrong, with its line, on one line.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message: Vec<&str> = error.message().lines().collect();
    let message = message.join("; ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}

fn read_type(entry: &TypeEntry) -> Result<Type> {
    let name = format!("type {}", entry.name);
    let bound = |bound: &Option<Written>, what: &str| match bound {
        Some(bound) => bound.expression(),
        None => Err(part(&name, &format!("'{what}' is missing"))),
    };
    let bounds = |whole| {
        Ok(Kind::Number {
            least: bound(&entry.least, "least")?,
            most: bound(&entry.most, "most")?,
            whole,
        })
    };
    let kind = match &*entry.holds {
        "unit" => Kind::Unit,
        "flag" => Kind::Flag,
        "integer" => bounds(true)?,
        "number" => bounds(false)?,
        "name" if entry.of.is_empty() => return Err(part(&name, "'of' is missing")),
        "name" => Kind::Text {
            of: entry.of.clone(),
        },
        _ => {
            let why = "'holds' is one of unit, flag, integer, number, name";
            return Err(part(&name, why));
        }
    };
    let bounded = entry.least.is_some() || entry.most.is_some();
    if bounded && !matches!(kind, Kind::Number { .. }) {
        return Err(part(&name, "'least' and 'most' are for numbers"));
    }
    Ok(Type {
        name: entry.name.clone(),
        symbol: entry.symbol.clone().unwrap_or_else(|| "1".to_owned()),
        kind,
    })
}

fn read_place(entry: &PlaceEntry, file: &File, types: &[Type]) -> Result<Place> {
    let name = format!("place {}", entry.name);
    let token = types.iter().position(|of| of.name == entry.token);
    let token = token.ok_or_else(|| {
        let why = format!("there is no type {}", entry.token);
        part(&name, &why)
    })?;
    if let Some(reading) = &entry.reading
        && !file.readings.contains(reading)
    {
        return Err(part(&name, &format!("there is no reading {reading}")));
    }
    Ok(Place {
        name: entry.name.clone(),
        about: entry.about.clone(),
        token,
        reading: entry.reading.clone(),
        start: all(&entry.start, Written::expression)?,
    })
}

fn read_transition(entry: &TransitionEntry, places: &[Place]) -> Result<Transition> {
    let name = format!("transition {}", entry.name);
    let flows = |arcs: &BTreeMap<String, OneOrMore>| -> Result<Vec<Flow>> {
        let mut flows = Vec::new();
        for (place, inscriptions) in arcs {
            let at = places.iter().position(|of| *of.name == **place);
            let at = at.ok_or_else(|| part(&name, &format!("there is no place {place}")))?;
            let inscriptions = match inscriptions {
                OneOrMore::One(one) => vec![one.expression()?],
                OneOrMore::More(more) => all(more, Written::expression)?,
            };
            if inscriptions.is_empty() || inscriptions.len() > MAX_INSCRIPTIONS {
                let why = format!("an arc carries 1 to {MAX_INSCRIPTIONS} tokens");
                return Err(part(&name, &why));
            }
            flows.push(Flow {
                place: at,
                inscriptions,
            });
        }
        flows.sort_by_key(|flow| flow.place);
        Ok(flows)
    };
    let guard = entry.guard.as_deref().unwrap_or("true");
    Ok(Transition {
        name: entry.name.clone(),
        about: entry.about.clone(),
        guard: Expression::parse(guard)?,
        pre: flows(&entry.pre)?,
        post: flows(&entry.post)?,
    })
}
