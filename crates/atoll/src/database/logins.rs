//! The roles of a database, for whoever lets clients in.

use std::sync::Arc;

/// The roles that there were at a moment: who may log in, and what is kept of their passwords.
#[derive(Clone, Debug)]
pub struct Logins(pub(crate) Arc<table::Tables>);

impl Logins {
    /// Whether any role was created. If none was, everybody who is let in may do everything.
    pub fn has_roles(&self) -> bool {
        self.0.has_roles()
    }

    /// Whether the role of this name may log in; none if there is none.
    pub fn may_log_in(&self, name: &str) -> Option<bool> {
        self.0.role(name).map(|role| role.login)
    }

    /// The number of the role of this name, if there is one: a role that is dropped and created again has another.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.0.role(name).map(|role| role.number)
    }

    /// Whether the role of this name may do everything.
    pub fn is_superuser(&self, name: &str) -> bool {
        self.0.role(name).is_some_and(|role| role.superuser)
    }

    /// What the sessions of a user begin with: settings and their values, as `alter role ... set` has given them to its role.
    pub fn settings(&self, name: &str) -> Vec<(String, String)> {
        let all = self
            .0
            .role(name)
            .into_iter()
            .flat_map(|role| &role.settings);
        all.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Most sessions that a user may have at a time, if its role has a limit: `alter role ... connection limit`.
    pub fn connections(&self, name: &str) -> Option<usize> {
        let most = self.0.role(name)?.connections?;
        Some(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// What is kept of the password of a role, `SCRAM-SHA-256$...`, if it has one.
    pub fn verifier(&self, name: &str) -> Option<&str> {
        self.0.role(name)?.verifier.as_deref()
    }
}
