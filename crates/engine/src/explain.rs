//! Programs for people.

use crate::expr::{Expr, Var};
use crate::plan::{How, Pipe, Probe, Program, Sink, Source, Step};
use crate::rel::{Column, Fold};

/// A line for each stage, source, step and sink.
pub(crate) fn lines(program: &Program, columns: &[Column]) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, stage) in program.stages.iter().enumerate() {
        lines.push(format!("stage {number}: {}", sink(&stage.sink, columns)));
        for pipe in &stage.pipes {
            pipe_lines(pipe, columns, &mut lines);
        }
    }
    lines
}

fn pipe_lines(pipe: &Pipe, columns: &[Column], lines: &mut Vec<String>) {
    match &pipe.source {
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
            let (name, parts) = (reading.batches.name(), reading.batches.parts());
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
    for step in &pipe.steps {
        let line = match step {
            Step::Filter(e) => format!("filter {}", expr(e, columns)),
            Step::Map(var, e) => format!("lift {} = {}", columns[*var].name, expr(e, columns)),
            Step::Probe(p) => probe(p, columns),
            Step::Nulls(vars) => format!("nulls ({})", names(vars, columns)),
            Step::Alias(_) => continue,
        };
        lines.push(format!("    {line}"));
    }
}

fn probe(p: &Probe, columns: &[Column]) -> String {
    let how = match p.how {
        How::Inner => "dot",
        How::InnerMark => "dot, marking rows of",
        How::Left => "outer dot",
        How::LeftMark => "outer dot, marking rows of",
        How::Semi => "hadamard, rows found in",
        How::Anti => "hadamard, rows not found in",
        How::Mark => "mark rows of",
    };
    let gives: Vec<Var> = p.gives.iter().map(|(_, to)| *to).collect();
    let mut line = format!("{how} stage {} by ({})", p.stage, names(&p.keys, columns));
    if !gives.is_empty() {
        line += &format!(" gives ({})", names(&gives, columns));
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
                "table by ({}) of ({})",
                names(keys, columns),
                names(vars, columns)
            )
        }
        Sink::Fold {
            keys,
            folds,
            by_row,
        } => {
            let folds: Vec<String> = folds.iter().map(|f| fold(f, columns)).collect();
            let krao = match (keys.is_empty(), by_row) {
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

/// The expression with names in the place of numbers.
fn expr(e: &Expr, columns: &[Column]) -> String {
    named(&e.to_string(), columns)
}

/// `text` with the names of vectors in the place of their numbers, `#7`.
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
