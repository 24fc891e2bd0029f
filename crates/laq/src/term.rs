//! What elements of matrices are, as terms over the records of tables.
//!
//! A matrix over the records of a table is a set of terms: conditions that say where it is not zero, the labels of
//! its rows, its value. A `dot` replaces, in the terms of its first operand, the table's own record by the one that
//! is looked up. Equal terms are one, so what a program says twice is found once.

use std::collections::{BTreeSet, HashMap};

use arrow::datatypes::DataType;
use engine::Function as Folding;

use crate::space::{Domain, FoldId, InstanceId, Space, TermId};
use crate::syntax::{Function, Sign};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Term {
    /// A column of a record.
    Column(InstanceId, usize),
    /// The label at a position, where a matrix has labels as columns.
    Label(usize),
    /// What a fold found for a group.
    Aggregate(InstanceId, usize),
    /// What a fold without groups found.
    Scalar(FoldId, usize),
    /// The looked up record exists.
    Present(InstanceId),
    /// It does not.
    Absent(InstanceId),
    /// Whether the record of an outer lookup exists: a value, which is never NULL.
    Exists(InstanceId),
    Literal(Literal),
    Apply(Op, Vec<TermId>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Literal {
    /// Digits and how many of them follow the point.
    Number(i128, u8),
    /// Bits of a float.
    Float(u64),
    Text(String),
    /// A date or a time, as it is stored.
    Typed(i64, DataType),
    Truth(bool),
    Null(DataType),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// Of two operands; `and` and `or` of any number.
    Sign(Sign),
    Not,
    Flip,
    IsNull,
    /// Condition, value, condition, value, ..., last value.
    Case,
    /// The first is one of the others, which are literals.
    In,
    Match(String),
    Function(Function),
}

/// A record that terms read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Instance {
    /// Each record of a table, one after the other.
    Root(usize),
    /// The record whose columns `by` (of a fold: whose keys) equal `keys`.
    Lookup {
        source: Source,
        by: Vec<usize>,
        keys: Vec<TermId>,
        /// Whether the terms that read it stay where there is no such record: its columns are NULL then.
        outer: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Table(usize),
    Fold(FoldId),
}

/// Groups of records and what is found of each.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub groups: Groups,
    /// Domains of the keys.
    pub domains: Vec<Domain>,
    pub found: Vec<Found>,
}

/// Which records, in which groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Groups {
    pub space: Space,
    pub conditions: BTreeSet<TermId>,
    pub keys: Vec<TermId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub function: Folding,
    pub of: Option<TermId>,
    pub name: String,
}

/// All terms of a program.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    terms: Vec<(Term, DataType)>,
    ids: HashMap<Term, TermId>,
    instances: Vec<Instance>,
    instance_ids: HashMap<Instance, InstanceId>,
    folds: Vec<Fold>,
    fold_ids: HashMap<Groups, FoldId>,
}

/// What replaces the records, or the labels, that a term reads.
pub(crate) enum Substitution {
    Record(InstanceId),
    Labels(Vec<TermId>),
    /// Each record that is looked up may be missing, but for these.
    Outer(BTreeSet<InstanceId>),
}

impl Terms {
    pub fn add(&mut self, term: Term, data: DataType) -> TermId {
        if let Some(id) = self.ids.get(&term) {
            return *id;
        }
        let id = TermId(self.terms.len() as u32);
        self.ids.insert(term.clone(), id);
        self.terms.push((term, data));
        id
    }

    pub fn get(&self, id: TermId) -> &Term {
        &self.terms[id.0 as usize].0
    }

    pub fn data(&self, id: TermId) -> &DataType {
        &self.terms[id.0 as usize].1
    }

    pub fn literal(&self, id: TermId) -> Option<&Literal> {
        match self.get(id) {
            Term::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    pub fn instance(&mut self, instance: Instance) -> InstanceId {
        if let Some(id) = self.instance_ids.get(&instance) {
            return *id;
        }
        let id = InstanceId(self.instances.len() as u32);
        self.instance_ids.insert(instance.clone(), id);
        self.instances.push(instance);
        id
    }

    pub fn of(&self, id: InstanceId) -> &Instance {
        &self.instances[id.0 as usize]
    }

    pub fn fold(&self, id: FoldId) -> &Fold {
        &self.folds[id.0 as usize]
    }

    pub fn add_fold(&mut self, groups: Groups, domains: Vec<Domain>) -> FoldId {
        if let Some(id) = self.fold_ids.get(&groups) {
            return *id;
        }
        let id = FoldId(self.folds.len() as u32);
        self.fold_ids.insert(groups.clone(), id);
        self.folds.push(Fold {
            groups,
            domains,
            found: vec![],
        });
        id
    }

    /// The position of `found` among the results of `fold`, which gets it if it has not got it yet.
    pub fn find(&mut self, fold: FoldId, found: Found) -> usize {
        let all = &mut self.folds[fold.0 as usize].found;
        let same = |other: &Found| other.function == found.function && other.of == found.of;
        match all.iter().position(same) {
            Some(position) => position,
            None => {
                all.push(found);
                all.len() - 1
            }
        }
    }

    /// All of `parts`, flattened.
    pub fn and(&mut self, parts: impl IntoIterator<Item = TermId>) -> TermId {
        let mut all = BTreeSet::new();
        for part in parts {
            self.conjuncts(part, &mut all);
        }
        match all.len() {
            0 => self.add(Term::Literal(Literal::Truth(true)), DataType::Boolean),
            1 => all.into_iter().next().unwrap_or_else(|| unreachable!()),
            _ => {
                let op = Op::Sign(Sign::And);
                self.add(
                    Term::Apply(op, all.into_iter().collect()),
                    DataType::Boolean,
                )
            }
        }
    }

    /// Adds the conjuncts of `term` to `into`, without those that are always true.
    pub fn conjuncts(&self, term: TermId, into: &mut BTreeSet<TermId>) {
        match self.get(term) {
            Term::Literal(Literal::Truth(true)) => {}
            Term::Apply(Op::Sign(Sign::And), parts) => {
                parts.iter().for_each(|part| self.conjuncts(*part, into));
            }
            _ => {
                into.insert(term);
            }
        }
    }

    /// `term` with its records, or its labels, replaced by those of `place`.
    pub fn substitute(&mut self, term: TermId, place: &Substitution) -> TermId {
        let (what, data) = self.terms[term.0 as usize].clone();
        let what = match what {
            Term::Label(position) => match place {
                Substitution::Labels(labels) => return labels[position],
                _ => return term,
            },
            Term::Scalar(..) | Term::Literal(_) => return term,
            Term::Column(instance, column) => {
                Term::Column(self.substitute_instance(instance, place), column)
            }
            Term::Aggregate(instance, n) => {
                Term::Aggregate(self.substitute_instance(instance, place), n)
            }
            Term::Present(instance) => match (self.substitute_instance(instance, place), place) {
                (new, Substitution::Outer(_)) if new != instance => Term::Exists(new),
                (new, _) => Term::Present(new),
            },
            Term::Absent(instance) => match (self.substitute_instance(instance, place), place) {
                (new, Substitution::Outer(_)) if new != instance => {
                    let exists = self.add(Term::Exists(new), DataType::Boolean);
                    Term::Apply(Op::Not, vec![exists])
                }
                (new, _) => Term::Absent(new),
            },
            Term::Exists(instance) => Term::Exists(self.substitute_instance(instance, place)),
            Term::Apply(op, args) => {
                let args = args
                    .into_iter()
                    .map(|arg| self.substitute(arg, place))
                    .collect();
                Term::Apply(op, args)
            }
        };
        self.add(what, data)
    }

    fn substitute_instance(&mut self, id: InstanceId, place: &Substitution) -> InstanceId {
        match self.of(id).clone() {
            Instance::Root(_) => match place {
                Substitution::Record(record) => *record,
                _ => id,
            },
            Instance::Lookup { .. } if matches!(place, Substitution::Outer(kept) if kept.contains(&id)) => {
                id
            }
            Instance::Lookup {
                source,
                by,
                keys,
                outer,
            } => {
                let keys = keys
                    .into_iter()
                    .map(|key| self.substitute(key, place))
                    .collect();
                self.instance(Instance::Lookup {
                    source,
                    by,
                    keys,
                    outer: outer || matches!(place, Substitution::Outer(_)),
                })
            }
        }
    }

    /// The record of each row of a table in turn, if any term reads it.
    pub fn find_root(&self, table: usize) -> Option<InstanceId> {
        self.instance_ids.get(&Instance::Root(table)).copied()
    }

    pub fn each_instance(&self, f: &mut dyn FnMut(&Instance)) {
        self.instances.iter().for_each(f);
    }

    pub fn each_term(&self, f: &mut dyn FnMut(&Term)) {
        self.terms.iter().for_each(|(term, _)| f(term));
    }

    /// Calls `f` with `term` and everything in it, but not with the keys of what is looked up.
    pub fn each(&self, term: TermId, f: &mut dyn FnMut(TermId)) {
        f(term);
        if let Term::Apply(_, args) = self.get(term) {
            args.iter().for_each(|arg| self.each(*arg, f));
        }
    }

    /// The records that `term` reads or tests for existence, without those that are only read to find them.
    pub fn instances(&self, term: TermId) -> BTreeSet<InstanceId> {
        let mut all = BTreeSet::new();
        self.each(term, &mut |term| match self.get(term) {
            Term::Column(instance, _)
            | Term::Aggregate(instance, _)
            | Term::Present(instance)
            | Term::Absent(instance)
            | Term::Exists(instance) => {
                all.insert(*instance);
            }
            _ => {}
        });
        all
    }

    /// The records that `terms` read, with those that are read to find them.
    pub fn all_instances(&self, terms: impl IntoIterator<Item = TermId>) -> BTreeSet<InstanceId> {
        let mut all = BTreeSet::new();
        let mut todo: Vec<TermId> = terms.into_iter().collect();
        while let Some(term) = todo.pop() {
            for instance in self.instances(term) {
                if all.insert(instance)
                    && let Instance::Lookup { keys, .. } = self.of(instance)
                {
                    todo.extend(keys);
                }
            }
        }
        all
    }

    /// How many outer lookups, one after the other, lead to a record.
    pub fn depth_of(&self, instance: InstanceId) -> usize {
        match self.of(instance) {
            Instance::Root(_) => 0,
            Instance::Lookup { keys, outer, .. } => {
                let below = keys.iter().map(|key| self.depth(*key)).max();
                below.unwrap_or(0) + usize::from(*outer)
            }
        }
    }

    /// How many outer lookups, one after the other, lead to what `term` reads.
    pub fn depth(&self, term: TermId) -> usize {
        let of = self.instances(term);
        of.into_iter()
            .map(|of| self.depth_of(of))
            .max()
            .unwrap_or(0)
    }

    /// Whether `test` holds for `term` or any term in it.
    pub fn any(&self, term: TermId, test: &dyn Fn(&Term) -> bool) -> bool {
        let mut found = false;
        self.each(term, &mut |term| found |= test(self.get(term)));
        found
    }
}
