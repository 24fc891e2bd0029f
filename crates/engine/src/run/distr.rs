//! One instance of the engine for each node (plan distr, M2).
//!
//! An instance has workers of its own, takes what lies on its node and nothing else, and looks rows up in tables of
//! its own. Stages end together: what the instances' workers collected is merged, as that of the workers of one
//! instance is, and the table that it becomes is made once on each node, of the rows that its instance can need
//! (`needs.rs`).

use std::ops::Range;
use std::sync::Arc;

use fiber::{Place, Workers};
use futures::future::join_all;

use super::away::SLACK;
use super::needs::{self, Uses};
use super::{End, Run, Runtime, missing};
use crate::error::{Error, Result};
use crate::execution::Plan;
use crate::expr::Var;
use crate::held::Held;
use crate::lookup::Lookup;
use crate::plan::{How, Program, Stage, Step};
use crate::source::Stored;
use crate::value::{Type, Values, Vector};

/// Bytes for each row of a table while its index comes to be: hashes, keys, groups.
const BUILDING: usize = 24;

/// The instances of a query.
pub(super) struct Instances {
    workers: Arc<[Arc<Workers>]>,
    /// The instance that takes what lies on a node, by node.
    homes: Arc<[usize]>,
    /// The tables of each.
    lookups: Vec<Vec<Option<Arc<Lookup>>>>,
    /// For each stage, who looks rows up in its table, if that tells which rows they can need.
    uses: Vec<Option<Uses>>,
}

/// Which instance of a query a run is, if it is one of several.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    number: usize,
    /// How many there are.
    of: usize,
    homes: Arc<[usize]>,
}

impl Share {
    /// Whether this instance takes what lies on `node`.
    pub fn takes(&self, node: usize) -> bool {
        self.homes[node % self.homes.len()] == self.number
    }

    /// Which of how many instances it is.
    pub fn place(&self) -> (usize, usize) {
        (self.number, self.of)
    }

    /// How many instances there are.
    pub fn of(&self) -> usize {
        self.of
    }

    /// Of pieces that lie nowhere in particular, those that it takes.
    pub fn deal(&self, pieces: &[Range<usize>]) -> Arc<[Range<usize>]> {
        let own = pieces.iter().skip(self.number).step_by(self.of);
        own.cloned().collect()
    }
}

impl Instances {
    /// Those for `program`, whose vectors have these types; none where only one node has workers.
    pub fn new(runtime: &Runtime, program: &Program, types: &[Type]) -> Result<Option<Instances>> {
        let workers = runtime.workers.instances();
        let workers = workers.map_err(|e| Error::Call(Box::new(e)))?;
        if workers.len() < 2 {
            return Ok(None);
        }
        let node = |of: &Arc<Workers>| of.layout().places()[0].node;
        let home = |at: usize| {
            let mut near = runtime.nearness.from(at).iter();
            near.find_map(|near| workers.iter().position(|own| node(own) == *near))
        };
        let homes = (0..runtime.nearness.nodes()).map(|at| home(at).unwrap_or(0));
        Ok(Some(Instances {
            homes: homes.collect(),
            lookups: vec![vec![None; program.stages.len()]; workers.len()],
            uses: needs::uses(program, types),
            workers,
        }))
    }
}

/// The workers of so many tasks of a scan. With plan shard each node has its own, of whom one cannot take another's
/// task: those of one runtime go wherever somebody is awake, and who wakes late finds that others took his node's pieces.
pub(super) fn seats(workers: &Arc<Workers>, plan: Plan, tasks: usize) -> Result<Vec<Arc<Workers>>> {
    let usual = || vec![workers.clone(); tasks];
    if plan != Plan::Shard || workers.nodes() < 2 || tasks < 2 {
        return Ok(usual());
    }
    let all = workers.instances();
    let all = all.map_err(|e| Error::Call(Box::new(e)))?;
    if all.len() < 2 {
        return Ok(usual());
    }
    let places = workers.places();
    let seat = |place: &Place| {
        let mut all = all.iter();
        let own = all.find(|own| own.layout().places()[0].node == place.node);
        own.unwrap_or(workers).clone()
    };
    Ok(places.iter().cycle().take(tasks).map(seat).collect())
}

impl Run {
    /// The run of instance `number`.
    fn on(&self, all: &Instances, number: usize) -> Run {
        let mut runtime = self.runtime.clone();
        runtime.workers = all.workers[number].clone();
        Run {
            runtime,
            execution: self.execution.clone(),
            stop: self.stop.clone(),
            out: self.out.clone(),
            sends: self.sends,
            report: vec![],
            types: self.types.clone(),
            parameters: self.parameters.clone(),
            lookups: all.lookups[number].clone(),
            rows: self.rows.clone(),
            filed: self.filed.clone(),
            parted: vec![],
            spill: self.spill.clone(),
            may_part: self.may_part.clone(),
            sought: self.sought.clone(),
            may_spill: self.may_spill,
            held: vec![],
            width: self.width,
            share: Some(all.share(number)),
            instances: None,
        }
    }

    /// Runs the pipelines of a stage on all instances at once.
    pub(super) async fn everywhere(
        &mut self,
        all: &Instances,
        number: usize,
        stage: &Stage,
        by_row: Option<usize>,
        ends: &mut Vec<End>,
    ) -> Result<()> {
        let mut runs: Vec<Run> = (0..all.workers.len()).map(|n| self.on(all, n)).collect();
        let running = runs.iter_mut().map(|run| async move {
            let mut ends = Vec::new();
            let done = run.here(number, stage, by_row, &mut ends).await;
            if done.is_err() {
                run.stop.stop();
            }
            done.map(|()| ends)
        });
        let mut failed = None;
        for (done, workers) in join_all(running).await.into_iter().zip(&*all.workers) {
            let node = workers.layout().places()[0].node;
            match done {
                Ok(own) => ends.extend(own.into_iter().map(|end| end.of(node))),
                Err(Error::Cancelled) => failed = failed.or(Some(Error::Cancelled)),
                Err(e) => failed = Some(e),
            }
        }
        for (run, workers) in runs.into_iter().zip(&*all.workers) {
            let node = workers.layout().places()[0].node;
            let lines = run.report.into_iter();
            self.report
                .extend(lines.map(|line| format!("node {node}: {line}")));
        }
        failed.map_or(Ok(()), Err)?;
        all.agree(stage)
    }

    /// A table of `stored` with these keys on each node that has an instance. Whoever has none uses the first. Gives
    /// the rows back if the table takes more memory than there is, and `otherwise` something else can be done with them.
    /// `nodes` tells where how many of the rows were collected, one run after the other, if it is known.
    pub(super) async fn replicate(
        &mut self,
        number: usize,
        keys: &[Var],
        stored: Stored,
        marks: bool,
        otherwise: bool,
        nodes: &[(Option<usize>, usize)],
    ) -> Result<Option<Stored>> {
        let types: Vec<Type> = keys.iter().map(|key| self.types[*key].clone()).collect();
        let rows = stored.rows;
        let budget = &self.runtime.budget;
        let left = budget.limit().saturating_sub(budget.used());
        // Bits that would take a twentieth of the memory that is left are too many however often they are looked at.
        let probes = self.sought[number].min(left / 32);
        // What is computed of keys before they are found by them.
        let building = (rows * BUILDING * keys.len().min(1)) as u64;
        let building = match Held::take(budget, building, "a join") {
            Err(_) if otherwise && rows > algebra::VECTOR_ROWS => return Ok(Some(stored)),
            Err(_) => Held::default(),
            building => building?,
        };
        let Some(mut all) = self.instances.take() else {
            let lookup = Lookup::new(keys, types, stored.columns, rows, marks, probes)?;
            let bytes = lookup.memory;
            drop(building);
            return match self.take(number, bytes, "a join") {
                Err(Error::Memory { .. }) if otherwise => Ok(Some(lookup.into_rows())),
                Ok(()) if otherwise && bytes > SLACK && self.is_full() => {
                    Ok(Some(lookup.into_rows()))
                }
                done => done.map(|()| {
                    self.lookups[number] = Some(Arc::new(lookup));
                    None
                }),
            };
        };
        // A part of a table may be missing what the whole would have.
        let uses = all.uses[number].clone();
        let uses = uses.filter(|_| self.parted[number].is_none());
        let width: usize = stored.columns.keys().map(|v| self.types[*v].width()).sum();
        let columns = Arc::new(stored.columns);
        let making = all.workers.iter().enumerate().map(|(instance, workers)| {
            let (keys, types, columns) = (keys.to_vec(), types.clone(), columns.clone());
            let at = self.runtime.nearness.nodes();
            let reach = uses
                .as_ref()
                .and_then(|uses| uses.reach(&all.share(instance), at));
            workers.spawn(async move {
                let sought = keys.iter().filter_map(|key| columns.get(key));
                let sought: Vec<&Vector> = sought.collect();
                let picks = reach.and_then(|reach| reach.rows(&sought, rows));
                let own = columns
                    .iter()
                    .map(|(var, v)| Ok((*var, own(v, picks.as_deref())?)));
                let own = own.collect::<Result<_>>()?;
                let some = picks.as_ref().map_or(rows, Vec::len);
                let mut lookup = Lookup::new(&keys, types, own, some, marks, probes)?;
                lookup.memory += 4 * picks.as_ref().map_or(0, Vec::len);
                (lookup.all, lookup.numbers) = (rows, picks);
                Ok::<_, Error>(lookup)
            })
        });
        let mut made = Vec::new();
        for own in join_all(making).await {
            made.push(own.map_err(|e| Error::Call(Box::new(e)))??);
        }
        let some = made.iter().any(|own| own.numbers.is_some());
        let whole = some && uses.is_some_and(|uses| uses.by_row);
        if let (true, Some(held)) = (some, self.held[number].last_mut()) {
            let copies = made.iter().map(|own| own.rows).sum::<usize>();
            let copies = copies + if whole { rows } else { 0 };
            held.shrink(copies, (1 + made.len()) * rows);
        }
        drop(building);
        let bytes = made.iter().map(|own| own.memory).sum();
        let taken = self.take(number, bytes, "a join");
        let full = taken.is_ok() && bytes > SLACK && self.is_full();
        match taken {
            Ok(()) if !full => {}
            Ok(()) | Err(Error::Memory { .. }) if otherwise => {
                self.instances = Some(all);
                let columns = Arc::unwrap_or_clone(columns);
                return Ok(Some(Stored { columns, rows }));
            }
            taken => taken?,
        }
        self.tell_table(number, &all, &made, width, nodes);
        // Groups by row have the numbers and the columns of the whole table.
        let whole = whole.then(|| {
            let unique = made.iter().all(|own| own.unique);
            Arc::new(Lookup::whole(Arc::unwrap_or_clone(columns), rows, unique))
        });
        for (own, lookup) in all.lookups.iter_mut().zip(made) {
            own[number] = Some(Arc::new(lookup));
        }
        self.lookups[number] = whole.or_else(|| all.lookups[0][number].clone());
        self.instances = Some(all);
        Ok(None)
    }

    /// Reports which rows of a table each node has, and where they were collected.
    fn tell_table(
        &mut self,
        number: usize,
        all: &Instances,
        made: &[Lookup],
        width: usize,
        nodes: &[(Option<usize>, usize)],
    ) {
        let rows = made.first().map_or(0, |own| own.all);
        if made.iter().all(|own| own.numbers.is_none()) {
            let nodes = made.len();
            let line = format!("stage {number}: a table of {rows} rows on each of {nodes} nodes");
            return self.report.push(line);
        }
        for (own, workers) in made.iter().zip(&*all.workers) {
            let node = workers.layout().places()[0].node;
            let from = needs::origins(own.numbers.as_deref(), nodes);
            let from = from.iter().map(|(node, rows)| {
                let bytes = rows * width;
                format!("{bytes} bytes from node {node}")
            });
            let from = from.collect::<Vec<_>>().join(", ");
            self.report.push(format!(
                "stage {number}: node {node} has {} of the {rows} rows of a table: {from}",
                own.rows
            ));
        }
    }
}

/// The vector, or its rows at `picks`, in memory of whoever calls it: this is on the node that first writes to it.
fn own(vector: &Vector, picks: Option<&[u32]>) -> Result<Vector> {
    match (picks, &vector.values) {
        (None, _) => vector.copied(),
        (Some(picks), Values::Text(_)) => vector.at(picks)?.copied(),
        (Some(picks), _) => vector.at(picks),
    }
}

impl Instances {
    /// What instance `number` takes.
    fn share(&self, number: usize) -> Share {
        Share {
            number,
            of: self.workers.len(),
            homes: self.homes.clone(),
        }
    }

    /// How many they are.
    pub fn number(&self) -> usize {
        self.workers.len()
    }

    /// The tables of stage `number`.
    pub fn tables(&mut self, number: usize) -> impl Iterator<Item = &mut Arc<Lookup>> {
        self.lookups
            .iter_mut()
            .filter_map(move |own| own[number].as_mut())
    }

    /// Forgets the tables of stage `number`.
    pub fn forget(&mut self, number: usize) {
        self.lookups.iter_mut().for_each(|own| own[number] = None);
    }

    /// Rows of tables that one instance marked in `stage` are marked in all.
    fn agree(&self, stage: &Stage) -> Result<()> {
        for step in stage.pipes.iter().flat_map(|pipe| &pipe.steps) {
            let Step::Probe(probe) = step else { continue };
            if !matches!(probe.how, How::Mark | How::InnerMark | How::LeftMark) {
                continue;
            }
            let own = self.lookups.iter().map(|own| own[probe.stage].as_deref());
            let own: Vec<&Lookup> = own.collect::<Option<_>>().ok_or_else(missing)?;
            for one in &own {
                let marked = one.marked(true);
                own.iter().for_each(|other| other.mark(&marked));
            }
        }
        Ok(())
    }
}
