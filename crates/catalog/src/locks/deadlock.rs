//! Sessions that would wait for each other.

use std::collections::BTreeSet;

use messages::{Error, Result};

use crate::locks::State;

impl State {
    /// That a session which has begun to wait does not wait for itself by way of others.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it does.
    pub(super) fn check(&self, session: u64) -> Result<()> {
        let mut seen = BTreeSet::new();
        let mut open = self.waited_for(session);
        while let Some(next) = open.pop() {
            if next == session {
                return Err(Error::Conflict {
                    code: "40P01",
                    message: "deadlock detected".into(),
                });
            }
            if seen.insert(next) {
                open.extend(self.waited_for(next));
            }
        }
        Ok(())
    }

    /// The sessions that this one waits for.
    fn waited_for(&self, session: u64) -> Vec<u64> {
        let waits = self.waiting.iter();
        let waits = waits.filter(|(_, own)| own.session == session);
        let mut found: Vec<u64> = waits
            .flat_map(|(place, own)| self.blockers(session, own.wanted, *place))
            .collect();
        // Who waits for the turn waits for all who came before.
        let mut own = self.claims.iter();
        let own = own.rfind(|(_, claim)| claim.session == session && !claim.granted);
        if let Some((place, _)) = own {
            let before = self.claims.range(..place).map(|(_, claim)| claim.session);
            found.extend(before.filter(|before| *before != session));
        }
        found
    }
}
