//! How many ways there are at each fork on the way to a placement.

use std::collections::HashMap;

use super::steps::{self, Step};
use super::tree::{Id, Kind, Parts, Tree};
use super::ways::{Subsets, Ways};

/// A point on the way to a placement, with so many threads (the last number) left to be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fork {
    /// In the runs of a branch of this kind, from this one on.
    Runs(Kind, usize, usize),
    /// In so many branches of this kind, which may be exchanged.
    Equal(Kind, usize, usize),
    /// In the fixed branches of a step, from this one on, and then in the others.
    Fixed(usize, usize, usize),
    /// In the moved branches of a step.
    Moved(usize, usize),
}

/// A way to go on from a fork: some threads go somewhere, the rest to the next fork.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    /// What takes the threads.
    pub(crate) taker: Taker,
    /// How many it takes,
    pub(crate) size: usize,
    /// of how many,
    pub(crate) of: usize,
    /// and whether the first of them must be among those.
    pub(crate) first: bool,
    pub(crate) next: Fork,
}

/// What takes threads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Taker {
    /// The first of the equal branches, which have this kind.
    First(Kind),
    /// This branch.
    Branch(Id),
    /// A run of so many branches of this kind.
    Run(Kind, usize),
}

/// What branches of one kind can hold.
#[derive(Debug, Clone)]
struct Content {
    least: usize,
    most: usize,
    /// The kind and number of the branches of each run; none for a core.
    runs: Vec<(Kind, usize)>,
}

/// The numbers of ways for one number of threads on one tree.
#[derive(Debug)]
pub(crate) struct Counts {
    threads: usize,
    contents: HashMap<Kind, Content>,
    /// The kind of each branch.
    kinds: Vec<Kind>,
    root: Kind,
    steps: Vec<Step>,
    subsets: Subsets,
    ways: HashMap<Fork, Ways>,
}

impl Counts {
    /// Counts; `limits` gives the least and the most threads on a core.
    pub(crate) fn new(
        tree: &Tree,
        threads: usize,
        limits: impl Fn(usize) -> (usize, usize),
    ) -> Counts {
        let steps = match &tree.branches[tree.root].parts {
            Parts::Maps { branches, maps } => steps::steps(branches, maps),
            _ => Vec::new(),
        };
        let mut counts = Counts {
            threads,
            contents: HashMap::new(),
            kinds: tree.branches.iter().map(|branch| branch.kind).collect(),
            root: tree.branches[tree.root].kind,
            steps,
            subsets: Subsets::of_up_to(threads),
            ways: HashMap::new(),
        };
        // Branches stand after those they consist of.
        for branch in &tree.branches {
            let content = match &branch.parts {
                Parts::Core(core) => {
                    let (least, most) = limits(*core);
                    let runs = Vec::new();
                    Content { least, most, runs }
                }
                Parts::Runs(runs) => counts.sum(runs.iter().map(|run| (run[0], run.len()))),
                Parts::Maps { branches, .. } => counts.sum(branches.iter().map(|&id| (id, 1))),
            };
            counts.contents.insert(branch.kind, content);
        }
        counts.count(counts.begin());
        counts
    }

    /// The content of a branch with these runs: the first branch and the number of each.
    fn sum(&self, runs: impl Iterator<Item = (Id, usize)>) -> Content {
        let runs: Vec<(Kind, usize)> = runs.map(|(id, count)| (self.kinds[id], count)).collect();
        let sum = |of: fn(&Content) -> usize| -> usize {
            let each = runs
                .iter()
                .map(|(kind, count)| of(&self.contents[kind]) * count);
            each.sum()
        };
        Content {
            least: sum(|content| content.least),
            most: sum(|content| content.most),
            runs,
        }
    }

    /// The steps of a root with irregular symmetries; none for any other.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn subsets(&self) -> &Subsets {
        &self.subsets
    }

    /// Where every placement begins.
    pub(crate) fn begin(&self) -> Fork {
        match self.steps.len() {
            0 => Fork::Runs(self.root, 0, self.threads),
            steps => self.fixed(steps - 1, 0, self.threads),
        }
    }

    /// In the fixed branches of a step, or past them.
    fn fixed(&self, step: usize, at: usize, threads: usize) -> Fork {
        if at < self.steps[step].fixed.len() {
            Fork::Fixed(step, at, threads)
        } else {
            Fork::Moved(step, threads)
        }
    }

    /// The ways to place all threads.
    pub(crate) fn total(&self) -> Ways {
        if self.is_core(self.root) {
            return Ways::ONE;
        }
        self.known(self.begin())
    }

    /// The ways from a fork on; one that was not counted cannot be reached.
    pub(crate) fn known(&self, fork: Fork) -> Ways {
        self.ways.get(&fork).copied().unwrap_or(Ways::NONE)
    }

    /// Counts the ways from a fork on, and from all that follow.
    fn count(&mut self, fork: Fork) -> Ways {
        if let Some(ways) = self.ways.get(&fork) {
            return *ways;
        }
        let mut ways = Ways::NONE;
        if let Some(possible) = self.end(fork) {
            ways = if possible { Ways::ONE } else { Ways::NONE };
        } else {
            for choice in self.choices(fork) {
                if self.count(choice.next).is_none() {
                    continue;
                }
                if let Some(inner) = self.inner(&choice) {
                    self.count(inner);
                }
                ways = ways.or(self.of_choice(&choice).all());
            }
        }
        self.ways.insert(fork, ways);
        ways
    }

    /// Where the threads taken by a choice go on; `None` where a core takes them.
    fn inner(&self, choice: &Choice) -> Option<Fork> {
        let kind = match choice.taker {
            Taker::Run(kind, count) => return Some(Fork::Equal(kind, count, choice.size)),
            Taker::First(kind) => kind,
            Taker::Branch(id) => self.kinds[id],
        };
        (!self.is_core(kind)).then_some(Fork::Runs(kind, 0, choice.size))
    }

    fn is_core(&self, kind: Kind) -> bool {
        let content = &self.contents[&kind];
        content.runs.is_empty() && content.most > 0
    }

    /// The ways that begin with a choice, in their three parts.
    pub(crate) fn of_choice(&self, choice: &Choice) -> OfChoice {
        let subsets = &self.subsets;
        OfChoice {
            subset: if choice.first {
                subsets.count(choice.of - 1, choice.size - 1)
            } else {
                subsets.count(choice.of, choice.size)
            },
            inner: match self.inner(choice) {
                Some(fork) => self.known(fork),
                None => Ways::ONE,
            },
            next: self.known(choice.next),
        }
    }

    /// Where nothing is left to choose: whether what is left is possible.
    pub(crate) fn end(&self, fork: Fork) -> Option<bool> {
        match fork {
            Fork::Runs(kind, run, threads) => {
                (run == self.contents[&kind].runs.len()).then_some(threads == 0)
            }
            Fork::Equal(kind, count, threads) => {
                let content = &self.contents[&kind];
                let fits = (content.least * count..=content.most * count).contains(&threads);
                // Which of some cores with one thread at most gets one is no choice.
                let alike = content.runs.is_empty() && content.most <= 1;
                (!fits || threads == 0 || alike).then_some(fits)
            }
            Fork::Fixed(..) => None,
            Fork::Moved(step, threads) => {
                let moved = &self.steps[step].moved;
                let least = |id: &Id| self.contents[&self.kinds[*id]].least;
                let empty = moved.iter().all(|id| least(id) == 0);
                (threads == 0 || moved.is_empty()).then_some(threads == 0 && empty)
            }
        }
    }

    /// The choices at a fork that is no end, in the order of the ranks.
    pub(crate) fn choices(&self, fork: Fork) -> Vec<Choice> {
        match fork {
            Fork::Runs(kind, run, of) => {
                let runs = &self.contents[&kind].runs;
                let (part, count) = runs[run];
                let next = |left| Fork::Runs(kind, run + 1, left);
                let mut choices = self.takers(Taker::Run(part, count), of, false, next);
                if run + 1 == runs.len() {
                    // The last takes all that is left.
                    choices.retain(|choice| choice.size == of);
                }
                choices
            }
            Fork::Equal(kind, count, of) => {
                let next = |left| Fork::Equal(kind, count - 1, left);
                self.takers(Taker::First(kind), of, true, next)
            }
            Fork::Fixed(step, at, of) => {
                let id = self.steps[step].fixed[at];
                let next = |left| self.fixed(step, at + 1, left);
                self.takers(Taker::Branch(id), of, false, next)
            }
            Fork::Moved(step, of) => {
                let orbits = self.steps[step].choices.iter();
                let takers = |&(id, following): &(Id, usize)| {
                    let next = move |left| self.fixed(following, 0, left);
                    self.takers(Taker::Branch(id), of, true, next)
                };
                orbits.flat_map(takers).collect()
            }
        }
    }

    /// One choice for each number of the `of` threads that the taker can take.
    fn takers(
        &self,
        taker: Taker,
        of: usize,
        first: bool,
        next: impl Fn(usize) -> Fork,
    ) -> Vec<Choice> {
        let (kind, count) = match taker {
            Taker::First(kind) => (kind, 1),
            Taker::Branch(id) => (self.kinds[id], 1),
            Taker::Run(kind, count) => (kind, count),
        };
        let content = &self.contents[&kind];
        let least = (content.least * count).max(usize::from(first));
        let sizes = least..=of.min(content.most * count);
        let choice = |size| Choice {
            taker,
            size,
            of,
            first,
            next: next(of - size),
        };
        sizes.map(choice).collect()
    }
}

/// The ways that begin with a choice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfChoice {
    /// To choose the threads that are taken,
    pub(crate) subset: Ways,
    /// to place these,
    pub(crate) inner: Ways,
    /// and to place the others.
    pub(crate) next: Ways,
}

impl OfChoice {
    pub(crate) fn all(self) -> Ways {
        self.subset.then(self.inner).then(self.next)
    }
}
