//! Which constraints a transaction looks at when it ends.

use std::collections::HashMap;

use table::{Deferral, Rule};

/// What `set constraints` has said in a transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deferrals {
    /// Of all constraints.
    all: Option<bool>,
    /// Of single ones, by table and name, since then.
    named: HashMap<(String, String), bool>,
}

impl Deferrals {
    /// Whether a foreign key of `table` is looked at only when the transaction ends.
    pub(crate) fn defers(&self, table: &str, rule: &Rule) -> bool {
        if rule.deferral == Deferral::Never {
            return false;
        }
        let named = self.named.get(&(table.to_owned(), rule.name.clone()));
        let said = named.copied().or(self.all);
        said.unwrap_or(rule.deferral == Deferral::Deferred)
    }

    /// Takes in `set constraints all`.
    pub(crate) fn set_all(&mut self, deferred: bool) {
        self.named.clear();
        self.all = Some(deferred);
    }

    /// Takes in `set constraints` of one.
    pub(crate) fn set(&mut self, table: &str, name: &str, deferred: bool) {
        let own = (table.to_owned(), name.to_owned());
        self.named.insert(own, deferred);
    }
}

#[cfg(test)]
mod tests {
    use table::Action;

    use super::*;

    #[test]
    fn the_last_word_counts() {
        let rule = |deferral| Rule {
            foreign_key: 0,
            name: "r".to_owned(),
            on_delete: Action::NoAction,
            on_update: Action::NoAction,
            delete_columns: vec![],
            full: false,
            deferral,
            unchecked: false,
        };
        let [never, immediate, deferred] =
            [Deferral::Never, Deferral::Immediate, Deferral::Deferred].map(rule);
        let mut own = Deferrals::default();
        assert!(!own.defers("t", &immediate) && own.defers("t", &deferred));
        own.set_all(true);
        assert!(own.defers("t", &immediate) && !own.defers("t", &never));
        own.set("t", "r", false);
        assert!(!own.defers("t", &deferred) && own.defers("u", &deferred));
        own.set_all(true);
        assert!(own.defers("t", &deferred));
    }
}
