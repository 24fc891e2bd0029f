//! Finishing a stage that builds a join table.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;

use crate::error::{Error, Result};
use crate::execute::partitioned::PartitionedTable;
use crate::execute::per_node::Instances;
use crate::execute::query_state::QueryState;
use crate::execute::reduction::{Probers, origins};
use crate::execute::sink::{SinkFactory, SinkState};
use crate::memory::reservation::{Reservation, SLACK};
use crate::memory::spill::Lists;
use crate::operators::join_index::Index;
use crate::operators::join_table::JoinTable;
use crate::operators::many_keys::ManyKeys;
use crate::physical::program::Sink;
use crate::vector::builder::RowsBuilder;
use crate::vector::radix::PARTITIONS;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Values, Var, Vector};

/// Bytes per row for hashes, keys and groups while the index is built. Building it range by range takes less: 8 for rows
/// divided by their keys, and besides 9 for keys that are packed, which are gone before the first range is indexed, or then 8
/// for the keys of ranges before they are those of the index. Building it partition by partition of hashes takes 20, and more is
/// reserved if that does not suffice.
const BUILDING: usize = 24;

impl QueryState {
    /// Builds the join table of stage `number` from the rows of all workers, or partitions it if it does not fit in
    /// memory.
    pub(crate) async fn finish_join_table(
        &mut self,
        number: usize,
        factory: &SinkFactory,
        sinks: Vec<SinkState>,
    ) -> Result<()> {
        let Sink::Table { keys, marks, .. } = &factory.sink else {
            return Err(Error::internal("a join table of another sink"));
        };
        let row_sinks = sinks.into_iter().map(SinkState::row_sink);
        let mut row_sinks = row_sinks.collect::<Result<Vec<_>>>()?;
        let copies = self.instances.as_ref().map_or(1, |all| 1 + all.number());
        let rows: usize = row_sinks.iter().map(|one| one.rows.rows).sum();
        let over_limit = factory.may_spill && rows > self.room();
        if !over_limit && row_sinks.iter().all(|one| one.spilled.is_empty()) {
            let bytes: usize = row_sinks.iter().map(|one| one.rows.memory()).sum();
            let held = Reservation::take(&self.runtime.budget, (bytes * copies) as u64, "a join");
            match held {
                Err(Error::Memory { .. }) if factory.may_spill => {}
                held => {
                    let held = held?;
                    let rows = row_sinks.into_iter().map(|one| one.rows);
                    let mut rows: Vec<RowsBuilder> = rows.collect();
                    // Rows are in memory twice while they are concatenated.
                    let both = rows.iter_mut().map(|one| std::mem::take(&mut one.held));
                    let both: Vec<Reservation> = both.collect();
                    let nodes = RowsBuilder::nodes(&rows);
                    let (columns, rows) = self.concat(rows).await?;
                    drop(both);
                    self.held[number].push(held);
                    let (stored, otherwise) = (Materialized { columns, rows }, factory.may_spill);
                    let left = self.replicate(number, keys, stored, *marks, otherwise, &nodes);
                    let Some(stored) = left.await? else {
                        return Ok(());
                    };
                    let mut lists = vec![];
                    factory.spill_as_needed(&stored, &mut lists)?;
                    drop(stored);
                    self.held[number].clear();
                    return self.keep_partitioned(number, factory, lists);
                }
            }
        }
        let mut lists: Lists = vec![vec![]; PARTITIONS];
        for mut one in row_sinks.drain(..) {
            factory.spill_rows(&mut one)?;
            lists
                .iter_mut()
                .zip(one.spilled)
                .for_each(|(all, own)| all.extend(own));
        }
        self.keep_partitioned(number, factory, lists)
    }

    fn keep_partitioned(
        &mut self,
        number: usize,
        factory: &SinkFactory,
        lists: Lists,
    ) -> Result<()> {
        let Sink::Table { keys, marks, .. } = &factory.sink else {
            return Err(Error::internal("a join table of another sink"));
        };
        self.note_spilled(number, "a join hash table");
        let (vars, keys) = (factory.vars.clone(), keys.clone());
        let table = PartitionedTable::new(lists, vars, keys, *marks);
        self.partitioned[number] = Some(Arc::new(table));
        Ok(())
    }

    /// Builds the join table of `stored` with these keys, once for each NUMA instance. Returns the rows if the
    /// table does not fit in memory and `otherwise` says that the caller can partition them instead. `nodes` says
    /// where the rows were collected, run by run, if that is known.
    pub(crate) async fn replicate(
        &mut self,
        number: usize,
        keys: &[Var],
        stored: Materialized,
        marks: bool,
        otherwise: bool,
        nodes: &[(Option<usize>, usize)],
    ) -> Result<Option<Materialized>> {
        let types: Vec<Type> = keys.iter().map(|key| self.types[*key].clone()).collect();
        let rows = stored.rows;
        let budget = &self.runtime.budget;
        let left = budget.limit().saturating_sub(budget.used());
        // An index of more than about a twentieth of the free memory is too large, however often it is probed.
        let probes = self.expected_probes[number].min(left / 32);
        // Hashes and encoded keys, needed until the index is built.
        let building = (rows * BUILDING * keys.len().min(1)) as u64;
        let building = match Reservation::take(budget, building, "a join") {
            Err(_) if otherwise && rows > algebra::VECTOR_ROWS => return Ok(Some(stored)),
            Err(_) => Reservation::default(),
            building => building?,
        };
        let blueprint = Blueprint {
            keys: keys.to_vec(),
            types,
            rows,
            marks,
            probes: (probes, self.ordered[number]),
        };
        let Some(all) = self.instances.take() else {
            let join_table = self.join_table_of(&blueprint, stored.columns).await?;
            drop(building);
            return self.keep_join_table(number, join_table, otherwise);
        };
        // Of a partitioned table, an instance must not leave out rows.
        let uses = all.uses[number].clone();
        let uses = uses.filter(|_| self.partitioned[number].is_none());
        let width: usize = stored.columns.keys().map(|v| self.types[*v].width()).sum();
        let columns = Arc::new(stored.columns);
        let at = self.runtime.nearness.nodes();
        let made = build_on_nodes(&all, &blueprint, &columns, uses.as_ref(), at).await?;
        let some = made.iter().any(|own| own.numbers.is_some());
        let whole = some && uses.is_some_and(|uses| uses.group_join);
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
                return Ok(Some(Materialized { columns, rows }));
            }
            taken => taken?,
        }
        self.report_table(number, &all, &made, width, nodes);
        // A group join needs the row numbers and columns of the whole table.
        let whole = whole.then(|| {
            let unique = made.iter().all(|own| own.unique);
            JoinTable::whole(Arc::unwrap_or_clone(columns), rows, unique)
        });
        self.keep_on_nodes(number, all, made, whole);
        Ok(None)
    }

    /// Builds the join table of all rows: with all workers, if the keys are many, and found by hash or in no order.
    async fn join_table_of(
        &self,
        blueprint: &Blueprint,
        columns: BTreeMap<Var, Vector>,
    ) -> Result<JoinTable> {
        let rows = blueprint.rows;
        let columns = Arc::new(columns);
        let (keys, types) = (&blueprint.keys, &blueprint.types);
        let index = match ManyKeys::of(keys, types, &columns, rows, blueprint.probes.0)? {
            Some(ManyKeys::Scattered(numbers, keys)) => {
                let (packed, unique) = self.index_by_range(keys).await?;
                Some((Index::CompositeKey(numbers, packed), unique))
            }
            Some(ManyKeys::Hashed(form, keys)) => {
                let more = keys.building().saturating_sub(rows * BUILDING);
                match Reservation::take(&self.runtime.budget, more as u64, "a join") {
                    Ok(more) => {
                        let hashed = self.index_by_hash(keys).await?;
                        drop(more);
                        let unique = hashed.is_unique();
                        Some((form.index(hashed), unique))
                    }
                    Err(_) => None,
                }
            }
            None => None,
        };
        let columns = Arc::unwrap_or_clone(columns);
        match index {
            Some(index) => Ok(blueprint.with_index(columns, index)),
            None => blueprint.build(columns, rows),
        }
    }

    /// Keeps the join table of stage `number`, of which there is one. Returns its rows if it does not fit in memory
    /// and `otherwise` says that the caller can partition them instead.
    fn keep_join_table(
        &mut self,
        number: usize,
        join_table: JoinTable,
        otherwise: bool,
    ) -> Result<Option<Materialized>> {
        let bytes = join_table.memory;
        match self.take(number, bytes, "a join") {
            Err(Error::Memory { .. }) if otherwise => Ok(Some(join_table.into_rows())),
            Ok(()) if otherwise && bytes > SLACK && self.is_full() => {
                Ok(Some(join_table.into_rows()))
            }
            done => done.map(|()| {
                self.join_tables[number] = Some(Arc::new(join_table));
                None
            }),
        }
    }

    /// Keeps the join tables of stage `number`, one for each instance. Operators that are not of an instance use
    /// `whole`, or the first of the tables if there is none.
    fn keep_on_nodes(
        &mut self,
        number: usize,
        mut all: Instances,
        made: Vec<JoinTable>,
        whole: Option<JoinTable>,
    ) {
        for (own, join_table) in all.join_tables.iter_mut().zip(made) {
            own[number] = Some(Arc::new(join_table));
        }
        let first = || all.join_tables[0][number].clone();
        self.join_tables[number] = whole.map(Arc::new).or_else(first);
        self.instances = Some(all);
    }

    /// Reports which rows of a join table each node has, and where they were collected.
    fn report_table(
        &mut self,
        number: usize,
        all: &Instances,
        made: &[JoinTable],
        width: usize,
        nodes: &[(Option<usize>, usize)],
    ) {
        let rows = made.first().map_or(0, |own| own.all);
        if made.iter().all(|own| own.numbers.is_none()) {
            let nodes = made.len();
            let line = format!(
                "stage {number}: a join hash table of {rows} rows on each of {nodes} nodes"
            );
            return self.report.push(line);
        }
        for (own, workers) in made.iter().zip(&*all.workers) {
            let node = workers.layout().places()[0].node;
            let from = origins(own.numbers.as_deref(), nodes);
            let from = from.iter().map(|(node, rows)| {
                let bytes = rows * width;
                format!("{bytes} bytes from node {node}")
            });
            let from = from.collect::<Vec<_>>().join(", ");
            self.report.push(format!(
                "stage {number}: node {node} has {} of the {rows} rows of a join hash table: {from}",
                own.rows
            ));
        }
    }
}

/// What the copies of a join table on all nodes have in common.
#[derive(Clone)]
struct Blueprint {
    keys: Vec<Var>,
    /// The types of the keys.
    types: Vec<Type>,
    /// The rows of the whole build side.
    rows: usize,
    marks: bool,
    /// The number of probes that is expected, and whether they ask for the order of the rows.
    probes: (u64, bool),
}

impl Blueprint {
    /// The join table of `rows` rows.
    fn build(&self, columns: BTreeMap<Var, Vector>, rows: usize) -> Result<JoinTable> {
        let types = self.types.clone();
        JoinTable::new(&self.keys, types, columns, rows, self.marks, self.probes)
    }

    /// The join table of all rows, with their index and whether all keys are distinct.
    fn with_index(&self, columns: BTreeMap<Var, Vector>, index: (Index, bool)) -> JoinTable {
        let (rows, marks) = (self.rows, self.marks);
        JoinTable::with_index(&self.keys, columns, rows, marks, self.probes, index)
    }
}

/// Builds a join table on each instance's own workers, of the rows of `columns` that the instance can need
/// according to `uses`. `nodes` is how many NUMA nodes there are.
async fn build_on_nodes(
    all: &Instances,
    blueprint: &Blueprint,
    columns: &Arc<BTreeMap<Var, Vector>>,
    uses: Option<&Probers>,
    nodes: usize,
) -> Result<Vec<JoinTable>> {
    let making = all.workers.iter().enumerate().map(|(instance, workers)| {
        let (blueprint, columns) = (blueprint.clone(), columns.clone());
        let reach = uses.and_then(|uses| uses.reach(&all.share(instance), nodes));
        workers.spawn(async move {
            let keys = blueprint.keys.iter().filter_map(|key| columns.get(key));
            let keys: Vec<&Vector> = keys.collect();
            let picks = reach.and_then(|reach| reach.rows(&keys, blueprint.rows));
            let own = columns
                .iter()
                .map(|(var, v)| Ok((*var, copy_rows(v, picks.as_deref())?)));
            let own = own.collect::<Result<_>>()?;
            let some = picks.as_ref().map_or(blueprint.rows, Vec::len);
            let mut join_table = blueprint.build(own, some)?;
            join_table.memory += 4 * picks.as_ref().map_or(0, Vec::len);
            (join_table.all, join_table.numbers) = (blueprint.rows, picks);
            Ok::<_, Error>(join_table)
        })
    });
    let mut made = Vec::new();
    for own in join_all(making).await {
        made.push(own.map_err(|e| Error::Call(Box::new(e)))??);
    }
    Ok(made)
}

/// A copy of the vector, or of its rows at `picks`. Memory is allocated on the node of the caller, which first
/// writes to it.
fn copy_rows(vector: &Vector, picks: Option<&[u32]>) -> Result<Vector> {
    match (picks, &vector.values) {
        (None, _) => vector.copied(),
        (Some(picks), Values::Text(_)) => vector.at(picks)?.copied(),
        (Some(picks), _) => vector.at(picks),
    }
}
