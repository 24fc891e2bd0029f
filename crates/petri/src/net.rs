//! A net: places, transitions, and what stands on the arcs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::term::Names;
use crate::types::{Kind, Type};
use crate::value::Value;

/// The most places, and the most transitions.
pub const MAX_NODES: usize = 1000;

/// The most inscriptions of one arc.
pub const MAX_INSCRIPTIONS: usize = 16;

/// A place: holds tokens of one type.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for.
    pub about: String,
    /// Which of [`Net::types`] its tokens are of.
    pub token: usize,
    /// Where a check begins and ends: before it, the one token here is replaced by the reading
    /// of this name.
    pub reading: Option<Arc<str>>,
    /// The tokens it starts with, over the parameters.
    pub start: Vec<Expression>,
}

/// Tokens that a transition takes from a place or puts there.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Which of [`Net::places`].
    pub place: usize,
    /// One for each token. Taken from a place, a name that stands alone and is neither a
    /// parameter nor a reading stands for whatever token there is; all else must equal it.
    pub inscriptions: Vec<Expression>,
}

/// A transition: takes the tokens of `pre`, where `guard` holds for them, and puts those of `post`.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for.
    pub about: String,
    /// Must hold for it to fire; `true` where the file says nothing.
    pub guard: Expression,
    /// The arcs from places, in their order.
    pub pre: Vec<Flow>,
    /// The arcs to places, in their order.
    pub post: Vec<Flow>,
}

/// The parts of a net that parameters do not change.
///
/// Invariants, checked when it is made:
/// 1. At most [`MAX_NODES`] places and as many transitions; names are unique.
/// 2. Each arc names a place that exists, and a place at most once per side.
/// 3. Each name in an expression is a parameter, a reading, or a variable that the transition's
///    `pre` binds.
#[derive(Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) readings: Vec<Arc<str>>,
    pub(crate) require: Vec<Expression>,
    pub(crate) types: Vec<Type>,
    pub(crate) places: Vec<Place>,
    pub(crate) transitions: Vec<Transition>,
}

/// A predicate/transition net with the values of its parameters. Cloning is cheap.
///
/// Places hold tokens that carry values of a [`Type`]; a [`Transition`] is enabled when there
/// are tokens to take for which its guard holds. Guards and inscriptions may name parameters,
/// which the caller sets, and readings, which come anew with each check.
///
/// ```
/// let net = petri::Net::parse(petri::ELASTIC)?.with("n_total", 16)?;
/// let mut marking = net.start()?;
/// let check = net.check(&mut marking, &[("u", 99.0)])?;
/// assert_eq!(check.path(&net), "t1-Overload-t5");
/// assert_eq!(marking.number(&net, "Provision")?, 2.0);
/// # Ok::<(), petri::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Net {
    pub(crate) shape: Arc<Shape>,
    pub(crate) parameters: Vec<(Arc<str>, Value)>,
}

/// The parameters of a net and the readings of a moment.
pub(crate) struct Known<'a> {
    pub(crate) net: &'a Net,
    pub(crate) readings: &'a [(&'a str, f64)],
    /// The readings as values, in the order of the net's.
    values: Vec<Value>,
}

impl<'a> Known<'a> {
    /// # Errors
    ///
    /// [`Error::Unknown`] where a reading is missing, or is not of the net; [`Error::Evaluate`]
    /// where one is not finite.
    pub(crate) fn new(net: &'a Net, readings: &'a [(&'a str, f64)]) -> Result<Known<'a>> {
        let known = &net.shape.readings;
        for (name, _) in readings {
            if !known.iter().any(|reading| **reading == **name) {
                return Err(unknown("reading", name, known));
            }
        }
        let mut values = Vec::with_capacity(known.len());
        for name in known {
            let given = readings.iter().find(|(given, _)| **given == **name);
            let (_, number) = given.ok_or_else(|| Error::Evaluate {
                text: name.to_string(),
                why: "there is no reading of this name".to_owned(),
            })?;
            values.push(Value::number(*number).ok_or_else(|| Error::Evaluate {
                text: name.to_string(),
                why: format!("the reading is {number}"),
            })?);
        }
        Ok(Known {
            net,
            readings,
            values,
        })
    }

    /// Parameters only.
    pub(crate) fn parameters(net: &'a Net) -> Known<'a> {
        Known {
            net,
            readings: &[],
            values: Vec::new(),
        }
    }
}

impl Names for Known<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        let parameter = self
            .net
            .parameters
            .iter()
            .find(|(known, _)| **known == *name);
        if let Some((_, value)) = parameter {
            return Some(value);
        }
        let readings = &self.net.shape.readings;
        let at = readings.iter().position(|reading| **reading == *name)?;
        self.values.get(at)
    }
}

impl Net {
    /// Puts a net together and checks it.
    pub(crate) fn new(shape: Shape, parameters: Vec<(Arc<str>, Value)>) -> Result<Net> {
        let net = Net {
            shape: Arc::new(shape),
            parameters,
        };
        net.check_names()?;
        for transition in &net.shape.transitions {
            net.check_transition(transition)?;
        }
        net.check_parameters()?;
        Ok(net)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shape.name
    }

    /// What it is for.
    pub fn about(&self) -> &str {
        &self.shape.about
    }

    /// The places, in their order.
    pub fn places(&self) -> &[Place] {
        &self.shape.places
    }

    /// The transitions, in their order.
    pub fn transitions(&self) -> &[Transition] {
        &self.shape.transitions
    }

    /// The types of tokens.
    pub fn types(&self) -> &[Type] {
        &self.shape.types
    }

    /// The names of the readings that a check needs.
    pub fn readings(&self) -> &[Arc<str>] {
        &self.shape.readings
    }

    /// The parameters with their values, in their order.
    pub fn parameters(&self) -> &[(Arc<str>, Value)] {
        &self.parameters
    }

    /// A parameter that is a number.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where there is none of this name, or it is not a number.
    pub fn parameter(&self, name: &str) -> Result<f64> {
        let found = self.parameters.iter().find(|(known, _)| **known == *name);
        let number = found.and_then(|(_, value)| value.as_number());
        number.ok_or_else(|| unknown("number among its parameters", name, &self.names()))
    }

    /// The same net with another value for a parameter.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`], or [`Error::Requirement`] where the net does not allow the value.
    pub fn with(&self, name: &str, value: impl Into<f64>) -> Result<Net> {
        self.with_all(&[(name, value.into())])
    }

    /// The same net with other values for several parameters at once.
    ///
    /// # Errors
    ///
    /// As [`with`](Net::with).
    pub fn with_all(&self, values: &[(&str, f64)]) -> Result<Net> {
        let mut net = self.clone();
        for (name, number) in values {
            let value = Value::number(*number).ok_or_else(|| Error::Evaluate {
                text: (*name).to_owned(),
                why: format!("a parameter cannot be {number}"),
            })?;
            let found = net
                .parameters
                .iter_mut()
                .find(|(known, _)| **known == **name);
            match found {
                Some((_, old)) => *old = value,
                None => return Err(unknown("parameter", name, &self.names())),
            }
        }
        net.check_parameters()?;
        Ok(net)
    }

    /// Which place has this name.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`].
    pub fn place(&self, name: &str) -> Result<usize> {
        let at = self.places().iter().position(|place| *place.name == *name);
        at.ok_or_else(|| {
            let names: Vec<_> = self.places().iter().map(|p| p.name.clone()).collect();
            unknown("place", name, &names)
        })
    }

    /// Which transition has this name.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`].
    pub fn transition(&self, name: &str) -> Result<usize> {
        let at = self.transitions().iter().position(|t| *t.name == *name);
        at.ok_or_else(|| {
            let names: Vec<_> = self.transitions().iter().map(|t| t.name.clone()).collect();
            unknown("transition", name, &names)
        })
    }

    /// Whether a place may hold this token.
    ///
    /// # Errors
    ///
    /// [`Error::Type`] where it may not.
    pub fn allow(&self, place: usize, token: &Value) -> Result<()> {
        let Some(of) = self.places().get(place) else {
            return Err(Error::Net {
                part: self.name().to_owned(),
                why: format!("there is no place {place}"),
            });
        };
        let kind = &self.types()[of.token].kind;
        let allowed = match (kind, token) {
            (Kind::Unit, Value::Unit) | (Kind::Flag, Value::Flag(_)) => true,
            (Kind::Text { of }, Value::Text(text)) => of.contains(text),
            (Kind::Number { least, most, whole }, Value::Number(number)) => {
                let known = Known::parameters(self);
                let bound = |bound: &Expression| {
                    let value = bound.evaluate(&known)?;
                    value.as_number().ok_or_else(|| Error::Evaluate {
                        text: bound.to_string(),
                        why: "a bound of a type is a number".to_owned(),
                    })
                };
                let number = number.get();
                bound(least)? <= number
                    && number <= bound(most)?
                    && (!whole || number.fract() == 0.0)
            }
            _ => false,
        };
        if allowed {
            return Ok(());
        }
        Err(Error::Type {
            place: of.name.to_string(),
            token: token.to_string(),
            allowed: kind.to_string(),
        })
    }

    fn names(&self) -> Vec<Arc<str>> {
        self.parameters
            .iter()
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Invariant 1.
    fn check_names(&self) -> Result<()> {
        let shape = &self.shape;
        let lists: [(&str, Vec<&Arc<str>>); 4] = [
            ("place", shape.places.iter().map(|p| &p.name).collect()),
            (
                "transition",
                shape.transitions.iter().map(|t| &t.name).collect(),
            ),
            ("type", shape.types.iter().map(|t| &t.name).collect()),
            (
                "parameter or reading",
                self.parameters
                    .iter()
                    .map(|(name, _)| name)
                    .chain(&shape.readings)
                    .collect(),
            ),
        ];
        for (what, names) in lists {
            if names.len() > MAX_NODES {
                return Err(Error::TooMany {
                    what: "places, transitions, types or parameters",
                    limit: MAX_NODES,
                });
            }
            let mut seen = BTreeSet::new();
            for name in names {
                let why = if name.is_empty() {
                    "its name is empty"
                } else if !seen.insert(name) {
                    "there are two of this name"
                } else {
                    continue;
                };
                return Err(part(&format!("{what} {name}"), why));
            }
        }
        if shape.places.is_empty() {
            return Err(part(&format!("net {}", shape.name), "it has no place"));
        }
        Ok(())
    }

    /// Invariant 3.
    fn check_transition(&self, transition: &Transition) -> Result<()> {
        let global = |name: &str| {
            let reading = self.shape.readings.iter().any(|known| **known == *name);
            reading || self.parameters.iter().any(|(known, _)| **known == *name)
        };
        let mut bound: BTreeSet<&str> = BTreeSet::new();
        for inscription in transition.pre.iter().flat_map(|arc| &arc.inscriptions) {
            bound.extend(inscription.lone_name().filter(|n| !global(n)).map(|n| &**n));
        }
        let both = transition.pre.iter().chain(&transition.post);
        let inscriptions = both.flat_map(|arc| &arc.inscriptions);
        for expression in inscriptions.chain([&transition.guard]) {
            for name in expression.names() {
                if !global(name) && !bound.contains(&**name) {
                    let why = format!(
                        "'{expression}' names {name}, which is no parameter, no reading and no \
                         token that it takes"
                    );
                    return Err(part(&format!("transition {}", transition.name), &why));
                }
            }
        }
        Ok(())
    }

    /// What the net requires of its parameters.
    fn check_parameters(&self) -> Result<()> {
        let known = Known::parameters(self);
        for requirement in &self.shape.require {
            if requirement.holds(&known)? {
                continue;
            }
            let mut values: Vec<String> = Vec::new();
            for name in requirement.names() {
                let value = known.value(name).map(ToString::to_string);
                values.push(format!("{name} is {}", value.unwrap_or_default()));
            }
            values.dedup();
            return Err(Error::Requirement {
                text: requirement.to_string(),
                values: values.join(" and "),
            });
        }
        Ok(())
    }
}

pub(crate) fn part(part: &str, why: &str) -> Error {
    Error::Net {
        part: part.to_owned(),
        why: why.to_owned(),
    }
}

pub(crate) fn unknown(what: &'static str, name: &str, known: &[Arc<str>]) -> Error {
    let known: Vec<&str> = known.iter().map(|name| &**name).collect();
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    Error::Unknown {
        what,
        name: name.to_owned(),
        known,
    }
}
