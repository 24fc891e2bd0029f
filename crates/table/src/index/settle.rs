//! Whether the keys of new blocks are new; and if they are, their place in the index.
//!
//! 1. A block with ascending keys gets a range, unless it overlaps another range or may have keys of a run.
//! 2. All others are hashed. Equal hashes, of two new rows or of a new and an old one, are looked at.
//! 3. Keys of hashed blocks and of the tail are searched in the ranges in which they lie.
//!
//! Keys of old runs are in no new range, by 1; keys of new ranges are not in one another.

use std::collections::BTreeMap;

use store::Transaction;

use crate::error::Result;
use crate::format::key;
use crate::format::row_id::RowId;
use crate::format::run::{Bounds, Run};
use crate::index::duplicate::duplicate;
use crate::index::find::Index;
use crate::index::gather::{Ascending, Gathered};
use crate::index::keys::Keys;
use crate::index::rows::RowKeys;
use crate::index::runs::{self, Entry, RunWriter};
use crate::index::stock::Stock;
use crate::index::{chunks, ranges};
use crate::schema::{Definition, Key};

/// Entries that are compared or merged at a time, about.
const AT_ONCE: u64 = 1 << 18;
/// Runs of about the same size that are left beside each other.
const LIKE: usize = 4;

/// A table in the catalog of a transaction.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub space: u32,
    pub definition: &'a Definition,
}

impl<'a> Place<'a> {
    fn named(&self) -> (&'a str, u32) {
        (&self.definition.name, self.space)
    }
}

/// Puts new blocks, whose records are in the catalog already, into the index of `key`.
///
/// # Errors
/// [`crate::Error::Duplicate`] if a key is not new; those of reading and writing pages. After an error the transaction
/// must be dropped.
pub(crate) async fn settle(
    tx: &mut Transaction,
    place: Place<'_>,
    key: &Key,
    mut new: Gathered,
) -> Result<()> {
    let old = {
        let view = tx.view();
        runs::all(&view, place.named(), key.number)?
    };
    let ranged = ranges_of(tx, place, key, &mut new, &old).await?;
    new.finish(tx)?;
    {
        let view = tx.view();
        let mut index = Index::new(Stock::new(&view, place.space, place.definition, None), key)?;
        compare(&mut index, place, &new.runs, &old).await?;
        search(&mut index, place, &new).await?;
        if let Some((least, greatest)) = ranged {
            search_tail(&mut index, (&least, &greatest)).await?;
        }
    }
    let next = old.last().map_or(0, |(number, _)| number + 1);
    for (number, run) in (next..).zip(&new.runs) {
        tx.put(place.space, &runs::entry(key.number, number), run.bytes());
    }
    merge(tx, place, key).await
}

/// Gives ranges to the blocks that can have them, and hashes the others. Returns the least and the greatest key of the
/// new ranges.
async fn ranges_of(
    tx: &mut Transaction,
    place: Place<'_>,
    key: &Key,
    new: &mut Gathered,
    old: &[(u32, Run)],
) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut ascending = std::mem::take(&mut new.ascending);
    ascending.sort_unstable_by(|a, b| a.least.cmp(&b.least));
    let (mut hashed, mut first) = (Vec::new(), None);
    let mut last: Option<Vec<u8>> = None;
    let view = tx.view();
    for Ascending {
        block,
        least,
        greatest,
    } in ascending
    {
        let behind = last.as_ref().is_none_or(|last| *last < least);
        let alone = behind
            && !old
                .iter()
                .any(|(_, run)| run.bounds.meets(&least, &greatest))
            && !ranges::overlaps(&view, place.named(), key.number, (&least, &greatest))?;
        if alone {
            ranges::put(tx, place.space, key.number, block, (&least, &greatest));
            first.get_or_insert(least);
            last = Some(greatest);
        } else {
            hashed.push(block);
        }
    }
    let mut stock = Stock::new(&view, place.space, place.definition, None);
    for block in hashed {
        let keys = stored(&mut stock, key, block).await?;
        new.take_hashed(tx, block, &keys)?;
    }
    Ok(first.zip(last))
}

/// The keys of a stored block.
///
/// # Errors
/// Those of reading pages.
pub(crate) async fn stored(stock: &mut Stock<'_>, key: &Key, block: u32) -> Result<Keys> {
    let mut keys = Keys::default();
    let Some(mut rows) = RowKeys::new(stock, &key.columns, block)? else {
        return Ok(keys);
    };
    let mut bytes = Vec::new();
    for row in 0..rows.rows() {
        let there = rows.key(row, &mut bytes).await?;
        keys.push(there.then_some(&bytes[..]));
    }
    Ok(keys)
}

/// A row with a hash: new, or old.
type Hashed = (u64, u64, bool);

/// That no new row has the key of another that is hashed.
async fn compare(
    index: &mut Index<'_>,
    place: Place<'_>,
    new: &[Run],
    old: &[(u32, Run)],
) -> Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    let meets = |run: &Run| new.iter().any(|other| other.bounds.meet(&run.bounds));
    let old: Vec<&Run> = old
        .iter()
        .map(|(_, run)| run)
        .filter(|run| meets(run))
        .collect();
    let mut tail: Vec<Hashed> = Vec::new();
    for (chunk, bytes) in index.chunks() {
        let row = |row| RowId::Tail { key: *chunk, row };
        tail.extend(chunks::entries(bytes).map(|(hash, at)| (hash, row(at).number(), false)));
    }
    tail.sort_unstable();
    let total: u64 = new
        .iter()
        .chain(old.iter().copied())
        .map(|run| run.entries)
        .sum();
    let (mut entries, mut all) = (Vec::new(), Vec::new());
    for hashes in slices(total) {
        all.clear();
        let runs = new.iter().map(|run| (run, true));
        for (run, is_new) in runs.chain(old.iter().map(|run| (*run, false))) {
            entries.clear();
            let pool = index.stock.pool();
            runs::read(
                run,
                pool,
                &place.definition.name,
                hashes.clone(),
                &mut entries,
            )
            .await?;
            all.extend(entries.iter().map(|e| (e.hash, row_of(e).number(), is_new)));
        }
        let from = tail.partition_point(|(hash, ..)| hash < hashes.start());
        let to = tail.partition_point(|(hash, ..)| hash <= hashes.end());
        all.extend_from_slice(&tail[from..to]);
        all.sort_unstable();
        for group in all
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|group| group.len() > 1)
        {
            equal(index, place, group).await?;
        }
    }
    Ok(())
}

/// That no two rows of a group, of which one is new, have the same key.
async fn equal(index: &mut Index<'_>, place: Place<'_>, group: &[Hashed]) -> Result<()> {
    if !group.iter().any(|(.., new)| *new) {
        return Ok(());
    }
    // A row may be there twice: as new, and in what is left of a block that had the same number.
    let mut keys: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for (_, row, _) in group {
        let Some(key) = index.key_of(RowId::of(*row)).await? else {
            continue;
        };
        match keys.get(&key) {
            Some(other) if other != row => {
                return Err(duplicate(place.definition, index.key, &key));
            }
            _ => keys.insert(key, *row),
        };
    }
    Ok(())
}

/// That no range has a key of a new block that is hashed.
async fn search(index: &mut Index<'_>, place: Place<'_>, new: &Gathered) -> Result<()> {
    let (view, number) = (index.stock.snapshot, index.key.number);
    for (block, bounds) in &new.hashed {
        let Some((least, greatest)) = bounds.get() else {
            continue;
        };
        // The greatest is cut off: no key of a range that begins with it is greater than this.
        let greatest = [greatest, &[0xff; ranges::LONGEST]].concat();
        if !ranges::overlaps(view, place.named(), number, (least, &greatest))? {
            continue;
        }
        let keys = stored(&mut index.stock, index.key, *block).await?;
        let mut sorted: Vec<&[u8]> = keys.iter().map(|(_, key)| key).collect();
        sorted.sort_unstable();
        for key in sorted {
            if index.in_ranges(key).await?.is_some() {
                return Err(duplicate(place.definition, index.key, key));
            }
        }
    }
    Ok(())
}

/// That no range has a key of the tail.
async fn search_tail(index: &mut Index<'_>, (least, greatest): (&[u8], &[u8])) -> Result<()> {
    let numbers: Vec<u32> = index.chunks().iter().map(|(chunk, _)| *chunk).collect();
    for number in numbers {
        let Some(chunk) = index.stock.chunk(number)? else {
            continue;
        };
        let columns = index.key.columns.iter().map(|c| chunk.column(*c).clone());
        let keys = Keys::of(&columns.collect::<Vec<_>>())?;
        for (_, key) in keys
            .iter()
            .filter(|(_, key)| (least..=greatest).contains(key))
        {
            if index.in_ranges(key).await?.is_some() {
                return Err(duplicate(index.stock.definition, index.key, key));
            }
        }
    }
    Ok(())
}

fn row_of(entry: &Entry) -> RowId {
    RowId::Block {
        key: entry.block,
        row: entry.row,
    }
}

/// Ranges of hashes that together are all, each with about [`AT_ONCE`] of so many entries.
fn slices(entries: u64) -> impl Iterator<Item = std::ops::RangeInclusive<u64>> {
    let parts = entries.div_ceil(AT_ONCE).max(1);
    let width = u64::MAX / parts;
    (0..parts).map(move |part| {
        let end = if part + 1 == parts {
            u64::MAX
        } else {
            (part + 1) * width - 1
        };
        part * width..=end
    })
}

/// Merges runs of about the same size once there are several, so that a search reads few. Rows that are gone are left
/// out.
async fn merge(tx: &mut Transaction, place: Place<'_>, key: &Key) -> Result<()> {
    loop {
        let view = tx.view();
        let all = runs::all(&view, place.named(), key.number)?;
        let mut classes: BTreeMap<u32, Vec<(u32, Run)>> = BTreeMap::new();
        for (number, run) in &all {
            // Each class is four times the size of the one before.
            let class = (run.entries >> 16)
                .checked_ilog2()
                .map_or(0, |log| 1 + log / 2);
            classes
                .entry(class)
                .or_default()
                .push((*number, run.clone()));
        }
        let Some(like) = classes.into_values().find(|like| like.len() >= LIKE) else {
            return Ok(());
        };
        let mut stock = Stock::new(&view, place.space, place.definition, None);
        let merged = merged(tx, &mut stock, &like).await?;
        drop(stock);
        drop(view);
        for (number, run) in &like {
            run.page_ids().for_each(|page| tx.free_page(page));
            tx.delete(place.space, &runs::entry(key.number, *number));
        }
        if let Some(run) = merged {
            tx.put(
                place.space,
                &runs::entry(key.number, like[0].0),
                run.bytes(),
            );
        }
    }
}

async fn merged(
    tx: &Transaction,
    stock: &mut Stock<'_>,
    like: &[(u32, Run)],
) -> Result<Option<Run>> {
    let mut writer = RunWriter::new(tx);
    let mut bounds = Bounds::default();
    like.iter().for_each(|(_, run)| bounds.join(&run.bounds));
    let total = like.iter().map(|(_, run)| run.entries).sum();
    let mut entries = Vec::new();
    for hashes in slices(total) {
        entries.clear();
        for (_, run) in like {
            let table = &stock.definition.name;
            runs::read(run, stock.pool(), table, hashes.clone(), &mut entries).await?;
        }
        entries.sort_unstable();
        entries.dedup();
        let mut live = Vec::with_capacity(entries.len());
        for entry in &entries {
            if stock.is_live(row_of(entry))? {
                live.push(*entry);
            }
        }
        writer.push(&live)?;
    }
    writer.finish(&bounds)
}

/// What a transaction has of the index of a key: for adding a key to a table with rows.
pub(crate) async fn build(tx: &mut Transaction, place: Place<'_>, key: &Key) -> Result<()> {
    let mut new = Gathered::default();
    {
        let view = tx.view();
        let mut stock = Stock::new(&view, place.space, place.definition, None);
        for (entry, _) in view.prefix(place.space, key::BLOCK) {
            if let Some(block) = key::number(&entry) {
                let keys = stored(&mut stock, key, block).await?;
                new.take(tx, block, &keys)?;
            }
        }
    }
    settle(tx, place, key, new).await
}
