//! Operator metrics of the fused executor: rows, operations, bytes and time of each operator.

use std::sync::Arc;
use std::time::Instant;

use memory::Traffic;
use parking_lot::Mutex;

use crate::expr::{Expr, Node};
use crate::logical::relation::{Fold, Function};
use crate::physical::program::{Operator, Pipeline, Sink, Source};
use crate::profile::Kernel;
use crate::time_line::{Seat, TimeLine};
use crate::vector::value::{Type, Var};

/// The work of one operator.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    rows: u64,
    operations: u64,
    bytes: u64,
    page_bytes: u64,
    nanoseconds: u64,
}

/// What an operator does per row.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    operations: u64,
    bytes: u64,
}

/// What a worker is doing. The metrics are kept in this order: the scan, then reading and running each operator in
/// turn, then reading for the sink and the sink, and last everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Opening a piece and testing the filters on stored codes.
    Scan,
    /// Reading the columns that this operator is the first to need; after the last operator, those of the sink.
    Read(usize),
    /// Running the operator of this number.
    Operator(usize),
    /// Running the sink.
    Sink,
    /// Anything else.
    Elsewhere,
}

/// The metrics of one pipeline's operators.
#[derive(Debug)]
pub(crate) struct PipelineMeter {
    names: Vec<String>,
    costs: Vec<Cost>,
    operators: usize,
    /// The number of filters of the scan.
    filters: u64,
    totals: Mutex<Vec<Work>>,
    /// Where spans are noted, and the operators there, if a time line is kept.
    time_line: Option<(Arc<TimeLine>, Vec<Option<usize>>)>,
}

/// A worker's clock: it attributes time to what the worker is doing.
#[derive(Debug)]
pub(crate) struct WorkerClock {
    meter: Arc<PipelineMeter>,
    pub traffic: Arc<Traffic>,
    own: Mutex<Own>,
}

#[derive(Debug)]
struct Own {
    /// What the worker is doing, and since when.
    at: usize,
    since: Instant,
    /// Bytes of pages counted so far.
    read: u64,
    works: Vec<Work>,
    /// The thread that did what is in `spans`.
    seat: Seat,
    /// Operators of the time line, and from when to when the worker was at them.
    spans: Vec<(usize, Instant, Instant)>,
}

impl PipelineMeter {
    /// The metrics of `pipeline` into `sink`. `types` are the types of all vectors.
    pub fn new(
        pipeline: &Pipeline,
        sink: &Sink,
        group_join: bool,
        types: &[Type],
    ) -> PipelineMeter {
        let operators = pipeline.operators.len();
        let mut meter = PipelineMeter {
            names: vec![String::new(); 2 * operators + 4],
            costs: vec![Cost::default(); 2 * operators + 4],
            operators,
            filters: 0,
            totals: Mutex::new(vec![Work::default(); 2 * operators + 4]),
            time_line: None,
        };
        let scan = match &pipeline.source {
            Source::Scan(scan) if !scan.filters.is_empty() => {
                meter.filters = scan.filters.len() as u64;
                let table = &scan.table.definition().name;
                format!("filter codes of {table} ({})", scan.shown.join(", "))
            }
            _ => String::new(),
        };
        meter.set(At::Scan, scan, Cost::default());
        for (number, operator) in pipeline.operators.iter().enumerate() {
            let mut reads = vec![];
            operator.reads(&mut |var| reads.push(var));
            reads.sort_unstable();
            reads.dedup();
            let own = match operator {
                Operator::Filter(_) => format!("filter ({})", names(&reads)),
                Operator::Map(var, _) => format!("lift {}", names(&[*var])),
                Operator::Together(together) => format!("lift {}", names(&together.vars)),
                Operator::Probe(probe) => {
                    format!("dot stage {} ({})", probe.stage, names(&probe.keys))
                }
                Operator::Expand(expand) => format!("rows of {}", expand.function.name()),
                Operator::Nulls(_) | Operator::Alias(_) => String::new(),
            };
            meter.set(At::Operator(number), own, operator_cost(operator, types));
            let read = format!("read ({})", names(&reads));
            meter.set(At::Read(number), read, Cost::default());
        }
        let reads: Vec<Var> = sink.reads(group_join).into_iter().collect();
        let read = format!("read ({})", names(&reads));
        meter.set(At::Read(operators), read, Cost::default());
        let own = match sink {
            Sink::Fold { keys, folds, .. } => {
                let args: Vec<Var> = folds.iter().flat_map(Fold::reads).collect();
                if keys.is_empty() {
                    format!("fold ({})", names(&args))
                } else {
                    format!("krao and fold by ({})", names(keys))
                }
            }
            Sink::Table { .. } => "collect rows of the build side".into(),
            Sink::Rows { .. } | Sink::Window { .. } => "collect rows".into(),
        };
        meter.set(At::Sink, own, sink_cost(sink, group_join, types));
        meter
    }

    /// The same, which notes on `line`, if there is one, what workers do in stage `stage`, whose source is `source`.
    pub fn on(mut self, line: Option<&Arc<TimeLine>>, stage: usize, source: &str) -> PipelineMeter {
        self.time_line = line.map(|line| {
            let name = |(place, name): (usize, &String)| match (place, &name[..]) {
                (0, "") => Some(line.operator(stage, source)),
                (_, "") => None,
                _ => Some(line.operator(stage, name)),
            };
            let operators = self.names.iter().enumerate().map(name);
            (line.clone(), operators.collect())
        });
        self
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
            At::Sink => 2 + 2 * self.operators,
            At::Elsewhere => 3 + 2 * self.operators,
        }
    }

    /// A clock for one worker, on a machine with this many nodes.
    pub fn clock(self: &Arc<PipelineMeter>, nodes: usize) -> WorkerClock {
        WorkerClock {
            traffic: Arc::new(Traffic::new(nodes)),
            own: Mutex::new(Own {
                at: self.place(At::Elsewhere),
                since: Instant::now(),
                read: 0,
                works: vec![Work::default(); self.names.len()],
                seat: Seat::present(),
                spans: Vec::new(),
            }),
            meter: self.clone(),
        }
    }

    /// Notes that the worker was at its operator until now.
    fn span(&self, own: &mut Own, now: Instant) {
        let Some((line, operators)) = &self.time_line else {
            return;
        };
        let seat = Seat::present();
        if seat != own.seat {
            line.add(own.seat, own.spans.drain(..));
            own.seat = seat;
        }
        if let Some(operator) = operators[own.at] {
            own.spans.push((operator, own.since, now));
        }
    }

    /// The profile: all operators that did any work.
    pub fn kernels(&self) -> Vec<Kernel> {
        let totals = self.totals.lock();
        let sink = self.place(At::Sink);
        let some = self.names.iter().zip(&*totals).enumerate();
        some.filter(|(_, (name, work))| !name.is_empty() && work.operations + work.bytes > 0)
            .map(|(place, (name, work))| Kernel {
                last: place == sink,
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
    /// Says what the worker does from now on.
    pub fn turn(&self, to: At) {
        let now = Instant::now();
        let mut own = self.own.lock();
        let own = &mut *own;
        self.meter.span(own, now);
        let work = &mut own.works[own.at];
        work.nanoseconds += (now - own.since).as_nanos() as u64;
        // Only reading pages moves the counter, and asking it takes longer than an operator on few rows.
        if own.at == 0 || own.at % 2 == 1 {
            let read = self.traffic.total();
            work.bytes += read - own.read;
            work.page_bytes += read - own.read;
            own.read = read;
        }
        own.at = self.meter.place(to);
        own.since = Instant::now();
    }

    /// Counts rows that reach the current operator, at its cost per row.
    pub fn rows(&self, rows: usize) {
        let mut own = self.own.lock();
        let (at, rows) = (own.at, rows as u64);
        let (work, cost) = (&mut own.works[at], self.meter.costs[at]);
        work.rows += rows;
        work.operations += rows * cost.operations;
        work.bytes += rows * cost.bytes;
    }

    /// Adds operations and bytes to the current operator.
    pub fn add(&self, operations: usize, bytes: usize) {
        let mut own = self.own.lock();
        let at = own.at;
        own.works[at].operations += operations as u64;
        own.works[at].bytes += bytes as u64;
    }

    /// Counts the filters of a scan for an opened piece of `rows` rows. A piece that zone maps excluded was not
    /// read and does not count.
    pub fn opened(&self, rows: usize) {
        if self.traffic.total() > self.own.lock().read {
            self.rows(rows);
            // Each filter writes a byte of the mask per row, and masks are combined.
            let tests = rows * self.meter.filters as usize;
            self.add(2 * tests, tests);
        }
    }

    /// Adds the worker's counts to the totals, and its bytes to `traffic`.
    pub fn end(self, traffic: &Traffic) {
        self.turn(At::Elsewhere);
        traffic.merge(&self.traffic);
        let own = self.own.into_inner();
        if let Some((line, _)) = &self.meter.time_line {
            line.add(own.seat, own.spans);
        }
        let mut totals = self.meter.totals.lock();
        for (total, own) in totals.iter_mut().zip(&own.works) {
            total.rows += own.rows;
            total.operations += own.operations;
            total.bytes += own.bytes;
            total.page_bytes += own.page_bytes;
            total.nanoseconds += own.nanoseconds;
        }
    }
}

/// The vectors by number, `#7`; [`ProfileCollector::name`](crate::ProfileCollector) puts names in their place.
fn names(vars: &[Var]) -> String {
    let all: Vec<String> = vars.iter().map(|var| format!("#{var}")).collect();
    all.join(", ")
}

fn width(types: &[Type], var: Var) -> u64 {
    types[var].width() as u64
}

fn operator_cost(operator: &Operator, types: &[Type]) -> Cost {
    match operator {
        Operator::Filter(e) => {
            let mut cost = expr_cost(e);
            cost.bytes += 1;
            cost
        }
        Operator::Map(_, e) => expr_cost(e),
        Operator::Together(together) => Cost {
            operations: together.vars.len() as u64,
            bytes: together.vars.iter().map(|var| width(types, *var)).sum(),
        },
        Operator::Probe(probe) => {
            let keys: u64 = probe.keys.iter().map(|key| width(types, *key)).sum();
            // Keys are combined and probed: an index entry of 8 bytes is read and a row number is written.
            Cost {
                operations: probe.keys.len() as u64,
                bytes: keys + 8 + 4,
            }
        }
        Operator::Expand(_) | Operator::Nulls(_) | Operator::Alias(_) => Cost::default(),
    }
}

fn sink_cost(sink: &Sink, group_join: bool, types: &[Type]) -> Cost {
    match sink {
        Sink::Fold { keys, folds, .. } => {
            let (mut operations, mut bytes) = if group_join {
                (1, 8)
            } else {
                let keys: Vec<u64> = keys.iter().map(|key| width(types, *key)).collect();
                (keys.len() as u64, keys.iter().sum())
            };
            for fold in folds {
                let state = match fold.function {
                    Function::Count | Function::CountTotal => 8,
                    Function::Avg
                    | Function::AvgOfSums { .. }
                    | Function::VarSamp
                    | Function::VarPop
                    | Function::StddevSamp
                    | Function::StddevPop => 24,
                    Function::OfPairs { .. } => 48,
                    _ => fold.arg.map_or(8, |arg| width(types, arg)),
                };
                operations += match fold.function {
                    Function::Avg | Function::AvgOfSums { .. } => 2,
                    // A difference from the mean before and after it moves, their product, and two sums.
                    Function::VarSamp
                    | Function::VarPop
                    | Function::StddevSamp
                    | Function::StddevPop => 5,
                    Function::OfPairs { .. } => 11,
                    _ => 1,
                };
                // The state of a single group stays in a register.
                let state = if keys.is_empty() { 0 } else { 2 * state };
                bytes += state
                    + fold
                        .reads()
                        .iter()
                        .map(|arg| width(types, *arg))
                        .sum::<u64>();
            }
            Cost { operations, bytes }
        }
        Sink::Table { .. } | Sink::Rows { .. } | Sink::Window { .. } => {
            let vars = sink.reads(group_join);
            let bytes: u64 = vars.iter().map(|var| 2 * width(types, *var)).sum();
            Cost {
                operations: 0,
                bytes,
            }
        }
    }
}

/// The cost of evaluating `e`: each node reads the vectors of its operands and writes one.
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
        Node::Arithmetic(_, a, b) | Node::Compare(_, a, b) | Node::Extreme(_, a, b) => {
            own(&[a, b], 1, &mut cost)
        }
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
        Node::Ranged(ranged) => own(&[&ranged.of], 1, &mut cost),
        Node::Case(branches, last) => {
            let mut parts: Vec<&Expr> = branches.iter().flat_map(|(a, b)| [a, b]).collect();
            parts.push(last);
            own(&parts, branches.len() as u64, &mut cost);
        }
        Node::Call(args, _) => own(&args.iter().collect::<Vec<_>>(), 1, &mut cost),
    }
    cost
}
