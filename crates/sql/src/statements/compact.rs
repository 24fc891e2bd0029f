//! Moving what is left of blocks of which most rows were deleted.
//!
//! Deleted and replaced rows are marked, and read over until their block has no others. Where few are left in a block, these are
//! written anew, behind the others, and the block goes: scans read no pages for rows that are gone, and zones become as narrow as
//! the rows are. The rows get other ids by that, so it is done by statements that are transactions of their own.

use std::sync::Arc;

use futures::stream::{self, TryStreamExt};
use parking_lot::Mutex;
use roaring::RoaringTreemap;
use store::Transaction;
use table::{BLOCK_ROWS, Table};

use crate::error::Result;
use crate::functions::present;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::statements::references;
use crate::statements::remove::remove_rows;
use crate::statements::scope::Scope;
use crate::statements::write::Writing;

/// A statement that deletes or replaces rows moves what is left of blocks that have no more left than this: at most a third of what
/// was deleted of them.
const LEFT: f64 = 0.25;

/// The same of `vacuum`.
const VACUUMED: f64 = 0.75;

/// A statement of fewer rows looks at the blocks as they were before it: to read the catalog again would take longer than the rest.
const MANY: u64 = 4_096;

/// Moves what is left of thin blocks of a table of which a statement has deleted or replaced `count` rows, and not many more rows than
/// these. Within a transaction of several statements nothing is done, as these may know rows by their ids.
///
/// # Errors
/// Those of the table and the store. Nothing may be committed then.
pub(crate) async fn after(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: Writing,
    table: &Table,
    count: u64,
) -> Result<Writing> {
    let is_likely = count >= MANY || count > 0 && !table.thin_blocks(LEFT).is_empty();
    if !scope.is_alone() || !is_likely {
        return Ok(writing);
    }
    let most = count as usize + BLOCK_ROWS;
    let name = &table.definition().name;
    Ok(compact(context, writing, name, (LEFT, most)).await?.0)
}

/// Moves what is left of the thin blocks of a table for `vacuum`; says how many rows that are.
///
/// # Errors
/// As [`after`].
pub(crate) async fn vacuum(
    context: &StatementContext,
    writing: Writing,
    name: &str,
) -> Result<(Writing, u64)> {
    compact(context, writing, name, (VACUUMED, usize::MAX)).await
}

/// Whether [`vacuum`] finds something to do.
pub(crate) fn is_thin(table: &Table) -> bool {
    !table.thin_blocks(VACUUMED).is_empty()
}

/// Moves what is left of blocks with at most the share `left` of their rows, up to about `most` rows.
async fn compact(
    context: &StatementContext,
    writing: Writing,
    name: &str,
    (left, most): (f64, usize),
) -> Result<(Writing, u64)> {
    let tables = references::written(context, &writing)?;
    let Some(table) = tables.get(name) else {
        return Ok((writing, 0));
    };
    let thin = table.thin_blocks(left);
    if thin.is_empty() {
        return Ok((writing, 0));
    }
    let gone = Arc::new(Mutex::new(RoaringTreemap::new()));
    let columns: Arc<[usize]> = (0..table.definition().columns.len()).collect();
    let blocks = stream::iter(thin.into_iter().map(Ok));
    let rows = blocks.try_filter_map(|place| {
        let (table, columns, gone) = (Arc::clone(table), Arc::clone(&columns), Arc::clone(&gone));
        async move {
            present::check()?;
            if gone.lock().len() as usize >= most {
                return Ok(None);
            }
            let ids = table.rows_left(place);
            let rows = table.fetch(&columns, &ids).await?;
            gone.lock().extend(ids);
            Ok(Some(rows))
        }
    });
    let remove = |tx: &mut Transaction| remove_rows(gone.lock().iter(), tx, name).map(drop);
    let width = context.instance.workers().width();
    // They passed all checks when they were written first.
    let none = Checks::default();
    let moved = writing.replace(table.definition(), &none, Box::pin(rows), width, remove);
    moved.await
}
