//! What the executors need to know about a program before it runs.

use std::collections::BTreeSet;

use crate::physical::program::{JoinKind, Operator, Pipeline, Program, Sink, Source, Stage};

/// For each stage, whether its join table may be partitioned. A probe that keeps rows without a match must know the
/// partition in which a match would be, which takes keys.
pub(crate) fn may_be_partitioned(program: &Program) -> Vec<bool> {
    let mut may = vec![true; program.stages.len()];
    for operator in program
        .stages
        .iter()
        .flat_map(|stage| &stage.pipelines)
        .flat_map(|pipeline| &pipeline.operators)
    {
        if let Operator::Probe(probe) = operator {
            let each = matches!(probe.kind, JoinKind::Inner | JoinKind::MarkOnly);
            // The nearest row is one of all rows with the keys, which are in one partition.
            let each = each && probe.nearest.is_none();
            may[probe.stage] &= each || !probe.keys.is_empty();
        }
    }
    may
}

/// For each stage, whether probes of its join table ask for the order of its rows.
pub(crate) fn ordered(program: &Program) -> Vec<bool> {
    let mut ordered = vec![false; program.stages.len()];
    for stage in &program.stages {
        for operator in stage
            .pipelines
            .iter()
            .flat_map(|pipeline| &pipeline.operators)
        {
            if let Operator::Probe(probe) = operator {
                ordered[probe.stage] |= probe.band.is_some() || probe.nearest.is_some();
            }
        }
    }
    ordered
}

/// For each stage, about how many rows will probe its join table: the source rows of the probing pipelines. Joins
/// before the probe may raise the number, filters lower it.
pub(crate) fn expected_probes(program: &Program) -> Vec<u64> {
    let (mut rows, mut expected_probes) = (
        vec![0u64; program.stages.len()],
        vec![0u64; program.stages.len()],
    );
    for (number, stage) in program.stages.iter().enumerate() {
        for pipeline in &stage.pipelines {
            let own = match &pipeline.source {
                Source::Scan(scan) => scan.table.rows(),
                Source::Values { batch, .. } => batch.num_rows() as u64,
                Source::Read(_) => 0,
                Source::Rows(of) | Source::Marked { stage: of, .. } => rows[*of],
            };
            rows[number] += own;
            for operator in &pipeline.operators {
                if let Operator::Probe(probe) = operator {
                    expected_probes[probe.stage] += own;
                }
            }
        }
    }
    expected_probes
}

/// For each stage, about how many rows reach its sink: those that the predicates of a scan leave, by the shares of the rows that are in
/// the join tables they probe.
pub(crate) fn expected_rows(program: &Program) -> Vec<u64> {
    // The rows of each stage, and what they would be without predicates.
    let mut rows: Vec<(f64, f64)> = Vec::with_capacity(program.stages.len());
    let share = |(left, all): (f64, f64)| if all > 0.0 { left / all } else { 1.0 };
    for stage in &program.stages {
        let mut own = (0.0, 0.0);
        for pipeline in &stage.pipelines {
            let (mut left, all) = match &pipeline.source {
                Source::Scan(scan) => (scan.expected, scan.table.rows() as f64),
                Source::Values { batch, .. } => (batch.num_rows() as f64, batch.num_rows() as f64),
                Source::Read(reading) => (reading.rows, reading.rows),
                Source::Rows(of) | Source::Marked { stage: of, .. } => rows[*of],
            };
            for operator in &pipeline.operators {
                if let Operator::Probe(probe) = operator
                    && matches!(probe.kind, JoinKind::Inner | JoinKind::Semi)
                {
                    let known = program.shares.get(&probe.stage).copied();
                    left *= known.unwrap_or_else(|| share(rows[probe.stage])).min(1.0);
                }
            }
            own = (own.0 + left, own.1 + all);
        }
        rows.push(own);
    }
    rows.into_iter().map(|(left, _)| left as u64).collect()
}

/// For each stage, whether what it gives depends on the rows of the working table of this number, or changes while others read it. The
/// answer counts as one, whose rows are taken each time.
pub(crate) fn renewed(program: &Program, working: u64) -> Vec<bool> {
    let mut renewed = vec![false; program.stages.len()];
    renewed[program.answer] = true;
    let depends = |pipeline: &Pipeline, renewed: &[bool]| {
        let mut found = match &pipeline.source {
            Source::Read(reading) => reading.source.reads_working_table(working),
            Source::Rows(of) => renewed[*of],
            Source::Scan(_) | Source::Values { .. } | Source::Marked { .. } => false,
        };
        pipeline.tables(&mut |table| found |= renewed[table]);
        found || pipeline.transfers.iter().any(|own| renewed[own.stage])
    };
    loop {
        let before = renewed.clone();
        for (number, stage) in program.stages.iter().enumerate() {
            let pipelines = &stage.pipelines;
            renewed[number] |= pipelines.iter().any(|own| depends(own, &renewed));
            if !renewed[number] {
                continue;
            }
            // Marks of the round before would stay.
            for operator in pipelines.iter().flat_map(|pipeline| &pipeline.operators) {
                if let Operator::Probe(probe) = operator
                    && probe.marks
                {
                    renewed[probe.stage] = true;
                }
            }
        }
        if renewed == before {
            return renewed;
        }
    }
}

/// For each stage, the last stage that reads its rows or its join table.
pub(crate) fn last_uses(program: &Program) -> Vec<usize> {
    let mut last: Vec<usize> = (0..program.stages.len()).collect();
    for (number, stage) in program.stages.iter().enumerate() {
        let mut use_of = |of: usize| last[of] = last[of].max(number);
        for pipeline in &stage.pipelines {
            pipeline.tables(&mut use_of);
            if let Source::Rows(of) = pipeline.source {
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

/// For each stage, the last stage of which a scan takes the keys of its join table.
pub(crate) fn last_transfers(program: &Program) -> Vec<usize> {
    let mut last: Vec<usize> = vec![0; program.stages.len()];
    for (number, stage) in program.stages.iter().enumerate() {
        for transfer in stage.pipelines.iter().flat_map(|p| &p.transfers) {
            last[transfer.stage] = number;
        }
    }
    last
}

/// Splits the pipelines of a stage at barriers. The pipelines of each result may run at the same time; one that
/// reads which rows of a join table are marked comes after those that mark them, and one whose rows one worker must take
/// is alone.
pub(crate) fn barriers(stage: &Stage) -> Vec<Stage> {
    let marks = |pipeline: &Pipeline, table: usize| {
        pipeline
            .operators
            .iter()
            .any(|operator| matches!(operator, Operator::Probe(p) if p.stage == table && p.marks))
    };
    let mut barriers: Vec<Stage> = vec![];
    for pipeline in &stage.pipelines {
        let last = barriers.last_mut().filter(|last| {
            let after = match pipeline.source {
                Source::Marked { stage: table, .. } => {
                    last.pipelines.iter().any(|p| marks(p, table))
                }
                _ => false,
            };
            !(after || pipeline.is_serial() || last.pipelines.iter().any(Pipeline::is_serial))
        });
        match last {
            Some(last) => last.pipelines.push(pipeline.clone()),
            None => barriers.push(Stage {
                pipelines: vec![pipeline.clone()],
                sink: stage.sink.clone(),
            }),
        }
    }
    barriers
}

/// Groups the pipelines of a stage by the partitioned join tables that they probe. A pipeline that reads which rows
/// are marked comes after the pipelines before it.
pub(crate) fn groups(
    stage: &Stage,
    is_partitioned: &dyn Fn(usize) -> bool,
) -> Vec<(Vec<usize>, Stage)> {
    let mut groups: Vec<(BTreeSet<usize>, Vec<Pipeline>)> = vec![];
    for pipeline in &stage.pipelines {
        let mut tables = BTreeSet::new();
        pipeline.tables(&mut |table| {
            if is_partitioned(table) {
                tables.insert(table);
            }
        });
        let waits = matches!(pipeline.source, Source::Marked { .. });
        let from = if waits {
            groups.len().saturating_sub(1)
        } else {
            0
        };
        let found = groups[from..].iter_mut().find(|(own, _)| *own == tables);
        match found {
            Some((_, pipelines)) => pipelines.push(pipeline.clone()),
            None => groups.push((tables, vec![pipeline.clone()])),
        }
    }
    let group = |(tables, pipelines): (BTreeSet<usize>, Vec<Pipeline>)| {
        let sink = stage.sink.clone();
        (tables.into_iter().collect(), Stage { pipelines, sink })
    };
    groups.into_iter().map(group).collect()
}
