//! A check: readings go in, and transitions fire until the net is at rest again.

use std::fmt::Write as _;

use crate::net::Known;
use crate::{Binding, Error, Marking, Net, Result, Value};

/// The most transitions that fire in one check.
pub const MAX_FIRED: usize = 1000;

/// A transition that fired, and what it led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// How it fired.
    pub binding: Binding,
    /// The state before.
    pub before: Marking,
    /// The state after.
    pub after: Marking,
}

/// What one check did: its firing trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The transitions in the order they fired. Empty where none was enabled.
    pub fired: Vec<Firing>,
}

impl Net {
    /// Puts the readings into the places that take them, then fires transitions until these
    /// places are marked again. Where several are enabled, the first in the net's order fires.
    ///
    /// # Errors
    ///
    /// [`Error::NotAtRest`] where such a place does not hold just one token, [`Error::NoRest`],
    /// [`Error::Type`] where a reading is not what its place takes, or what is wrong with an
    /// expression. The marking is then as it was.
    pub fn check(&self, marking: &mut Marking, readings: &[(&str, f64)]) -> Result<Check> {
        let known = Known::new(self, readings)?;
        let mut now = self.refreshed(marking, &known)?;
        let mut check = Check { fired: Vec::new() };
        while check.fired.is_empty() || !self.rests(&now) {
            let Some(binding) = self.all_enabled(&now, &known)?.into_iter().next() else {
                if check.fired.is_empty() {
                    break;
                }
                return Err(self.no_rest(&check));
            };
            if check.fired.len() >= MAX_FIRED {
                return Err(self.no_rest(&check));
            }
            let after = self.fired(&now, &binding, &known)?;
            check.fired.push(Firing {
                binding,
                before: now,
                after: after.clone(),
            });
            now = after;
        }
        *marking = now;
        Ok(check)
    }

    /// The state with the readings in their places.
    pub(crate) fn refreshed(&self, marking: &Marking, known: &Known<'_>) -> Result<Marking> {
        let mut now = marking.clone();
        for (at, place) in self.places().iter().enumerate() {
            let Some(reading) = &place.reading else {
                continue;
            };
            let tokens = now.tokens(at).len();
            if tokens != 1 {
                return Err(Error::NotAtRest {
                    place: place.name.to_string(),
                    tokens,
                });
            }
            let read = known.readings.iter().find(|(name, _)| **name == **reading);
            if let Some(value) = read.and_then(|(_, number)| Value::number(*number)) {
                now = now.replaced(self, &place.name, value)?;
            }
        }
        Ok(now)
    }

    /// Whether the places that take readings are all marked.
    pub(crate) fn rests(&self, marking: &Marking) -> bool {
        let mut places = self.places().iter().enumerate();
        places.all(|(at, place)| place.reading.is_none() || !marking.tokens(at).is_empty())
    }

    fn no_rest(&self, check: &Check) -> Error {
        let names = check.transitions(self);
        Error::NoRest {
            fired: names[..names.len().min(8)].join(", "),
        }
    }
}

impl Check {
    /// The names of the transitions in the order they fired.
    pub fn transitions<'a>(&self, net: &'a Net) -> Vec<&'a str> {
        let name = |firing: &Firing| &*net.transitions()[firing.binding.transition].name;
        self.fired.iter().map(name).collect()
    }

    /// The places that were passed on the way, each once, in the order they were reached: those
    /// marked after a transition and not before the first.
    pub fn places<'a>(&self, net: &'a Net) -> Vec<&'a str> {
        let mut seen: Vec<&str> = Vec::new();
        let Some(first) = self.fired.first() else {
            return seen;
        };
        for firing in &self.fired {
            for (at, place) in net.places().iter().enumerate() {
                let new = first.before.tokens(at).is_empty() && !firing.after.tokens(at).is_empty();
                if new && !seen.contains(&&*place.name) {
                    seen.push(&place.name);
                }
            }
        }
        seen
    }

    /// The path of the tokens in one word, such as `t1-Overload-t5`; empty where nothing fired.
    pub fn path(&self, net: &Net) -> String {
        let mut path = String::new();
        for (at, firing) in self.fired.iter().enumerate() {
            if at > 0 {
                path.push('-');
            }
            path.push_str(&net.transitions()[firing.binding.transition].name);
            if at + 1 == self.fired.len() {
                break;
            }
            for (place, of) in net.places().iter().enumerate() {
                let came = firing.before.tokens(place).is_empty();
                if came && !firing.after.tokens(place).is_empty() {
                    let _ = write!(path, "-{}", of.name);
                }
            }
        }
        path
    }
}
