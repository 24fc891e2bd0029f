//! `explain`: programs in readable form.

use crate::expr::Expr;
use crate::logical::relation::{Column, Fold, Function, Key, RowNumbers};
use crate::logical::window::{WindowFold, WindowPart};
use crate::physical::analysis::expected_rows;
use crate::physical::program::{JoinKind, Operator, Pipeline, Probe, Program, Sink, Source, Stage};
use crate::vector::value::Var;

/// A stage of a program, in readable form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageOutline {
    /// What it makes, in a word or two: `join table`, `aggregate`, `window`, `sort`, `top-k`,
    /// `rows`.
    pub makes: &'static str,
    /// The same, with its keys and columns.
    pub sink: String,
    /// Its pipelines, in the order in which they run.
    pub pipelines: Vec<PipelineOutline>,
    /// The numbers of the stages whose rows or join tables it reads, each once.
    pub reads: Vec<usize>,
    /// About how many rows are expected to come to the end of its pipelines.
    pub expected: u64,
}

/// A pipeline of a [`StageOutline`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PipelineOutline {
    /// Where its rows come from.
    pub source: String,
    /// The table that it scans, if it scans one.
    pub table: Option<String>,
    /// What is tested on stored values.
    pub filters: Vec<String>,
    /// What rows pass through, in this order.
    pub operators: Vec<String>,
}

/// The stages of a program, in the order in which they run.
pub(crate) fn outline(program: &Program, columns: &[Column]) -> Vec<StageOutline> {
    let stage = |(stage, expected): (&Stage, u64)| {
        let pipelines = stage.pipelines.iter();
        StageOutline {
            makes: makes(&stage.sink),
            sink: sink(&stage.sink, columns),
            pipelines: pipelines
                .map(|pipeline| pipeline_outline(pipeline, columns))
                .collect(),
            reads: reads(stage),
            expected,
        }
    };
    let expected = expected_rows(program);
    program.stages.iter().zip(expected).map(stage).collect()
}

/// A line for each stage, source, operator and sink.
pub(crate) fn lines(program: &Program, columns: &[Column]) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, stage) in outline(program, columns).into_iter().enumerate() {
        let readers = readers(program, number);
        lines.push(format!("stage {number}{readers}: {}", stage.sink));
        let sources = program.stages[number].pipelines.iter();
        for (pipeline, own) in stage.pipelines.into_iter().zip(sources) {
            lines.push(format!("  {}", pipeline.source));
            if let Source::Read(reading) = &own.source {
                let made = reading.source.explain();
                lines.extend(made.into_iter().map(|line| format!("    {line}")));
            }
            let filters = pipeline.filters.iter();
            lines.extend(filters.map(|filter| format!("    filter {filter}")));
            let operators = pipeline.operators.iter();
            lines.extend(operators.map(|operator| format!("    {operator}")));
        }
    }
    lines
}

/// Who reads the rows of the stage of this number, if they are computed once for several readers.
fn readers(program: &Program, number: usize) -> String {
    let (mut stages, mut times) = (Vec::new(), 0);
    for (reader, stage) in program.stages.iter().enumerate() {
        let sources = stage.pipelines.iter().map(|pipeline| &pipeline.source);
        let own = sources.filter(|source| matches!(source, Source::Rows(from) if *from == number));
        let count = own.count();
        if count > 0 {
            stages.push(reader.to_string());
            times += count;
        }
    }
    match (times, &stages[..]) {
        (0 | 1, _) => String::new(),
        (_, [stage]) => format!(", read {times} times by stage {stage}"),
        _ => format!(", read {times} times by stages {}", stages.join(", ")),
    }
}

fn makes(sink: &Sink) -> &'static str {
    match sink {
        Sink::Table { .. } => "join table",
        Sink::Fold { .. } => "aggregate",
        Sink::Window { .. } => "window",
        Sink::Rows { order, fetch, .. } => match (order.is_empty(), fetch) {
            (true, _) => "rows",
            (false, None) => "sort",
            (false, Some(_)) => "top-k",
        },
    }
}

fn reads(stage: &Stage) -> Vec<usize> {
    let mut reads = Vec::new();
    for pipeline in &stage.pipelines {
        if let Source::Rows(stage) | Source::Marked { stage, .. } = &pipeline.source {
            reads.push(*stage);
        }
        for operator in &pipeline.operators {
            if let Operator::Probe(probe) = operator {
                reads.push(probe.stage);
            }
        }
    }
    if let Sink::Fold {
        group_join: Some(by),
        ..
    } = &stage.sink
    {
        reads.push(by.stage);
    }
    reads.sort_unstable();
    reads.dedup();
    reads
}

fn pipeline_outline(pipeline: &Pipeline, columns: &[Column]) -> PipelineOutline {
    let (mut table, mut filters) = (None, Vec::new());
    let source = match &pipeline.source {
        Source::Scan(scan) => {
            let name = table::titled(&scan.table.definition().name).into_owned();
            let alias = if scan.alias == name {
                String::new()
            } else {
                format!(" as {}", scan.alias)
            };
            let mut vars: Vec<Var> = Vec::with_capacity(scan.columns.len() + 1);
            scan.each_var(&mut |var| vars.push(var));
            table = Some(name.clone());
            filters.clone_from(&scan.shown);
            format!("scan {name}{alias} ({})", names(&vars, columns))
        }
        Source::Read(reading) => {
            let vars: Vec<Var> = reading.columns.iter().map(|(var, _)| *var).collect();
            let (name, parts) = (reading.source.name(), reading.source.parts());
            format!(
                "read {name} in {parts} parts, as they are processed ({})",
                names(&vars, columns)
            )
        }
        Source::Values { batch, .. } => format!("values, {} rows", batch.num_rows()),
        Source::Rows(stage) => format!("rows of stage {stage}"),
        Source::Marked { stage, marked, .. } => {
            let which = if *marked { "found" } else { "not found" };
            format!("rows of stage {stage} that were {which}")
        }
    };
    let operator = |operator: &Operator| match operator {
        Operator::Filter(e) => Some(format!("filter {}", expr(e, columns))),
        Operator::Map(var, e) => Some(format!(
            "lift {} = {}",
            columns[*var].name,
            expr(e, columns)
        )),
        Operator::Together(together) => Some(format!(
            "lift ({}) of {} in one pass",
            names(&together.vars, columns),
            names(&[together.of], columns)
        )),
        Operator::Expand(expand) => Some(format!(
            "rows ({}) = {}",
            names(&expand.vars, columns),
            expand.function.name()
        )),
        Operator::Probe(p) => Some(probe(p, columns)),
        Operator::Nulls(vars) => Some(format!("nulls ({})", names(vars, columns))),
        Operator::Alias(_) => None,
    };
    PipelineOutline {
        source,
        table,
        filters,
        operators: pipeline.operators.iter().filter_map(operator).collect(),
    }
}

fn probe(p: &Probe, columns: &[Column]) -> String {
    let label = match (p.kind, p.marks) {
        (JoinKind::Inner, false) => "dot",
        (JoinKind::Inner, true) => "dot, marking rows of",
        (JoinKind::Outer, false) => "outer dot",
        (JoinKind::Outer, true) => "outer dot, marking rows of",
        (JoinKind::Semi, _) => "hadamard, rows found in",
        (JoinKind::Anti, _) => "hadamard, rows not found in",
        (JoinKind::MarkOnly, _) => "mark rows of",
    };
    let build_outputs: Vec<Var> = p.build_outputs.iter().map(|(_, to)| *to).collect();
    let mut line = format!("{label} stage {} by ({})", p.stage, names(&p.keys, columns));
    if let Some(band) = &p.band {
        let of: Vec<Var> = [band.of]
            .into_iter()
            .chain(band.reaching.map(|(other, _)| other))
            .collect();
        line += &format!(" in bands of {}", names(&of, columns));
    }
    if let Some(nearest) = &p.nearest {
        let (of, at) = (names(&[nearest.of], columns), names(&[nearest.at], columns));
        line += &format!(" nearest {of} {} {at}", nearest.op.sign());
    }
    if !build_outputs.is_empty() {
        line += &format!(" gives ({})", names(&build_outputs, columns));
    }
    for e in &p.residual {
        line += &format!(" where {}", expr(e, columns));
    }
    line
}

fn sink(sink: &Sink, columns: &[Column]) -> String {
    match sink {
        Sink::Table { keys, vars, .. } => {
            format!(
                "join hash table by ({}) of ({})",
                names(keys, columns),
                names(vars, columns)
            )
        }
        Sink::Fold {
            keys,
            folds,
            group_join,
            first,
        } => {
            let folds: Vec<String> = folds.iter().map(|f| fold(f, columns)).collect();
            let krao = match (keys.is_empty(), group_join) {
                (true, _) => String::new(),
                (_, None) => format!(" by krao({})", names(keys, columns)),
                (_, Some(by)) => {
                    format!(" by row of stage {} ({})", by.stage, names(keys, columns))
                }
            };
            let first = first.as_ref().map_or_else(String::new, |first| {
                let order: Vec<Var> = first.order.iter().map(|key| key.var).collect();
                let order = names(&order, columns);
                format!(", of which first {} in order of ({order})", first.groups)
            });
            format!("fold{krao}: {}{first}", folds.join(", "))
        }
        Sink::Window { order, parts, .. } => {
            let lines = parts.iter().map(|part| window_part(part, order, columns));
            format!("window{}", lines.collect::<Vec<_>>().join(";"))
        }
        Sink::Rows {
            vars, order, fetch, ..
        } => {
            let mut line = format!("rows ({})", names(vars, columns));
            if !order.is_empty() {
                let keys: Vec<Var> = order.iter().map(|key| key.var).collect();
                line += &format!(" in order of ({})", names(&keys, columns));
            }
            if let Some(fetch) = fetch {
                line += &format!(", first {fetch}");
            }
            line
        }
    }
}

fn fold(fold: &Fold, columns: &[Column]) -> String {
    let arg = fold.arg.map_or("*", |arg| &columns[arg].name);
    if let Some(order) = fold.function.order() {
        let what = match fold.arg {
            Some(_) => format!("first({arg})"),
            None => "row_number".into(),
        };
        let keys = order.keys().iter().map(|key| {
            let name = &columns[key.var].name;
            format!("{name}{}", if key.descending { " desc" } else { "" })
        });
        let keys: Vec<String> = keys.collect();
        let most = match (order.most(), order.numbers()) {
            (1, RowNumbers::Rows) => String::new(),
            (most, RowNumbers::Rows) => format!(" of {most}"),
            (most, RowNumbers::Ranks) => format!(" of {most} and ties"),
            (most, RowNumbers::DenseRanks) => format!(" of {most} keys"),
        };
        return format!("{what}{most} in order of ({})", keys.join(", "));
    }
    match fold.function {
        Function::CountTotal => format!("sum({arg})"),
        Function::AvgOfSums { counts } => format!("avg({arg} / {})", columns[counts].name),
        Function::OfPairs { function, x } => {
            let name = format!("{function:?}").to_lowercase();
            format!("{name}({arg}, {})", columns[x].name)
        }
        Function::Call(_) => columns[fold.var].name.clone(),
        function => format!("{}({arg})", format!("{function:?}").to_lowercase()),
    }
}

/// The functions over some partitions, in the order of `keys`.
fn window_part(part: &WindowPart, keys: &[Key], columns: &[Column]) -> String {
    let (partition, order) = keys.split_at(part.partition.min(keys.len()));
    let names_of = |keys: &[Key]| {
        let keys: Vec<Var> = keys.iter().map(|key| key.var).collect();
        names(&keys, columns)
    };
    let mut line = String::new();
    if !partition.is_empty() {
        line += &format!(" by krao({})", names_of(partition));
    }
    if part.order > 0 {
        let order = order.get(..part.order).unwrap_or(order);
        line += &format!(" in order of ({})", names_of(order));
    }
    let functions = part.functions.iter().map(|f| window_fold(f, columns));
    format!("{line}: {}", functions.collect::<Vec<_>>().join(", "))
}

fn window_fold(fold: &WindowFold, columns: &[Column]) -> String {
    let arg = match (fold.arg, fold.function.frame()) {
        (Some(arg), _) => columns[arg].name.as_str(),
        // A count of rows.
        (None, Some(_)) => "*",
        (None, None) => "",
    };
    let name = fold.function.name();
    match fold.function.frame() {
        Some(frame) => format!("{name}({arg}) {frame}"),
        None => format!("{name}({arg})"),
    }
}

fn names(vars: &[Var], columns: &[Column]) -> String {
    let names: Vec<&str> = vars.iter().map(|var| columns[*var].name.as_str()).collect();
    names.join(", ")
}

/// The expression in readable form, with the names of its vectors.
fn expr(e: &Expr, columns: &[Column]) -> String {
    named(&e.to_string(), columns)
}

/// `text` with the numbers of vectors, such as `#7`, replaced by their names.
pub(crate) fn named(text: &str, columns: &[Column]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('#') {
        out += &rest[..at];
        let digits = rest[at + 1..]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
        match rest[at + 1..at + 1 + digits]
            .parse::<Var>()
            .ok()
            .and_then(|var| columns.get(var))
        {
            Some(column) => out += &column.name,
            None => out += &rest[at..at + 1 + digits],
        }
        rest = &rest[at + 1 + digits..];
    }
    out + rest
}
