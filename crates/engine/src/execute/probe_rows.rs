//! The probe side of a Grace hash join, spilled by the partitions of the join table, so that each of its rows is read twice
//! however many passes there are. Where these are few, the rows are made anew in each instead ([`grace`](crate::execute::grace)):
//! what they are read from is packed, and costs less to read again than to write unpacked.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::execute::partitioned::PartitionedTable;
use crate::execute::query_state::QueryState;
use crate::execute::sink::SinkState;
use crate::memory::spill::Lists;
use crate::physical::program::{Operator, Pipeline, Probe, Sink, Source, Stage};
use crate::vector::radix::PARTITIONS;

/// Passes from which on rows are spilled.
const MANY_PASSES: usize = 4;

/// Rows that were spilled before they probe a join table, by its partitions.
pub(crate) struct ProbeRows {
    /// For each pipeline its rows, and the number under which those of a pass are its source.
    pipelines: Vec<(usize, Arc<PartitionedTable>)>,
}

impl QueryState {
    /// Spills the rows that are to probe the join table of stage `table`, if there will be many passes and nothing else asks for
    /// their source. Returns them, and what is left of `stage`, whose pipelines begin with them.
    pub(crate) async fn probe_rows(
        &mut self,
        number: usize,
        stage: &Stage,
        (table, partitioned): (usize, &PartitionedTable),
        group_join: Option<usize>,
    ) -> Result<Option<(ProbeRows, Stage)>> {
        // Of a source without end a limit takes few rows.
        let (order, most) = stage.sink.sorts();
        let is_limited = order.is_empty() && most.is_some();
        if is_limited || !self.has_many_passes(partitioned) {
            return Ok(None);
        }
        let Some(places) = self.places_of(stage, table, group_join) else {
            return Ok(None);
        };
        let mut left = Stage {
            pipelines: Vec::with_capacity(places.len()),
            sink: stage.sink.clone(),
        };
        let mut rows = ProbeRows { pipelines: vec![] };
        for (pipeline, (place, probe)) in stage.pipelines.iter().zip(places) {
            let live = pipeline.live(stage.sink.reads(group_join.is_some()));
            let own = Stage {
                pipelines: vec![Pipeline {
                    operators: pipeline.operators[..place].to_vec(),
                    ..pipeline.clone()
                }],
                sink: Sink::Table {
                    keys: probe.keys.clone(),
                    vars: live[place].clone(),
                    marks: false,
                },
            };
            let parts = self.spilled_by_partition(number, &own).await?;
            let slot = self.spilled.len();
            self.spilled.push(None);
            self.rows.push(None);
            rows.pipelines.push((slot, Arc::new(parts)));
            left.pipelines.push(Pipeline {
                source: Source::Rows(slot),
                operators: pipeline.operators[place..].to_vec(),
                transfers: vec![],
            });
        }
        self.note_spilled(number, "the rows that probe a join hash table");
        Ok(Some((rows, left)))
    }

    /// Whether a partitioned table takes many passes.
    fn has_many_passes(&self, partitioned: &PartitionedTable) -> bool {
        if let Some(rows) = self.execution.max_rows_before_spill {
            return rows.is_multiple_of(2);
        }
        let bytes: usize = (0..PARTITIONS).map(|part| partitioned.memory(part)).sum();
        bytes / self.pass_bytes().max(1) >= MANY_PASSES
    }

    /// For each pipeline of `stage` the place of its probe of `table`, if it has one, no partitioned table comes before, and its rows
    /// may come in any order.
    fn places_of<'s>(
        &self,
        stage: &'s Stage,
        table: usize,
        group_join: Option<usize>,
    ) -> Option<Vec<(usize, &'s Probe)>> {
        if self.instances.is_some() || self.share.is_some() || group_join == Some(table) {
            return None;
        }
        let place = |pipeline: &'s Pipeline| {
            let is_marked = matches!(pipeline.source, Source::Marked { .. });
            if is_marked || pipeline.is_serial() {
                return None;
            }
            let probes = pipeline.operators.iter().enumerate();
            let mut probes = probes.filter_map(|(place, operator)| match operator {
                Operator::Probe(probe) if self.partitioned[probe.stage].is_some() => {
                    Some((place, probe))
                }
                _ => None,
            });
            let (place, probe) = probes.next()?;
            let is_first = probe.stage == table && !probe.keys.is_empty();
            let is_only = probes.all(|(_, other)| other.stage != table);
            (is_first && is_only).then_some((place, probe))
        };
        stage.pipelines.iter().map(place).collect()
    }

    /// The rows of a stage that collects those of a join table, spilled by partition.
    async fn spilled_by_partition(
        &mut self,
        number: usize,
        stage: &Stage,
    ) -> Result<PartitionedTable> {
        let Sink::Table { keys, .. } = &stage.sink else {
            return Err(Error::internal("rows by partition for another sink"));
        };
        let before = (self.sends, self.may_spill);
        (self.sends, self.may_spill) = (false, true);
        let mut sinks = Vec::new();
        let done = self.run_here(number, stage, None, &mut sinks).await;
        let factory = self.sink_factory(&stage.sink, None);
        (self.sends, self.may_spill) = before;
        done?;
        let factory = factory?;
        let mut lists: Lists = vec![vec![]; PARTITIONS];
        for sink in sinks {
            let mut own = SinkState::row_sink(sink)?;
            factory.spill_rows(&mut own)?;
            for (all, own) in lists.iter_mut().zip(own.spilled) {
                all.extend(own);
            }
        }
        Ok(PartitionedTable::new(
            lists,
            factory.vars.clone(),
            keys.clone(),
            false,
        ))
    }

    /// Makes the rows of `parts` those that the pipelines read next.
    pub(crate) fn read_parts(&mut self, rows: &ProbeRows, parts: Range<usize>) {
        for (slot, own) in &rows.pipelines {
            let extents = own.lists[parts.clone()].iter().flatten().copied();
            self.set_spilled(*slot, own.vars.clone(), extents.collect());
        }
    }

    /// The rows of one partition, divided as that of the join table is.
    pub(crate) fn divided_rows(&self, rows: &ProbeRows, part: usize) -> Result<ProbeRows> {
        let pipelines = rows.pipelines.iter().map(|(slot, own)| {
            let parts = match own.divided(part) {
                Some(parts) => parts,
                None => self.divided(own, part)?,
            };
            Ok((*slot, parts))
        });
        Ok(ProbeRows {
            pipelines: pipelines.collect::<Result<_>>()?,
        })
    }
}
