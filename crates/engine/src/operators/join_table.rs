//! Join tables: the build side of a join, probed by key (the `dot` of the LAQ paper).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use algebra::dot::{Hashed, Keys, NONE};
use arrow::datatypes::DataType;
use table::Dictionary;

use crate::error::{Error, Result};
use crate::operators::join_index::{Index, PackedIndex, SEED};
use crate::operators::ordered_rows::OrderedRows;
use crate::vector::batch::Batch;
use crate::vector::composite_key::CompositeKey;
use crate::vector::key_encoding::{KeyWords, StringKeys};
use crate::vector::radix::LoadedPartitions;
use crate::vector::rows::Materialized;
use crate::vector::strings::Strings;
use crate::vector::value::{Type, Values, Var, Vector};

/// The build side of a join. Immutable except for the marks.
#[derive(Debug)]
pub(crate) struct JoinTable {
    pub rows: usize,
    /// Rows of the whole build side, if this is only a part of it (per-node policy).
    pub all: usize,
    /// The numbers of these rows in the whole, ascending; `None` if this is all of it.
    pub numbers: Option<Vec<u32>>,
    pub(super) columns: BTreeMap<Var, Vector>,
    /// Its keys; none if they are probed elsewhere.
    keys: Vec<Var>,
    pub(super) index: Index,
    /// Whether all keys are distinct.
    pub unique: bool,
    /// The rows in the order of a vector that a band is of, from the first probe by one on; `None` in it if they have no order.
    pub(super) ordered: OnceLock<Option<OrderedRows>>,
    /// How much greater the second of two vectors is than the first at most, from the first probe by a band of both on.
    pub(super) most_over: OnceLock<((Var, Var), i64)>,
    /// What each label of a dictionary of probing texts finds, from the first probe by it on.
    by_code: OnceLock<(Arc<Dictionary>, Vec<u32>)>,
    /// About how many rows will probe it.
    expected_probes: u64,
    /// How many pairs of rows with the same keys probes by a band have found so far.
    pub(super) tried: AtomicU64,
    marks: Vec<AtomicBool>,
    pub memory: usize,
    /// The partitions that these rows are, if they are not all (Grace hash join).
    pub pass: Option<LoadedPartitions>,
}

/// The state of a probe between the vectors of its result.
#[derive(Debug, Default)]
pub(crate) struct ProbeState {
    words: KeyWords,
    numbers: Vec<i64>,
    valid: Vec<bool>,
    probe: algebra::dot::Probe,
    pub(super) first: Vec<u32>,
    /// Whether `first` is the only match of each row, though several rows have its key.
    pub(super) single: bool,
    /// For each row the run of the sorted rows that may match, if only those of a band may.
    pub(super) within: Option<Vec<Range<usize>>>,
    rows: usize,
    next: usize,
}

impl JoinTable {
    /// Builds the table from rows with these vectors and keys. `probes` says about how many rows will probe it, and whether these ask
    /// for the order of its rows.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more than 4 billion rows.
    pub fn new(
        keys: &[Var],
        types: Vec<Type>,
        columns: BTreeMap<Var, Vector>,
        rows: usize,
        marks: bool,
        probes: (u64, bool),
    ) -> Result<JoinTable> {
        if rows >= NONE as usize {
            return Err(Error::Unsupported(
                "build sides of more than 4 billion rows in a join".into(),
            ));
        }
        let vectors: Vec<&Vector> = keys.iter().filter_map(|key| columns.get(key)).collect();
        let index = Index::of(&vectors, types, rows, probes.0)?;
        Ok(JoinTable::with_index(
            keys, columns, rows, marks, probes, index,
        ))
    }

    /// As `new`, with the index of its rows and whether all keys are distinct.
    pub fn with_index(
        keys: &[Var],
        columns: BTreeMap<Var, Vector>,
        rows: usize,
        marks: bool,
        (expected_probes, is_ordered): (u64, bool),
        (index, unique): (Index, bool),
    ) -> JoinTable {
        let memory = index.memory();
        let in_order = if is_ordered && !unique {
            OrderedRows::memory(rows)
        } else {
            0
        };
        let marks = if marks { rows } else { 0 };
        JoinTable {
            rows,
            all: rows,
            numbers: None,
            columns,
            keys: keys.to_vec(),
            index,
            unique,
            ordered: OnceLock::new(),
            most_over: OnceLock::new(),
            by_code: OnceLock::new(),
            expected_probes,
            tried: AtomicU64::new(0),
            marks: std::iter::repeat_with(AtomicBool::default)
                .take(marks)
                .collect(),
            memory: memory + in_order + marks,
            pass: None,
        }
    }

    /// A table of columns only, whose keys are probed elsewhere.
    pub fn whole(columns: BTreeMap<Var, Vector>, rows: usize, unique: bool) -> JoinTable {
        JoinTable {
            rows,
            all: rows,
            numbers: None,
            columns,
            keys: vec![],
            index: Index::All,
            unique,
            ordered: OnceLock::new(),
            most_over: OnceLock::new(),
            by_code: OnceLock::new(),
            expected_probes: 0,
            tried: AtomicU64::new(0),
            marks: vec![],
            memory: 0,
            pass: None,
        }
    }

    /// Takes the rows out.
    pub fn into_rows(self) -> Materialized {
        Materialized {
            columns: self.columns,
            rows: self.rows,
        }
    }

    /// The vector `var`.
    ///
    /// # Errors
    /// An internal error if the table does not have it.
    pub fn column(&self, var: Var) -> Result<&Vector> {
        self.columns
            .get(&var)
            .ok_or_else(|| Error::internal(format!("a join table without vector {var}")))
    }

    /// Probes with the vectors `keys` of `batch`. Then [`one`](JoinTable::one), [`any`](JoinTable::any) and
    /// [`pairs`](JoinTable::pairs) give the matches. `types` are the types of all vectors of the query.
    pub fn find(
        &self,
        batch: &Batch,
        keys: &[Var],
        types: &[Type],
        probe_state: &mut ProbeState,
    ) -> Result<()> {
        let mut vectors = Vec::with_capacity(keys.len());
        for key in keys {
            vectors.push(batch.get(*key)?);
        }
        probe_state.rows = batch.rows;
        probe_state.next = 0;
        probe_state.within = None;
        probe_state.single = false;
        let ProbeState { first, probe, .. } = probe_state;
        match &self.index {
            Index::All => {
                first.clear();
                first.resize(batch.rows, if self.rows == 0 { NONE } else { 0 });
            }
            Index::CompositeKey(numbers, index) => {
                let (values, valid) =
                    numbers.pack(&vectors, &mut probe_state.numbers, &mut probe_state.valid)?;
                match index {
                    PackedIndex::Direct(direct) => direct.find(values, valid, first),
                    PackedIndex::Ranked(ranked) if self.unique => {
                        ranked.find_first(values, valid, first)
                    }
                    PackedIndex::Ranked(ranked) => ranked.probe(values, valid, probe),
                    PackedIndex::Hashed(hashed) => {
                        probe_state.words.number(values, SEED);
                        self.hashed(hashed, &probe_state.words, valid, first, probe);
                    }
                }
            }
            Index::KeyWords {
                hashed,
                layout,
                interners,
            } => {
                if let ([vector], [key]) = (&vectors[..], keys)
                    && self.coded(vector, &types[*key], first, probe)?
                {
                    return Ok(());
                }
                let mut texts = StringKeys::Known(interners);
                let own: Vec<&Type> = keys.iter().map(|key| &types[*key]).collect();
                layout.encode_as(
                    &own,
                    &vectors,
                    batch.rows,
                    &mut texts,
                    &mut probe_state.words,
                )?;
                let valid = probe_state.words.valid.as_deref();
                self.hashed(hashed, &probe_state.words, valid, first, probe);
            }
        }
        Ok(())
    }

    /// Probes by a text that is a code of a dictionary: what each of its labels finds is looked up once, if they are fewer than the
    /// rows that probe. Returns whether it did.
    fn coded(
        &self,
        vector: &Vector,
        ty: &Type,
        first: &mut Vec<u32>,
        probe: &mut algebra::dot::Probe,
    ) -> Result<bool> {
        let (Values::Code(codes), Some(labels)) = (&vector.values, &ty.labels) else {
            return Ok(false);
        };
        if labels.len() as u64 > self.expected_probes {
            return Ok(false);
        }
        let mut failed = None;
        let (of, found) = self.by_code.get_or_init(|| {
            let found = self.labels(labels);
            let found = found.unwrap_or_else(|error| {
                failed = Some(error);
                vec![]
            });
            (Arc::clone(labels), found)
        });
        if let Some(error) = failed {
            return Err(error);
        }
        if !Arc::ptr_eq(of, labels) {
            return Ok(false);
        }
        first.clear();
        // The code of a NULL may be any number.
        let row = |code: &u32| found.get(*code as usize).copied().unwrap_or(NONE);
        first.extend(codes.iter().map(row));
        if let Some(valid) = &vector.valid {
            algebra::dot::exclude(first, valid);
        }
        if !self.unique {
            probe.found(first);
        }
        Ok(true)
    }

    /// What each label of a dictionary finds: its only row, or its group.
    fn labels(&self, labels: &Dictionary) -> Result<Vec<u32>> {
        let Index::KeyWords {
            hashed,
            layout,
            interners,
        } = &self.index
        else {
            return Err(Error::internal("texts in an index of numbers"));
        };
        let texts = Vector::new(Values::Text(Strings::new(labels.labels().clone())));
        let ty = Type::of(&DataType::Utf8View, false);
        let ty = ty.ok_or_else(|| Error::internal("no type of texts"))?;
        let (mut words, mut known) = (KeyWords::default(), StringKeys::Known(interners));
        layout.encode_as(&[&ty], &[&texts], labels.len(), &mut known, &mut words)?;
        let (mut first, mut probe) = (Vec::new(), algebra::dot::Probe::new());
        self.hashed(
            hashed,
            &words,
            words.valid.as_deref(),
            &mut first,
            &mut probe,
        );
        Ok(if self.unique {
            first
        } else {
            probe.groups().to_vec()
        })
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

    /// The values of its key number `place`; `None` if it has no such key.
    pub fn key(&self, place: usize) -> Option<&Vector> {
        self.columns.get(self.keys.get(place)?)
    }

    /// The keys, if the table is indexed by a single whole number in a form that can test stored values.
    pub fn keys(&self) -> Option<Keys> {
        match &self.index {
            Index::CompositeKey(CompositeKey::Same, PackedIndex::Direct(direct)) => {
                Some(Keys::Direct(direct.clone()))
            }
            Index::CompositeKey(CompositeKey::Same, PackedIndex::Ranked(ranked)) => {
                Some(Keys::Ranked(ranked.clone()))
            }
            _ => None,
        }
    }

    /// For each probing row its match or [`NONE`], if no row can have several.
    pub fn one<'f>(&self, probe_state: &'f ProbeState) -> Option<&'f [u32]> {
        (self.unique || probe_state.single).then_some(&probe_state.first[..])
    }

    /// For each probing row [`NONE`] if it has no match, otherwise any other number.
    pub fn any<'f>(&self, probe_state: &'f ProbeState) -> &'f [u32] {
        match &self.index {
            Index::All => &probe_state.first,
            _ if self.unique => &probe_state.first,
            _ => probe_state.probe.groups(),
        }
    }

    /// The next pairs of (probing row, matching row), at most `most`; false once there are none left. Probing rows
    /// ascend.
    pub fn pairs(
        &self,
        probe_state: &mut ProbeState,
        left: &mut Vec<u32>,
        right: &mut Vec<u32>,
        most: usize,
    ) -> bool {
        left.clear();
        right.clear();
        let probe = &mut probe_state.probe;
        if probe_state.within.is_some() {
            self.pairs_within(probe_state, left, right, most);
            return !left.is_empty();
        }
        match &self.index {
            _ if probe_state.single => pairs_of_one(probe_state, left, right, most),
            Index::All => {
                let end = (probe_state.rows * self.rows).min(probe_state.next + most);
                for pair in probe_state.next..end {
                    left.push((pair / self.rows) as u32);
                    right.push((pair % self.rows) as u32);
                }
                probe_state.next = end;
                !left.is_empty()
            }
            Index::KeyWords { hashed, .. }
            | Index::CompositeKey(_, PackedIndex::Hashed(hashed))
                if !self.unique =>
            {
                hashed.matches(probe, left, right, most) || !left.is_empty()
            }
            Index::CompositeKey(_, PackedIndex::Ranked(ranked)) if !self.unique => {
                ranked.matches(probe, left, right, most) || !left.is_empty()
            }
            _ => pairs_of_one(probe_state, left, right, most),
        }
    }

    /// The next pairs of rows and those that may match them.
    fn pairs_within(
        &self,
        probe_state: &mut ProbeState,
        left: &mut Vec<u32>,
        right: &mut Vec<u32>,
        most: usize,
    ) {
        let ordered = self.ordered.get().and_then(Option::as_ref);
        let (Some(within), Some(ordered)) = (&mut probe_state.within, ordered) else {
            return;
        };
        while let Some(run) = within.get_mut(probe_state.next)
            && left.len() < most
        {
            let end = run.end.min(run.start + most - left.len());
            right.extend_from_slice(&ordered.rows()[run.start..end]);
            left.resize(right.len(), probe_state.next as u32);
            run.start = end;
            if run.start >= run.end {
                probe_state.next += 1;
            }
        }
    }

    /// Marks these rows as matched.
    pub fn mark(&self, rows: &[u32]) {
        for row in rows {
            let mark = &self.marks[*row as usize];
            // Reads first, so that cache lines of marks that are set already stay shared.
            if !mark.load(Ordering::Relaxed) {
                mark.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The rows whose mark equals `marked`.
    pub fn marked(&self, marked: bool) -> Vec<u32> {
        let rows = self.marks.iter().enumerate();
        rows.filter(|(_, mark)| mark.load(Ordering::Relaxed) == marked)
            .map(|(row, _)| row as u32)
            .collect()
    }
}

/// The next pairs of rows and their only matches; false once there are none left.
fn pairs_of_one(
    probe_state: &mut ProbeState,
    left: &mut Vec<u32>,
    right: &mut Vec<u32>,
    most: usize,
) -> bool {
    while probe_state.next < probe_state.rows && left.len() < most {
        let found = probe_state.first[probe_state.next];
        if found != NONE {
            left.push(probe_state.next as u32);
            right.push(found);
        }
        probe_state.next += 1;
    }
    !left.is_empty()
}
