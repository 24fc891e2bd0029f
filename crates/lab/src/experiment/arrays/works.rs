//! What threads do while a query runs, from which a model of the machine tells time and energy.

use placement::cost::{CYCLES, Cost, Model, Step, Work};

/// The work of each group's threads, step by step.
pub(super) struct Works {
    groups: Vec<Vec<Step>>,
}

/// Who reads a block, and when.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub group: usize,
    pub member: usize,
    pub step: usize,
    pub node: usize,
    /// How many threads are on its core.
    pub sharing: usize,
}

impl Works {
    pub(super) fn new(groups: usize) -> Works {
        Works {
            groups: vec![Vec::new(); groups],
        }
    }

    /// Bytes that a last-level cache has had.
    pub(super) fn cached(&mut self, reader: Reader, bytes: f64) {
        self.add(reader, |work| work.cached(bytes).cycles(CYCLES * bytes));
    }

    /// Bytes that came from the memory of node `home`.
    pub(super) fn memory(&mut self, reader: Reader, home: usize, bytes: f64) {
        self.add(reader, |work| {
            let work = work.moved(reader.node, home, bytes);
            work.cycles(CYCLES * bytes)
        });
    }

    fn add(&mut self, reader: Reader, with: impl Fn(Work) -> Work) {
        let steps = &mut self.groups[reader.group];
        steps.resize_with(steps.len().max(reader.step + 1), Vec::new);
        let step = &mut steps[reader.step];
        step.resize_with(step.len().max(reader.member + 1), Work::default);
        let work = std::mem::take(&mut step[reader.member]);
        step[reader.member] = with(work).shared_by(reader.sharing as f64);
    }

    pub(super) fn cost(&self, model: &Model) -> Cost {
        let groups: Vec<&[Step]> = self.groups.iter().map(Vec::as_slice).collect();
        model.steps(&groups)
    }
}
