//! The report of recovery: what opening a store found and did.

use std::fmt;

/// The report of recovery: how [`Store::open`](crate::Store::open) brought a store to its last commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Commits that were in the log only and were applied from there.
    pub replayed: u64,
    /// What was found in the log after the last of them, and was not applied.
    pub dropped: Option<Dropped>,
}

/// The end of a log that holds no valid record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// The version that its first record would have led to.
    pub version: u64,
    /// Where it starts in the log, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Why it was perhaps a commit that had been acknowledged; such a record is dropped only with
    /// [`Damage::Drop`](crate::Damage::Drop). `None`: a crash cut its write short, so it had not.
    pub damage: Option<String>,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dropped {
            version,
            offset,
            bytes,
            damage,
        } = self;
        let place = format!("offset {offset} of the log ({bytes} bytes)");
        match damage {
            None => write!(
                f,
                "the commit of version {version} was cut short before it was acknowledged, and is dropped; it was at {place}"
            ),
            Some(why) => write!(
                f,
                "the commits from version {version} on are given up, at {place}: {why}"
            ),
        }
    }
}
