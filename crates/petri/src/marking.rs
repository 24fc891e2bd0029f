//! Markings: the tokens of each place.

use std::fmt::Write as _;

use crate::error::{Error, Result};
use crate::net::{Known, Net};
use crate::value::Value;

/// The most tokens of one place.
pub const MAX_TOKENS: usize = 10_000;

/// The tokens of each place of a net: one state of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Marking {
    /// By place; each sorted, so that equal states compare equal.
    places: Vec<Vec<Value>>,
}

impl Marking {
    /// No tokens.
    pub fn empty(net: &Net) -> Marking {
        Marking {
            places: vec![Vec::new(); net.places().len()],
        }
    }

    /// The tokens of a place, sorted; none for a place that does not exist.
    pub fn tokens(&self, place: usize) -> &[Value] {
        self.places.get(place).map_or(&[], Vec::as_slice)
    }

    /// The number that the one token of a place carries.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a place that does not exist, [`Error::NotAtRest`] where it does
    /// not hold just one token, [`Error::Evaluate`] where that is not a number.
    pub fn number(&self, net: &Net, place: &str) -> Result<f64> {
        match self.tokens(net.place(place)?) {
            [token] => token.as_number().ok_or_else(|| Error::Evaluate {
                text: place.to_owned(),
                why: format!("its token is {}", token.kind()),
            }),
            other => Err(Error::NotAtRest {
                place: place.to_owned(),
                tokens: other.len(),
            }),
        }
    }

    /// The same state, with `token` as the only token of a place.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`], or [`Error::Type`] where the place does not take it.
    pub fn replaced(&self, net: &Net, place: &str, token: Value) -> Result<Marking> {
        let at = net.place(place)?;
        net.allow(at, &token)?;
        let mut marking = self.clone();
        marking.places[at] = vec![token];
        Ok(marking)
    }

    pub(crate) fn put(&mut self, place: usize, token: Value) -> Result<()> {
        let tokens = &mut self.places[place];
        if tokens.len() >= MAX_TOKENS {
            return Err(Error::TooMany {
                what: "tokens in one place",
                limit: MAX_TOKENS,
            });
        }
        let at = tokens.partition_point(|other| *other < token);
        tokens.insert(at, token);
        Ok(())
    }

    /// Removes one token equal to `token`; returns false if there is none.
    pub(crate) fn take(&mut self, place: usize, token: &Value) -> bool {
        let tokens = &mut self.places[place];
        let found = tokens.binary_search(token);
        if let Ok(at) = found {
            tokens.remove(at);
        }
        found.is_ok()
    }

    /// The places that hold something, such as `Checks 40, Provision 3`.
    pub fn told(&self, net: &Net) -> String {
        let mut text = String::new();
        for (place, tokens) in net.places().iter().zip(&self.places) {
            for token in tokens {
                let comma = if text.is_empty() { "" } else { ", " };
                let _ = write!(text, "{comma}{} {token}", place.name);
            }
        }
        text
    }
}

impl Net {
    /// The tokens it starts with.
    ///
    /// # Errors
    ///
    /// [`Error::Evaluate`] or [`Error::Type`] where a token is not what its place takes.
    pub fn start(&self) -> Result<Marking> {
        let mut marking = Marking::empty(self);
        for (at, place) in self.places().iter().enumerate() {
            for token in &place.start {
                let token = token.evaluate(&Known::parameters(self))?;
                self.allow(at, &token)?;
                marking.put(at, token)?;
            }
        }
        Ok(marking)
    }
}
