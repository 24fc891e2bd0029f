//! That the rows that a table has refer to rows that are there: where a foreign key is added, and where programs have written
//! rows themselves.

use std::sync::Arc;

use memory::Traffic;
use store::Snapshot;
use table::{BATCH_ROWS, Definition, Rule, Scan, Table, Tables};
use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::run::instance::Instance;
use crate::statements::references::{Children, Referring};
use crate::statements::referred::{missing, mixed};

/// That all rows of `own` refer to rows of `tables` by the foreign keys of `definition`.
///
/// # Errors
/// [`Error::Constraint`] names the key that is missing; those of reading.
pub(crate) async fn all_refer(
    own: &Arc<Table>,
    definition: &Definition,
    tables: &Tables,
) -> Result<()> {
    for rule in &definition.rules {
        refer(own, (definition, rule), tables).await?;
    }
    Ok(())
}

/// The same by one of the foreign keys.
async fn refer(
    own: &Arc<Table>,
    (definition, rule): (&Definition, &Rule),
    tables: &Tables,
) -> Result<()> {
    let mut referring = Referring::new(definition, rule);
    let columns = referring.foreign.columns.clone();
    let scan = Scan::new(Arc::clone(own), columns, false);
    let pool = own.snapshot().pool().clone();
    let traffic = Traffic::new(pool.nodes());
    for (_, morsel) in scan.morsels() {
        let opened = scan.open(&pool, morsel, &[], &traffic, || 0).await?;
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(BATCH_ROWS)? {
            referring.take(&batch)?;
        }
    }
    let children = Children::of(definition, referring);
    match children.missing(tables).await?.first() {
        None => Ok(()),
        Some(first) if first.mixed => Err(mixed(definition, rule)),
        Some(first) => Err(missing(definition, rule, &first.values, 0)),
    }
}

impl Instance {
    /// That all rows of the table `name` refer to rows that are there, by its foreign keys that hold: for programs that
    /// write rows themselves, before they commit. `view` is what their transaction has reached. The workers look at several
    /// foreign keys at a time.
    ///
    /// # Errors
    /// [`Error::Constraint`] names the key that is missing; those of reading.
    pub async fn check_references(&self, view: &Snapshot, name: &str) -> Result<()> {
        let tables = self.catalog.fork().tables(view)?;
        let Some(own) = tables.get(name) else {
            return Ok(());
        };
        let mut looks = JoinSet::new();
        for (at, rule) in own.definition().rules.iter().cloned().enumerate() {
            let (own, tables) = (Arc::clone(own), Arc::clone(&tables));
            let look = async move {
                let found = refer(&own, (own.definition(), &rule), &tables).await;
                (at, found)
            };
            looks.spawn_on(look, self.workers().handle());
        }
        // The first foreign key that does not hold is named, whichever is looked at first.
        let mut failed = None;
        while let Some(look) = looks.join_next().await {
            let (at, found) = look.map_err(Error::of_task)?;
            if let Err(error) = found
                && failed.as_ref().is_none_or(|(first, _)| at < *first)
            {
                failed = Some((at, error));
            }
        }
        failed.map_or(Ok(()), |(_, error)| Err(error))
    }
}
