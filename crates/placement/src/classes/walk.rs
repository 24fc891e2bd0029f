//! From a rank, or from chance, to the placement it stands for.

use super::count::{Choice, Counts, Fork, OfChoice, Taker};
use super::tree::{Id, Parts, Tree};
use super::ways::{Draw, Ways};

/// The core of each thread in the placement that `draw` leads to.
pub(crate) fn follow(
    tree: &Tree,
    counts: &Counts,
    threads: usize,
    draw: &mut Draw<'_>,
) -> Vec<usize> {
    let mut walk = Walk {
        tree,
        counts,
        draw,
        cores: vec![usize::MAX; threads],
    };
    let all = (0..threads).collect();
    match &tree.branches[tree.root].parts {
        Parts::Maps { .. } => walk.from(counts.begin(), &[], all),
        _ => walk.place(tree.root, all),
    }
    walk.cores
}

struct Walk<'w, 'r> {
    tree: &'w Tree,
    counts: &'w Counts,
    draw: &'w mut Draw<'r>,
    cores: Vec<usize>,
}

impl Walk<'_, '_> {
    /// Places `threads` from a fork on, in `branches` if the fork does not say where.
    fn from(&mut self, mut fork: Fork, mut branches: &[Id], mut threads: Vec<usize>) {
        while self.counts.end(fork).is_none() {
            let choices = self.counts.choices(fork);
            if let [
                Choice {
                    taker: Taker::Run(kind, count),
                    size,
                    ..
                },
            ] = choices[..]
                && size == threads.len()
                && count == branches.len()
            {
                // One run that takes all: nothing to choose here.
                fork = Fork::Equal(kind, count, size);
                continue;
            }
            let parts: Vec<OfChoice> = choices
                .iter()
                .map(|choice| self.counts.of_choice(choice))
                .collect();
            let options: Vec<Ways> = parts.iter().map(|parts| parts.all()).collect();
            let at = self.draw.choose(&options);
            let (choice, ways) = (choices[at], parts[at]);
            // The rank's digits: which threads, how these are placed, how the others are.
            let after = self.draw.divide(ways.inner.then(ways.next));
            let mut taken = Vec::with_capacity(choice.size);
            if choice.first {
                taken.push(threads.remove(0));
            }
            let more = choice.size - taken.len();
            let subsets = self.counts.subsets();
            taken.extend(self.draw.subset(subsets, &mut threads, more));
            self.draw.resume(after);
            let after = self.draw.divide(ways.next);
            match choice.taker {
                Taker::Branch(id) => self.place(id, taken),
                Taker::First(_) => {
                    self.place(branches[0], taken);
                    branches = &branches[1..];
                }
                Taker::Run(kind, count) => {
                    let run = Fork::Equal(kind, count, taken.len());
                    self.from(run, &branches[..count], taken);
                    branches = &branches[count..];
                }
            }
            self.draw.resume(after);
            fork = choice.next;
        }
        // What is left needs no choice: a thread for each of some cores, or none at all.
        for (thread, &id) in threads.into_iter().zip(branches) {
            self.place(id, vec![thread]);
        }
    }

    /// Places threads in a branch.
    fn place(&mut self, id: Id, threads: Vec<usize>) {
        let branch = &self.tree.branches[id];
        match &branch.parts {
            Parts::Core(core) => threads
                .into_iter()
                .for_each(|thread| self.cores[thread] = *core),
            Parts::Runs(runs) => {
                let fork = Fork::Runs(branch.kind, 0, threads.len());
                self.from(fork, &runs.concat(), threads);
            }
            Parts::Maps { .. } => unreachable!("only the root has maps"),
        }
    }
}
