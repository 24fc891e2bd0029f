//! What a run did, in numbers, for whoever asks ([`Execution::ledger`](crate::Execution)): rows, bytes, operations and
//! time of each operator, blocks made and used again, what tasks were asleep for.
//!
//! Nothing is measured for nobody. What tasks of the streaming and the staged executor did is counted anyway and only
//! handed over. Operators of the fused one are timed vector by vector, which costs some per cent: what is to be
//! compared in time runs without a ledger.
//!
//! *Operations* are those of the operator, not the processor's: a comparison, a sum, a product, a look-up, a key
//! combined with others, a value added to its group, a value widened or gathered each count one per row. *Bytes* are
//! what kernels read and write: of pages the stored width, of vectors and masks theirs.

use std::sync::Arc;
use std::time::Instant;

use memory::Traffic;
use parking_lot::Mutex;

use crate::execution::Executor;
use crate::expr::{Expr, Node, Var};
use crate::plan::{Pipe, Sink, Source, Step};
use crate::rel::Function;
use crate::value::Type;

/// Where runs are noted.
#[derive(Debug, Default)]
pub struct Ledger {
    records: Mutex<Vec<Record>>,
}

/// How one stage ran (of a staged run, one pipeline of it).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The stage's number.
    pub stage: usize,
    /// What ran it; small stages are run fused, whatever was asked for.
    pub executor: Executor,
    /// From its begin to its end.
    pub seconds: f64,
    /// Most rows of an execution block; 0 where there are none (fused).
    pub block_rows: usize,
    /// Execution blocks that were allocated.
    pub blocks_made: u64,
    /// How often one was used again.
    pub blocks_reused: u64,
    /// Operators that are tasks of their own (stream, staged).
    pub operators: Vec<Operator>,
    /// What workers did one after the other (fused).
    pub kernels: Vec<Kernel>,
}

/// An operator whose tasks run beside those of others.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Operator {
    /// As `explain analyze` names it.
    pub name: String,
    /// Its tasks.
    pub tasks: Vec<Task>,
}

/// What one task did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// Blocks handed on; of the last operator, taken.
    pub blocks: u64,
    /// Their rows.
    pub rows: u64,
    /// Seconds of work.
    pub busy: f64,
    /// Seconds asleep because nothing came from the operator before it.
    pub for_input: f64,
    /// How often.
    pub times_for_input: u64,
    /// Seconds asleep because the operator behind it had no room.
    pub for_output: f64,
    /// How often.
    pub times_for_output: u64,
}

/// What all workers did in one operator of a pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Kernel {
    /// The operator and what it works on.
    pub name: String,
    /// Rows that came to it.
    pub rows: u64,
    /// Operations on them.
    pub operations: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Bytes of pages among them.
    pub page_bytes: u64,
    /// Seconds, added up over the workers.
    pub seconds: f64,
}

impl Ledger {
    /// One more stage has run.
    pub(crate) fn note(&self, record: Record) {
        self.records.lock().push(record);
    }

    /// Puts names in the place of the numbers of vectors.
    pub(crate) fn name(&self, named: impl Fn(&str) -> String) {
        for record in self.records.lock().iter_mut() {
            for kernel in &mut record.kernels {
                kernel.name = named(&kernel.name);
            }
        }
    }

    /// What has been noted since the last time, in the order in which stages ended.
    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.records.lock())
    }
}

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
    Step(usize),
    /// The sink.
    Sink,
    /// None of them.
    Elsewhere,
}

/// The operators of one pipeline, being measured.
#[derive(Debug)]
pub(crate) struct Meter {
    names: Vec<String>,
    costs: Vec<Cost>,
    steps: usize,
    /// Tests of the scan.
    filters: u64,
    totals: Mutex<Vec<Work>>,
}

/// A worker's own clock: time goes to the operator that it is in.
#[derive(Debug)]
pub(crate) struct Watch {
    meter: Arc<Meter>,
    pub traffic: Traffic,
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

impl Meter {
    /// For `pipe` into `sink`, whose vectors have these types.
    pub fn new(pipe: &Pipe, sink: &Sink, by_row: bool, types: &[Type]) -> Meter {
        let steps = pipe.steps.len();
        let mut meter = Meter {
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
                Step::Filter(_) => format!("filter ({})", names(&reads)),
                Step::Map(var, _) => format!("lift {}", names(&[*var])),
                Step::Probe(probe) => format!("dot stage {} ({})", probe.stage, names(&probe.keys)),
                Step::Nulls(_) | Step::Alias(_) => String::new(),
            };
            meter.set(At::Step(number), own, step_cost(step, types));
            let read = format!("read ({})", names(&reads));
            meter.set(At::Read(number), read, Cost::default());
        }
        let reads: Vec<Var> = sink.reads(by_row).into_iter().collect();
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
        meter.set(At::Sink, own, sink_cost(sink, by_row, types));
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
            At::Step(number) => 2 + 2 * number,
            At::Sink => 2 + 2 * self.steps,
            At::Elsewhere => 3 + 2 * self.steps,
        }
    }

    /// A clock for one worker, of a machine with so many nodes.
    pub fn watch(self: &Arc<Meter>, nodes: usize) -> Watch {
        Watch {
            traffic: Traffic::new(nodes),
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

impl Watch {
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

fn step_cost(step: &Step, types: &[Type]) -> Cost {
    match step {
        Step::Filter(e) => {
            let mut cost = expr_cost(e);
            cost.bytes += 1;
            cost
        }
        Step::Map(_, e) => expr_cost(e),
        Step::Probe(probe) => {
            let keys: u64 = probe.keys.iter().map(|key| width(types, *key)).sum();
            // Combined, looked up; an entry of 8 bytes of the table, a row number written.
            Cost {
                operations: probe.keys.len() as u64,
                bytes: keys + 8 + 4,
            }
        }
        Step::Nulls(_) | Step::Alias(_) => Cost::default(),
    }
}

fn sink_cost(sink: &Sink, by_row: bool, types: &[Type]) -> Cost {
    match sink {
        Sink::Fold { keys, folds, .. } => {
            let (mut operations, mut bytes) = match by_row {
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
            let vars = sink.reads(by_row);
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
