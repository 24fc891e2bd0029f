//! Grouping: krao of the keys, as a dense index where it is small, otherwise by hash (L2); by one key, in its order
//! as long as rows come so.

use algebra::filter::positions;
use algebra::krao::{Groups, numbers};

use crate::ascending::Ascending;
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::expr::Var;
use crate::held::Held;
use crate::interner::{Interner, NOBODY};
use crate::key::{Layout, Texts, Words};
use crate::rel::Fold;
use crate::shares::{Share, shares};
use crate::state::State;
use crate::value::{Kind, Type, Values, Vector};

use digit::{Digit, digits, note, undigit};

mod digit;

/// Groups of one worker, or of all once they were merged.
#[derive(Debug)]
pub(crate) struct Grouping {
    /// What it holds of the query's budget.
    pub held: Held,
    how: How,
    states: Vec<State>,
    shares: Vec<Share>,
    numbers: Vec<u32>,
    index: Vec<u64>,
    words: Words,
}

/// How rows get the numbers of their groups.
#[derive(Debug)]
enum How {
    /// One group, which exists whether or not there are rows.
    One,
    /// The number follows from the keys.
    Dense { digits: Vec<Digit>, seen: Vec<bool> },
    /// The number is that of a table's row.
    Row { seen: Vec<bool> },
    /// Rows come in the order of their keys, until one does not.
    Ascending(Ascending),
    /// The number is that of a text, the only key.
    Text { texts: Box<Interner>, ty: Type },
    Hash {
        layout: Layout,
        groups: Groups,
        interners: Vec<Interner>,
    },
}

impl How {
    /// For groups by keys of these types, in whatever order: a dense index if it has at most `most` entries.
    fn of(types: &[Type], most: u64) -> How {
        match (digits(types, most.max(SMALL)), types) {
            (Some((digits, size)), _) => How::Dense {
                digits,
                seen: vec![false; size as usize],
            },
            (None, [ty]) if ty.kind == Kind::Text => How::Text {
                texts: Box::default(),
                ty: ty.clone(),
            },
            (None, _) => {
                let layout = Layout::groups(types.to_vec());
                let groups = Groups::new(layout.words());
                How::Hash {
                    layout,
                    groups,
                    interners: vec![],
                }
            }
        }
    }
}

/// Dense indexes up to this size are always used.
const SMALL: u64 = 1 << 16;

/// Groups that are numbered anew at a time.
const TAKEN: usize = 1 << 16;

/// What groups are made by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By<'a> {
    Keys(&'a [Type]),
    /// The numbers of as many rows of a table.
    Row(usize),
}

impl Grouping {
    /// No groups yet. A dense index may have up to `most` entries.
    pub fn new(
        by: By<'_>,
        folds: &[Fold],
        types: &dyn Fn(Var) -> Type,
        most: u64,
    ) -> Result<Grouping> {
        let one = matches!(by, By::Keys([]));
        let mut states = folds
            .iter()
            .map(|fold| State::new(fold.function, fold.arg.map(types).as_ref(), one))
            .collect::<Result<Vec<State>>>()?;
        let shares = shares(folds, types, one);
        for (place, (state, share)) in states.iter_mut().zip(&shares).enumerate() {
            state.leave(share.values != place, share.counts != place);
        }
        let how = match by {
            By::Row(rows) => How::Row {
                seen: vec![false; rows],
            },
            By::Keys([]) => How::One,
            By::Keys(types) => {
                let distinct = folds
                    .iter()
                    .any(|fold| fold.function.of_distinct().is_some());
                let few = distinct || digits(types, SMALL).is_some();
                let ascending = Ascending::new(types, most).filter(|_| !few);
                ascending.map_or_else(|| How::of(types, most), How::Ascending)
            }
        };
        let mut grouping = Grouping {
            held: Held::default(),
            how,
            states,
            shares,
            numbers: vec![],
            index: vec![],
            words: Words::default(),
        };
        grouping.resize();
        Ok(grouping)
    }

    /// Gives states as many groups as there are numbers.
    fn resize(&mut self) {
        let size = self.number_of();
        self.states.iter_mut().for_each(|state| state.resize(size));
    }

    /// Adds the rows of `batch`.
    pub fn add(
        &mut self,
        batch: &Batch,
        keys: &[Var],
        row: Option<Var>,
        folds: &[Fold],
    ) -> Result<()> {
        let mut vectors = Vec::with_capacity(keys.len());
        if row.is_none() {
            for key in keys {
                vectors.push(batch.get(*key)?);
            }
        }
        let row = row.map(|row| batch.get(row)).transpose()?;
        self.number(&vectors, row, batch.rows)?;
        let groups = match self.how {
            How::One => None,
            _ => Some(&self.numbers[..]),
        };
        for (state, fold) in self.states.iter_mut().zip(folds) {
            let arg = fold.arg.map(|var| batch.get(var)).transpose()?;
            state.add(groups, batch.rows, arg)?;
        }
        Ok(())
    }

    /// Finds the numbers of rows with these keys, or of this row of the table; groups that are new are added.
    fn number(&mut self, keys: &[&Vector], row: Option<&Vector>, rows: usize) -> Result<()> {
        if let How::Ascending(own) = &mut self.how {
            if let Some(true) = keys.first().map(|key| own.number(key, &mut self.numbers)) {
                self.resize();
                return Ok(());
            }
            self.settle()?;
        }
        match &mut self.how {
            How::One | How::Ascending(_) => {}
            How::Row { seen } => {
                let row = row.ok_or_else(|| Error::internal("groups by row without row"))?;
                let Values::Int(rows) = &row.values else {
                    return Err(Error::internal("row numbers of another kind"));
                };
                self.numbers.clear();
                self.numbers.extend(rows.iter().map(|row| *row as u32));
                self.numbers.iter().for_each(|n| seen[*n as usize] = true);
            }
            How::Dense { digits, seen } => {
                for (place, (digit, vector)) in digits.iter().zip(keys).enumerate() {
                    match place {
                        0 => digit.start(vector, rows, &mut self.index)?,
                        _ => digit.combine(vector, &mut self.index)?,
                    }
                }
                numbers(&self.index, &mut self.numbers);
                note(&self.numbers, seen);
            }
            How::Text { texts, .. } => {
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
            How::Hash {
                layout,
                groups,
                interners,
            } => {
                let mut texts = Texts::Adding(interners);
                layout.encode(keys, rows, &mut texts, &mut self.words)?;
                groups.insert(&self.words.hashes, &self.words.columns(), &mut self.numbers);
                self.resize();
            }
        }
        Ok(())
    }

    /// Gives groups that were taken to come in order the numbers that they would have had otherwise.
    fn settle(&mut self) -> Result<()> {
        let How::Ascending(own) = &self.how else {
            return Ok(());
        };
        let mut settled = Grouping {
            held: std::mem::take(&mut self.held),
            how: How::of(std::slice::from_ref(own.ty()), own.most),
            states: self.states.iter().map(State::fresh).collect(),
            shares: self.shares.clone(),
            numbers: vec![],
            index: vec![],
            words: Words::default(),
        };
        settled.resize();
        let ascending = std::mem::replace(self, settled);
        self.take_in(&ascending)
    }

    /// Takes in groups that were numbered in another way.
    fn take_in(&mut self, other: &Grouping) -> Result<()> {
        for from in other.numbers().chunks(TAKEN) {
            let keys = other.keys(from)?;
            self.number(&keys.iter().collect::<Vec<_>>(), None, from.len())?;
            for (state, other) in self.states.iter_mut().zip(&other.states) {
                state.merge(other, from, &self.numbers)?;
            }
        }
        Ok(())
    }

    /// Takes in the groups of another worker.
    pub fn merge(&mut self, mut other: Grouping) -> Result<()> {
        let (from, to) = match (&mut self.how, &other.how) {
            (How::One, How::One) => (vec![0], vec![0]),
            (How::Dense { seen: mine, .. }, How::Dense { seen: theirs, .. })
            | (How::Row { seen: mine }, How::Row { seen: theirs }) => {
                let from = set(theirs);
                from.iter().for_each(|g| mine[*g as usize] = true);
                (from.clone(), from)
            }
            (
                How::Hash {
                    groups,
                    interners,
                    layout,
                },
                How::Hash {
                    groups: theirs,
                    interners: their_texts,
                    ..
                },
            ) => {
                let to = adopt(layout, groups, interners, theirs, their_texts);
                self.resize();
                ((0..theirs.len() as u32).collect(), to)
            }
            (How::Text { texts, .. }, How::Text { texts: theirs, .. }) => {
                let to = texts.adopt(theirs);
                self.resize();
                ((0..to.len() as u32).collect(), to)
            }
            (How::Ascending(mine), How::Ascending(theirs)) => {
                let to = mine.adopt(theirs);
                self.resize();
                ((0..to.len() as u32).collect(), to)
            }
            (How::Ascending(_), How::Dense { .. } | How::Hash { .. }) => {
                std::mem::swap(&mut self.held, &mut other.held);
                std::mem::swap(self, &mut other);
                return self.take_in(&other);
            }
            (How::Dense { .. } | How::Hash { .. }, How::Ascending(_))
            | (How::Dense { .. }, How::Hash { .. })
            | (How::Hash { .. }, How::Dense { .. }) => return self.take_in(&other),
            _ => return Err(Error::internal("groups made in different ways")),
        };
        for (state, other) in self.states.iter_mut().zip(&other.states) {
            state.merge(other, &from, &to)?;
        }
        Ok(())
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        let keys = match &self.how {
            How::One => 0,
            How::Ascending(own) => own.memory(),
            How::Dense { seen, .. } | How::Row { seen } => seen.len(),
            How::Text { texts, .. } => texts.memory(),
            How::Hash {
                groups, interners, ..
            } => groups.memory() + interners.iter().map(Interner::memory).sum::<usize>(),
        };
        keys + self.states.iter().map(State::memory).sum::<usize>()
    }

    /// Whether its groups are rows of a table.
    pub fn is_by_row(&self) -> bool {
        matches!(self.how, How::Row { .. })
    }

    /// Whether groups take memory one by one, not all at once.
    pub fn grows(&self) -> bool {
        let distinct = self.states.iter().any(|state| state.besides() > 0);
        let one_by_one = matches!(
            self.how,
            How::Hash { .. } | How::Text { .. } | How::Ascending(_)
        );
        distinct || one_by_one
    }

    /// Whether there is but one group.
    pub fn is_one(&self) -> bool {
        matches!(self.how, How::One)
    }

    /// What is found of the groups so far.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// How many groups there may be at most.
    pub fn number_of(&self) -> usize {
        match &self.how {
            How::One => 1,
            How::Row { seen } | How::Dense { seen, .. } => seen.len(),
            How::Hash { groups, .. } => groups.len(),
            How::Ascending(own) => own.len(),
            How::Text { texts, .. } => texts.len(),
        }
    }

    /// The numbers of the groups there are.
    pub fn numbers(&self) -> Vec<u32> {
        match &self.how {
            How::One => vec![0],
            How::Row { seen } | How::Dense { seen, .. } => set(seen),
            How::Hash { .. } | How::Text { .. } | How::Ascending(_) => {
                (0..self.number_of() as u32).collect()
            }
        }
    }

    /// The keys of `some` groups; none where they are rows of a table.
    pub fn keys(&self, some: &[u32]) -> Result<Vec<Vector>> {
        match &self.how {
            How::One | How::Row { .. } => Ok(vec![]),
            How::Dense { digits, .. } => Ok(undigit(digits, some)),
            How::Ascending(own) => Ok(vec![own.keys(some)]),
            How::Text { texts, ty } => {
                let there = some.iter().map(|number| !texts.is_null(*number));
                let valid: Option<Vec<bool>> = ty.nullable.then(|| there.collect());
                let array = texts.array(some.iter().copied());
                Ok(vec![Vector {
                    values: Values::Text(crate::text::Texts::new(array)),
                    valid: valid.filter(|valid| valid.contains(&false)),
                }])
            }
            How::Hash {
                layout,
                groups,
                interners,
            } => {
                let column = |word| {
                    let mut out = Vec::new();
                    groups.column(word, some, &mut out);
                    out
                };
                let words: Vec<Vec<u64>> = (0..layout.words()).map(column).collect();
                layout.decode(&words, interners)
            }
        }
    }

    /// Adds groups with these keys, whose states are rows of `parts`, for each function those of [`State::parts`].
    pub fn absorb(&mut self, keys: &[&Vector], parts: Vec<Vec<Vector>>, rows: usize) -> Result<()> {
        self.number(keys, None, rows)?;
        let from: Vec<u32> = (0..rows as u32).collect();
        let to = match self.how {
            How::One => vec![0; rows],
            _ => self.numbers.clone(),
        };
        for (state, parts) in self.states.iter_mut().zip(parts) {
            let other = state.of_parts(parts)?;
            if !other.kinds().is_empty() {
                state.merge(&other, &from, &to)?;
            }
        }
        Ok(())
    }

    /// Adds values of groups with these keys to function `which`.
    pub fn absorb_values(&mut self, which: usize, keys: &[&Vector], values: &Vector) -> Result<()> {
        self.number(keys, None, values.len())?;
        let groups = match self.how {
            How::One => None,
            _ => Some(&self.numbers[..]),
        };
        self.states[which].add(groups, values.len(), Some(values))
    }

    /// Forgets which different values there were: none of them will come again.
    pub fn forget_values(&mut self) {
        self.states.iter_mut().for_each(State::forget_values);
    }

    /// The groups there are: the vectors of their keys (by row: their row numbers) and of their results.
    pub fn finish(self, folds: &[Fold], types: &dyn Fn(Var) -> Type) -> Result<Finished> {
        let groups = self.numbers();
        let keys = self.keys(&groups)?;
        let rows = self.is_by_row().then(|| groups.clone());
        let mut results = Vec::with_capacity(folds.len());
        for ((state, share), fold) in self.states.iter().zip(&self.shares).zip(folds) {
            let scale = fold.arg.map_or(0, |arg| types(arg).scale());
            let from = (&self.states[share.values], &self.states[share.counts]);
            results.push(state.finish(from, &groups, &types(fold.var), scale)?);
        }
        Ok(Finished {
            groups: groups.len(),
            keys,
            rows,
            results,
        })
    }
}

/// Groups, once all rows were added.
#[derive(Debug)]
pub(crate) struct Finished {
    pub groups: usize,
    pub keys: Vec<Vector>,
    /// The rows of the table that they are, if they were made by row.
    pub rows: Option<Vec<u32>>,
    pub results: Vec<Vector>,
}

fn set(seen: &[bool]) -> Vec<u32> {
    let (mut out, mut here) = (Vec::new(), Vec::new());
    // Of many there may be few: what is empty is only looked at.
    for (chunk, some) in seen.chunks(2048).enumerate() {
        if some.contains(&true) {
            let first = (chunk * 2048) as u32;
            positions(some, &mut here);
            out.extend(here.iter().map(|row| first + row));
        }
    }
    out
}

/// Inserts the groups of `theirs`; returns the number of each here.
fn adopt(
    layout: &Layout,
    groups: &mut Groups,
    interners: &mut Vec<Interner>,
    theirs: &Groups,
    their_texts: &[Interner],
) -> Vec<u32> {
    if interners.len() < their_texts.len() {
        interners.resize_with(their_texts.len(), Interner::default);
    }
    let renumbered: Vec<Vec<u32>> = interners
        .iter_mut()
        .zip(their_texts)
        .map(|(mine, other)| mine.adopt(other))
        .collect();
    let mut to = Vec::with_capacity(theirs.len());
    let all: Vec<u32> = (0..theirs.len() as u32).collect();
    let (mut out, mut words) = (Vec::new(), Words::default());
    for some in all.chunks(algebra::VECTOR_ROWS) {
        layout.take(theirs, some, &renumbered, &mut words);
        groups.insert(&words.hashes, &words.columns(), &mut out);
        to.extend_from_slice(&out);
    }
    to
}

#[cfg(test)]
mod tests;
