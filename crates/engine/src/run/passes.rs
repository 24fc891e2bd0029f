//! Tables that do not fit in memory: what looks rows up in them runs once for each of some parts of theirs.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;

use super::away::Lists;
use super::sink::{End, Shape};
use super::{Run, open};
use crate::column::Collected;
use crate::error::{Error, Result};
use crate::expr::Var;
use crate::held::Held;
use crate::lookup::Lookup;
use crate::part::{PARTS, Pass};
use crate::plan::{How, Pipe, Program, Sink, Source, Stage, Step};
use crate::source::Stored;
use crate::spill::Extent;
use crate::value::{Kind, Vector};

/// A table whose rows were put away.
#[derive(Debug)]
pub(crate) struct Parted {
    /// By part.
    lists: Lists,
    vars: Vec<(Var, Kind)>,
    keys: Vec<Var>,
    marks: bool,
    /// For each part, the rows that were marked while it was in memory.
    marked: Mutex<Vec<Vec<u32>>>,
}

impl Parted {
    fn rows(&self, part: usize) -> usize {
        self.lists[part].iter().map(|extent| extent.rows).sum()
    }

    /// The rows of `parts`, one part after the other, that were marked.
    fn marked(&self, parts: Range<usize>) -> Vec<u32> {
        let (mut all, mut first) = (vec![], 0);
        let marked = self.marked.lock();
        for part in parts {
            all.extend(marked[part].iter().map(|row| first + row));
            first += self.rows(part) as u32;
        }
        all
    }

    /// Of the rows of `parts`, these ones are marked; they ascend.
    fn mark(&self, parts: Range<usize>, mut rows: &[u32]) {
        let mut marked = self.marked.lock();
        let mut first = 0;
        for part in parts {
            let end = first + self.rows(part) as u32;
            let (own, rest) = rows.split_at(rows.partition_point(|row| *row < end));
            marked[part] = own.iter().map(|row| row - first).collect();
            (rows, first) = (rest, end);
        }
    }

    /// Bytes of the rows of one part.
    fn memory(&self, part: usize) -> usize {
        self.lists[part].iter().map(|extent| extent.memory).sum()
    }
}

/// What a table takes for each byte of its rows: they are read, put together and indexed.
const MARGIN: usize = 4;

impl Run {
    /// The end of a stage that makes a table.
    pub(super) async fn table(
        &mut self,
        number: usize,
        shape: &Shape,
        ends: Vec<End>,
    ) -> Result<()> {
        let Sink::Table { keys, marks, .. } = &shape.sink else {
            return Err(Error::internal("a table of another sink"));
        };
        let gathered = ends.into_iter().map(End::gathered);
        let mut gathered = gathered.collect::<Result<Vec<_>>>()?;
        let copies = self.instances.as_ref().map_or(1, |all| 1 + all.number());
        let rows: usize = gathered.iter().map(|one| one.rows.rows).sum();
        let crowded = shape.may_spill && rows > self.room();
        if !crowded && gathered.iter().all(|one| one.away.is_empty()) {
            let bytes: usize = gathered.iter().map(|one| one.rows.memory()).sum();
            let held = Held::take(&self.runtime.budget, (bytes * copies) as u64, "a join");
            match held {
                Err(Error::Memory { .. }) if shape.may_spill => {}
                held => {
                    let held = held?;
                    let rows = gathered.into_iter().map(|one| one.rows);
                    let mut rows: Vec<Collected> = rows.collect();
                    // All rows are there twice while they are put together.
                    let both = rows.iter_mut().map(|one| std::mem::take(&mut one.held));
                    let both: Vec<Held> = both.collect();
                    let nodes = Collected::nodes(&rows);
                    let (columns, rows) = Collected::concat(rows)?;
                    drop(both);
                    self.held[number].push(held);
                    let (stored, otherwise) = (Stored { columns, rows }, shape.may_spill);
                    let left = self.replicate(number, keys, stored, *marks, otherwise, &nodes);
                    let Some(stored) = left.await? else {
                        return Ok(());
                    };
                    let mut lists = vec![];
                    shape.put(&stored, &mut lists)?;
                    drop(stored);
                    self.held[number].clear();
                    return self.part(number, shape, lists);
                }
            }
        }
        let mut lists: Lists = vec![vec![]; PARTS];
        for mut one in gathered.drain(..) {
            shape.put_rows(&mut one)?;
            lists
                .iter_mut()
                .zip(one.away)
                .for_each(|(all, own)| all.extend(own));
        }
        self.part(number, shape, lists)
    }

    fn part(&mut self, number: usize, shape: &Shape, mut lists: Lists) -> Result<()> {
        let Sink::Table { keys, marks, .. } = &shape.sink else {
            return Err(Error::internal("a table of another sink"));
        };
        lists.resize_with(PARTS, Vec::new);
        self.note_spilled(number, "a table");
        self.parted[number] = Some(Arc::new(Parted {
            lists,
            vars: shape.vars.clone(),
            keys: keys.clone(),
            marks: *marks,
            marked: Mutex::new(vec![vec![]; PARTS]),
        }));
        Ok(())
    }

    /// Runs the pipelines of `stage` for all parts of `tables` that they look rows up in.
    pub(super) fn passes<'r>(
        &'r mut self,
        number: usize,
        stage: &'r Stage,
        tables: &'r [usize],
        by_row: Option<usize>,
        ends: &'r mut Vec<End>,
    ) -> BoxFuture<'r, Result<()>> {
        async move {
            let Some((table, others)) = tables.split_first() else {
                return self.waves(number, stage, by_row, ends).await;
            };
            let parted = self.parted[*table].clone();
            let parted = parted.ok_or_else(|| Error::internal("a table without parts"))?;
            let (mut next, mut passes) = (0, 0);
            while next < PARTS {
                let first = next;
                next = self.load(*table, &parted, first).await?;
                passes += 1;
                self.passes(number, stage, others, by_row, ends).await?;
                if let (true, Some(lookup)) = (parted.marks, &self.lookups[*table]) {
                    parted.mark(first..next, &lookup.marked(true));
                }
                self.forget(*table);
            }
            let line = format!("stage {number}: {passes} passes over the table of stage {table}");
            self.report.push(line);
            Ok(())
        }
        .boxed()
    }

    async fn waves(
        &mut self,
        number: usize,
        stage: &Stage,
        by_row: Option<usize>,
        ends: &mut Vec<End>,
    ) -> Result<()> {
        for wave in open::waves(stage) {
            match self.instances.take() {
                None => self.here(number, &wave, by_row, ends).await?,
                Some(all) => {
                    let done = self.everywhere(&all, number, &wave, by_row, ends);
                    done.await?;
                    self.instances = Some(all);
                }
            }
        }
        Ok(())
    }

    /// Makes a table of as many parts from number `first` on as there is room for; gives the number of the next.
    async fn load(&mut self, table: usize, parted: &Parted, first: usize) -> Result<usize> {
        let budget = &self.runtime.budget;
        let copies = self.instances.as_ref().map_or(1, |all| 1 + all.number());
        // A quarter is left for what passes through.
        let room = (budget.limit() / 4 * 3).saturating_sub(budget.used()) as usize;
        let room = room / (MARGIN * copies);
        let mut end = first + 1;
        let mut bytes = parted.memory(first);
        // As if only a few had room.
        let most = self.execution.room.map_or(PARTS, |_| first + PARTS / 3);
        while end < PARTS.min(most) && bytes + parted.memory(end) <= room {
            bytes += parted.memory(end);
            end += 1;
        }
        loop {
            match self.load_parts(table, parted, first..end).await {
                Err(Error::Memory { .. }) if end - first > 1 => end = first + (end - first) / 2,
                done => return done.map(|()| end),
            }
            self.forget(table);
        }
    }

    async fn load_parts(
        &mut self,
        table: usize,
        parted: &Parted,
        parts: Range<usize>,
    ) -> Result<()> {
        let extents = parted.lists[parts.clone()].iter().flatten();
        let extents: Vec<&Extent> = extents.collect();
        let bytes: usize = extents.iter().map(|extent| extent.memory).sum();
        let copies = self.instances.as_ref().map_or(1, |all| 1 + all.number());
        let held = Held::take(
            &self.runtime.budget,
            (bytes * copies) as u64,
            "part of a join",
        )?;
        self.held[table].push(held);
        // Read and put together, they are there twice; a single part must do with what there is.
        let both = Held::take(&self.runtime.budget, bytes as u64, "part of a join");
        let both = match both {
            Err(_) if parts.len() == 1 => Held::default(),
            both => both?,
        };
        let blocks = extents
            .iter()
            .map(|extent| self.spill.get(extent, &parted.vars));
        let blocks = blocks.collect::<Result<Vec<_>>>()?;
        let stored = joined(&blocks, &parted.vars)?;
        drop((blocks, both));
        self.replicate(table, &parted.keys, stored, parted.marks, false, &[])
            .await?;
        let mask = |part: usize| 1u64 << part;
        let pass = Pass {
            parts: parts.clone().map(mask).sum(),
        };
        let marked = parted.marked(parts);
        self.each_table(table, &mut |lookup| {
            // Nobody else has it yet.
            let lookup = Arc::get_mut(lookup)?;
            lookup.pass = Some(pass);
            lookup.mark(&marked);
            Some(())
        })
    }

    /// Calls `f` with the tables of stage `table`, of all instances.
    fn each_table(
        &mut self,
        table: usize,
        f: &mut dyn FnMut(&mut Arc<Lookup>) -> Option<()>,
    ) -> Result<()> {
        let own = match &mut self.instances {
            Some(all) => {
                self.lookups[table] = None;
                all.tables(table).map(f).collect::<Option<()>>()
            }
            None => self.lookups[table].iter_mut().map(f).collect(),
        };
        own.ok_or_else(|| Error::internal("a table in use"))?;
        if let Some(all) = &mut self.instances {
            self.lookups[table] = all.tables(table).next().cloned();
        }
        Ok(())
    }
}

/// All rows of `blocks`.
pub(super) fn joined(blocks: &[Stored], vars: &[(Var, Kind)]) -> Result<Stored> {
    let runs: Vec<_> = blocks
        .iter()
        .map(|block| 0..block.rows)
        .enumerate()
        .collect();
    let mut columns = std::collections::BTreeMap::new();
    for (var, kind) in vars {
        let parts: Vec<&Vector> = blocks.iter().map(|block| &block.columns[var]).collect();
        columns.insert(*var, Vector::runs(*kind, &parts, &runs)?);
    }
    Ok(Stored {
        columns,
        rows: blocks.iter().map(|block| block.rows).sum(),
    })
}

/// The pipelines of a stage, in groups with the parted tables that they look rows up in. One that reads which rows are
/// marked comes after those before it.
pub(super) fn groups(stage: &Stage, parted: &[Option<Arc<Parted>>]) -> Vec<(Vec<usize>, Stage)> {
    let mut groups: Vec<(BTreeSet<usize>, Vec<Pipe>)> = vec![];
    for pipe in &stage.pipes {
        let mut tables = BTreeSet::new();
        pipe.tables(&mut |table| {
            if parted[table].is_some() {
                tables.insert(table);
            }
        });
        let waits = matches!(pipe.source, Source::Marked { .. });
        let from = if waits {
            groups.len().saturating_sub(1)
        } else {
            0
        };
        let found = groups[from..].iter_mut().find(|(own, _)| *own == tables);
        match found {
            Some((_, pipes)) => pipes.push(pipe.clone()),
            None => groups.push((tables, vec![pipe.clone()])),
        }
    }
    let group = |(tables, pipes): (BTreeSet<usize>, Vec<Pipe>)| {
        let sink = stage.sink.clone();
        (tables.into_iter().collect(), Stage { pipes, sink })
    };
    groups.into_iter().map(group).collect()
}

/// For each stage, whether its table may be worked on part by part: rows without a partner must know which part it
/// would be in, which only keys tell.
pub(super) fn may_be_parted(program: &Program) -> Vec<bool> {
    let mut may = vec![true; program.stages.len()];
    for step in program
        .stages
        .iter()
        .flat_map(|stage| &stage.pipes)
        .flat_map(|pipe| &pipe.steps)
    {
        if let Step::Probe(probe) = step {
            let each = matches!(probe.how, How::Inner | How::InnerMark | How::Mark);
            may[probe.stage] &= each || !probe.keys.is_empty();
        }
    }
    may
}

/// For each stage, how many rows are looked up in its table, as far as tables of the store tell: where rows are joined
/// with several each, it is more, where they are filtered before, less.
pub(super) fn sought(program: &Program) -> Vec<u64> {
    let (mut rows, mut sought) = (
        vec![0u64; program.stages.len()],
        vec![0u64; program.stages.len()],
    );
    for (number, stage) in program.stages.iter().enumerate() {
        for pipe in &stage.pipes {
            let own = match &pipe.source {
                Source::Scan(scan) => scan.table.rows(),
                Source::Values { batch, .. } => batch.num_rows() as u64,
                Source::Read(_) => 0,
                Source::Rows(of) | Source::Marked { stage: of, .. } => rows[*of],
            };
            rows[number] += own;
            for step in &pipe.steps {
                if let Step::Probe(probe) = step {
                    sought[probe.stage] += own;
                }
            }
        }
    }
    sought
}

/// For each stage the last that uses its rows or its table.
pub(super) fn last_uses(program: &Program) -> Vec<usize> {
    let mut last: Vec<usize> = (0..program.stages.len()).collect();
    for (number, stage) in program.stages.iter().enumerate() {
        let mut use_of = |of: usize| last[of] = last[of].max(number);
        for pipe in &stage.pipes {
            pipe.tables(&mut use_of);
            if let Source::Rows(of) = pipe.source {
                use_of(of);
            }
        }
        if let Sink::Fold {
            by_row: Some(by), ..
        } = &stage.sink
        {
            use_of(by.stage);
        }
    }
    last[program.answer] = usize::MAX;
    last
}
