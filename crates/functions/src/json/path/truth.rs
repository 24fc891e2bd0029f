//! What a path says of values: true, false or unknown.

use std::cmp::Ordering;

use messages::Result;

use crate::json::path::item::Item;
use crate::json::path::number;
use crate::json::path::run::{Patterns, Run, Truth};
use crate::json::path::tree::{Chain, Comparison, Predicate};

impl<'p, 't> Run<'p, 't> {
    /// Whether a predicate holds.
    pub(super) fn truth(&mut self, predicate: &'p Predicate) -> Result<Truth> {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.truth_of(predicate))
    }

    fn truth_of(&mut self, predicate: &'p Predicate) -> Result<Truth> {
        match predicate {
            Predicate::And(left, right) => {
                let left = self.truth(left)?;
                if left == Some(false) {
                    return Ok(left);
                }
                let right = self.truth(right)?;
                Ok(if right == Some(true) { left } else { right })
            }
            Predicate::Or(left, right) => {
                let left = self.truth(left)?;
                if left == Some(true) {
                    return Ok(left);
                }
                let right = self.truth(right)?;
                Ok(if right == Some(false) { left } else { right })
            }
            Predicate::Not(inner) => Ok(self.truth(inner)?.map(|own| !own)),
            Predicate::IsUnknown(inner) => Ok(Some(self.truth(inner)?.is_none())),
            Predicate::Compare(comparison, left, right) => {
                let comparison = *comparison;
                let right = (right, true);
                self.pairs(left, Some(right), |_, a, b| Ok(compared(comparison, a, b)))
            }
            Predicate::StartsWith(whole, initial) => {
                self.pairs(whole, Some((initial, false)), |_, whole, initial| {
                    Ok(match (whole, initial) {
                        (Item::Text(whole), Item::Text(initial)) => {
                            Some(whole.starts_with(initial.as_str()))
                        }
                        _ => None,
                    })
                })
            }
            Predicate::Like(value, pattern, flags) => {
                self.pairs(value, None, |patterns, value, _| match value {
                    Item::Text(text) => Ok(Some(is_like(patterns, text, pattern, flags)?)),
                    _ => Ok(None),
                })
            }
            Predicate::Exists(inner) => {
                let found = self.silent(inner, false)?;
                Ok(found.map(|found| !found.is_empty()))
            }
        }
    }

    /// Whether something holds for any pair of values of two operands.
    fn pairs(
        &mut self,
        left: &'p Chain,
        right: Option<(&'p Chain, bool)>,
        holds: impl Fn(&mut Patterns, &Item<'t>, &Item<'t>) -> Result<Truth>,
    ) -> Result<Truth> {
        let Some(left) = self.silent(left, true)? else {
            return Ok(None);
        };
        let right = match right {
            Some((right, unwrap)) => match self.silent(right, unwrap)? {
                Some(right) => right,
                None => return Ok(None),
            },
            None => vec![Item::Null],
        };
        let (mut error, mut found) = (false, false);
        for a in &left {
            for b in &right {
                match holds(self.patterns, a, b)? {
                    None if self.path.strict => return Ok(None),
                    None => error = true,
                    Some(true) if !self.path.strict => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(match (found, error) {
            (true, _) => Some(true),
            (_, true) => None,
            _ => Some(false),
        })
    }
}

fn compared(comparison: Comparison, left: &Item<'_>, right: &Item<'_>) -> Truth {
    let order = match (left, right) {
        (Item::Null, Item::Null) => Ordering::Equal,
        (Item::Null, _) | (_, Item::Null) => return Some(comparison == Comparison::NotEqual),
        (Item::Boolean(left), Item::Boolean(right)) => left.cmp(right),
        (Item::Number(left), Item::Number(right)) => number::compared(left, right),
        (Item::Text(left), Item::Text(right)) => left.cmp(right),
        _ => return None,
    };
    Some(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    })
}

/// Whether a text matches the pattern of `like_regex`, with XQuery's flags: a point takes no end of a line but with `s`, and lines
/// count but for `^` and `$` with `m`.
fn is_like(patterns: &mut Patterns, text: &str, pattern: &str, flags: &str) -> Result<bool> {
    let has = |flag: char| flags.contains(flag);
    let mut options = match (has('s'), has('m')) {
        (false, false) => "p",
        (false, true) => "n",
        (true, false) => "s",
        (true, true) => "w",
    }
    .to_string();
    options.extend(['i', 'q'].into_iter().filter(|flag| has(*flag)));
    patterns.of(pattern, &options)?.is_match(text)
}
