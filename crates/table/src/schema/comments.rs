//! What people have said about a table, a view or a sequence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Comments on one table, view or sequence and its columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comments {
    /// On the whole.
    pub own: Option<String>,
    /// On columns, by name.
    pub columns: BTreeMap<String, String>,
    /// On keys that hold, by name.
    pub keys: BTreeMap<String, String>,
}

impl Comments {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.own.is_none() && self.columns.is_empty() && self.keys.is_empty()
    }
}
