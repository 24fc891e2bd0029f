//! Sequences: rows of numbers that are given out one after the other.

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

/// A sequence: which numbers it gives, and in which order. Where it has come to is its [`Position`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Which sequence it is: no other of the store has the number, not even one of the same name later.
    pub number: u64,
    /// Under which number its position is kept. A sequence that is restarted gets another, so that going back to the one
    /// before goes back to that one's position.
    pub state: u64,
    /// Bytes of its type: 2, 4 or 8.
    pub bytes: u8,
    /// The number that a restart begins with.
    pub start: i64,
    /// From one number to the next; not 0.
    pub increment: i64,
    /// The least number.
    pub min: i64,
    /// The greatest number.
    pub max: i64,
    /// Whether it goes on from the other end when it has reached one.
    pub cycle: bool,
    /// Where it is as long as nothing is kept under `state`.
    pub first: Position,
}

/// How far a sequence has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The last number that was given, or else the one that is given next.
    pub value: i64,
    /// Whether `value` was given.
    pub called: bool,
}

impl Sequence {
    /// The position after `position`, whose value is the number that is given; `None` at the end.
    pub fn after(&self, position: Position) -> Option<Position> {
        let given = |value| {
            Some(Position {
                value,
                called: true,
            })
        };
        if !position.called {
            return given(position.value);
        }
        let next = position.value.checked_add(self.increment);
        let next = next.filter(|value| (self.min..=self.max).contains(value));
        match next {
            Some(value) => given(value),
            None if !self.cycle => None,
            None if self.increment > 0 => given(self.min),
            None => given(self.max),
        }
    }

    /// The type of its numbers.
    pub fn data_type(&self) -> DataType {
        match self.bytes {
            2 => DataType::Int16,
            4 => DataType::Int32,
            _ => DataType::Int64,
        }
    }

    /// Whether this can be one: all its numbers lie within each other as they should.
    pub(crate) fn is_sound(&self) -> bool {
        let inside = |value: i64| (self.min..=self.max).contains(&value);
        matches!(self.bytes, 2 | 4 | 8)
            && self.increment != 0
            && self.min < self.max
            && inside(self.start)
            && inside(self.first.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(increment: i64, min: i64, max: i64, cycle: bool) -> Sequence {
        let start = if increment > 0 { min } else { max };
        Sequence {
            number: 1,
            state: 1,
            bytes: 8,
            start,
            increment,
            min,
            max,
            cycle,
            first: Position {
                value: start,
                called: false,
            },
        }
    }

    /// The first numbers that it gives.
    fn numbers(sequence: &Sequence, count: usize) -> Vec<i64> {
        let mut position = sequence.first;
        let mut given = Vec::new();
        while let Some(next) = sequence.after(position).filter(|_| given.len() < count) {
            given.push(next.value);
            position = next;
        }
        given
    }

    #[test]
    fn numbers_come_in_steps_and_end_or_begin_again() {
        assert_eq!(numbers(&sequence(1, 1, 3, false), 9), [1, 2, 3]);
        assert_eq!(numbers(&sequence(1, 1, 3, true), 5), [1, 2, 3, 1, 2]);
        assert_eq!(numbers(&sequence(-2, 1, 6, true), 5), [6, 4, 2, 6, 4]);
        assert_eq!(numbers(&sequence(5, 1, 9, true), 4), [1, 6, 1, 6]);
        let ends = sequence(i64::MAX, i64::MIN, i64::MAX, false);
        assert_eq!(numbers(&ends, 9), [i64::MIN, -1, i64::MAX - 1]);
    }
}
