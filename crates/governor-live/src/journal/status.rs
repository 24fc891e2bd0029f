//! The state of running governors, for programs that display it.

use std::fs;
use std::path::{Path, PathBuf};

use governor::{Decision, Spent};
use serde::{Deserialize, Serialize};

use crate::journal::folders;
use crate::system::proc::{self, Identity};

/// The latest state of a running governor.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Status {
    /// The governor's number.
    pub governor: u32,
    /// When it started, in clock ticks since the machine booted.
    pub start: u64,
    /// Seconds between two decisions.
    pub period: f64,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// The state of each target.
    pub targets: Vec<Standing>,
}

/// The latest state of a target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Standing {
    /// The target.
    pub target: String,
    /// The way in which it is given its cpus.
    pub actuator: String,
    /// How many processes there are.
    pub processes: usize,
    /// How many decisions were made.
    pub decisions: u64,
    /// The last decision.
    pub last: Option<Decision>,
    /// The last decisions that changed something, as text; the newest is last.
    pub changes: Vec<String>,
    /// Its use of cores and energy up to then.
    #[serde(default)]
    pub spent: Option<Spent>,
}

/// The state of the governors that run: those of this folder, or all that this user may know of.
pub fn statuses(folder: Option<&Path>) -> Vec<Status> {
    let own = folder.map_or_else(folders::own, Path::to_owned);
    let read = |path: PathBuf| fs::read(path).ok();
    let texts = folders::files(&own, "now").into_iter().filter_map(read);
    let status = |text: Vec<u8>| serde_json::from_slice::<Status>(&text).ok();
    let mut found: Vec<Status> = texts.filter_map(status).collect();
    if folder.is_none() {
        for (user, text) in folders::foreign(&own, "now") {
            let claimed = status(text);
            found.extend(claimed.filter(|s| proc::user_of(s.governor) == Some(user)));
        }
    }
    found.retain(|status| {
        let now = Identity::of(status.governor);
        now.is_some_and(|now| now.start == status.start)
    });
    found.sort_by_key(|status| status.governor);
    found
}
