//! Who is let in: the users of a file, and the roles of the database that may log in.

use atoll::{Database, Logins};
use scram::Verifier;

use crate::errors;
use crate::security::users::Users;
use crate::wire::backend::Report;

/// Whom the server lets in.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Of the file that the options name.
    users: Option<Users>,
    /// Whether whoever connects is let in as long as the database has no roles.
    open: bool,
    /// From which the verifiers of users are made who do not exist.
    secret: [u8; 32],
}

impl Admission {
    /// That of a server that begins to serve `database`.
    ///
    /// # Errors
    /// If the system gives no random numbers, or the catalog cannot be read.
    pub(crate) fn new(database: &Database, users: Option<Users>) -> Result<Admission, String> {
        let mut secret = [0; 32];
        scram::fill(&mut secret)?;
        let logins = database.logins().map_err(|e| e.to_string())?;
        Ok(Admission {
            open: users.is_none() && !logins.has_roles(),
            users,
            secret,
        })
    }

    /// Whether clients must show that they know a password.
    ///
    /// # Errors
    /// If the catalog cannot be read.
    pub(crate) fn asks(&self, database: &Database) -> Result<bool, Report> {
        Ok(!self.open || logins(database)?.has_roles())
    }

    /// The verifier of a user: of the file, or else of the database. Of one who does not exist it is that of no password.
    ///
    /// # Errors
    /// As [`asks`](Admission::asks).
    pub(crate) fn verifier(&self, database: &Database, name: &str) -> Result<Verifier, Report> {
        let of_file = self.users.as_ref().and_then(|users| users.get(name));
        if let Some(verifier) = of_file {
            return Ok(verifier.clone());
        }
        let kept = logins(database)?.verifier(name).and_then(Verifier::read);
        Ok(kept.unwrap_or_else(|| Verifier::of_nobody(&self.secret, name)))
    }

    /// That a user whose password was right, or is not asked for, may be here.
    ///
    /// # Errors
    /// If the database has roles, and none of this name that may log in.
    pub(crate) fn check(&self, database: &Database, name: &str) -> Result<(), Report> {
        let logins = logins(database)?;
        if !logins.has_roles() || logins.may_log_in(name) == Some(true) {
            return Ok(());
        }
        let message = match logins.may_log_in(name) {
            None => format!("role \"{name}\" does not exist"),
            Some(_) => format!("role \"{name}\" is not permitted to log in"),
        };
        Err(Report::fatal("28000", message))
    }

    /// Whether `password` is that of the user of this name, who may be here. How long it takes does not tell whether
    /// there is one.
    ///
    /// # Errors
    /// If it is not; those of [`check`](Admission::check).
    pub(crate) fn admit(
        &self,
        database: &Database,
        name: &str,
        password: &str,
    ) -> Result<(), Report> {
        if !self.verifier(database, name)?.fits(password) {
            let message = format!("password authentication failed for user \"{name}\"");
            return Err(Report::fatal(errors::NOT_LET_IN, message));
        }
        self.check(database, name)
    }
}

fn logins(database: &Database) -> Result<Logins, Report> {
    database
        .logins()
        .map_err(|e| Report::fatal(errors::INTERNAL, e.to_string()))
}
