//! What an administrator lets a user have: what `alter role` says of the role.

use std::time::Duration;

use atoll::{Database, Session};

use crate::errors;
use crate::wire::backend::Report;

/// The setting of how long a statement may take.
pub(crate) const STATEMENT: &str = "statement_timeout";

/// The setting of how long a transaction may wait for its client.
pub(crate) const IDLE: &str = "idle_in_transaction_session_timeout";

/// What a user may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// What its sessions begin with, by the names of settings.
    pub settings: Vec<(String, String)>,
    /// Most sessions of it; none for as many as there is room for.
    pub connections: Option<usize>,
    /// Whether it may set itself more than that.
    pub superuser: bool,
}

impl Limits {
    /// Those of a user of the database; none are of one without a role.
    ///
    /// # Errors
    /// If the catalog cannot be read.
    pub(crate) fn of(database: &Database, user: &str) -> Result<Limits, Report> {
        let logins = database.logins();
        let logins = logins.map_err(|e| Report::error(errors::INTERNAL, e.to_string()))?;
        let superuser = logins.is_superuser(user);
        Ok(Limits {
            settings: logins.settings(user),
            // As in PostgreSQL: who repairs something gets in.
            connections: logins.connections(user).filter(|_| !superuser),
            superuser,
        })
    }

    /// What a setting is at first, if the role says so.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.settings.iter();
        let found = all.find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The longest time, in milliseconds, that the user may set itself for this setting; none if it may set any.
    pub(crate) fn most(&self, name: &str) -> Option<u64> {
        if self.superuser || !matches!(name, STATEMENT | IDLE) {
            return None;
        }
        let millis = self.get(name)?.parse().ok()?;
        (millis > 0).then_some(millis)
    }

    /// How long something may take: as long as was asked for, or else as the role says, or else `otherwise`; never longer
    /// than the user may. Zero stands for no limit.
    pub(crate) fn time(
        &self,
        name: &str,
        asked: Option<Duration>,
        otherwise: Option<Duration>,
    ) -> Option<Duration> {
        let own = self.get(name).and_then(|millis| millis.parse().ok());
        let own = own.map(Duration::from_millis);
        let wanted = asked.or(own).or(otherwise);
        let wanted = wanted.filter(|time| !time.is_zero());
        match self.most(name).map(Duration::from_millis) {
            Some(most) => Some(wanted.map_or(most, |wanted| wanted.min(most))),
            None => wanted,
        }
    }

    /// The session with the path that the role says.
    ///
    /// # Errors
    /// If it is none: those that were kept are.
    pub(crate) fn session(&self, session: Session) -> Result<Session, Report> {
        match self.get("search_path") {
            None => Ok(session),
            Some(path) => session
                .with_search_path(path)
                .map_err(|e| Report::error(errors::BAD_SETTING, e.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gives_themselves_more_time() {
        let second = Duration::from_secs(1);
        let mut limits = Limits {
            settings: vec![(STATEMENT.into(), "2000".into())],
            ..Limits::default()
        };
        let time = |limits: &Limits, asked| limits.time(STATEMENT, asked, Some(9 * second));
        assert_eq!(time(&limits, None), Some(2 * second));
        assert_eq!(time(&limits, Some(second)), Some(second));
        assert_eq!(time(&limits, Some(5 * second)), Some(2 * second));
        assert_eq!(time(&limits, Some(Duration::ZERO)), Some(2 * second));
        assert_eq!(limits.time(IDLE, None, Some(second)), Some(second));
        limits.superuser = true;
        assert_eq!(time(&limits, Some(5 * second)), Some(5 * second));
        assert_eq!(time(&limits, Some(Duration::ZERO)), None);
        assert_eq!(time(&limits, None), Some(2 * second));
        limits.superuser = false;
        limits.settings = vec![(STATEMENT.into(), "0".into())];
        assert_eq!(time(&limits, None), None);
        assert_eq!(time(&limits, Some(second)), Some(second));
    }
}
