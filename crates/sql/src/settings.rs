//! Settings that whoever serves a session keeps, as its statements see them.

use std::sync::Arc;

use parking_lot::Mutex;

/// A setting of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, as it is shown.
    pub name: String,
    /// What it is.
    pub value: String,
    /// What it is when it is reset.
    pub first: String,
    /// The type of its values, as `pg_settings` calls it: `bool`, `enum`, `integer`, `real` or `string`.
    pub kind: &'static str,
    /// Whether it cannot be changed.
    pub fixed: bool,
}

/// The settings of a session, which change.
#[derive(Debug, Default)]
pub(crate) struct SessionSettings(Mutex<Arc<[Setting]>>);

impl SessionSettings {
    pub(crate) fn set(&self, all: Vec<Setting>) {
        *self.0.lock() = all.into();
    }

    /// Those of a statement that begins now, which looks names up in this `path`.
    pub(crate) fn now(&self, path: String) -> StatementSettings {
        StatementSettings {
            all: Arc::clone(&self.0.lock()),
            path,
        }
    }
}

/// The settings of a statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatementSettings {
    all: Arc<[Setting]>,
    /// What `search_path` is, which the session keeps itself.
    path: String,
}

impl StatementSettings {
    /// All that there are.
    pub(crate) fn all(&self) -> impl Iterator<Item = Setting> + '_ {
        self.all.iter().map(|own| match own.name.as_str() {
            "search_path" => Setting {
                value: self.path.clone(),
                ..own.clone()
            },
            _ => own.clone(),
        })
    }

    /// What one is, whatever the case of its name.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case("search_path") {
            return Some(self.path.clone());
        }
        let mut all = self.all.iter();
        let found = all.find(|own| own.name.eq_ignore_ascii_case(name));
        found.map(|own| own.value.clone())
    }
}
