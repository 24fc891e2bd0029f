//! What rows that are gathered refer to: see [`gathered`](crate::statements::gathered).

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use table::{Definition, ForeignKey, Key, KeySet, Rule, Table, Tables};

use crate::error::Result;
use crate::run::context::StatementContext;
use crate::statements::deferred::any_mixed;
use crate::statements::referred::{in_order, parent};

/// A foreign key of a table whose rows are gathered, and the table that it refers to as it is written.
#[derive(Debug)]
pub(super) struct Reference {
    rule: Rule,
    foreign: ForeignKey,
    parent: Arc<Table>,
    key: Key,
    /// Values that are known to be there.
    there: KeySet,
}

impl Reference {
    /// The foreign keys of a table, which refers to others. None if rows are to be looked at together: the index of a key is not
    /// up to date, or the transaction waits with a foreign key.
    pub(super) fn all(
        context: &StatementContext,
        tables: &Tables,
        definition: &Definition,
    ) -> Option<Vec<Reference>> {
        let deferrals = context.deferrals.as_ref();
        let rules = definition.rules.iter().map(|rule| {
            let foreign = &definition.foreign_keys[rule.foreign_key];
            let (parent, key) = parent(tables, foreign, rule).ok()?;
            let waits = deferrals.is_some_and(|said| said.defers(&definition.name, rule));
            (!waits && parent.has_index(key)).then(|| Reference {
                rule: rule.clone(),
                foreign: foreign.clone(),
                parent: Arc::clone(parent),
                key: key.clone(),
                there: KeySet::default(),
            })
        });
        rules.collect()
    }

    /// Whether it refers to this table.
    pub(super) fn is_to(&self, name: &str) -> bool {
        self.foreign.parent == name
    }

    /// Whether the only row of a batch refers to nothing, or to what is there.
    ///
    /// # Errors
    /// Those of reading the index.
    pub(super) async fn holds(&mut self, row: &RecordBatch) -> Result<bool> {
        let values = row.project(&self.foreign.columns)?.columns().to_vec();
        if values.iter().any(|value| value.is_null(0)) {
            return Ok(!(self.rule.full && any_mixed(&values)));
        }
        if self.there.take(&values)? == [Some(false)] {
            return Ok(true);
        }
        let wanted = in_order(self.parent.definition(), &self.key, &self.foreign, &values)?;
        let is_there = self.parent.find(&self.key, &wanted).await? != [None];
        if !is_there {
            // It was put among them.
            self.there = KeySet::default();
        }
        Ok(is_there)
    }

    /// About the bytes that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.there.bytes()
    }
}
