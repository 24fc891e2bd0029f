//! Which transitions are enabled, and what firing them does.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::marking::Marking;
use crate::net::{Known, Net, Transition};
use crate::term::Names;
use crate::value::Value;

/// The most ways in which the transitions of a net may be enabled at once.
pub const MAX_BINDINGS: usize = 10_000;

/// One way in which a transition can fire: the tokens it takes and what they are called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    /// Which of [`Net::transitions`].
    pub transition: usize,
    /// What each variable of its `pre` stands for, in the order they are bound.
    pub variables: Vec<(Arc<str>, Value)>,
    /// The tokens it takes, with their places.
    taken: Vec<(usize, Value)>,
}

/// Variables over what is known to the whole net.
struct Local<'a> {
    known: &'a Known<'a>,
    variables: &'a [(Arc<str>, Value)],
}

impl Names for Local<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        let bound = self.variables.iter().find(|(known, _)| **known == *name);
        bound
            .map(|(_, value)| value)
            .or_else(|| self.known.value(name))
    }
}

impl Net {
    /// All ways in which transitions can fire, in the order of the transitions.
    ///
    /// # Errors
    ///
    /// [`Error::Evaluate`] where a guard has no value, [`Error::TooMany`] beyond
    /// [`MAX_BINDINGS`].
    pub fn enabled(&self, marking: &Marking, readings: &[(&str, f64)]) -> Result<Vec<Binding>> {
        self.all_enabled(marking, &Known::new(self, readings)?)
    }

    pub(crate) fn all_enabled(&self, marking: &Marking, known: &Known<'_>) -> Result<Vec<Binding>> {
        let mut all = BTreeSet::new();
        for (at, transition) in self.transitions().iter().enumerate() {
            let mut search = Search {
                transition,
                known,
                wanted: wanted(transition, known),
                left: marking.clone(),
                binding: Binding {
                    transition: at,
                    variables: Vec::new(),
                    taken: Vec::new(),
                },
                found: &mut all,
            };
            search.from(0)?;
        }
        Ok(all.into_iter().collect())
    }

    /// The state after a transition has fired.
    ///
    /// # Errors
    ///
    /// [`Error::NotEnabled`] where its tokens are not there, [`Error::Type`] where a token it
    /// puts is not one that its place takes.
    pub fn fire(
        &self,
        marking: &Marking,
        binding: &Binding,
        readings: &[(&str, f64)],
    ) -> Result<Marking> {
        self.fired(marking, binding, &Known::new(self, readings)?)
    }

    pub(crate) fn fired(
        &self,
        marking: &Marking,
        binding: &Binding,
        known: &Known<'_>,
    ) -> Result<Marking> {
        let not_enabled = |name: &str| Error::NotEnabled {
            transition: name.to_owned(),
        };
        let transition = self
            .transitions()
            .get(binding.transition)
            .ok_or_else(|| not_enabled("?"))?;
        let mut marking = marking.clone();
        for (place, token) in &binding.taken {
            if !marking.take(*place, token) {
                return Err(not_enabled(&transition.name));
            }
        }
        let names = Local {
            known,
            variables: &binding.variables,
        };
        if !transition.guard.holds(&names)? {
            return Err(not_enabled(&transition.name));
        }
        for flow in &transition.post {
            for inscription in &flow.inscriptions {
                let token = inscription.evaluate(&names)?;
                self.allow(flow.place, &token)?;
                marking.put(flow.place, token)?;
            }
        }
        Ok(marking)
    }
}

/// An inscription of `pre`, and whether it is a variable.
type Wanted<'a> = (usize, &'a Expression, Option<&'a Arc<str>>);

/// The inscriptions of `pre`: those that bind variables come first, as the others may name them.
fn wanted<'a>(transition: &'a Transition, known: &Known<'_>) -> Vec<Wanted<'a>> {
    let mut wanted: Vec<Wanted<'a>> = Vec::new();
    for flow in &transition.pre {
        for inscription in &flow.inscriptions {
            let name = inscription.lone_name();
            let variable = name.filter(|name| known.value(name).is_none());
            wanted.push((flow.place, inscription, variable));
        }
    }
    wanted.sort_by_key(|(_, _, variable)| variable.is_none());
    wanted
}

/// Tries all choices of tokens for one transition.
struct Search<'a> {
    transition: &'a Transition,
    known: &'a Known<'a>,
    wanted: Vec<Wanted<'a>>,
    left: Marking,
    binding: Binding,
    found: &'a mut BTreeSet<Binding>,
}

impl Search<'_> {
    fn from(&mut self, at: usize) -> Result<()> {
        let Some(&(place, inscription, variable)) = self.wanted.get(at) else {
            return self.take_down();
        };
        let bound = variable.and_then(|name| {
            let mut variables = self.binding.variables.iter();
            variables.find(|(known, _)| known == name)
        });
        let only = match (variable, bound) {
            (Some(_), None) => None,
            (Some(_), Some((_, value))) => Some(value.clone()),
            (None, _) => Some(inscription.evaluate(&self.names())?),
        };
        let mut tokens = match &only {
            Some(token) => vec![token.clone()],
            None => self.left.tokens(place).to_vec(),
        };
        // Equal tokens are the same choice.
        tokens.dedup();
        for token in tokens {
            if !self.left.take(place, &token) {
                continue;
            }
            let binds = only.is_none();
            if let (true, Some(name)) = (binds, variable) {
                self.binding.variables.push((name.clone(), token.clone()));
            }
            self.binding.taken.push((place, token.clone()));
            self.from(at + 1)?;
            self.binding.taken.pop();
            if binds {
                self.binding.variables.pop();
            }
            self.left.put(place, token)?;
        }
        Ok(())
    }

    fn names(&self) -> Local<'_> {
        Local {
            known: self.known,
            variables: &self.binding.variables,
        }
    }

    fn take_down(&mut self) -> Result<()> {
        if !self.transition.guard.holds(&self.names())? {
            return Ok(());
        }
        if self.found.len() >= MAX_BINDINGS {
            return Err(Error::TooMany {
                what: "ways in which transitions are enabled",
                limit: MAX_BINDINGS,
            });
        }
        self.found.insert(self.binding.clone());
        Ok(())
    }
}
