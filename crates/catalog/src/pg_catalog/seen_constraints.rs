//! The constraints that `information_schema` tells of to whoever asks.

use table::Privileges;

use crate::pg_catalog::constraints::{TableConstraint, constraints};
use crate::pg_catalog::seen::Seen;

impl Seen<'_> {
    /// Whether something may be done with a table but reading it.
    fn changes(&self, name: &str) -> bool {
        let others = Privileges::ALL.iter();
        let mut others = others.filter(|(one, ..)| *one != Privileges::SELECT);
        self.has(name)
            && (self.rights.owns(self.tables, name)
                || others.any(|(one, ..)| self.rights.has(self.tables, name, *one)))
    }

    /// The constraints of domains, and of tables of which columns are told.
    pub(crate) fn constraints(&self) -> Vec<TableConstraint> {
        self.constraints_of(|name| self.has(name))
    }

    /// The same of tables that may be changed.
    pub(crate) fn constraints_of_changed(&self) -> Vec<TableConstraint> {
        self.constraints_of(|name| self.changes(name))
    }

    /// The same of tables that belong to whoever asks.
    pub(crate) fn constraints_of_owned(&self) -> Vec<TableConstraint> {
        self.constraints_of(|name| self.has(name) && self.rights.owns(self.tables, name))
    }

    fn constraints_of(&self, told: impl Fn(&str) -> bool) -> Vec<TableConstraint> {
        let mut keys = constraints(self.tables);
        keys.retain(|key| key.is_of_domain() || told(&key.of));
        keys
    }
}
