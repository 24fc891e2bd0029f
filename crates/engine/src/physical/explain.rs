//! `explain`: programs in readable form.

use crate::expr::Expr;
use crate::logical::relation::{Column, Fold};
use crate::physical::program::{JoinKind, Operator, Pipeline, Probe, Program, Sink, Source};
use crate::vector::value::Var;

/// A line for each stage, source, operator and sink.
pub(crate) fn lines(program: &Program, columns: &[Column]) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, stage) in program.stages.iter().enumerate() {
        lines.push(format!("stage {number}: {}", sink(&stage.sink, columns)));
        for pipeline in &stage.pipelines {
            pipeline_lines(pipeline, columns, &mut lines);
        }
    }
    lines
}

fn pipeline_lines(pipeline: &Pipeline, columns: &[Column], lines: &mut Vec<String>) {
    match &pipeline.source {
        Source::Scan(scan) => {
            let table = &scan.table.definition().name;
            let alias = if scan.alias == *table {
                String::new()
            } else {
                format!(" as {}", scan.alias)
            };
            let vars: Vec<Var> = scan.columns.iter().map(|(var, _)| *var).collect();
            lines.push(format!("  scan {table}{alias} ({})", names(&vars, columns)));
            lines.extend(scan.shown.iter().map(|shown| format!("    filter {shown}")));
        }
        Source::Read(reading) => {
            let vars: Vec<Var> = reading.columns.iter().map(|(var, _)| *var).collect();
            let (name, parts) = (reading.source.name(), reading.source.parts());
            lines.push(format!(
                "  read {name} in {parts} parts, as they are processed ({})",
                names(&vars, columns)
            ));
        }
        Source::Values { batch, .. } => lines.push(format!("  values, {} rows", batch.num_rows())),
        Source::Rows(stage) => lines.push(format!("  rows of stage {stage}")),
        Source::Marked { stage, marked, .. } => {
            let which = if *marked { "found" } else { "not found" };
            lines.push(format!("  rows of stage {stage} that were {which}"));
        }
    }
    for operator in &pipeline.operators {
        let line = match operator {
            Operator::Filter(e) => format!("filter {}", expr(e, columns)),
            Operator::Map(var, e) => format!("lift {} = {}", columns[*var].name, expr(e, columns)),
            Operator::Probe(p) => probe(p, columns),
            Operator::Nulls(vars) => format!("nulls ({})", names(vars, columns)),
            Operator::Alias(_) => continue,
        };
        lines.push(format!("    {line}"));
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
        } => {
            let folds: Vec<String> = folds.iter().map(|f| fold(f, columns)).collect();
            let krao = match (keys.is_empty(), group_join) {
                (true, _) => String::new(),
                (_, None) => format!(" by krao({})", names(keys, columns)),
                (_, Some(by)) => {
                    format!(" by row of stage {} ({})", by.stage, names(keys, columns))
                }
            };
            format!("fold{krao}: {}", folds.join(", "))
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
    format!("{}({arg})", format!("{:?}", fold.function).to_lowercase())
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
