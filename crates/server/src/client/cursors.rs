//! Cursors: queries that run while a client fetches their rows by statements.
//!
//! A cursor is what a portal is that sends rows: a query that runs, over what its transaction saw when it was declared, and
//! that waits while nobody takes its rows. Rows that it has read are [kept](super::kept), so that it goes back. One `with hold`
//! goes on as it is when its transaction is committed, as its rows depend on nothing but the snapshot that it reads.
//! [`fetching`](super::fetching) does what clients ask of them.

use std::collections::BTreeMap;

use crate::client::cursor_text::Direction;
use crate::client::kept::Kept;
use crate::client::sending::Sending;
use crate::errors;
use crate::wire::backend::Report;

/// A query of which rows are fetched.
pub(crate) struct Cursor {
    pub sending: Sending,
    /// The rows that it has read and may come back to.
    pub read: Kept,
    pub binary: bool,
    pub hold: bool,
    /// Its transaction was committed.
    pub kept: bool,
    /// How many savepoints there were when it was declared.
    pub level: usize,
    pub place: Place,
    /// The statement that declared it.
    pub statement: String,
    /// When that was, in microseconds since 1970.
    pub declared: i64,
}

/// Where a cursor stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the row that was fetched last; 0 before the first.
    pub row: u64,
    /// Behind the last row.
    pub after: bool,
}

/// A part of what a `fetch` does: by so many rows, or by all that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    On(Option<u64>),
    Back(Option<u64>),
    /// To before the first row.
    Rewind,
}

/// What a `fetch` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Where it goes first, without sending rows.
    pub first: Vec<Step>,
    /// What it sends.
    pub last: Step,
    /// It stays on a row, which is what a `move` counts.
    pub stays: bool,
}

impl Step {
    /// So many rows of it at most.
    pub(crate) fn at_most(self, limit: Option<u64>) -> Step {
        let fewer = |count: Option<u64>| match (count, limit) {
            (Some(count), Some(limit)) => Some(count.min(limit)),
            (count, limit) => count.or(limit),
        };
        match self {
            Step::On(count) => Step::On(fewer(count)),
            Step::Back(count) => Step::Back(fewer(count)),
            Step::Rewind => Step::Rewind,
        }
    }

    /// What is left when so many rows are done.
    pub(crate) fn without(self, rows: u64) -> Step {
        let fewer = |count: Option<u64>| count.map(|count| count.saturating_sub(rows));
        match self {
            Step::On(count) => Step::On(fewer(count)),
            Step::Back(count) => Step::Back(fewer(count)),
            Step::Rewind => Step::Rewind,
        }
    }

    /// How many rows it is by; none is all.
    pub(crate) fn count(self) -> Option<u64> {
        match self {
            Step::On(count) | Step::Back(count) => count,
            Step::Rewind => Some(0),
        }
    }
}

impl Place {
    /// The number of the row; behind the last row one more than its.
    pub(crate) fn number(self) -> u64 {
        self.row + u64::from(self.after)
    }

    /// How a cursor that stands here does what is asked, as PostgreSQL does it.
    pub(crate) fn way(self, direction: Direction, moves: bool) -> Way {
        let on_row = self.row > 0 && !self.after;
        let by = |first: Vec<Step>, last: Step| Way {
            first,
            last,
            stays: false,
        };
        let one = Some(1);
        match direction {
            Direction::All => by(vec![], Step::On(None)),
            // What it stands on is sent once more.
            Direction::Forward(0) | Direction::Relative(0) if on_row && !moves => {
                by(vec![Step::Back(one)], Step::On(one))
            }
            Direction::Forward(0) | Direction::Relative(0) => Way {
                stays: on_row,
                ..by(vec![], Step::On(Some(0)))
            },
            Direction::Forward(count) => by(vec![], Step::On(Some(count))),
            Direction::Backward(count) => by(vec![], Step::Back(count)),
            Direction::Absolute(0) => by(vec![Step::Rewind], Step::On(Some(0))),
            Direction::Absolute(row) => match u64::try_from(row) {
                Ok(row) if row <= self.number() => {
                    let back = self.number() - row + 1;
                    by(vec![Step::Back(Some(back))], Step::On(one))
                }
                Ok(row) => by(Step::over(row - self.number(), Step::On), Step::On(one)),
                Err(_) => {
                    let mut first = vec![Step::On(None)];
                    first.extend(Step::over(row.unsigned_abs(), Step::Back));
                    by(first, Step::Back(one))
                }
            },
            Direction::Relative(rows) => match u64::try_from(rows) {
                Ok(rows) => by(Step::over(rows, Step::On), Step::On(one)),
                Err(_) => by(Step::over(rows.unsigned_abs(), Step::Back), Step::Back(one)),
            },
        }
    }
}

impl Step {
    /// What comes before the last of so many rows.
    fn over(rows: u64, step: fn(Option<u64>) -> Step) -> Vec<Step> {
        match rows {
            0 | 1 => vec![],
            rows => vec![step(Some(rows - 1))],
        }
    }
}

impl Cursor {
    /// Whether it can do what leads back.
    ///
    /// # Errors
    /// If it was declared not to, or if rows that are to be sent are there no more.
    pub(crate) fn can(&self, step: Step, sends: bool) -> Result<(), Report> {
        let back = match step {
            Step::On(_) | Step::Back(Some(0)) => return Ok(()),
            Step::Rewind if self.place == Place::default() => return Ok(()),
            Step::Rewind => u64::MAX,
            Step::Back(count) => count.unwrap_or(u64::MAX),
        };
        if !self.read.scrolls() {
            return Err(backwards(
                "Declare it with SCROLL option to enable backward scan.",
            ));
        }
        // Where it will stand: the rows behind that must be there, and the one that it stands on if it is sent.
        let to = self.place.number().saturating_sub(back);
        let to = if sends { to.max(1) - 1 } else { to };
        if to < self.read.dropped() {
            return Err(backwards(
                "It keeps the last rows only: declare it with SCROLL to come back to all of them.",
            ));
        }
        Ok(())
    }
}

fn backwards(hint: &'static str) -> Report {
    Report {
        hint: Some(hint.into()),
        ..Report::error("55000", "cursor can only scan forward")
    }
}

pub(crate) fn no_cursor(name: &str) -> Report {
    let message = format!("cursor \"{name}\" does not exist");
    Report::error(errors::NO_PORTAL, message)
}

/// The cursors of a session.
#[derive(Default)]
pub(crate) struct Cursors {
    pub all: BTreeMap<String, Cursor>,
    /// The savepoints of the transaction.
    pub savepoints: Vec<String>,
}

impl Cursors {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Ends one; false if there is none.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.all.remove(name).is_some()
    }

    /// Ends all of them.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    /// `savepoint name`.
    pub(crate) fn savepoint(&mut self, name: &str) {
        self.savepoints.push(name.to_string());
    }

    /// `release name`.
    pub(crate) fn release(&mut self, name: &str) {
        let mut all = self.savepoints.iter();
        if let Some(at) = all.rposition(|own| own == name) {
            self.savepoints.truncate(at);
            for cursor in self.all.values_mut() {
                cursor.level = cursor.level.min(at);
            }
        }
    }

    /// `rollback to name`: those that were declared since are closed.
    pub(crate) fn roll_back_to(&mut self, name: &str) {
        let mut all = self.savepoints.iter();
        if let Some(at) = all.rposition(|own| own == name) {
            self.savepoints.truncate(at + 1);
            self.all.retain(|_, cursor| cursor.level <= at);
        }
    }

    /// The transaction has ended: only those that are held stay, and of them those of before if it was rolled back.
    /// Returns whether any has gone.
    pub(crate) fn end(&mut self, committed: bool) -> bool {
        self.savepoints.clear();
        let before = self.all.len();
        self.all
            .retain(|_, cursor| cursor.kept || committed && cursor.hold);
        for cursor in self.all.values_mut() {
            cursor.kept = true;
            cursor.level = 0;
        }
        self.all.len() < before
    }

    pub(crate) fn shown(&self) -> Vec<sql::OpenCursor> {
        let all = self.all.iter();
        all.map(|(name, cursor)| sql::OpenCursor {
            name: name.clone(),
            statement: cursor.statement.clone(),
            hold: cursor.hold,
            binary: cursor.binary,
            scroll: cursor.read.scrolls(),
            declared: cursor.declared,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_goes_as_postgresql_has_it() {
        let at = |row, after| Place { row, after };
        let (start, third, end) = (Place::default(), at(3, false), at(3, true));
        let (on, back) = (
            |count| Step::On(Some(count)),
            |count| Step::Back(Some(count)),
        );
        let cases = [
            (start, Direction::Forward(2), vec![], on(2)),
            (third, Direction::All, vec![], Step::On(None)),
            (third, Direction::Backward(Some(2)), vec![], back(2)),
            (end, Direction::Backward(None), vec![], Step::Back(None)),
            (start, Direction::Absolute(1), vec![], on(1)),
            (start, Direction::Absolute(0), vec![Step::Rewind], on(0)),
            (third, Direction::Absolute(6), vec![on(2)], on(1)),
            (third, Direction::Absolute(4), vec![], on(1)),
            (third, Direction::Absolute(3), vec![back(1)], on(1)),
            (third, Direction::Absolute(1), vec![back(3)], on(1)),
            (end, Direction::Absolute(3), vec![back(2)], on(1)),
            (
                start,
                Direction::Absolute(-1),
                vec![Step::On(None)],
                back(1),
            ),
            (
                third,
                Direction::Absolute(-3),
                vec![Step::On(None), back(2)],
                back(1),
            ),
            (third, Direction::Relative(2), vec![on(1)], on(1)),
            (third, Direction::Relative(-1), vec![], back(1)),
            (third, Direction::Relative(-3), vec![back(2)], back(1)),
            (third, Direction::Relative(0), vec![back(1)], on(1)),
            (end, Direction::Forward(0), vec![], on(0)),
        ];
        for (place, direction, first, last) in cases {
            let way = place.way(direction, false);
            assert_eq!(
                (way.first, way.last),
                (first, last),
                "{place:?} {direction:?}"
            );
            assert!(!way.stays);
        }
        let way = third.way(Direction::Forward(0), true);
        assert!(way.stays && way.first.is_empty() && way.last == on(0));
    }

    #[test]
    fn steps_are_done_in_pieces() {
        let step = Step::Back(Some(5));
        assert_eq!(step.at_most(Some(2)), Step::Back(Some(2)));
        assert_eq!(step.at_most(None).without(2), Step::Back(Some(3)));
        assert_eq!(Step::On(None).at_most(Some(7)).count(), Some(7));
        assert_eq!(Step::On(None).without(7), Step::On(None));
    }
}
