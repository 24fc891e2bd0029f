//! Who was let in.

/// Who was let in: a name, and what it stood for at that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub user: String,
    /// The number of the role of that name; none if there was none. A role that is dropped and created again has another.
    pub role: Option<u64>,
    /// What was kept of the password.
    pub verifier: Option<String>,
}

impl Identity {
    /// Whether both are the same user, who may have got another password meanwhile.
    pub(crate) fn is(&self, other: &Identity) -> bool {
        self.user == other.user && self.role == other.role
    }

    /// Whoever calls themselves so where nobody is asked for a password.
    pub(crate) fn unasked(user: impl Into<String>) -> Identity {
        Identity {
            user: user.into(),
            role: None,
            verifier: None,
        }
    }
}
