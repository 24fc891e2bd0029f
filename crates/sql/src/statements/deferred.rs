//! Foreign keys that are looked at when a transaction ends.
//!
//! A statement notes the keys that are not as they should be ([`Pending`]): those that rows refer to and that are not
//! there, and those that went although rows refer to them. When the transaction ends, or `set constraints` says so, it is
//! looked whether rows still refer to what is still not there.

use arrow::array::{Array, ArrayRef, UInt32Array};
use table::{BATCH_ROWS, Definition, ForeignKey, Rule, Scan, Table, Tables};

use crate::error::Result;
use crate::statements::referred::{
    in_order, missing, mixed, parent, picked, referenced, referring,
};

/// Keys of one foreign key that a statement has left in disorder.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// The table whose rows refer.
    pub child: String,
    /// The name of the foreign key.
    pub rule: String,
    /// The keys, in the order of the foreign key's columns.
    pub values: Vec<ArrayRef>,
    /// Whether a row may have a part of a key that is to be there whole or not at all.
    pub mixed: bool,
    /// The table whose rows went or changed; none if rows of `child` were written.
    pub parent: Option<String>,
}

impl Pending {
    /// Whether it is about this table.
    pub(crate) fn is_of(&self, table: &str) -> bool {
        self.child == table || self.parent.as_deref() == Some(table)
    }
}

/// That no row of `tables` refers to one of the keys that are `pending` and not there.
///
/// # Errors
/// [`Error::Constraint`](crate::error::Error::Constraint) names the first; those of reading.
pub(crate) async fn check(tables: &Tables, pending: &[Pending]) -> Result<()> {
    for own in pending {
        // What has been dropped since then refers to nothing.
        let Some(child) = tables.get(&own.child) else {
            continue;
        };
        let definition = child.definition();
        if let Some(rule) = definition.rules.iter().find(|rule| rule.name == own.rule) {
            check_one(tables, child, rule, own).await?;
        }
    }
    Ok(())
}

async fn check_one(
    tables: &Tables,
    child: &std::sync::Arc<Table>,
    rule: &Rule,
    own: &Pending,
) -> Result<()> {
    let definition = child.definition();
    let foreign = &definition.foreign_keys[rule.foreign_key];
    if own.mixed && has_mixed(child, foreign).await? {
        return Err(mixed(definition, rule));
    }
    if own.values.is_empty() {
        return Ok(());
    }
    let (target, key) = parent(tables, foreign, rule)?;
    let columns = in_order(target.definition(), key, foreign, &own.values)?;
    let gone = UInt32Array::from(target.lacking(key, &columns).await?);
    if gone.is_empty() {
        return Ok(());
    }
    let values = picked(&own.values, &gone)?;
    let (_, of) = referring(child, foreign, &values).await?;
    match (of.first(), &own.parent) {
        (None, _) => Ok(()),
        (Some(row), Some(from)) => Err(referenced(from, rule, definition, &values, *row as usize)),
        (Some(row), None) => Err(missing(definition, rule, &values, *row as usize)),
    }
}

/// Whether some row has NULLs in some columns of a foreign key, and in others not.
async fn has_mixed(child: &std::sync::Arc<Table>, foreign: &ForeignKey) -> Result<bool> {
    let scan = Scan::new(std::sync::Arc::clone(child), foreign.columns.clone(), false);
    let pool = child.snapshot().pool().clone();
    let traffic = memory::Traffic::new(pool.nodes());
    for (_, morsel) in scan.morsels() {
        let opened = scan.open(&pool, morsel, &[], &traffic, || 0).await?;
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(BATCH_ROWS)? {
            if any_mixed(batch.columns()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a row of these columns has NULLs in some and not in others.
pub(crate) fn any_mixed(columns: &[ArrayRef]) -> bool {
    let rows = columns.first().map_or(0, |column| column.len());
    if columns.len() < 2 || columns.iter().all(|column| column.null_count() == 0) {
        return false;
    }
    (0..rows).any(|row| {
        let nulls = columns.iter().filter(|column| column.is_null(row)).count();
        nulls > 0 && nulls < columns.len()
    })
}

/// The name of a foreign key of a table that a definition has.
pub(crate) fn rules<'d>(
    definition: &'d Definition,
    name: &'d str,
) -> impl Iterator<Item = &'d Rule> + 'd {
    definition
        .rules
        .iter()
        .filter(move |rule| rule.name == name)
}
