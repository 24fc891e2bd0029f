//! Which records a relation reads, and what of them.

use std::collections::BTreeSet;

use crate::lower::lowering::Lowering;
use crate::space::{InstanceId, Space, TermId};
use crate::term::{Instance, Source, Term};

/// The records, columns and aggregates that a relation reads.
pub(super) struct Needs {
    /// In the order in which one leads to the next.
    pub instances: BTreeSet<InstanceId>,
    /// Those that must not be found.
    pub absent: BTreeSet<InstanceId>,
    pub columns: BTreeSet<(InstanceId, usize)>,
    pub aggregates: BTreeSet<(InstanceId, usize)>,
    /// The groups whose keys are the labels, where the columns are labels.
    pub root: Option<InstanceId>,
}

impl Needs {
    pub fn columns(&self, of: InstanceId) -> BTreeSet<usize> {
        let own = |(instance, _): &&(InstanceId, usize)| *instance == of;
        self.columns.iter().filter(own).map(|(_, n)| *n).collect()
    }

    pub fn aggregates(&self, of: InstanceId) -> BTreeSet<usize> {
        let own = |(instance, _): &&(InstanceId, usize)| *instance == of;
        self.aggregates
            .iter()
            .filter(own)
            .map(|(_, n)| *n)
            .collect()
    }
}

impl Lowering<'_> {
    pub(super) fn needs(
        &self,
        space: &Space,
        conditions: &BTreeSet<TermId>,
        wanted: &[TermId],
    ) -> Needs {
        let mut needs = Needs {
            instances: BTreeSet::new(),
            absent: BTreeSet::new(),
            columns: BTreeSet::new(),
            aggregates: BTreeSet::new(),
            root: None,
        };
        let mut todo: Vec<TermId> = conditions.iter().chain(wanted).copied().collect();
        while let Some(term) = todo.pop() {
            let mut reads = BTreeSet::new();
            self.terms
                .each(term, &mut |term| match self.terms.get(term) {
                    Term::Column(instance, column) => {
                        reads.insert(*instance);
                        needs.columns.insert((*instance, *column));
                    }
                    Term::Aggregate(instance, n) => {
                        reads.insert(*instance);
                        needs.aggregates.insert((*instance, *n));
                    }
                    Term::Present(instance) | Term::Exists(instance) => {
                        reads.insert(*instance);
                    }
                    Term::Absent(instance) => {
                        reads.insert(*instance);
                        needs.absent.insert(*instance);
                    }
                    _ => {}
                });
            for instance in reads {
                if needs.instances.insert(instance)
                    && let Instance::Lookup { keys, .. } = self.terms.of(instance)
                {
                    todo.extend(keys);
                }
            }
        }
        match space {
            Space::Rows(table) => {
                needs.instances.extend(self.terms.find_root(*table));
            }
            Space::Labels(_) => needs.root = self.root(&needs),
            Space::One => {}
        }
        needs
    }

    /// The fold whose groups the labels are, if a fold is looked up by all of them.
    fn root(&self, needs: &Needs) -> Option<InstanceId> {
        let plain = |id: &&InstanceId| {
            let Instance::Lookup {
                source: Source::Fold(_),
                keys,
                outer: false,
                ..
            } = self.terms.of(**id)
            else {
                return false;
            };
            let label = |(n, key): (usize, &TermId)| matches!(self.terms.get(*key), Term::Label(m) if *m == n);
            keys.iter().enumerate().all(label) && !needs.absent.contains(*id)
        };
        let found = needs.instances.iter().filter(plain);
        // One whose values are wanted rather than one that need not be made.
        found.copied().max_by_key(|id| {
            (
                needs.aggregates.iter().any(|(of, _)| of == id),
                std::cmp::Reverse(*id),
            )
        })
    }
}
