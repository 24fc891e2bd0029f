//! One instance of the engine for each node (plan distr, M2).
//!
//! An instance has workers of its own, takes what lies on its node and nothing else, and looks rows up in tables of
//! its own. Stages end together: what the instances' workers collected is merged, as that of the workers of one
//! instance is, and the table that it becomes is made once on each node, of the rows that its instance can need
//! (`needs.rs`).

use std::sync::Arc;

use fiber::{Place, Workers};

use crate::error::{Error, Result, missing};
use crate::execute::reduction::{Probers, uses};
use crate::execute::runtime::Runtime;
use crate::execute::share::InstanceShare;
use crate::operators::join_table::JoinTable;
use crate::options::Plan;
use crate::physical::program::{Operator, Program, Stage};
use crate::vector::value::Type;

/// The instances of a query.
pub(crate) struct Instances {
    pub workers: Arc<[Arc<Workers>]>,
    /// The instance that takes what lies on a node, by node.
    pub homes: Arc<[usize]>,
    /// The tables of each.
    pub join_tables: Vec<Vec<Option<Arc<JoinTable>>>>,
    /// For each stage, who looks rows up in its table, if that tells which rows they can need.
    pub uses: Vec<Option<Probers>>,
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
            join_tables: vec![vec![None; program.stages.len()]; workers.len()],
            uses: uses(program, types),
            workers,
        }))
    }
}

/// The workers of so many tasks of a scan. With plan shard each node has its own, of whom one cannot take another's
/// task: those of one runtime go wherever somebody is awake, and who wakes late finds that others took his node's pieces.
pub(crate) fn seats(workers: &Arc<Workers>, plan: Plan, tasks: usize) -> Result<Vec<Arc<Workers>>> {
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

impl Instances {
    /// What instance `number` takes.
    pub fn share(&self, number: usize) -> InstanceShare {
        InstanceShare {
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
    pub fn tables(&mut self, number: usize) -> impl Iterator<Item = &mut Arc<JoinTable>> {
        self.join_tables
            .iter_mut()
            .filter_map(move |own| own[number].as_mut())
    }

    /// Forgets the tables of stage `number`.
    pub fn forget(&mut self, number: usize) {
        self.join_tables
            .iter_mut()
            .for_each(|own| own[number] = None);
    }

    /// Rows of tables that one instance marked in `stage` are marked in all.
    pub fn agree(&self, stage: &Stage) -> Result<()> {
        for step in stage.pipes.iter().flat_map(|pipe| &pipe.steps) {
            let Operator::Probe(probe) = step else {
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
