//! What the sessions of a server do, as `pg_stat_activity` tells it.

use std::sync::OnceLock;

/// What a session does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The number by which it is cancelled.
    pub process: u32,
    /// Whose it is.
    pub user: String,
    /// What its client calls itself.
    pub application: String,
    /// Where its client is.
    pub address: String,
    /// The port there.
    pub port: Option<u16>,
    /// When it began, in microseconds since 1970, as all moments here.
    pub began: i64,
    /// When its last statement began.
    pub query_began: Option<i64>,
    /// When it began to do what it does.
    pub changed: i64,
    /// `active`, `idle`, `idle in transaction`, ...
    pub state: &'static str,
    /// Its last statement.
    pub query: String,
}

type Sessions = dyn Fn() -> Vec<Activity> + Send + Sync;

/// Who knows the sessions, if anybody serves any.
#[derive(Default)]
pub struct Observer(OnceLock<Box<Sessions>>);

impl Observer {
    /// Sets who knows them; only the first call has an effect.
    pub fn set(&self, sessions: Box<Sessions>) {
        let _ = self.0.set(sessions);
    }

    /// What they do now.
    pub fn look(&self) -> Vec<Activity> {
        self.0.get().map(|sessions| sessions()).unwrap_or_default()
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("who knows the sessions")
    }
}
