//! Tables to look rows up in: what a join is a `dot` with.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use algebra::dot::{Direct, Hashed, NONE, Ranked};
use algebra::lift::Bounds;

use crate::error::{Error, Result};
use crate::vector::batch::Batch;
use crate::vector::composite_key::CompositeKey;
use crate::vector::interner::Interner;
use crate::vector::key_encoding::{KeyEncoding, KeyWords, StringKeys};
use crate::vector::radix::LoadedPartitions;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Var, Vector};

/// Keys are found by position if there are at most this many integers for each row between the first and the last.
const DENSE: u64 = 2;
/// They are found by counting bits if there are at most this many: 48 bytes for a row.
const SPARSE: u64 = 256;
/// Or at most this many for each row that is looked up: a byte and a half for it, where hashing takes twice the time.
const SOUGHT: u64 = 8;
/// Distances that are never too large for that: 768 KiB.
const NEAR: u64 = 1 << 22;

const SEED: u64 = 0x5EED_A702;

/// Rows that are found by key. Immutable but for the marks.
#[derive(Debug)]
pub(crate) struct JoinTable {
    pub rows: usize,
    /// Rows of the whole table, where these are some of them.
    pub all: usize,
    /// Which of them they are, ascending; none if they are all.
    pub numbers: Option<Vec<u32>>,
    columns: BTreeMap<Var, Vector>,
    index: Index,
    /// Whether no two rows have one key.
    pub unique: bool,
    marks: Vec<AtomicBool>,
    pub memory: usize,
    /// Which parts of the table these rows are, if they are not all.
    pub pass: Option<LoadedPartitions>,
}

#[derive(Debug)]
enum Index {
    /// The keys together are one whole number.
    CompositeKey(CompositeKey, ByNumber),
    /// They are words.
    KeyWords {
        hashed: Hashed,
        layout: KeyEncoding,
        interners: Vec<Interner>,
    },
    /// No key: every row is found.
    All,
}

#[derive(Debug)]
enum ByNumber {
    Direct(Direct),
    Ranked(Ranked),
    Hashed(Hashed),
}

/// What looking up leaves between the pieces of its result.
#[derive(Debug, Default)]
pub(crate) struct ProbeState {
    words: KeyWords,
    numbers: Vec<i64>,
    valid: Vec<bool>,
    probe: algebra::dot::Probe,
    first: Vec<u32>,
    rows: usize,
    next: usize,
}

impl JoinTable {
    /// Of rows with these vectors and keys, in which about `sought` rows will be looked up.
    pub fn new(
        keys: &[Var],
        types: Vec<Type>,
        columns: BTreeMap<Var, Vector>,
        rows: usize,
        marks: bool,
        sought: u64,
    ) -> Result<JoinTable> {
        if rows >= NONE as usize {
            return Err(Error::Unsupported(
                "tables of more than 4 billion rows in a join".into(),
            ));
        }
        let vectors: Vec<&Vector> = keys.iter().filter_map(|key| columns.get(key)).collect();
        let (index, unique) = match CompositeKey::of(&vectors) {
            _ if keys.is_empty() => (Index::All, rows <= 1),
            Some(numbers) => {
                let (index, unique) = by_number(&numbers, &vectors, rows, sought)?;
                (Index::CompositeKey(numbers, index), unique)
            }
            None => by_words(types, &vectors, rows)?,
        };
        let memory = match &index {
            Index::CompositeKey(_, ByNumber::Direct(direct)) => direct.memory(),
            Index::CompositeKey(_, ByNumber::Ranked(ranked)) => ranked.memory(),
            Index::CompositeKey(_, ByNumber::Hashed(hashed)) => hashed.memory(),
            Index::KeyWords {
                hashed, interners, ..
            } => hashed.memory() + interners.iter().map(Interner::memory).sum::<usize>(),
            Index::All => 0,
        };
        let marks = if marks { rows } else { 0 };
        Ok(JoinTable {
            rows,
            all: rows,
            numbers: None,
            columns,
            index,
            unique,
            marks: std::iter::repeat_with(AtomicBool::default)
                .take(marks)
                .collect(),
            memory: memory + marks,
            pass: None,
        })
    }

    /// Only the columns of a table that is looked up elsewhere.
    pub fn whole(columns: BTreeMap<Var, Vector>, rows: usize, unique: bool) -> JoinTable {
        JoinTable {
            rows,
            all: rows,
            numbers: None,
            columns,
            index: Index::All,
            unique,
            marks: vec![],
            memory: 0,
            pass: None,
        }
    }

    /// Its rows.
    pub fn into_rows(self) -> Materialized {
        Materialized {
            columns: self.columns,
            rows: self.rows,
        }
    }

    /// The vector of this name.
    ///
    /// # Errors
    ///
    /// Where the table has none.
    pub fn column(&self, var: Var) -> Result<&Vector> {
        self.columns
            .get(&var)
            .ok_or_else(|| Error::internal(format!("a table without vector {var}")))
    }

    /// For each row of the keys, one row that it finds, or [`NONE`]; to be followed by [`JoinTable::pairs`] for more.
    /// `types` are those of all vectors.
    pub fn find(
        &self,
        batch: &Batch,
        keys: &[Var],
        types: &[Type],
        finding: &mut ProbeState,
    ) -> Result<()> {
        let mut vectors = Vec::with_capacity(keys.len());
        for key in keys {
            vectors.push(batch.get(*key)?);
        }
        finding.rows = batch.rows;
        finding.next = 0;
        let ProbeState { first, probe, .. } = finding;
        match &self.index {
            Index::All => {
                first.clear();
                first.resize(batch.rows, if self.rows == 0 { NONE } else { 0 });
            }
            Index::CompositeKey(numbers, index) => {
                let (values, valid) =
                    numbers.given(&vectors, &mut finding.numbers, &mut finding.valid)?;
                match index {
                    ByNumber::Direct(direct) => direct.find(values, valid, first),
                    ByNumber::Ranked(ranked) if self.unique => {
                        ranked.find_first(values, valid, first)
                    }
                    ByNumber::Ranked(ranked) => ranked.probe(values, valid, probe),
                    ByNumber::Hashed(hashed) => {
                        finding.words.number(values, SEED);
                        self.hashed(hashed, &finding.words, valid, first, probe);
                    }
                }
            }
            Index::KeyWords {
                hashed,
                layout,
                interners,
            } => {
                let mut texts = StringKeys::Known(interners);
                let own: Vec<&Type> = keys.iter().map(|key| &types[*key]).collect();
                layout.encode_as(&own, &vectors, batch.rows, &mut texts, &mut finding.words)?;
                let valid = finding.words.valid.as_deref();
                self.hashed(hashed, &finding.words, valid, first, probe);
            }
        }
        Ok(())
    }

    fn hashed(
        &self,
        hashed: &Hashed,
        words: &KeyWords,
        valid: Option<&[bool]>,
        first: &mut Vec<u32>,
        probe: &mut algebra::dot::Probe,
    ) {
        let columns = words.columns();
        if !self.unique {
            hashed.probe(&words.hashes, &columns, probe);
            if let Some(valid) = valid {
                probe.exclude(valid);
            }
            return;
        }
        hashed.find_first(&words.hashes, &columns, first);
        if let Some(valid) = valid {
            algebra::dot::exclude(first, valid);
        }
    }

    /// If each row finds at most one: which, or [`NONE`].
    pub fn one<'f>(&self, finding: &'f ProbeState) -> Option<&'f [u32]> {
        self.unique.then_some(&finding.first[..])
    }

    /// For each row [`NONE`] if it finds nothing, otherwise any other number.
    pub fn any<'f>(&self, finding: &'f ProbeState) -> &'f [u32] {
        match &self.index {
            Index::All => &finding.first,
            _ if self.unique => &finding.first,
            _ => finding.probe.groups(),
        }
    }

    /// The next pairs of (row of the keys, row found), at most `most`; false once there are no more. Rows of the
    /// keys ascend.
    pub fn pairs(
        &self,
        finding: &mut ProbeState,
        left: &mut Vec<u32>,
        right: &mut Vec<u32>,
        most: usize,
    ) -> bool {
        left.clear();
        right.clear();
        let probe = &mut finding.probe;
        match &self.index {
            Index::All => {
                let end = (finding.rows * self.rows).min(finding.next + most);
                for pair in finding.next..end {
                    left.push((pair / self.rows) as u32);
                    right.push((pair % self.rows) as u32);
                }
                finding.next = end;
                !left.is_empty()
            }
            Index::KeyWords { hashed, .. } | Index::CompositeKey(_, ByNumber::Hashed(hashed))
                if !self.unique =>
            {
                hashed.matches(probe, left, right, most) || !left.is_empty()
            }
            Index::CompositeKey(_, ByNumber::Ranked(ranked)) if !self.unique => {
                ranked.matches(probe, left, right, most) || !left.is_empty()
            }
            _ => {
                while finding.next < finding.rows && left.len() < most {
                    let found = finding.first[finding.next];
                    if found != NONE {
                        left.push(finding.next as u32);
                        right.push(found);
                    }
                    finding.next += 1;
                }
                !left.is_empty()
            }
        }
    }

    /// Notes that these rows were found.
    pub fn mark(&self, rows: &[u32]) {
        for row in rows {
            let mark = &self.marks[*row as usize];
            // A look first: lines that are marked already stay shared.
            if !mark.load(Ordering::Relaxed) {
                mark.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The rows whose mark is `marked`.
    pub fn marked(&self, marked: bool) -> Vec<u32> {
        let rows = self.marks.iter().enumerate();
        rows.filter(|(_, mark)| mark.load(Ordering::Relaxed) == marked)
            .map(|(row, _)| row as u32)
            .collect()
    }
}

/// The index of keys that are one number each, and whether each has one row.
fn by_number(
    numbers: &CompositeKey,
    vectors: &[&Vector],
    rows: usize,
    sought: u64,
) -> Result<(ByNumber, bool)> {
    let (mut scratch, mut mask) = (Vec::new(), Vec::new());
    let (values, valid) = numbers.given(vectors, &mut scratch, &mut mask)?;
    let (min, max) = extremes(values, valid).unwrap_or((0, 0));
    let span = max.wrapping_sub(min) as u64;
    let many = rows as u64;
    if valid.is_none() && span < many.saturating_mul(DENSE) && span < u64::from(NONE) {
        let mut direct = Direct::new(min, max);
        let all: Vec<u32> = (0..rows as u32).collect();
        if !direct.set(values, &all) {
            return Ok((ByNumber::Direct(direct), true));
        }
    }
    let wide = many
        .saturating_mul(SPARSE)
        .max(sought.saturating_mul(SOUGHT));
    if span < wide.max(NEAR) && span < 1 << 40 {
        let ranked = Ranked::build(values, valid, min, max);
        let unique = ranked.is_unique();
        return Ok((ByNumber::Ranked(ranked), unique));
    }
    let mut words = KeyWords::default();
    words.number(values, SEED);
    let hashed = hashed(&words, valid, rows);
    let unique = hashed.is_unique();
    Ok((ByNumber::Hashed(hashed), unique))
}

/// The least and the greatest of the valid values.
fn extremes(values: &[i64], valid: Option<&[bool]>) -> Option<(i64, i64)> {
    let Some(valid) = valid else {
        return Bounds::of(values).map(|all| (all.min as i64, all.max as i64));
    };
    let there = || values.iter().zip(valid).filter(|(_, valid)| **valid);
    let min = there().map(|(value, _)| *value).min()?;
    Some((min, there().map(|(value, _)| *value).max()?))
}

fn by_words(types: Vec<Type>, vectors: &[&Vector], rows: usize) -> Result<(Index, bool)> {
    let layout = KeyEncoding::join(types);
    let (mut words, mut interners) = (KeyWords::default(), Vec::new());
    layout.encode(
        vectors,
        rows,
        &mut StringKeys::Adding(&mut interners),
        &mut words,
    )?;
    let hashed = hashed(&words, words.valid.as_deref(), rows);
    let unique = hashed.is_unique();
    let index = Index::KeyWords {
        hashed,
        layout,
        interners,
    };
    Ok((index, unique))
}

/// Of the rows whose keys are valid.
fn hashed(words: &KeyWords, valid: Option<&[bool]>, rows: usize) -> Hashed {
    let columns = words.columns();
    let Some(valid) = valid else {
        return Hashed::build(&words.hashes, &columns);
    };
    let picks: Vec<u32> = (0..rows as u32)
        .filter(|row| valid[*row as usize])
        .collect();
    let at = |from: &[u64]| -> Vec<u64> { picks.iter().map(|row| from[*row as usize]).collect() };
    let hashes = at(&words.hashes);
    let columns: Vec<Vec<u64>> = columns.iter().map(|column| at(column)).collect();
    let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
    let mut part = algebra::dot::Part::with_capacity(columns.len(), picks.len());
    part.add(&hashes, &columns, &picks);
    Hashed::new(vec![part.finish()])
}
