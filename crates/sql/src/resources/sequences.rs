//! Where sequences are: the numbers that sessions of this program give out.
//!
//! What a sequence has given is kept in the store before anybody sees it, beside whatever transaction is under way, so
//! that no number is given twice: not after a rollback, and not after a kill. To do so for each number would take a
//! commit each: the position that is kept is ahead of the one that is reached, and what lies between is lost with a
//! kill. Who lets the store go in good order [gives it back](Sequences::give_back). Of the
//! sequences of a session, which go with it, nothing is kept.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use store::{Store, Transaction};
use syntax::names::session_of;
use table::{Position, Sequence};

use crate::error::{Error, Result};

/// How many numbers more than were asked for are kept as given, at least.
const AHEAD: usize = 32;

/// The positions of the sequences that this program has used.
#[derive(Debug, Default)]
pub(crate) struct Sequences(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By the number under which the position is kept.
    reached: HashMap<u64, Arc<Mutex<Reached>>>,
    /// The greatest number that a sequence was made with.
    greatest: u64,
}

#[derive(Debug)]
struct Reached {
    at: Position,
    /// How many numbers behind it the store has as given already, if they are given in these `steps`.
    ahead: usize,
    steps: Option<Steps>,
}

/// Step, bounds, and whether it begins again: statements may see a sequence before and after it was changed.
type Steps = (i64, i64, i64, bool);

fn steps(sequence: &Sequence) -> Steps {
    (
        sequence.increment,
        sequence.min,
        sequence.max,
        sequence.cycle,
    )
}

/// Those of all stores that are open.
static ALL: Mutex<Vec<(Weak<Store>, Weak<Sequences>)>> = Mutex::new(Vec::new());

impl Sequences {
    /// Those of a store, which all that use it share: two that did not would give the same numbers.
    pub(crate) fn of(store: &Arc<Store>) -> Arc<Sequences> {
        let mut all = ALL.lock();
        all.retain(|(_, sequences)| sequences.strong_count() > 0);
        let own = Arc::downgrade(store);
        let found = all.iter().find(|(store, _)| store.ptr_eq(&own));
        if let Some(found) = found.and_then(|(_, sequences)| sequences.upgrade()) {
            return found;
        }
        let new = Arc::default();
        all.push((own, Arc::downgrade(&new)));
        new
    }

    /// A number for a new sequence or position.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn new_number(&self, tx: &Transaction) -> Result<u64> {
        let mut known = self.0.lock();
        let number = table::new_sequence_number(tx)?;
        known.greatest = number.max(known.greatest + 1);
        Ok(known.greatest)
    }

    fn reached(
        &self,
        store: &Arc<Store>,
        name: &str,
        sequence: &Sequence,
    ) -> Result<Arc<Mutex<Reached>>> {
        let mut known = self.0.lock();
        if let Some(reached) = known.reached.get(&sequence.state) {
            return Ok(Arc::clone(reached));
        }
        let at = table::sequence_position(store, name, sequence.state)?;
        let reached = Arc::new(Mutex::new(Reached {
            at: at.unwrap_or(sequence.first),
            ahead: 0,
            steps: None,
        }));
        known.greatest = known.greatest.max(sequence.state).max(sequence.number);
        known.reached.insert(sequence.state, Arc::clone(&reached));
        Ok(reached)
    }

    /// Where a sequence is.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn at(
        &self,
        store: &Arc<Store>,
        name: &str,
        sequence: &Sequence,
    ) -> Result<Position> {
        let reached = self.reached(store, name, sequence)?;
        let at = reached.lock().at;
        Ok(at)
    }

    /// The next `count` numbers of a sequence, which nobody gets again.
    ///
    /// # Errors
    /// If it ends before; what it had left is gone then. Those of the store.
    pub(crate) fn next(
        &self,
        store: &Arc<Store>,
        name: &str,
        sequence: &Sequence,
        count: usize,
    ) -> Result<Vec<i64>> {
        let reached = self.reached(store, name, sequence)?;
        let mut reached = reached.lock();
        if reached.steps != Some(steps(sequence)) {
            reached.ahead = 0;
        }
        let mut given = Vec::with_capacity(count);
        let mut at = reached.at;
        while given.len() < count
            && let Some(next) = sequence.after(at)
        {
            given.push(next.value);
            at = next;
        }
        if session_of(name).is_some() {
            // It goes with the session: nothing is kept of it.
        } else if given.len() > reached.ahead {
            let (mut kept, mut ahead) = (at, 0);
            while ahead < count.max(AHEAD)
                && let Some(next) = sequence.after(kept)
            {
                kept = next;
                ahead += 1;
            }
            table::keep_sequence_position(store, sequence.state, kept)?;
            reached.ahead = ahead;
            reached.steps = Some(steps(sequence));
        } else {
            reached.ahead -= given.len();
        }
        reached.at = at;
        if given.len() < count {
            let (end, limit) = if sequence.increment > 0 {
                ("maximum", sequence.max)
            } else {
                ("minimum", sequence.min)
            };
            return Err(Error::coded(
                "2200H",
                format!("nextval: reached {end} value of sequence \"{name}\" ({limit})"),
            ));
        }
        Ok(given)
    }

    /// Puts a sequence to a position.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn set(
        &self,
        store: &Arc<Store>,
        name: &str,
        sequence: &Sequence,
        at: Position,
    ) -> Result<()> {
        let reached = self.reached(store, name, sequence)?;
        let mut reached = reached.lock();
        if session_of(name).is_none() {
            table::keep_sequence_position(store, sequence.state, at)?;
        }
        *reached = Reached {
            at,
            ahead: 0,
            steps: None,
        };
        Ok(())
    }

    /// Where a sequence is.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn position(
        &self,
        store: &Arc<Store>,
        name: &str,
        sequence: &Sequence,
    ) -> Result<Position> {
        let reached = self.reached(store, name, sequence)?;
        let at = reached.lock().at;
        Ok(at)
    }

    /// Gives back what is kept as given and was not. Where that fails the numbers are lost, and nothing else.
    pub(crate) fn give_back(&self, store: &Arc<Store>) {
        for (state, reached) in &self.0.lock().reached {
            let mut reached = reached.lock();
            let there = || store.snapshot();
            if reached.ahead > 0
                && table::has_sequence_position(&there(), *state)
                && table::keep_sequence_position(store, *state, reached.at).is_ok()
            {
                reached.ahead = 0;
            }
        }
    }
}

/// What a session has got of sequences.
#[derive(Debug, Default)]
pub(crate) struct SessionNumbers(Mutex<Got>);

#[derive(Debug, Default)]
struct Got {
    /// The last number, by the number of the sequence.
    last: HashMap<u64, i64>,
    /// The sequence that gave the last of all.
    newest: Option<u64>,
}

impl SessionNumbers {
    /// The session has got this number by `nextval`.
    pub(crate) fn got(&self, sequence: u64, value: i64) {
        let mut got = self.0.lock();
        got.last.insert(sequence, value);
        got.newest = Some(sequence);
    }

    /// The session has set a sequence to this number as given.
    pub(crate) fn set(&self, sequence: u64, value: i64) {
        self.0.lock().last.insert(sequence, value);
    }

    /// The last number of a sequence.
    pub(crate) fn of(&self, sequence: u64) -> Option<i64> {
        self.0.lock().last.get(&sequence).copied()
    }

    /// The sequence that gave the last number.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.0.lock().newest
    }
}
