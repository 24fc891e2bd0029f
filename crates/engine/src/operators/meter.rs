//! Measuring the operators of the fused executor: rows, operations, bytes and time of each.

use std::sync::Arc;
use std::time::Instant;

use memory::Traffic;
use parking_lot::Mutex;

use crate::expr::{Expr, Node};
use crate::logical::relation::Function;
use crate::physical::program::{Operator, Pipeline, Sink, Source};
use crate::profile::Kernel;
use crate::vector::value::{Type, Var};

/// Work of one operator.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    rows: u64,
    operations: u64,
    bytes: u64,
    page_bytes: u64,
    nanoseconds: u64,
}

/// What an operator does with a row.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    operations: u64,
    bytes: u64,
}

/// An operator that a worker may be in. Their places: the scan, then a reading and a step in turn, the last reading,
/// the sink, and what belongs to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Opening a piece, with the filters on stored codes.
    Scan,
    /// Reading vectors that this step is the first to need; after the last step, the sink.
    Read(usize),
    /// The step of this number.
    Operator(usize),
    /// The sink.
    Sink,
    /// None of them.
    Elsewhere,
}

/// The operators of one pipeline, being measured.
#[derive(Debug)]
pub(crate) struct PipelineMeter {
    names: Vec<String>,
    costs: Vec<Cost>,
    steps: usize,
    /// Tests of the scan.
    filters: u64,
    totals: Mutex<Vec<Work>>,
}

/// A worker's own clock: time goes to the operator that it is in.
#[derive(Debug)]
pub(crate) struct WorkerClock {
    meter: Arc<PipelineMeter>,
    pub traffic: Arc<Traffic>,
    own: Mutex<Own>,
}

#[derive(Debug)]
struct Own {
    /// Where the worker is, and since when.
    at: usize,
    since: Instant,
    /// Bytes of pages that were counted.
    read: u64,
    works: Vec<Work>,
}

impl PipelineMeter {
    /// For `pipe` into `sink`, whose vectors have these types.
    pub fn new(pipe: &Pipeline, sink: &Sink, group_join: bool, types: &[Type]) -> PipelineMeter {
        let steps = pipe.steps.len();
        let mut meter = PipelineMeter {
            names: vec![String::new(); 2 * steps + 4],
            costs: vec![Cost::default(); 2 * steps + 4],
            steps,
            filters: 0,
            totals: Mutex::new(vec![Work::default(); 2 * steps + 4]),
        };
        let scan = match &pipe.source {
            Source::Scan(scan) if !scan.filters.is_empty() => {
                meter.filters = scan.filters.len() as u64;
                let table = &scan.table.definition().name;
                format!("filter codes of {table} ({})", scan.shown.join(", "))
            }
            _ => String::new(),
        };
        meter.set(At::Scan, scan, Cost::default());
        for (number, step) in pipe.steps.iter().enumerate() {
            let mut reads = vec![];
            step.reads(&mut |var| reads.push(var));
            reads.sort_unstable();
            reads.dedup();
            let own = match step {
                Operator::Filter(_) => format!("filter ({})", names(&reads)),
                Operator::Map(var, _) => format!("lift {}", names(&[*var])),
                Operator::Probe(probe) => {
                    format!("dot stage {} ({})", probe.stage, names(&probe.keys))
                }
                Operator::Nulls(_) | Operator::Alias(_) => String::new(),
            };
            meter.set(At::Operator(number), own, step_cost(step, types));
            let read = format!("read ({})", names(&reads));
            meter.set(At::Read(number), read, Cost::default());
        }
        let reads: Vec<Var> = sink.reads(group_join).into_iter().collect();
        let read = format!("read ({})", names(&reads));
        meter.set(At::Read(steps), read, Cost::default());
        let own = match sink {
            Sink::Fold { keys, folds, .. } => {
                let args: Vec<Var> = folds.iter().filter_map(|fold| fold.arg).collect();
                match keys.is_empty() {
                    true => format!("fold ({})", names(&args)),
                    false => format!("krao and fold by ({})", names(keys)),
                }
            }
            Sink::Table { .. } => "collect rows of a table".into(),
            Sink::Rows { .. } => "collect rows".into(),
        };
        meter.set(At::Sink, own, sink_cost(sink, group_join, types));
        meter
    }

    fn set(&mut self, at: At, name: String, cost: Cost) {
        let place = self.place(at);
        (self.names[place], self.costs[place]) = (name, cost);
    }

    fn place(&self, at: At) -> usize {
        match at {
            At::Scan => 0,
            At::Read(number) => 1 + 2 * number,
            At::Operator(number) => 2 + 2 * number,
            At::Sink => 2 + 2 * self.steps,
            At::Elsewhere => 3 + 2 * self.steps,
        }
    }

    /// A clock for one worker, of a machine with so many nodes.
    pub fn clock(self: &Arc<PipelineMeter>, nodes: usize) -> WorkerClock {
        WorkerClock {
            traffic: Arc::new(Traffic::new(nodes)),
            own: Mutex::new(Own {
                at: self.place(At::Elsewhere),
                since: Instant::now(),
                read: 0,
                works: vec![Work::default(); self.names.len()],
            }),
            meter: self.clone(),
        }
    }

    /// What was measured, operators that had something to do only.
    pub fn kernels(&self) -> Vec<Kernel> {
        let totals = self.totals.lock();
        let some = self.names.iter().zip(&*totals);
        some.filter(|(name, work)| !name.is_empty() && work.operations + work.bytes > 0)
            .map(|(name, work)| Kernel {
                name: name.clone(),
                rows: work.rows,
                operations: work.operations,
                bytes: work.bytes,
                page_bytes: work.page_bytes,
                seconds: work.nanoseconds as f64 / 1e9,
            })
            .collect()
    }
}

impl WorkerClock {
    /// From now on the worker is there.
    pub fn turn(&self, to: At) {
        let now = Instant::now();
        let mut own = self.own.lock();
        let own = &mut *own;
        let work = &mut own.works[own.at];
        work.nanoseconds += (now - own.since).as_nanos() as u64;
        // Only what reads pages moves the counter; asking it takes longer than a step of few rows.
        if own.at == 0 || own.at % 2 == 1 {
            let read = self.traffic.total();
            work.bytes += read - own.read;
            work.page_bytes += read - own.read;
            own.read = read;
        }
        own.at = self.meter.place(to);
        own.since = Instant::now();
    }

    /// `rows` rows come to the operator that the worker is in.
    pub fn rows(&self, rows: usize) {
        let mut own = self.own.lock();
        let (at, rows) = (own.at, rows as u64);
        let (work, cost) = (&mut own.works[at], self.meter.costs[at]);
        work.rows += rows;
        work.operations += rows * cost.operations;
        work.bytes += rows * cost.bytes;
    }

    /// Besides, it takes so many operations and bytes.
    pub fn add(&self, operations: usize, bytes: usize) {
        let mut own = self.own.lock();
        let at = own.at;
        own.works[at].operations += operations as u64;
        own.works[at].bytes += bytes as u64;
    }

    /// A piece of `rows` rows was opened: what its filters did. A piece whose zones say that no row passes was not read.
    pub fn opened(&self, rows: usize) {
        if self.traffic.total() > self.own.lock().read {
            self.rows(rows);
            // A byte of the mask for each row and filter, and the and of masks.
            let tests = rows * self.meter.filters as usize;
            self.add(2 * tests, tests);
        }
    }

    /// The worker is done: adds what it did to what others did, and its bytes to `traffic`.
    pub fn end(self, traffic: &Traffic) {
        self.turn(At::Elsewhere);
        traffic.merge(&self.traffic);
        let mut totals = self.meter.totals.lock();
        for (total, own) in totals.iter_mut().zip(&self.own.lock().works) {
            total.rows += own.rows;
            total.operations += own.operations;
            total.bytes += own.bytes;
            total.page_bytes += own.page_bytes;
            total.nanoseconds += own.nanoseconds;
        }
    }
}

/// Numbers, which [`Ledger::name`] makes names of.
fn names(vars: &[Var]) -> String {
    let all: Vec<String> = vars.iter().map(|var| format!("#{var}")).collect();
    all.join(", ")
}

fn width(types: &[Type], var: Var) -> u64 {
    types[var].width() as u64
}

fn step_cost(step: &Operator, types: &[Type]) -> Cost {
    match step {
        Operator::Filter(e) => {
            let mut cost = expr_cost(e);
            cost.bytes += 1;
            cost
        }
        Operator::Map(_, e) => expr_cost(e),
        Operator::Probe(probe) => {
            let keys: u64 = probe.keys.iter().map(|key| width(types, *key)).sum();
            // Combined, looked up; an entry of 8 bytes of the table, a row number written.
            Cost {
                operations: probe.keys.len() as u64,
                bytes: keys + 8 + 4,
            }
        }
        Operator::Nulls(_) | Operator::Alias(_) => Cost::default(),
    }
}

fn sink_cost(sink: &Sink, group_join: bool, types: &[Type]) -> Cost {
    match sink {
        Sink::Fold { keys, folds, .. } => {
            let (mut operations, mut bytes) = match group_join {
                true => (1, 8),
                false => {
                    let keys: Vec<u64> = keys.iter().map(|key| width(types, *key)).collect();
                    (keys.len() as u64, keys.iter().sum())
                }
            };
            for fold in folds {
                let state = match fold.function {
                    Function::Count => 8,
                    Function::Avg => 24,
                    _ => fold.arg.map_or(8, |arg| width(types, arg)),
                };
                operations += if fold.function == Function::Avg { 2 } else { 1 };
                // A single state stays in a register.
                let state = if keys.is_empty() { 0 } else { 2 * state };
                bytes += state + fold.arg.map_or(0, |arg| width(types, arg));
            }
            Cost { operations, bytes }
        }
        Sink::Table { .. } | Sink::Rows { .. } => {
            let vars = sink.reads(group_join);
            let bytes: u64 = vars.iter().map(|var| 2 * width(types, *var)).sum();
            Cost {
                operations: 0,
                bytes,
            }
        }
    }
}

/// What finding the values of `e` takes: each part reads the vectors of its own parts and writes one.
fn expr_cost(e: &Expr) -> Cost {
    let mut cost = Cost::default();
    let own = |parts: &[&Expr], operations: u64, cost: &mut Cost| {
        for part in parts {
            let inner = expr_cost(part);
            cost.operations += inner.operations;
            cost.bytes += inner.bytes;
            if !matches!(part.node, Node::Literal(_) | Node::Parameter(_)) {
                cost.bytes += part.ty.width() as u64;
            }
        }
        cost.operations += operations;
        cost.bytes += e.ty.width() as u64;
    };
    match &e.node {
        Node::Var(_) | Node::Literal(_) | Node::Parameter(_) => {}
        Node::Arithmetic(_, a, b) | Node::Compare(_, a, b) => own(&[a, b], 1, &mut cost),
        Node::And(all) | Node::Or(all) => {
            let parts: Vec<&Expr> = all.iter().collect();
            own(&parts, all.len().max(1) as u64 - 1, &mut cost);
        }
        Node::Not(inner)
        | Node::IsNull(inner)
        | Node::In(inner, _)
        | Node::Widen(inner)
        | Node::Scale(inner, _)
        | Node::Float(inner, _)
        | Node::Year(inner)
        | Node::Labels(inner, _) => own(&[inner], 1, &mut cost),
        Node::Case(branches, last) => {
            let mut parts: Vec<&Expr> = branches.iter().flat_map(|(a, b)| [a, b]).collect();
            parts.push(last);
            own(&parts, branches.len() as u64, &mut cost);
        }
        Node::Call(args, _) => own(&args.iter().collect::<Vec<_>>(), 1, &mut cost),
    }
    cost
}
