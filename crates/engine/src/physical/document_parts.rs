//! Parts of documents that scans read from where blocks keep them apart, instead of the documents.

use std::sync::Arc;

use table::DocumentPart;

use crate::expr::{Call, Expr, Node};
use crate::logical::relation::{Query, Scan};
use crate::logical::scan::ScannedPart;
use crate::physical::program::{Operator, Pipeline, Required, Source};
use crate::vector::value::Var;

/// A part is read from blocks if this share of the rows lies where it is kept apart. In the other blocks a document is walked through
/// once for each of its parts.
const LEAST_SHARE: f64 = 0.5;

/// Puts vectors of the scan in the place of functions that take parts of its documents. `sink` is what the sink reads: a column that
/// nobody reads any more is not scanned.
pub(crate) fn scanned(query: &mut Query, pipeline: &mut Pipeline, sink: &Required) {
    let Source::Scan(scan) = &mut pipeline.source else {
        return;
    };
    for operator in &mut pipeline.operators {
        for e in expressions(operator) {
            e.each_mut(&mut |e| {
                if let Some(var) = part(query, scan, e) {
                    e.node = Node::Var(var);
                }
            });
        }
        let mut made = Vec::new();
        operator.makes(&mut |var| made.push(var));
        if scan.columns.iter().any(|(var, _)| made.contains(var)) {
            break;
        }
    }
    if scan.parts.is_empty() {
        return;
    }
    let live = pipeline.live(sink.clone());
    if let Source::Scan(scan) = &mut pipeline.source {
        let documents: Vec<usize> = scan.parts.iter().map(|own| own.part.column).collect();
        let is_read = |var: &Var| live.first().is_some_and(|live| live.contains(var));
        scan.columns
            .retain(|(var, column)| !documents.contains(column) || is_read(var));
    }
}

/// The expressions that an operator evaluates for each row that it gets.
fn expressions(operator: &mut Operator) -> &mut [Expr] {
    match operator {
        Operator::Filter(e) | Operator::Map(_, e) => std::slice::from_mut(e),
        Operator::Expand(expand) => &mut expand.args,
        _ => &mut [],
    }
}

/// The vector of what `e` gives, if it takes a part of a document that `scan` reads, and the table keeps that apart.
fn part(query: &mut Query, scan: &mut Scan, e: &Expr) -> Option<Var> {
    let (of, call) = called(e)?;
    let (_, column) = scan.columns.iter().find(|(var, _)| *var == of)?;
    let own = call.part()?;
    let part = DocumentPart {
        column: *column,
        keys: own.keys.to_vec(),
        as_text: own.as_text,
    };
    let name = call.name();
    let known = |own: &&ScannedPart| own.part.column == *column && own.call.name() == name;
    if let Some(known) = scan.parts.iter().find(known) {
        return Some(known.var);
    }
    if scan.table.share_with_part(&part) < LEAST_SHARE {
        return None;
    }
    let name = format!("{} {name}", query.vars[of].name);
    let var = query.add(name, e.ty.clone());
    let call = Arc::clone(call);
    scan.parts.push(ScannedPart { var, part, call });
    Some(var)
}

/// The vector that `e` is a function of, and the function.
fn called(e: &Expr) -> Option<(Var, &Arc<dyn Call>)> {
    match &e.node {
        Node::Call(args, call) => match &args[..] {
            [arg] => Some((arg.as_var()?, call)),
            _ => None,
        },
        _ => None,
    }
}
