//! Making row indexes: beside a foreign key, which row of the parent each key names.
//!
//! An index is derived and can be dropped at any time. Its tag says of which state of the parent
//! it was made: the parent's space, and a counter that every change of the parent's rows raises.
//! As long as both match, a row id in the index names the row it was made for; once they do not,
//! the index is not used, until [`index_foreign_keys`] makes it anew.
//!
//! 1. The parent's keys are read into a [`Lookup`], before the writer's turn.
//! 2. The writer's turn: a parent that changed meanwhile is read again, now for good.
//! 3. Blocks without an index are looked up, encoded and written, by several threads.
//! 4. One commit replaces what was out of date. Blocks added later have no index until the next
//!    call, which makes only theirs.
//!
//! Where keys stand in order and without gaps (most generated ones), row id and key differ by a
//! constant: then that constant is the index, nothing is stored per block, and it holds for
//! blocks added later, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::Int64Array;
use store::{Store, Transaction};

use crate::block::Matrix;
use crate::catalog::{Catalog, Table, Tables};
use crate::encode;
use crate::error::{Error, Result};
use crate::index::{Layout, Tag, clear};
use crate::key;
use crate::load::write_matrix;
use crate::lookup::{Lookup, comparable, hold, keys};
use crate::write;

/// What [`index_foreign_keys`] did about one foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexReport {
    /// Position of the key in [`crate::Definition::foreign_keys`].
    pub key: usize,
    /// The table it refers to.
    pub parent: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was there, complete and up to date.
    Current,
    /// Row id and key differ by a constant, which is all that was written.
    Affine,
    /// Row ids were written.
    Blocks {
        /// Blocks that had no index of the parent's present rows.
        written: usize,
        /// Their rows whose key no row of the parent has; the index treats them as NULL.
        orphans: u64,
    },
    /// There can be no index; one that was there is gone.
    Refused {
        /// The reason, for people.
        why: String,
    },
}

/// Brings the row indexes of a table's foreign keys up to date: makes those that are missing or of
/// an earlier state of the parent, adds the blocks that came later, removes those that cannot be.
///
/// Uses `threads` threads besides the calling one, which waits for them; with fewer than 2, the
/// calling one does it all. What comes out does not depend on their number. Takes 8 to 80 bytes of
/// memory per row of the parents. Does not begin a transaction if there is nothing to do.
///
/// # Errors
/// [`Error::NoTable`]; those of reading pages and of the store. Then nothing has changed.
pub async fn index_foreign_keys(
    store: &Arc<Store>,
    catalog: &Catalog,
    name: &str,
    threads: usize,
) -> Result<Vec<IndexReport>> {
    let tables = catalog.tables(&store.snapshot())?;
    let first = plan_all(&tables, name, Vec::new()).await?;
    if first.iter().all(|plan| plan.is_idle()) {
        return Ok(first.iter().map(|plan| plan.report(0, 0)).collect());
    }
    drop(tables);
    let mut tx = store.begin()?;
    let tables = catalog.tables(tx.base())?;
    let plans = plan_all(&tables, name, first).await?;
    let child = find(&tables, name)?;
    let work: Vec<Piece<'_>> = plans.iter().flat_map(|plan| plan.pieces(child)).collect();
    let done = index_blocks(&tx, child, &work, threads).await?;
    let mut counts = vec![(0, 0); plans.len()];
    for plan in plans.iter().filter(|plan| plan.new_tag() != plan.tag) {
        plan.replace(&mut tx, child)?;
    }
    for ((key, _, block), (matrix, orphans)) in work.iter().zip(done) {
        let entry = key::index(*key, child.body.blocks[*block].key);
        tx.put(child.body.space, &entry, &write::encode(&matrix, name)?);
        counts[*key].0 += 1;
        counts[*key].1 += orphans;
    }
    if !plans.iter().all(|plan| plan.is_idle()) {
        write::raise_stamp(&mut tx, child.body.space);
        tx.commit()?;
    }
    let report = |(plan, (written, orphans)): (&Plan, _)| plan.report(written, orphans);
    Ok(plans.iter().zip(counts).map(report).collect())
}

/// What to do about one foreign key.
#[derive(Debug)]
struct Plan {
    key: usize,
    parent: String,
    /// Space of the child; space of the parent and version of its rows.
    source: (u32, u32, u64),
    /// The tag that is there.
    tag: Option<Tag>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Keep,
    Build(Lookup),
    Refuse(String),
}

impl Plan {
    /// Whether nothing is to be written.
    fn is_idle(&self) -> bool {
        match self.step {
            Step::Keep => true,
            Step::Refuse(_) => self.tag.is_none(),
            Step::Build(_) => false,
        }
    }

    fn new_tag(&self) -> Option<Tag> {
        let layout = match &self.step {
            Step::Keep => return self.tag,
            Step::Refuse(_) => return None,
            Step::Build(Lookup::Slots(..)) => Layout::Blocks,
            Step::Build(Lookup::Affine { offset, min, max }) => Layout::Affine {
                offset: *offset,
                min: *min,
                max: *max,
            },
        };
        let (_, parent, rows) = self.source;
        Some(Tag {
            parent,
            rows,
            layout,
        })
    }

    /// The blocks to be indexed.
    fn pieces<'p>(&'p self, child: &Table) -> Vec<Piece<'p>> {
        let Step::Build(lookup @ Lookup::Slots(..)) = &self.step else {
            return Vec::new();
        };
        let same = self.new_tag() == self.tag;
        let indexed = |block: usize| {
            let number = child.body.blocks[block].key;
            let found = &child.body.indexes[self.key].blocks;
            same && found.binary_search_by_key(&number, |m| m.key).is_ok()
        };
        let blocks = (0..child.blocks()).filter(|block| !indexed(*block));
        blocks.map(|block| (self.key, lookup, block)).collect()
    }

    /// Removes the index that is there, and puts the tag of the new one.
    fn replace(&self, tx: &mut Transaction, child: &Table) -> Result<()> {
        let (name, space) = (&child.definition().name, child.body.space);
        clear(tx, name, space, Some(self.key))?;
        if let Some(tag) = self.new_tag() {
            let entry = key::numbered(key::TAG, self.key as u32);
            tx.put(space, &entry, &write::encode(&tag, name)?);
        }
        Ok(())
    }

    fn report(&self, written: usize, orphans: u64) -> IndexReport {
        let outcome = match &self.step {
            Step::Keep => Outcome::Current,
            Step::Build(Lookup::Affine { .. }) => Outcome::Affine,
            Step::Build(_) => Outcome::Blocks { written, orphans },
            Step::Refuse(why) => Outcome::Refused { why: why.clone() },
        };
        IndexReport {
            key: self.key,
            parent: self.parent.clone(),
            outcome,
        }
    }
}

fn find<'t>(tables: &'t Tables, name: &str) -> Result<&'t Arc<Table>> {
    tables.get(name).ok_or_else(|| Error::NoTable {
        name: name.to_owned(),
    })
}

/// Plans for all foreign keys; what `before` found out is taken over where the parent did not
/// change since.
async fn plan_all(tables: &Tables, name: &str, before: Vec<Plan>) -> Result<Vec<Plan>> {
    let child = find(tables, name)?;
    let mut before = before.into_iter();
    let mut plans = Vec::new();
    for (key, foreign) in child.definition().foreign_keys.iter().enumerate() {
        let parent = find(tables, &foreign.parent)?;
        let source = (
            child.body.space,
            parent.body.space,
            parent.body.rows_version,
        );
        let step = match before.next() {
            _ if is_current(child, parent, key) => Step::Keep,
            Some(plan) if plan.source == source && !matches!(plan.step, Step::Keep) => plan.step,
            _ => lookup(child, parent, key).await?,
        };
        plans.push(Plan {
            key,
            parent: foreign.parent.clone(),
            source,
            tag: child.body.indexes[key].tag,
            step,
        });
    }
    Ok(plans)
}

fn is_current(child: &Table, parent: &Table, key: usize) -> bool {
    let index = child.row_index(parent, key);
    index.is_some_and(|index| (0..child.blocks()).all(|block| index.covers(block)))
}

async fn lookup(child: &Table, parent: &Arc<Table>, key: usize) -> Result<Step> {
    let foreign = &child.definition().foreign_keys[key];
    let mut columns = Vec::with_capacity(foreign.columns.len());
    for (column, name) in foreign.columns.iter().zip(&foreign.parent_columns) {
        let position = parent.definition().position(name)?;
        let from = &child.definition().columns[*column];
        let to = &parent.definition().columns[position];
        if !comparable(&from.data_type, &to.data_type) {
            return Ok(Step::Refuse(format!(
                "columns '{}' ({}) and '{}' ({}) are not whole numbers of one kind",
                from.name, from.data_type, to.name, to.data_type
            )));
        }
        columns.push(position);
    }
    Ok(match Lookup::of(parent, &columns).await? {
        Ok(lookup) => Step::Build(lookup),
        Err(why) => Step::Refuse(why),
    })
}

/// A foreign key's number, where its keys lead, and a block of the child.
type Piece<'l> = (usize, &'l Lookup, usize);

/// The index of each piece and its orphans, in the order of `work`.
async fn index_blocks(
    tx: &Transaction,
    child: &Table,
    work: &[Piece<'_>],
    threads: usize,
) -> Result<Vec<(Matrix, u64)>> {
    if threads < 2 || work.len() < 2 {
        let mut done = Vec::with_capacity(work.len());
        for piece in work {
            done.push(index_block(tx, child, *piece).await?);
        }
        return Ok(done);
    }
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let claim = || {
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let position = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = work.get(position) else {
                break;
            };
            let result = futures::executor::block_on(index_block(tx, child, *piece));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            done.push((position, result));
        }
        done
    };
    let mut done: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.min(work.len()))
            .map(|_| scope.spawn(claim))
            .collect();
        let join = threads.into_iter().flat_map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        join.collect()
    });
    done.sort_unstable_by_key(|(position, _)| *position);
    done.into_iter().map(|(_, result)| result).collect()
}

async fn index_block(
    tx: &Transaction,
    child: &Table,
    (foreign, lookup, block): Piece<'_>,
) -> Result<(Matrix, u64)> {
    let foreign = &child.definition().foreign_keys[foreign];
    let lanes = hold(child, block, &foreign.columns).await?;
    let keys = keys(&lanes, child, block, &mut |_, _| {})?;
    let mut ids: Vec<Option<i64>> = vec![None; keys.live.rows()];
    let mut orphans = 0;
    for row in keys.live.positions() {
        let id = lookup.find(&keys.values, row as usize);
        orphans += u64::from(id.is_none());
        ids[row as usize] = id.map(|id| id as i64);
    }
    let ids = Int64Array::from(ids);
    let bucket = child.block(block).bucket;
    let page_size = tx.base().pool().page_size();
    let matrix = write_matrix(tx, bucket, |sink| {
        encode::encode(&foreign.parent, &ids, None, page_size, sink)
    })?;
    Ok((matrix, orphans))
}
