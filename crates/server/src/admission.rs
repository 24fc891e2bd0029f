//! Who is let in: the users of a file, and the roles of the database that may log in.

use atoll::{Database, Logins};
use scram::Verifier;

use crate::errors;
use crate::security::identity::Identity;
use crate::security::users::Users;
use crate::wire::backend::Report;

/// Somebody who has still to show who they are.
pub(crate) struct Stranger {
    /// By what they show it.
    pub verifier: Verifier,
    /// Who they are then.
    pub identity: Identity,
}

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
    /// If the catalog cannot be read.
    pub(crate) fn new(database: &Database, users: Option<Users>) -> Result<Admission, String> {
        let secret = scram::secret_of(&database.secret());
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

    /// Somebody who calls themselves `name`, and by what they show that they are: the verifier of the file, or else of the
    /// database. Of one who does not exist it is that of no password.
    ///
    /// # Errors
    /// As [`asks`](Admission::asks).
    pub(crate) fn stranger(&self, database: &Database, name: &str) -> Result<Stranger, Report> {
        let logins = logins(database)?;
        let known = self.known(&logins, name);
        let verifier = known.as_deref().and_then(Verifier::read);
        Ok(Stranger {
            verifier: verifier.unwrap_or_else(|| Verifier::of_nobody(&self.secret, name)),
            identity: Identity {
                user: name.to_owned(),
                role: logins.number(name),
                verifier: known,
            },
        })
    }

    /// What is kept of the password of a user, if there is such a user.
    fn known(&self, logins: &Logins, name: &str) -> Option<String> {
        let of_file = self.users.as_ref().and_then(|users| users.get(name));
        match of_file {
            Some(verifier) => Some(verifier.text()),
            None => logins.verifier(name).map(str::to_owned),
        }
    }

    /// That somebody whose password was right, or is not asked for, may be here.
    ///
    /// # Errors
    /// If the database has roles, and none of this name that may log in, or another than they were let in as.
    pub(crate) fn check(&self, database: &Database, identity: &Identity) -> Result<(), Report> {
        let logins = logins(database)?;
        let name = &identity.user;
        let same = logins.number(name) == identity.role;
        if !logins.has_roles() || same && logins.may_log_in(name) == Some(true) {
            return Ok(());
        }
        let message = match logins.may_log_in(name) {
            None => format!("role \"{name}\" does not exist"),
            Some(true) => format!("role \"{name}\" is another by now: log in again"),
            Some(false) => format!("role \"{name}\" is not permitted to log in"),
        };
        Err(Report::fatal("28000", message))
    }

    /// The same of somebody who showed it some time ago, by the password that they had then.
    ///
    /// # Errors
    /// Those of [`check`](Admission::check); if there is another password.
    pub(crate) fn check_again(
        &self,
        database: &Database,
        identity: &Identity,
    ) -> Result<(), Report> {
        let known = self.known(&logins(database)?, &identity.user);
        if known != identity.verifier {
            let message = format!(
                "the password of \"{}\" is another by now: log in again",
                identity.user
            );
            return Err(Report::fatal(errors::NOT_LET_IN, message));
        }
        self.check(database, identity)
    }

    /// The user of this name, who may be here, if `password` is theirs. How long it takes does not tell whether there is
    /// one.
    ///
    /// # Errors
    /// If it is not; those of [`check`](Admission::check).
    pub(crate) fn admit(
        &self,
        database: &Database,
        name: &str,
        password: &str,
    ) -> Result<Identity, Report> {
        let stranger = self.stranger(database, name)?;
        if !stranger.verifier.fits(password) {
            let message = format!("password authentication failed for user \"{name}\"");
            return Err(Report::fatal(errors::NOT_LET_IN, message));
        }
        self.check(database, &stranger.identity)?;
        Ok(stranger.identity)
    }
}

fn logins(database: &Database) -> Result<Logins, Report> {
    database
        .logins()
        .map_err(|e| Report::fatal(errors::INTERNAL, e.to_string()))
}
