//! The end of a stage that makes the build side of a join.

use std::sync::Arc;

use futures::future::join_all;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::execute::partitioned::PartitionedTable;
use crate::execute::per_node::Instances;
use crate::execute::query_state::QueryState;
use crate::execute::reduction::origins;
use crate::execute::sink::{SinkFactory, SinkState};
use crate::memory::reservation::{Reservation, SLACK};
use crate::memory::spill::Lists;
use crate::operators::join_table::JoinTable;
use crate::physical::program::Sink;
use crate::vector::builder::RowsBuilder;
use crate::vector::radix::PARTITIONS;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Values, Var, Vector};

/// Bytes for each row of a table while its index comes to be: hashes, keys, groups.
const BUILDING: usize = 24;

impl QueryState {
    /// The end of a stage that makes a table.
    pub(crate) async fn table(
        &mut self,
        number: usize,
        sinks: &SinkFactory,
        ends: Vec<SinkState>,
    ) -> Result<()> {
        let Sink::Table { keys, marks, .. } = &sinks.sink else {
            return Err(Error::internal("a table of another sink"));
        };
        let gathered = ends.into_iter().map(SinkState::gathered);
        let mut gathered = gathered.collect::<Result<Vec<_>>>()?;
        let copies = self.instances.as_ref().map_or(1, |all| 1 + all.number());
        let rows: usize = gathered.iter().map(|one| one.rows.rows).sum();
        let crowded = sinks.may_spill && rows > self.room();
        if !crowded && gathered.iter().all(|one| one.away.is_empty()) {
            let bytes: usize = gathered.iter().map(|one| one.rows.memory()).sum();
            let held = Reservation::take(&self.runtime.budget, (bytes * copies) as u64, "a join");
            match held {
                Err(Error::Memory { .. }) if sinks.may_spill => {}
                held => {
                    let held = held?;
                    let rows = gathered.into_iter().map(|one| one.rows);
                    let mut rows: Vec<RowsBuilder> = rows.collect();
                    // All rows are there twice while they are put together.
                    let both = rows.iter_mut().map(|one| std::mem::take(&mut one.held));
                    let both: Vec<Reservation> = both.collect();
                    let nodes = RowsBuilder::nodes(&rows);
                    let (columns, rows) = RowsBuilder::concat(rows)?;
                    drop(both);
                    self.held[number].push(held);
                    let (stored, otherwise) = (Materialized { columns, rows }, sinks.may_spill);
                    let left = self.replicate(number, keys, stored, *marks, otherwise, &nodes);
                    let Some(stored) = left.await? else {
                        return Ok(());
                    };
                    let mut lists = vec![];
                    sinks.put(&stored, &mut lists)?;
                    drop(stored);
                    self.held[number].clear();
                    return self.part(number, sinks, lists);
                }
            }
        }
        let mut lists: Lists = vec![vec![]; PARTITIONS];
        for mut one in gathered.drain(..) {
            sinks.spill_rows(&mut one)?;
            lists
                .iter_mut()
                .zip(one.away)
                .for_each(|(all, own)| all.extend(own));
        }
        self.part(number, sinks, lists)
    }

    fn part(&mut self, number: usize, sinks: &SinkFactory, mut lists: Lists) -> Result<()> {
        let Sink::Table { keys, marks, .. } = &sinks.sink else {
            return Err(Error::internal("a table of another sink"));
        };
        lists.resize_with(PARTITIONS, Vec::new);
        self.note_spilled(number, "a table");
        self.partitioned[number] = Some(Arc::new(PartitionedTable {
            lists,
            vars: sinks.vars.clone(),
            keys: keys.clone(),
            marks: *marks,
            marked: Mutex::new(vec![vec![]; PARTITIONS]),
        }));
        Ok(())
    }

    /// A table of `stored` with these keys on each node that has an instance. Whoever has none uses the first. Gives
    /// the rows back if the table takes more memory than there is, and `otherwise` something else can be done with them.
    /// `nodes` tells where how many of the rows were collected, one run after the other, if it is known.
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
        // Bits that would take a twentieth of the memory that is left are too many however often they are looked at.
        let probes = self.sought[number].min(left / 32);
        // What is computed of keys before they are found by them.
        let building = (rows * BUILDING * keys.len().min(1)) as u64;
        let building = match Reservation::take(budget, building, "a join") {
            Err(_) if otherwise && rows > algebra::VECTOR_ROWS => return Ok(Some(stored)),
            Err(_) => Reservation::default(),
            building => building?,
        };
        let Some(mut all) = self.instances.take() else {
            let join_table = JoinTable::new(keys, types, stored.columns, rows, marks, probes)?;
            let bytes = join_table.memory;
            drop(building);
            return match self.take(number, bytes, "a join") {
                Err(Error::Memory { .. }) if otherwise => Ok(Some(join_table.into_rows())),
                Ok(()) if otherwise && bytes > SLACK && self.is_full() => {
                    Ok(Some(join_table.into_rows()))
                }
                done => done.map(|()| {
                    self.join_tables[number] = Some(Arc::new(join_table));
                    None
                }),
            };
        };
        // A part of a table may be missing what the whole would have.
        let uses = all.uses[number].clone();
        let uses = uses.filter(|_| self.partitioned[number].is_none());
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
                let mut join_table = JoinTable::new(&keys, types, own, some, marks, probes)?;
                join_table.memory += 4 * picks.as_ref().map_or(0, Vec::len);
                (join_table.all, join_table.numbers) = (rows, picks);
                Ok::<_, Error>(join_table)
            })
        });
        let mut made = Vec::new();
        for own in join_all(making).await {
            made.push(own.map_err(|e| Error::Call(Box::new(e)))??);
        }
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
        self.tell_table(number, &all, &made, width, nodes);
        // Groups by row have the numbers and the columns of the whole table.
        let whole = whole.then(|| {
            let unique = made.iter().all(|own| own.unique);
            Arc::new(JoinTable::whole(
                Arc::unwrap_or_clone(columns),
                rows,
                unique,
            ))
        });
        for (own, join_table) in all.join_tables.iter_mut().zip(made) {
            own[number] = Some(Arc::new(join_table));
        }
        self.join_tables[number] = whole.or_else(|| all.join_tables[0][number].clone());
        self.instances = Some(all);
        Ok(None)
    }

    /// Reports which rows of a table each node has, and where they were collected.
    fn tell_table(
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
            let line = format!("stage {number}: a table of {rows} rows on each of {nodes} nodes");
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
