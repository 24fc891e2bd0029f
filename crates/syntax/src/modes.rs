//! What transactions are: whether they only read, how far they are from each other, whether they wait.

use messages::{Error, Result};

use crate::names::session_of;

/// How far transactions are from each other, as they are asked for. All but [`Isolation::Serializable`] are snapshot
/// isolation, which is more than those below [`Isolation::RepeatableRead`] ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// `read uncommitted`.
    ReadUncommitted,
    /// `read committed`.
    ReadCommitted,
    /// `repeatable read`.
    #[default]
    RepeatableRead,
    /// `serializable`.
    Serializable,
}

impl Isolation {
    /// Each with its name.
    const ALL: [(Isolation, &'static str); 4] = [
        (Isolation::ReadUncommitted, "read uncommitted"),
        (Isolation::ReadCommitted, "read committed"),
        (Isolation::RepeatableRead, "repeatable read"),
        (Isolation::Serializable, "serializable"),
    ];

    /// Its name, as `show transaction_isolation` writes it.
    pub fn name(self) -> &'static str {
        let mut all = Isolation::ALL.iter();
        all.find(|(own, _)| *own == self)
            .map_or("", |(_, name)| name)
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Isolation> {
        let mut all = Isolation::ALL.iter();
        all.find(|(_, own)| own.eq_ignore_ascii_case(name))
            .map(|(own, _)| *own)
    }
}

/// What a transaction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// It writes nothing but temporary tables.
    pub read_only: bool,
    /// A serializable one that writes takes the turn before it reads, so that nothing changes under what it has read.
    pub isolation: Isolation,
    /// It may wait before it reads, which none has to here.
    pub deferrable: bool,
}

impl Modes {
    /// Whether it takes the turn to write before it reads.
    pub fn takes_turn(self) -> bool {
        self.isolation == Isolation::Serializable && !self.read_only
    }

    /// That a statement that is called `what` may change these tables: what is read only changes those of the session
    /// alone.
    ///
    /// # Errors
    /// If it may not.
    pub fn permit(self, what: &str, names: &[&str]) -> Result<()> {
        let of_session = |name: &&str| session_of(name).is_some();
        if !self.read_only || !names.is_empty() && names.iter().all(of_session) {
            return Ok(());
        }
        Err(Error::Transaction {
            code: "25006",
            message: format!("cannot execute {what} in a read-only transaction"),
        })
    }

    /// The same with what is asked.
    pub fn with(self, asked: Asked) -> Modes {
        Modes {
            read_only: asked.read_only.unwrap_or(self.read_only),
            isolation: asked.isolation.unwrap_or(self.isolation),
            deferrable: asked.deferrable.unwrap_or(self.deferrable),
        }
    }
}

/// What a statement says of a transaction; of what is none it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `read only`, or `read write`.
    pub read_only: Option<bool>,
    /// `isolation level`.
    pub isolation: Option<Isolation>,
    /// `deferrable`, or not.
    pub deferrable: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        for (level, name) in Isolation::ALL {
            assert_eq!((level.name(), Isolation::named(name)), (name, Some(level)));
        }
        assert_eq!(
            Isolation::named("READ COMMITTED"),
            Some(Isolation::ReadCommitted)
        );
        assert_eq!(Isolation::named("chaos"), None);
    }
}
