//! Whether the keys of new blocks are new; and if they are, their place in the index.
//!
//! 1. Rows of a block whose keys ascend get a range, unless it overlaps another range or may have keys of a run.
//! 2. All others are hashed. Equal hashes, of two new rows or of a new and an old one, are looked at; what is read for that
//!    becomes one run.
//! 3. Keys that are hashed, and those of the tail, are searched in the ranges in which they lie.
//!
//! Keys of old runs are in no new range, by 1; keys of new ranges are not in one another.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use store::Transaction;

use crate::error::Result;
use crate::format::key;
use crate::format::row_id::RowId;
use crate::format::run::{Bounds, Run};
use crate::index::duplicate::duplicate;
use crate::index::find::Index;
use crate::index::gather::{Ascending, Gathered, Hashed};
use crate::index::keys::Keys;
use crate::index::ranges::Stretch;
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
    let mut parts = Vec::new();
    {
        let view = tx.view();
        let mut index = Index::new(Stock::new(&view, place.space, place.definition, None), key)?;
        let merged = compare(tx, &mut index, &new, &old).await?;
        search(&mut index, place, &new.hashed).await?;
        if let Some((least, greatest)) = ranged {
            search_tail(&mut index, (&least, &greatest)).await?;
        }
        if let Some(run) = merged {
            parts = std::mem::replace(&mut new.runs, vec![run]);
        }
    }
    for part in &parts {
        part.page_ids().for_each(|page| tx.free_page(page));
    }
    let next = old.last().map_or(0, |(number, _)| number + 1);
    for (number, run) in (next..).zip(&new.runs) {
        tx.put(place.space, &runs::entry(key.number, number), run.bytes());
    }
    merge(tx, place, key).await
}

/// Gives ranges to the rows that can have them, as many as possible, and hashes the others. Returns the least and the
/// greatest key of the new ranges.
async fn ranges_of(
    tx: &mut Transaction,
    place: Place<'_>,
    key: &Key,
    new: &mut Gathered,
    old: &[(u32, Run)],
) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut ascending = std::mem::take(&mut new.ascending);
    ascending.sort_unstable_by(|a, b| a.greatest.cmp(&b.greatest));
    let (mut hashed, mut alone) = (Vec::new(), Vec::<Ascending>::new());
    let view = tx.view();
    let is_free = |least: &[u8], greatest: &[u8]| -> Result<bool> {
        Ok(!ranges::overlaps(
            &view,
            place.named(),
            key.number,
            (least, greatest),
        )?)
    };
    for own in ascending {
        let (least, greatest) = (&own.least, &own.greatest);
        let last = alone.last_mut();
        if last.as_ref().is_some_and(|last| last.greatest >= *least)
            || old.iter().any(|(_, run)| run.bounds.meets(least, greatest))
            || !is_free(least, greatest)?
        {
            hashed.push(own.stretch);
            continue;
        }
        match last {
            Some(last) if own.stretch.follows(&last.stretch) && is_free(&last.greatest, least)? => {
                last.greatest = own.greatest;
                last.stretch.rows = *last.stretch.rows.start()..=*own.stretch.rows.end();
            }
            _ => alone.push(own),
        }
    }
    for own in &alone {
        let bounds = (&own.least[..], &own.greatest[..]);
        ranges::put(tx, place.space, key.number, &own.stretch, bounds);
    }
    let ends = alone.first().zip(alone.last());
    let ends = ends.map(|(first, last)| (first.least.clone(), last.greatest.clone()));
    let mut stock = Stock::new(&view, place.space, place.definition, None);
    hashed.sort_unstable_by_key(|stretch| (stretch.block, *stretch.rows.start()));
    for Stretch { block, rows } in hashed {
        let (first, end) = (*rows.start(), u32::from(*rows.end()) + 1);
        let keys = stored(&mut stock, key, block, first.into()..end).await?;
        new.take_hashed(tx, (block, first), &keys)?;
    }
    Ok(ends)
}

/// The keys of rows of a stored block, as far as there are such rows.
///
/// # Errors
/// Those of reading pages.
async fn stored(stock: &mut Stock<'_>, key: &Key, block: u32, wanted: Range<u32>) -> Result<Keys> {
    let mut keys = Keys::default();
    let Some(mut rows) = RowKeys::new(stock, &key.columns, block)? else {
        return Ok(keys);
    };
    let mut bytes = Vec::new();
    for row in wanted.start..wanted.end.min(rows.rows()) {
        let there = rows.key(row, &mut bytes).await?;
        keys.push(there.then_some(&bytes[..]));
    }
    Ok(keys)
}

/// A row with a hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Like {
    hash: u64,
    row: u64,
    new: bool,
}

/// That no new row has the key of another that is hashed. Returns the run that the new ones make, where there are several.
async fn compare(
    tx: &Transaction,
    index: &mut Index<'_>,
    new: &Gathered,
    old: &[(u32, Run)],
) -> Result<Option<Run>> {
    let meets = |run: &Run| new.runs.iter().any(|other| other.bounds.meet(&run.bounds));
    let runs = old.iter().map(|(_, run)| run).filter(|run| meets(run));
    let old: Vec<&Run> = runs.collect();
    let alone = old.is_empty() && index.chunks().is_empty();
    if new.runs.is_empty() || new.runs.len() == 1 && alone && !new.equal {
        return Ok(None);
    }
    let tail = tail_of(index);
    let mut merged = (new.runs.len() > 1).then(|| RunWriter::new(tx));
    let total: u64 = new.runs.iter().map(|run| run.entries).sum();
    let (mut own, mut others, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for hashes in slices(total) {
        read_all(index, new.runs.iter(), &hashes, &mut own).await?;
        if let Some(merged) = &mut merged {
            merged.push(&own)?;
        }
        read_like(index, &old, &own, &mut others).await?;
        let from = tail.partition_point(|like| like.hash < *hashes.start());
        let to = tail.partition_point(|like| like.hash <= *hashes.end());
        let is_alone = others.is_empty() && from == to;
        if is_alone && !own.windows(2).any(|pair| pair[0].hash == pair[1].hash) {
            continue;
        }
        all.clear();
        let like = |entry: &Entry, new: bool| Like {
            hash: entry.hash,
            row: row_of(entry).number(),
            new,
        };
        all.extend(own.iter().map(|entry| like(entry, true)));
        all.extend(others.iter().map(|entry| like(entry, false)));
        all.extend_from_slice(&tail[from..to]);
        // Three runs one after the other: sorting merges them.
        all.sort();
        for group in all
            .chunk_by(|a, b| a.hash == b.hash)
            .filter(|group| group.len() > 1)
        {
            equal(index, group).await?;
        }
    }
    let mut bounds = Bounds::default();
    new.runs.iter().for_each(|run| bounds.join(&run.bounds));
    match merged {
        Some(merged) => merged.finish(&bounds),
        None => Ok(None),
    }
}

/// The entries of the tail, in the order of their hashes.
fn tail_of(index: &Index<'_>) -> Vec<Like> {
    let mut tail = Vec::new();
    for (chunk, bytes) in index.chunks() {
        let row = |row| RowId::Tail { key: *chunk, row };
        tail.extend(chunks::entries(bytes).map(|(hash, at)| Like {
            hash,
            row: row(at).number(),
            new: false,
        }));
    }
    tail.sort_unstable();
    tail
}

/// The entries of runs that have such hashes, in order, in place of what `out` had.
async fn read_all<'r>(
    index: &Index<'_>,
    runs: impl Iterator<Item = &'r Run>,
    hashes: &RangeInclusive<u64>,
    out: &mut Vec<Entry>,
) -> Result<()> {
    out.clear();
    let table = &index.stock.definition.name;
    for run in runs {
        runs::read(run, index.stock.pool(), table, hashes.clone(), out).await?;
    }
    out.sort();
    Ok(())
}

/// That no two rows of a group, of which one is new, have the same key.
async fn equal(index: &mut Index<'_>, group: &[Like]) -> Result<()> {
    if !group.iter().any(|like| like.new) {
        return Ok(());
    }
    // A row may be there twice: as new, and in what is left of a block that had the same number.
    let mut keys: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for Like { row, .. } in group {
        let Some(key) = index.key_of(RowId::of(*row)).await? else {
            continue;
        };
        match keys.get(&key) {
            Some(other) if other != row => {
                return Err(duplicate(index.stock.definition, index.key, &key));
            }
            _ => keys.insert(key, *row),
        };
    }
    Ok(())
}

/// That no range has a key of new rows that are hashed.
async fn search(index: &mut Index<'_>, place: Place<'_>, new: &[Hashed]) -> Result<()> {
    let (view, number) = (index.stock.snapshot, index.key.number);
    for hashed in new {
        let Some((least, greatest)) = hashed.bounds.get() else {
            continue;
        };
        // The greatest is cut off: no key of a range that begins with it is greater than this.
        let greatest = [greatest, &[0xff; ranges::LONGEST]].concat();
        if !ranges::overlaps(view, place.named(), number, (least, &greatest))? {
            continue;
        }
        let rows = hashed.rows.clone();
        let keys = stored(&mut index.stock, index.key, hashed.block, rows).await?;
        let mut sorted: Vec<(&[u8], usize)> = keys.iter().map(|(at, key)| (key, at)).collect();
        sorted.sort_unstable();
        for (key, at) in sorted {
            let own = RowId::Block {
                key: hashed.block,
                row: (hashed.rows.start + at as u32) as u16,
            };
            let found = index.in_ranges(key).await?;
            if found.is_some_and(|row| row.number() != own.number()) {
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
        let columns = index
            .key
            .columns
            .iter()
            .map(|c| chunk.rows.column(*c).clone());
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

/// The entries of runs that have the hash of one of `own`, which are in order, in place of what `out` had.
async fn read_like(
    index: &Index<'_>,
    runs: &[&Run],
    own: &[Entry],
    out: &mut Vec<Entry>,
) -> Result<()> {
    out.clear();
    if runs.is_empty() {
        return Ok(());
    }
    let wanted: Vec<u64> = own.iter().map(|entry| entry.hash).collect();
    let table = &index.stock.definition.name;
    for run in runs {
        runs::read_like(run, index.stock.pool(), table, &wanted, out).await?;
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
fn slices(entries: u64) -> impl Iterator<Item = RangeInclusive<u64>> {
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
        // One run after the other: sorting merges them.
        entries.sort();
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
                let keys = stored(&mut stock, key, block, 0..u32::MAX).await?;
                new.take(tx, block, &keys)?;
            }
        }
    }
    settle(tx, place, key, new).await
}
