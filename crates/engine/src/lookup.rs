//! Tables to look rows up in: what a join is a `dot` with.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use algebra::dot::{Direct, Hashed, NONE};

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::expr::Var;
use crate::key::{Interner, Layout, Texts, Words};
use crate::value::{Kind, Type, Values, Vector};

/// Keys may lie this much farther apart than there are rows to be found by position.
const SPARSE: i128 = 16;

/// Rows that are found by key. Immutable but for the marks.
#[derive(Debug)]
pub(crate) struct Lookup {
    pub rows: usize,
    columns: BTreeMap<Var, Vector>,
    index: Index,
    layout: Layout,
    interners: Vec<Interner>,
    /// Whether no two rows have one key.
    pub unique: bool,
    marks: Vec<AtomicBool>,
    pub memory: usize,
}

#[derive(Debug)]
enum Index {
    /// By position: one whole number is the key.
    Direct(Direct),
    Hashed(Hashed),
    /// No key: every row is found.
    All,
}

/// What looking up leaves between the pieces of its result.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    words: Words,
    probe: algebra::dot::Probe,
    first: Vec<u32>,
    rows: usize,
    next: usize,
}

impl Lookup {
    /// Of rows with these vectors and keys.
    pub fn new(
        keys: &[Var],
        types: Vec<Type>,
        columns: BTreeMap<Var, Vector>,
        rows: usize,
        marks: bool,
    ) -> Result<Lookup> {
        if rows >= NONE as usize {
            return Err(Error::Unsupported(
                "tables of more than 4 billion rows in a join".into(),
            ));
        }
        let layout = Layout::join(types.clone());
        let mut interners = Vec::new();
        let (index, unique) = match keys {
            [] => (Index::All, rows <= 1),
            _ => {
                let vectors: Vec<&Vector> =
                    keys.iter().filter_map(|key| columns.get(key)).collect();
                match direct(&vectors, &types, rows) {
                    Some(direct) => (Index::Direct(direct), true),
                    None => hashed(&layout, &vectors, rows, &mut interners)?,
                }
            }
        };
        let memory = match &index {
            Index::Direct(direct) => direct.memory(),
            Index::Hashed(hashed) => hashed.memory(),
            Index::All => 0,
        };
        let memory = memory + interners.iter().map(Interner::memory).sum::<usize>();
        let marks = if marks { rows } else { 0 };
        Ok(Lookup {
            rows,
            columns,
            index,
            layout,
            interners,
            unique,
            marks: std::iter::repeat_with(AtomicBool::default)
                .take(marks)
                .collect(),
            memory: memory + marks,
        })
    }

    pub fn column(&self, var: Var) -> Result<&Vector> {
        self.columns
            .get(&var)
            .ok_or_else(|| Error::internal(format!("a table without vector {var}")))
    }

    /// For each row of the keys, one row that it finds, or [`NONE`]; to be followed by [`Lookup::pairs`] for more.
    pub fn find(&self, batch: &Batch, keys: &[Var], finding: &mut Finding) -> Result<()> {
        let mut vectors = Vec::with_capacity(keys.len());
        for key in keys {
            vectors.push(batch.get(*key)?);
        }
        finding.rows = batch.rows;
        finding.next = 0;
        match &self.index {
            Index::All => {
                finding.first.clear();
                finding
                    .first
                    .resize(batch.rows, if self.rows == 0 { NONE } else { 0 });
            }
            Index::Direct(direct) => {
                let Values::Int(values) = &vectors[0].values else {
                    return Err(Error::internal("a key of another kind"));
                };
                direct.find(values, vectors[0].valid.as_deref(), &mut finding.first);
            }
            Index::Hashed(hashed) => {
                let mut texts = Texts::Known(&self.interners);
                self.layout
                    .encode(&vectors, batch.rows, &mut texts, &mut finding.words)?;
                let columns = finding.words.columns();
                match self.unique {
                    true => hashed.find_first(&finding.words.hashes, &columns, &mut finding.first),
                    false => hashed.probe(&finding.words.hashes, &columns, &mut finding.probe),
                }
                if let Some(valid) = finding.words.valid.as_ref().filter(|_| self.unique) {
                    algebra::dot::exclude(&mut finding.first, valid);
                }
            }
        }
        Ok(())
    }

    /// If each row finds at most one: which, or [`NONE`].
    pub fn one<'f>(&self, finding: &'f Finding) -> Option<&'f [u32]> {
        self.unique.then_some(&finding.first[..])
    }

    /// The next pairs of (row of the keys, row found), at most `most`; false once there are no more. Rows of the
    /// keys ascend.
    pub fn pairs(
        &self,
        finding: &mut Finding,
        left: &mut Vec<u32>,
        right: &mut Vec<u32>,
        most: usize,
    ) -> bool {
        left.clear();
        right.clear();
        match &self.index {
            Index::Hashed(hashed) if !self.unique => {
                let more = hashed.matches(&mut finding.probe, left, right, most);
                if let Some(valid) = &finding.words.valid {
                    let keep: Vec<bool> = left.iter().map(|row| valid[*row as usize]).collect();
                    retain(left, &keep);
                    retain(right, &keep);
                }
                more || !left.is_empty()
            }
            Index::All => {
                let end = (finding.rows * self.rows).min(finding.next + most);
                for pair in finding.next..end {
                    left.push((pair / self.rows) as u32);
                    right.push((pair % self.rows) as u32);
                }
                finding.next = end;
                !left.is_empty()
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

fn retain(values: &mut Vec<u32>, keep: &[bool]) {
    let mut row = 0;
    values.retain(|_| {
        row += 1;
        keep[row - 1]
    });
}

/// By position, if one whole number is the key, no two rows have the same, and they lie close enough.
fn direct(vectors: &[&Vector], types: &[Type], rows: usize) -> Option<Direct> {
    let ([vector], [ty]) = (vectors, types) else {
        return None;
    };
    let Values::Int(values) = &vector.values else {
        return None;
    };
    if ty.kind != Kind::Int || rows == 0 {
        return None;
    }
    let there: Vec<i64>;
    let places: Vec<u32>;
    let (values, places) = match &vector.valid {
        None => {
            places = (0..rows as u32).collect();
            (&values[..], &places)
        }
        Some(valid) => {
            places = (0..rows as u32)
                .filter(|row| valid[*row as usize])
                .collect();
            there = places.iter().map(|row| values[*row as usize]).collect();
            (&there[..], &places)
        }
    };
    let (min, max) = (*values.iter().min()?, *values.iter().max()?);
    let span = i128::from(max) - i128::from(min) + 1;
    if span > (rows as i128 * SPARSE).max(1 << 16) || span >= i128::from(u32::MAX) {
        return None;
    }
    let mut direct = Direct::new(min, max);
    let twice = direct.set(values, places);
    (!twice).then_some(direct)
}

fn hashed(
    layout: &Layout,
    vectors: &[&Vector],
    rows: usize,
    interners: &mut Vec<Interner>,
) -> Result<(Index, bool)> {
    let mut words = Words::default();
    layout.encode(vectors, rows, &mut Texts::Adding(interners), &mut words)?;
    let columns = words.columns();
    let hashed = match &words.valid {
        None => Hashed::build(&words.hashes, &columns),
        Some(valid) => {
            let picks: Vec<u32> = (0..rows as u32)
                .filter(|row| valid[*row as usize])
                .collect();
            let at = |from: &[u64]| -> Vec<u64> {
                picks.iter().map(|row| from[*row as usize]).collect()
            };
            let hashes = at(&words.hashes);
            let columns: Vec<Vec<u64>> = columns.iter().map(|column| at(column)).collect();
            let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            let mut part = algebra::dot::Part::with_capacity(columns.len(), picks.len());
            part.add(&hashes, &columns, &picks);
            Hashed::new(vec![part.finish()])
        }
    };
    let unique = hashed.is_unique();
    Ok((Index::Hashed(hashed), unique))
}
