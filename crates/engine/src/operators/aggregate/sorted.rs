//! Sorted (streaming) aggregation by one whole number, for rows that come in the order of the key, as from a table
//! that was loaded in that order: needs neither hashing nor a dense index. A worker takes its morsels in order, so
//! its keys ascend; groups of two workers are matched by merging their ascending keys.

use std::ops::Range;

use algebra::krao::ascend;

use crate::vector::value::{Kind, Type, Values, Vector};

/// The keys of groups, by group number.
///
/// Invariants: the keys of one run ascend, and no key is in two runs.
#[derive(Debug)]
pub(crate) struct SortedGroups {
    ty: Type,
    keys: Vec<i64>,
    /// Where all runs but the last end. Each adopted worker adds a run.
    ends: Vec<usize>,
    /// Most entries of the dense index to use instead, should rows not come in order.
    pub most: u64,
}

impl SortedGroups {
    /// Without groups, for keys of these types; `None` unless they are one 64-bit whole number.
    pub fn new(types: &[Type], most: u64) -> Option<SortedGroups> {
        let [ty] = types else { return None };
        (ty.kind == Kind::Int).then(|| SortedGroups {
            ty: ty.clone(),
            keys: vec![],
            ends: vec![],
            most,
        })
    }

    /// The type of the key.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        8 * self.keys.capacity()
    }

    /// Numbers the groups of rows with these keys. Returns false, and changes nothing, if the keys do not continue
    /// the ascending order.
    pub fn number(&mut self, key: &Vector, numbers: &mut Vec<u32>) -> bool {
        match &key.values {
            Values::Int(values) if key.valid.is_none() && self.ends.is_empty() => {
                ascend(values, &mut self.keys, numbers)
            }
            _ => false,
        }
    }

    /// The keys of the groups `some`.
    pub fn keys(&self, some: &[u32]) -> Vector {
        let keys = some.iter().map(|group| self.keys[*group as usize]);
        Vector::new(Values::Int(keys.collect()))
    }

    fn runs(&self) -> Vec<Range<usize>> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let ends = self.ends.iter().copied().chain([self.keys.len()]);
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Whether all keys ascend.
    pub fn is_one_run(&self) -> bool {
        self.ends.is_empty()
    }

    /// The keys of groups that are [one run](Self::is_one_run).
    pub fn ascending(&self) -> &[i64] {
        &self.keys
    }

    /// The groups of one run with keys in `range`.
    pub fn within(&self, range: &Range<Option<i64>>) -> Range<usize> {
        let below = |end: i64| self.keys.partition_point(|key| *key < end);
        range.start.map_or(0, below)..range.end.map_or(self.keys.len(), below)
    }

    /// The same kind of groups, but none.
    pub fn without_groups(&self) -> SortedGroups {
        SortedGroups {
            ty: self.ty.clone(),
            keys: vec![],
            ends: vec![],
            most: self.most,
        }
    }

    /// Adds the groups of `other`; returns the number of each here.
    pub fn adopt(&mut self, other: &SortedGroups) -> Vec<u32> {
        let runs = other.runs().into_iter();
        runs.flat_map(|run| self.adopt_run(&other.keys[run]))
            .collect()
    }

    /// Adds groups with these keys, which ascend; returns the number of each.
    pub fn adopt_run(&mut self, theirs: &[i64]) -> Vec<u32> {
        let mut to = vec![u32::MAX; theirs.len()];
        for mine in self.runs() {
            each_common(&self.keys[mine.clone()], theirs, |at, there| {
                to[there] = (mine.start + at) as u32;
            });
        }
        self.ends.push(self.keys.len());
        for (to, key) in to.iter_mut().zip(theirs) {
            if *to == u32::MAX {
                *to = self.keys.len() as u32;
                self.keys.push(*key);
            }
        }
        to
    }
}

/// Calls `f` with the positions of each key that both have. Both ascend.
fn each_common(a: &[i64], b: &[i64], mut f: impl FnMut(usize, usize)) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            f(i, j);
            (i, j) = (i + 1, j + 1);
        } else if a[i] < b[j] {
            i += below(&a[i..], b[j]);
        } else {
            j += below(&b[j..], a[i]);
        }
    }
}

/// The number of keys below `key`, by galloping search: runs of one worker's keys are long.
fn below(keys: &[i64], key: i64) -> usize {
    let mut step = 1;
    while step < keys.len() && keys[step] < key {
        step *= 2;
    }
    let (from, to) = (step / 2, keys.len().min(step + 1));
    from + keys[from..to].partition_point(|own| *own < key)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use arrow::datatypes::DataType;
    use proptest::prelude::*;

    use super::*;

    fn of(keys: &BTreeSet<i64>) -> SortedGroups {
        let ty = Type::of(&DataType::Int64, false).unwrap();
        let mut made = SortedGroups::new(&[ty], 0).unwrap();
        let keys = Vector::new(Values::Int(keys.iter().copied().collect()));
        assert!(made.number(&keys, &mut vec![]));
        made
    }

    proptest! {
        #[test]
        fn groups_of_several_workers_are_one(workers in prop::collection::vec(prop::collection::btree_set(0i64..60, 0..40), 1..6)) {
            let mut all = of(&workers[0]);
            let mut number: BTreeMap<i64, u32> = workers[0].iter().copied().zip(0..).collect();
            for worker in &workers[1..] {
                let to = all.adopt(&of(worker));
                prop_assert_eq!(to.len(), worker.len());
                for (key, to) in worker.iter().zip(to) {
                    prop_assert_eq!(*number.entry(*key).or_insert(to), to);
                    prop_assert_eq!(all.keys[to as usize], *key);
                }
            }
            prop_assert_eq!(all.len(), number.len());
            let more = Vector::new(Values::Int(vec![i64::MAX]));
            prop_assert!(workers.len() == 1 || !all.number(&more, &mut vec![]));
        }
    }
}
