//! Roles, and what they may do with tables, views, sequences, arrays and schemas.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one may do with something: a set of privileges, as SQL names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Privileges(u16);

impl Privileges {
    /// To read rows.
    pub const SELECT: Privileges = Privileges(1);
    /// To add rows.
    pub const INSERT: Privileges = Privileges(2);
    /// To change rows; to set where a sequence is.
    pub const UPDATE: Privileges = Privileges(4);
    /// To remove rows.
    pub const DELETE: Privileges = Privileges(8);
    /// To remove all rows at once.
    pub const TRUNCATE: Privileges = Privileges(16);
    /// To declare a foreign key that refers to the table.
    pub const REFERENCES: Privileges = Privileges(32);
    /// To use what is in a schema; to ask a sequence.
    pub const USAGE: Privileges = Privileges(64);
    /// To make something in a schema; to make schemas.
    pub const CREATE: Privileges = Privileges(128);

    /// Each privilege with SQL's word for it and the letter by which PostgreSQL shows it, in the order in which those
    /// are shown.
    pub const ALL: [(Privileges, &'static str, char); 8] = [
        (Privileges::INSERT, "INSERT", 'a'),
        (Privileges::SELECT, "SELECT", 'r'),
        (Privileges::UPDATE, "UPDATE", 'w'),
        (Privileges::DELETE, "DELETE", 'd'),
        (Privileges::TRUNCATE, "TRUNCATE", 'D'),
        (Privileges::REFERENCES, "REFERENCES", 'x'),
        (Privileges::USAGE, "USAGE", 'U'),
        (Privileges::CREATE, "CREATE", 'C'),
    ];

    /// All that there is for a table, a view or an array.
    pub const OF_TABLE: Privileges = Privileges(63);
    /// All that there is for a sequence.
    pub const OF_SEQUENCE: Privileges = Privileges(1 | 4 | 64);
    /// All that there is for a schema.
    pub const OF_SCHEMA: Privileges = Privileges(64 | 128);
    /// All that there is for the database.
    pub const OF_DATABASE: Privileges = Privileges(128);

    /// These and `others`.
    pub fn and(self, others: Privileges) -> Privileges {
        Privileges(self.0 | others.0)
    }

    /// These without `others`.
    pub fn without(self, others: Privileges) -> Privileges {
        Privileges(self.0 & !others.0)
    }

    /// Those of these that are among `others`.
    pub fn within(self, others: Privileges) -> Privileges {
        Privileges(self.0 & others.0)
    }

    /// Whether all of `others` are among these.
    pub fn has(self, others: Privileges) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What a role has been granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What it may do.
    pub held: Privileges,
    /// What of that it may grant to others.
    pub grantable: Privileges,
}

/// Whom something belongs to, and what others may do with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acl {
    /// The role that may do everything with it; none: it belongs to whoever runs the program.
    pub owner: Option<String>,
    /// What roles have been granted, by their names; the empty name stands for all roles.
    pub grants: BTreeMap<String, Grant>,
}

impl Acl {
    /// What a role has been granted by its own name; the empty name stands for all roles.
    pub fn of(&self, role: &str) -> Grant {
        self.grants.get(role).copied().unwrap_or_default()
    }

    /// Grants privileges to a role, and the right to grant them further if `grantable`.
    pub fn grant(&mut self, role: &str, more: Privileges, grantable: bool) {
        let grant = self.grants.entry(role.to_owned()).or_default();
        grant.held = grant.held.and(more);
        if grantable {
            grant.grantable = grant.grantable.and(more);
        }
    }

    /// Takes privileges from a role, or only the right to grant them further.
    pub fn revoke(&mut self, role: &str, less: Privileges, only_granting: bool) {
        let Some(grant) = self.grants.get_mut(role) else {
            return;
        };
        grant.grantable = grant.grantable.without(less);
        if !only_granting {
            grant.held = grant.held.without(less);
        }
        if grant.held.is_empty() {
            self.grants.remove(role);
        }
    }

    /// Whether it says anything of a role: that it owns, or has been granted something.
    pub fn names(&self, role: &str) -> bool {
        self.owner.as_deref() == Some(role) || self.grants.contains_key(role)
    }
}

/// Somebody who may be given rights: a user, or a group of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Whether it may do everything.
    pub superuser: bool,
    /// Whether it may create, change and drop roles that are no superusers.
    pub create_role: bool,
    /// Whether it has the rights of the roles that it is a member of without asking for them.
    pub inherit: bool,
    /// Whether a client may connect as it.
    pub login: bool,
    /// What is kept of its password, from which that cannot be read: `SCRAM-SHA-256$...`.
    pub verifier: Option<String>,
    /// The roles that it is a member of, and whether it may make others members.
    pub member_of: BTreeMap<String, bool>,
    /// What the sessions of its user begin with, by the names of settings, as they are shown.
    #[serde(skip)]
    pub settings: BTreeMap<String, String>,
    /// Most sessions that its user may have at a time; none: as many as there is room for.
    #[serde(skip)]
    pub connections: Option<u32>,
    /// What tells it from any other that has had its name or will have it; 0 of roles of stores that did not number them.
    #[serde(skip)]
    pub number: u64,
}

impl Default for Role {
    fn default() -> Role {
        Role {
            superuser: false,
            create_role: false,
            inherit: true,
            login: false,
            verifier: None,
            member_of: BTreeMap::new(),
            settings: BTreeMap::new(),
            connections: None,
            number: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_taken_again() {
        let mut acl = Acl::default();
        let both = Privileges::SELECT.and(Privileges::INSERT);
        acl.grant("ann", both, true);
        acl.revoke("ann", Privileges::SELECT, true);
        assert_eq!(acl.of("ann").held, both);
        assert_eq!(acl.of("ann").grantable, Privileges::INSERT);
        acl.revoke("ann", Privileges::INSERT, false);
        assert!(!acl.of("ann").held.has(Privileges::INSERT));
        acl.revoke("ann", Privileges::OF_TABLE, false);
        acl.revoke("bob", Privileges::OF_TABLE, false);
        assert_eq!(acl, Acl::default());
    }

    #[test]
    fn all_privileges_are_of_something() {
        let all = Privileges::ALL
            .iter()
            .fold(Privileges::default(), |all, (one, _, _)| {
                assert!(!all.has(*one), "each is its own");
                all.and(*one)
            });
        let kinds = Privileges::OF_TABLE
            .and(Privileges::OF_SEQUENCE)
            .and(Privileges::OF_SCHEMA)
            .and(Privileges::OF_DATABASE);
        assert_eq!(all, kinds);
    }
}
