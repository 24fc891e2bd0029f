//! The per-node policy (`distr`): one instance of the engine for each NUMA node.
//!
//! An instance has workers and join tables of its own and reads only what lies on its node. All instances finish a
//! stage together: the sinks of all their workers are merged, as those of one instance are. A join table is built
//! once per node, from the rows that the instance can need (semi-join reduction by zone maps, `reduction.rs`).

use std::sync::Arc;

use workers::{Place, Workers};

use crate::error::{Error, Result, missing};
use crate::execute::reduction::{Probers, uses};
use crate::execute::share::InstanceShare;
use crate::operators::join_table::JoinTable;
use crate::options::NumaPolicy;
use crate::physical::program::{Operator, Program, Stage};
use crate::runtime::Runtime;
use crate::vector::value::Type;

/// The NUMA instances of a query.
pub(crate) struct Instances {
    pub workers: Arc<[Arc<Workers>]>,
    /// For each node, the instance that reads what lies there.
    pub homes: Arc<[usize]>,
    /// The join tables of each instance.
    pub join_tables: Vec<Vec<Option<Arc<JoinTable>>>>,
    /// For each stage, who probes its join table, if that limits which rows an instance can need.
    pub uses: Vec<Option<Probers>>,
}

impl Instances {
    /// The instances for `program`; `None` if only one node has workers.
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
            join_tables: vec![vec![None; program.stages.len()]; workers.len()],
            uses: uses(program, types),
            workers,
        }))
    }
}

/// Worker assignment: the workers for `tasks` tasks of a scan. Under the `shard` policy each node gets tasks that
/// run only on its own workers. Tasks spawned on the common runtime would run on whichever worker wakes first, and
/// a worker that wakes late would find its node's pieces taken.
pub(crate) fn worker_assignment(
    workers: &Arc<Workers>,
    numa_policy: NumaPolicy,
    tasks: usize,
) -> Result<Vec<Arc<Workers>>> {
    let usual = || vec![workers.clone(); tasks];
    if numa_policy != NumaPolicy::Shard || workers.nodes() < 2 || tasks < 2 {
        return Ok(usual());
    }
    let all = workers.instances();
    let all = all.map_err(|e| Error::Call(Box::new(e)))?;
    if all.len() < 2 {
        return Ok(usual());
    }
    let places = workers.places();
    let worker = |place: &Place| {
        let mut all = all.iter();
        let own = all.find(|own| own.layout().places()[0].node == place.node);
        own.unwrap_or(workers).clone()
    };
    Ok(places.iter().cycle().take(tasks).map(worker).collect())
}

impl Instances {
    /// The share of instance `number`.
    pub fn share(&self, number: usize) -> InstanceShare {
        InstanceShare {
            number,
            of: self.workers.len(),
            homes: self.homes.clone(),
        }
    }

    /// How many instances there are.
    pub fn number(&self) -> usize {
        self.workers.len()
    }

    /// The join tables of stage `number`.
    pub fn tables(&mut self, number: usize) -> impl Iterator<Item = &mut Arc<JoinTable>> {
        self.join_tables
            .iter_mut()
            .filter_map(move |own| own[number].as_mut())
    }

    /// Drops the join tables of stage `number`.
    pub fn forget(&mut self, number: usize) {
        self.join_tables
            .iter_mut()
            .for_each(|own| own[number] = None);
    }

    /// Makes marks agree: a row that one instance marked during `stage` is marked in the join tables of all
    /// instances.
    pub fn agree(&self, stage: &Stage) -> Result<()> {
        for operator in stage
            .pipelines
            .iter()
            .flat_map(|pipeline| &pipeline.operators)
        {
            let Operator::Probe(probe) = operator else {
                continue;
            };
            if !probe.marks {
                continue;
            }
            let own = self
                .join_tables
                .iter()
                .map(|own| own[probe.stage].as_deref());
            let own: Vec<&JoinTable> = own.collect::<Option<_>>().ok_or_else(missing)?;
            for one in &own {
                let marked = one.marked(true);
                own.iter().for_each(|other| other.mark(&marked));
            }
        }
        Ok(())
    }
}
