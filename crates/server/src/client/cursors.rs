//! Cursors: queries that run while a client fetches their rows by statements.
//!
//! A cursor is what a portal is that sends rows: a query that runs, over what its transaction saw when it was declared, and
//! that waits while nobody takes its rows. One `with hold` goes on as it is when its transaction is committed, as its rows
//! depend on nothing but the snapshot that it reads. [`fetching`](super::fetching) does what clients ask of them.

use std::collections::BTreeMap;

use crate::client::cursor_text::Direction;
use crate::client::sending::Sending;
use crate::errors;
use crate::wire::backend::Report;

/// A query of which rows are fetched.
pub(crate) struct Cursor {
    pub sending: Sending,
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

/// What a `fetch` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Passes so many rows and takes so many, or all.
    On { skip: u64, take: Option<u64> },
    /// Stays where it is; on a row or not.
    Stays { on_row: bool },
}

impl Place {
    /// How a cursor that stands here does what is asked.
    ///
    /// # Errors
    /// If it would have to go backwards.
    pub(crate) fn way(self, direction: Direction, moves: bool) -> Result<Way, Report> {
        let on_row = self.row > 0 && !self.after;
        let on = |skip, take| Ok(Way::On { skip, take });
        match direction {
            Direction::All => on(0, None),
            // What it stands on was sent already, and is not there any more.
            Direction::Forward(0) | Direction::Relative(0) if on_row && !moves => Err(backwards()),
            Direction::Forward(0) | Direction::Relative(0) => Ok(Way::Stays { on_row }),
            Direction::Forward(count) => on(0, Some(count)),
            Direction::Absolute(0) if self == Place::default() => Ok(Way::Stays { on_row: false }),
            Direction::Absolute(row) => match u64::try_from(row) {
                Ok(row) if row > self.row && !self.after => on(row - self.row - 1, Some(1)),
                _ => Err(backwards()),
            },
            Direction::Relative(by) => match u64::try_from(by) {
                Ok(by) => on(by - 1, Some(1)),
                Err(_) => Err(backwards()),
            },
            Direction::Backward => Err(backwards()),
        }
    }
}

/// What to do instead of going backwards.
pub(crate) const AGAIN: &str =
    "Rows are read once: declare the cursor again, or put the rows in a temporary table.";

fn backwards() -> Report {
    Report {
        hint: Some(AGAIN.into()),
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
            declared: cursor.declared,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_goes_forwards_only() {
        let on = |skip, take| Ok(Way::On { skip, take });
        let start = Place::default();
        let third = Place {
            row: 3,
            after: false,
        };
        let end = Place {
            row: 3,
            after: true,
        };
        let stays = |on_row| Ok(Way::Stays { on_row });
        let cases = [
            (start, Direction::Forward(2), on(0, Some(2))),
            (end, Direction::Forward(2), on(0, Some(2))),
            (third, Direction::All, on(0, None)),
            (start, Direction::Absolute(1), on(0, Some(1))),
            (start, Direction::Absolute(0), stays(false)),
            (third, Direction::Absolute(5), on(1, Some(1))),
            (third, Direction::Absolute(3), Err("55000")),
            (third, Direction::Absolute(0), Err("55000")),
            (start, Direction::Absolute(-1), Err("55000")),
            (end, Direction::Absolute(9), Err("55000")),
            (third, Direction::Relative(2), on(1, Some(1))),
            (third, Direction::Relative(-1), Err("55000")),
            (third, Direction::Relative(0), Err("55000")),
            (end, Direction::Forward(0), stays(false)),
            (start, Direction::Backward, Err("55000")),
        ];
        for (place, direction, wanted) in cases {
            let way = place.way(direction, false).map_err(|report| report.code);
            assert_eq!(way, wanted, "{place:?} {direction:?}");
        }
        let way = third.way(Direction::Forward(0), true);
        assert_eq!(way.unwrap(), Way::Stays { on_row: true });
    }
}
