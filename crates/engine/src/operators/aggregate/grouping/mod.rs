//! Grouping (`krao` of the keys): dense where the number of possible groups is small, otherwise by hash; sorted for
//! one key, as long as rows come in its order.

pub(crate) mod chunks;
pub(crate) mod first;
mod layout;
mod loose;
mod merging;
mod partitions;
mod ranges;
mod rows;
mod shrinking;

use std::sync::Arc;

use algebra::filter::positions;
use algebra::krao::{Groups, numbers};

use crate::error::{Error, Result};
use crate::logical::aggregate_call::AggregateCall;
use crate::logical::relation::{Fold, Function};
use crate::memory::reservation::Reservation;
use crate::operators::aggregate::accumulator::Accumulator;
use crate::operators::aggregate::collected::Collected;
use crate::operators::aggregate::dense::{DenseKey, decode_keys, dense_keys, encode_keys, note};
use crate::operators::aggregate::factory::{accumulator, row_accumulator};
use crate::operators::aggregate::grouping::chunks::Chunks;
use crate::operators::aggregate::grouping::layout::Layout;
use crate::operators::aggregate::grouping::shrinking::Shrinking;
use crate::operators::aggregate::result::{result, row_result};
use crate::operators::aggregate::sorted::SortedGroups;
use crate::physical::shared_aggregates::{Accumulated, Accumulation, ResultParts, accumulated};
use crate::vector::batch::Batch;
use crate::vector::interner::{Interner, NOBODY};
use crate::vector::key_encoding::KeyWords;
use crate::vector::value::{Type, Values, Var, Vector};

/// The groups of one worker; after merging, of all workers.
#[derive(Debug)]
pub(crate) struct Grouping {
    /// The memory reserved for the groups.
    pub held: Reservation,
    key_index: KeyIndex,
    /// What is accumulated, and the accumulators.
    accumulated: Vec<Accumulated>,
    states: Vec<Box<dyn Accumulator>>,
    /// Further groups, if it is [loose](Self::is_loose): the key index and the accumulators have those of the open chunk.
    chunks: Chunks,
    /// For each function, the accumulators that its result is computed from.
    parts: Vec<ResultParts>,
    numbers: Vec<u32>,
    index: Vec<u64>,
    words: KeyWords,
}

/// How group numbers are found.
#[derive(Debug)]
enum KeyIndex {
    /// A single group, which exists even without rows.
    One,
    /// Dense: the number is computed from the keys.
    Dense {
        dense_keys: Vec<DenseKey>,
        seen: Vec<bool>,
    },
    /// Group join: the number is the row of a join table.
    Row { seen: Vec<bool> },
    /// Sorted: rows come in the order of the key so far.
    Sorted(SortedGroups),
    /// By string: the number is that of the interned string, the only key. From the first long one on.
    Text {
        texts: Box<Interner>,
        ty: Type,
        shrinking: Shrinking,
    },
    /// By words. Invariant: if the only key is a string and some are interned, it is loose, or the groups of a partition, to which
    /// nothing more is added.
    Hash {
        layout: Layout,
        groups: Groups,
        interners: Vec<Interner>,
        shrinking: Shrinking,
    },
}

impl KeyIndex {
    /// For keys of these types in any order; dense if that takes at most `most` entries.
    fn of(types: &[Type], most: u64) -> KeyIndex {
        match dense_keys(types, most.max(SMALL)) {
            Some((dense_keys, size)) => KeyIndex::Dense {
                dense_keys,
                seen: vec![false; size as usize],
            },
            None => KeyIndex::hash(Layout::of(types), 0),
        }
    }
}

/// Dense indexes up to this size are always used.
const SMALL: u64 = 1 << 16;

/// What rows are grouped by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GroupedBy<'a> {
    Keys(&'a [Type]),
    /// The row numbers of a join table with this many rows.
    Row(usize),
}

impl Grouping {
    /// Without groups. A dense index may have up to `most` entries. `calls` are the functions of the query that the engine
    /// has no accumulator for.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if an argument cannot be accumulated.
    pub fn new(
        by: GroupedBy<'_>,
        folds: &[Fold],
        types: &dyn Fn(Var) -> Type,
        most: u64,
        calls: &[Arc<dyn AggregateCall>],
    ) -> Result<Grouping> {
        let one = matches!(by, GroupedBy::Keys([]));
        let (accumulated, parts) = accumulated(folds, types, one, calls);
        let states = accumulated.iter().map(|own| match &own.what {
            Accumulation::First(order) => Ok(row_accumulator(order, folds, types)),
            Accumulation::Call(call) => {
                let ty = own.arg.map(types);
                let ty = ty.ok_or_else(|| Error::internal("a call of nothing"))?;
                let made = Collected::new(calls.into(), *call, ty)?;
                Ok(Box::new(made) as Box<dyn Accumulator>)
            }
            _ => accumulator(*own, own.arg.map(types).as_ref(), one),
        });
        let states = states.collect::<Result<Vec<_>>>()?;
        let key_index = match by {
            GroupedBy::Row(rows) => KeyIndex::Row {
                seen: vec![false; rows],
            },
            GroupedBy::Keys([]) => KeyIndex::One,
            GroupedBy::Keys(types) => {
                let is_of_values = |own: &Accumulated| {
                    matches!(
                        own.what,
                        Accumulation::Distinct { .. } | Accumulation::Call(_)
                    )
                };
                let distinct = accumulated.iter().any(is_of_values);
                let few = distinct || dense_keys(types, SMALL).is_some();
                let ascending = SortedGroups::new(types, most).filter(|_| !few);
                ascending.map_or_else(|| KeyIndex::of(types, most), KeyIndex::Sorted)
            }
        };
        let mut grouping = Grouping {
            held: Reservation::default(),
            key_index,
            accumulated,
            states,
            chunks: Chunks::default(),
            parts,
            numbers: vec![],
            index: vec![],
            words: KeyWords::default(),
        };
        grouping.resize();
        Ok(grouping)
    }

    /// Grows the accumulators to the number of groups.
    fn resize(&mut self) {
        let size = self.numbered();
        self.states.iter_mut().for_each(|state| state.resize(size));
    }

    /// Numbers the groups of the rows of `batch` by `keys`, or by the row numbers `row` in a group join.
    fn number_batch(&mut self, batch: &Batch, keys: &[Var], row: Option<Var>) -> Result<()> {
        self.look(batch.rows)?;
        let mut vectors = Vec::with_capacity(keys.len());
        if row.is_none() {
            for key in keys {
                vectors.push(batch.get(*key)?);
            }
        }
        let row = row.map(|row| batch.get(row)).transpose()?;
        self.number(&vectors, row, batch.rows)
    }

    /// Adds the rows of `batch`, grouped by `keys`, or by the row numbers `row` in a group join.
    pub fn add(&mut self, batch: &Batch, keys: &[Var], row: Option<Var>) -> Result<()> {
        self.number_batch(batch, keys, row)?;
        let groups = match self.key_index {
            KeyIndex::One => None,
            _ => Some(&self.numbers[..]),
        };
        for (state, own) in self.states.iter_mut().zip(&self.accumulated) {
            if own.what.is_of_rows() {
                state.add_rows(groups, batch)?;
                continue;
            }
            let arg = own.arg.map(|var| batch.get(var)).transpose()?;
            state.add(groups, batch.rows, arg)?;
        }
        Ok(())
    }

    /// Numbers the groups of rows with these keys, or with these row numbers; adds new groups.
    fn number(&mut self, keys: &[&Vector], row: Option<&Vector>, rows: usize) -> Result<()> {
        if let KeyIndex::Sorted(own) = &mut self.key_index {
            if let Some(true) = keys.first().map(|key| own.number(key, &mut self.numbers)) {
                self.resize();
                return Ok(());
            }
            self.leave_sorted()?;
        }
        match &mut self.key_index {
            KeyIndex::One | KeyIndex::Sorted(_) => {}
            KeyIndex::Row { seen } => {
                let row = row.ok_or_else(|| Error::internal("groups by row without row"))?;
                let Values::Int(rows) = &row.values else {
                    return Err(Error::internal("row numbers of another kind"));
                };
                self.numbers.clear();
                self.numbers.extend(rows.iter().map(|row| *row as u32));
                self.numbers.iter().for_each(|n| seen[*n as usize] = true);
            }
            KeyIndex::Dense { dense_keys, seen } => {
                encode_keys(dense_keys, keys, rows, &mut self.index)?;
                numbers(&self.index, &mut self.numbers);
                note(&self.numbers, seen);
            }
            KeyIndex::Text { texts, .. } => {
                let Some((Values::Text(own), valid)) =
                    keys.first().map(|key| (&key.values, key.valid.as_deref()))
                else {
                    return Err(Error::internal("a key of another kind"));
                };
                texts.add(own, valid, &mut self.numbers);
                for number in &mut self.numbers {
                    if *number == NOBODY {
                        *number = texts.null();
                    }
                }
                self.resize();
            }
            KeyIndex::Hash {
                layout,
                groups,
                interners,
                ..
            } => {
                layout.encode(keys, rows, interners, &mut self.words)?;
                if !interners.is_empty() && layout.text().is_some() && !groups.is_loose() {
                    // The strings of the rows that are yet to be numbered.
                    interners.clear();
                    self.intern_keys()?;
                    return self.number(keys, row, rows);
                }
                groups.insert(&self.words.hashes, &self.words.columns(), &mut self.numbers);
                self.resize();
            }
        }
        Ok(())
    }

    /// Switches from sorted to hash or dense aggregation.
    fn leave_sorted(&mut self) -> Result<()> {
        let KeyIndex::Sorted(own) = &self.key_index else {
            return Ok(());
        };
        let settled = self.like(KeyIndex::of(std::slice::from_ref(own.ty()), own.most))?;
        self.settle(settled)
    }

    /// For groups by one string: from now on they are found by the number of the interned string.
    fn intern_keys(&mut self) -> Result<()> {
        let KeyIndex::Hash { layout, .. } = &self.key_index else {
            return Ok(());
        };
        let Some(ty) = layout.text().cloned() else {
            return Ok(());
        };
        let settled = self.like(KeyIndex::Text {
            texts: Box::default(),
            ty,
            shrinking: Shrinking::default(),
        })?;
        self.settle(settled)
    }

    /// An empty one of the same functions, with this index.
    fn like(&self, key_index: KeyIndex) -> Result<Grouping> {
        let states = self.states.iter().map(|state| state.fresh());
        let mut like = Grouping {
            held: Reservation::default(),
            key_index,
            accumulated: self.accumulated.clone(),
            states: states.collect::<Result<_>>()?,
            chunks: Chunks::of(self.chunks.size),
            parts: self.parts.clone(),
            numbers: vec![],
            index: vec![],
            words: KeyWords::default(),
        };
        like.resize();
        Ok(like)
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        let keys = match &self.key_index {
            KeyIndex::One => 0,
            KeyIndex::Sorted(own) => own.memory(),
            KeyIndex::Dense { seen, .. } | KeyIndex::Row { seen } => seen.len(),
            KeyIndex::Text { texts, .. } => texts.memory(),
            KeyIndex::Hash {
                groups, interners, ..
            } => groups.memory() + interners.iter().map(Interner::memory).sum::<usize>(),
        };
        let states = self.states.iter().map(|state| state.memory());
        keys + states.sum::<usize>() + self.chunks.memory()
    }

    /// The bytes that finishing the groups takes for a moment beside these.
    pub fn memory_to_finish(&self) -> usize {
        let states = self.states.iter().map(|state| state.memory_to_finish());
        // One after the other.
        states.max().unwrap_or(0)
    }

    /// Whether it is a group join.
    pub fn is_by_row(&self) -> bool {
        matches!(self.key_index, KeyIndex::Row { .. })
    }

    /// Whether its memory grows with the number of groups, rather than being allocated at once.
    pub fn grows(&self) -> bool {
        let distinct = self.states.iter().any(|state| state.memory_of_values() > 0);
        let one_by_one = matches!(
            self.key_index,
            KeyIndex::Hash { .. } | KeyIndex::Text { .. } | KeyIndex::Sorted(_)
        );
        distinct || one_by_one
    }

    /// Whether there is a single group, without keys.
    pub fn is_single_group(&self) -> bool {
        matches!(self.key_index, KeyIndex::One)
    }

    /// The argument of accumulator `which`.
    pub fn argument(&self, which: usize) -> Option<Var> {
        self.accumulated[which].arg
    }

    /// The accumulators, of the open chunk if it is [loose](Self::is_loose).
    pub fn states(&self) -> &[Box<dyn Accumulator>] {
        &self.states
    }

    /// The number of groups; of a dense index or a group join, the number of possible groups.
    pub fn group_count(&self) -> usize {
        self.chunks.groups() + self.numbered()
    }

    /// How many of its groups have numbers: all, or those of the open chunk if it is [loose](Self::is_loose).
    fn numbered(&self) -> usize {
        match &self.key_index {
            KeyIndex::One => 1,
            KeyIndex::Row { seen } | KeyIndex::Dense { seen, .. } => seen.len(),
            KeyIndex::Hash { groups, .. } => groups.len(),
            KeyIndex::Sorted(own) => own.len(),
            KeyIndex::Text { texts, .. } => texts.len(),
        }
    }

    /// The numbers of the groups that occurred; of the open chunk if it is [loose](Self::is_loose).
    pub fn numbers(&self) -> Vec<u32> {
        match &self.key_index {
            KeyIndex::One => vec![0],
            KeyIndex::Row { seen } | KeyIndex::Dense { seen, .. } => set(seen),
            KeyIndex::Hash { .. } | KeyIndex::Text { .. } | KeyIndex::Sorted(_) => {
                (0..self.numbered() as u32).collect()
            }
        }
    }

    /// The keys of the groups `some`; none for a group join.
    pub fn keys(&self, some: &[u32]) -> Result<Vec<Vector>> {
        match &self.key_index {
            KeyIndex::One | KeyIndex::Row { .. } => Ok(vec![]),
            KeyIndex::Dense { dense_keys, .. } => {
                let numbers = some.iter().map(|number| u64::from(*number));
                Ok(decode_keys(dense_keys, numbers.collect()))
            }
            KeyIndex::Sorted(own) => Ok(vec![own.keys(some)]),
            KeyIndex::Text { texts, ty, .. } => {
                let there = some.iter().map(|number| !texts.is_null(*number));
                let valid: Option<Vec<bool>> = ty.nullable.then(|| there.collect());
                let array = texts.array(some.iter().copied());
                Ok(vec![Vector {
                    values: Values::Text(crate::vector::strings::Strings::new(array)),
                    valid: valid.filter(|valid| valid.contains(&false)),
                }])
            }
            KeyIndex::Hash {
                layout,
                groups,
                interners,
                ..
            } => layout.decode(groups, some, interners),
        }
    }

    /// Adds groups with these keys, of which several may be equal. `states` has, for each accumulator, the vectors of
    /// [`Accumulator::state`].
    pub fn absorb(
        &mut self,
        keys: &[&Vector],
        states: Vec<Vec<Vector>>,
        rows: usize,
    ) -> Result<()> {
        self.number(keys, None, rows)?;
        let from: Vec<u32> = (0..rows as u32).collect();
        let to = match self.key_index {
            KeyIndex::One => vec![0; rows],
            _ => self.numbers.clone(),
        };
        for (state, other) in self.states.iter_mut().zip(states) {
            if !state.kinds().is_empty() {
                let other = state.of_state(other)?;
                state.merge(other.as_ref(), &from, &to)?;
            }
        }
        Ok(())
    }

    /// Adds values to accumulator `which`, in the groups of these keys.
    pub fn absorb_values(&mut self, which: usize, keys: &[&Vector], values: &Vector) -> Result<()> {
        self.number(keys, None, values.len())?;
        let groups = match self.key_index {
            KeyIndex::One => None,
            _ => Some(&self.numbers[..]),
        };
        self.states[which].add(groups, values.len(), Some(values))
    }

    /// Whether accumulator `which` finds what `folds` give by passes over its values, which [`absorb_values`](Self::absorb_values) is to
    /// get for each.
    pub fn select(&mut self, which: usize, folds: &[Fold]) -> bool {
        let own = self.parts.iter().zip(folds);
        let own = own.filter(|(parts, _)| parts.values == which);
        let calls = own.map(|(_, fold)| match fold.function {
            Function::Call(call) => Some(call),
            _ => None,
        });
        let calls: Option<Vec<usize>> = calls.collect();
        calls.is_some_and(|calls| self.states[which].select(&calls))
    }

    /// Ends a pass over the values of accumulator `which`; whether there must be another one.
    ///
    /// # Errors
    /// Those of Arrow.
    pub fn end_pass(&mut self, which: usize) -> Result<bool> {
        self.states[which].end_pass()
    }

    /// Drops the sets of distinct values, but keeps their counts and sums.
    pub fn forget_values(&mut self) {
        self.states
            .iter_mut()
            .for_each(|state| state.forget_values());
    }

    /// The keys (for a group join: the row numbers) and results of all groups that occurred, which must not be
    /// [loose](Self::is_loose).
    pub fn finish(self, folds: &[Fold], types: &dyn Fn(Var) -> Type) -> Result<Finished> {
        let (groups, places) = self.entries();
        self.results(folds, types, &groups, &places)
    }

    /// The same of the groups `groups`, of which `places` are the places in the accumulators.
    fn results(
        &self,
        folds: &[Fold],
        types: &dyn Fn(Var) -> Type,
        groups: &[u32],
        places: &[u32],
    ) -> Result<Finished> {
        let all = self.parts.iter().zip(folds);
        let results = all.map(|(parts, fold)| self.result(parts, fold, types, (groups, places)));
        Ok(Finished {
            groups: groups.len(),
            keys: self.keys(groups)?,
            rows: self.is_by_row().then(|| groups.to_vec()),
            results: results.collect::<Result<_>>()?,
        })
    }

    /// The results of one function.
    fn result(
        &self,
        parts: &ResultParts,
        fold: &Fold,
        types: &dyn Fn(Var) -> Type,
        (groups, places): (&[u32], &[u32]),
    ) -> Result<Vector> {
        let scale = fold.arg.map_or(0, |arg| types(arg).scale());
        let values = self.states[parts.values].as_ref();
        if let Some(rows) = row_result(fold, values, groups, places)? {
            return Ok(rows);
        }
        if let Function::Call(call) = fold.function {
            return values.called(call, groups, &types(fold.var));
        }
        let counts = parts.counts.and_then(|place| self.states[place].counts());
        result(
            fold.function,
            values,
            counts,
            groups,
            &types(fold.var),
            scale,
        )
    }
}

/// The result of an aggregation.
#[derive(Debug)]
pub(crate) struct Finished {
    pub groups: usize,
    pub keys: Vec<Vector>,
    /// For a group join, the rows of the join table that the groups are.
    pub rows: Option<Vec<u32>>,
    pub results: Vec<Vector>,
}

fn set(seen: &[bool]) -> Vec<u32> {
    let (mut out, mut here) = (Vec::new(), Vec::new());
    // Often only few occurred: chunks without any are skipped.
    for (chunk, some) in seen.chunks(2048).enumerate() {
        if some.contains(&true) {
            let first = (chunk * 2048) as u32;
            positions(some, &mut here);
            out.extend(here.iter().map(|row| first + row));
        }
    }
    out
}

#[cfg(test)]
mod tests;
