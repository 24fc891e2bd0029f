//! What can be told of a program before it runs.

use std::collections::BTreeSet;

use crate::physical::program::{JoinKind, Operator, Pipeline, Program, Sink, Source, Stage};

/// For each stage, whether its table may be worked on part by part: rows without a partner must know which part it
/// would be in, which only keys tell.
pub(crate) fn may_be_parted(program: &Program) -> Vec<bool> {
    let mut may = vec![true; program.stages.len()];
    for step in program
        .stages
        .iter()
        .flat_map(|stage| &stage.pipes)
        .flat_map(|pipe| &pipe.steps)
    {
        if let Operator::Probe(probe) = step {
            let each = matches!(probe.kind, JoinKind::Inner | JoinKind::MarkOnly);
            may[probe.stage] &= each || !probe.keys.is_empty();
        }
    }
    may
}

/// For each stage, how many rows are looked up in its table, as far as tables of the store tell: where rows are joined
/// with several each, it is more, where they are filtered before, less.
pub(crate) fn sought(program: &Program) -> Vec<u64> {
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
                if let Operator::Probe(probe) = step {
                    sought[probe.stage] += own;
                }
            }
        }
    }
    sought
}

/// For each stage the last that uses its rows or its table.
pub(crate) fn last_uses(program: &Program) -> Vec<usize> {
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
            group_join: Some(by),
            ..
        } = &stage.sink
        {
            use_of(by.stage);
        }
    }
    last[program.answer] = usize::MAX;
    last
}

/// The pipelines of a stage in groups that may run at the same time: one that reads which rows of a table are marked
/// waits for those before it that mark them.
pub(crate) fn waves(stage: &Stage) -> Vec<Stage> {
    let marks = |pipe: &Pipeline, table: usize| {
        pipe.steps
            .iter()
            .any(|step| matches!(step, Operator::Probe(p) if p.stage == table && p.marks))
    };
    let mut waves: Vec<Stage> = vec![];
    for pipe in &stage.pipes {
        let last = waves.last_mut().filter(|last| match pipe.source {
            Source::Marked { stage: table, .. } => !last.pipes.iter().any(|p| marks(p, table)),
            _ => true,
        });
        match last {
            Some(last) => last.pipes.push(pipe.clone()),
            None => waves.push(Stage {
                pipes: vec![pipe.clone()],
                sink: stage.sink.clone(),
            }),
        }
    }
    waves
}

/// The pipelines of a stage, in groups with the parted tables that they look rows up in. One that reads which rows are
/// marked comes after those before it.
pub(crate) fn groups(
    stage: &Stage,
    is_partitioned: &dyn Fn(usize) -> bool,
) -> Vec<(Vec<usize>, Stage)> {
    let mut groups: Vec<(BTreeSet<usize>, Vec<Pipeline>)> = vec![];
    for pipe in &stage.pipes {
        let mut tables = BTreeSet::new();
        pipe.tables(&mut |table| {
            if is_partitioned(table) {
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
    let group = |(tables, pipes): (BTreeSet<usize>, Vec<Pipeline>)| {
        let sink = stage.sink.clone();
        (tables.into_iter().collect(), Stage { pipes, sink })
    };
    groups.into_iter().map(group).collect()
}
