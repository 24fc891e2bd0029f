//! Terms in readable form, for messages and `explain`.

use crate::catalog::Catalog;
use crate::space::{Domain, InstanceId, TermId};
use crate::syntax::{COMPARISON, Sign};
use crate::term::{Instance, Literal, Op, Source, Term, Terms};

/// `term` as a program would say it; records that were looked up go unmentioned.
pub(crate) fn term(id: TermId, catalog: &Catalog<'_>, terms: &Terms) -> String {
    let show = |id: &TermId| term(*id, catalog, terms);
    match terms.get(id) {
        Term::Column(instance, column) => match terms.of(*instance) {
            Instance::Root(table) => catalog.attribute(*table, *column),
            Instance::Lookup { source, .. } => match source {
                Source::Table(table) => catalog.attribute(*table, *column),
                Source::Fold(fold) => domain(&terms.fold(*fold).domains[*column], catalog, terms),
            },
        },
        Term::Label(position) => format!("label {}", position + 1),
        Term::Aggregate(instance, n) => match terms.of(*instance) {
            Instance::Lookup {
                source: Source::Fold(fold),
                ..
            } => terms.fold(*fold).found[*n].name.clone(),
            _ => String::new(),
        },
        Term::Scalar(fold, n) => terms.fold(*fold).found[*n].name.clone(),
        Term::Present(instance) => format!("found in {}", source(instance, catalog, terms)),
        Term::Absent(instance) => format!("not found in {}", source(instance, catalog, terms)),
        Term::Exists(instance) => format!("found in {}", source(instance, catalog, terms)),
        Term::Literal(value) => literal(value),
        Term::Apply(op, args) => {
            let args: Vec<String> = args.iter().map(show).collect();
            apply(op, &args)
        }
    }
}

/// A set of labels in readable form.
pub(crate) fn domain(domain: &Domain, catalog: &Catalog<'_>, terms: &Terms) -> String {
    match domain {
        Domain::Column(table, column) => catalog.attribute(*table, *column),
        Domain::Computed(id) => term(*id, catalog, terms),
    }
}

fn source(instance: &InstanceId, catalog: &Catalog<'_>, terms: &Terms) -> String {
    match terms.of(*instance) {
        Instance::Root(table)
        | Instance::Lookup {
            source: Source::Table(table),
            ..
        } => catalog.definition(*table).name.clone(),
        Instance::Lookup {
            source: Source::Fold(fold),
            ..
        } => {
            let domains = &terms.fold(*fold).domains;
            let names: Vec<String> = domains
                .iter()
                .map(|of| domain(of, catalog, terms))
                .collect();
            format!("groups by {}", names.join(", "))
        }
    }
}

fn apply(op: &Op, args: &[String]) -> String {
    match (op, args) {
        (Op::Sign(sign @ (Sign::And | Sign::Or)), all) => {
            format!("({})", all.join(&format!(" {} ", sign.text())))
        }
        (Op::Sign(sign), [a, b]) if sign.level() == COMPARISON => {
            format!("{a} {} {b}", sign.text())
        }
        (Op::Sign(sign), all) => format!("({})", all.join(&format!(" {} ", sign.text()))),
        (Op::Not, [e]) => format!("not {e}"),
        (Op::Flip, [e]) => format!("~{e}"),
        (Op::IsNull, [e]) => format!("{e} is null"),
        (Op::In, [e, among @ ..]) => format!("{e} in ({})", among.join(", ")),
        (Op::Match(pattern), [e]) => format!("match({e}, {pattern:?})"),
        (Op::Function(function), all) => format!("{}({})", function.name(), all.join(", ")),
        (Op::Case, [branches @ .., last]) => {
            let branches: Vec<String> = branches
                .chunks(2)
                .map(|pair| format!("when {} then {} ", pair[0], pair[1]))
                .collect();
            format!("case {}else {last} end", branches.concat())
        }
        (_, all) => all.join(" "),
    }
}

fn literal(value: &Literal) -> String {
    match value {
        Literal::Number(digits, scale) => decimal(*digits, *scale),
        Literal::Float(bits) => format!("{:?}", f64::from_bits(*bits)),
        Literal::Text(text) => format!("{text:?}"),
        Literal::Truth(truth) => truth.to_string(),
        Literal::Null(_) => "null".into(),
        Literal::Typed(value, data) => format!("{:?}", typed(*value, data)),
    }
}

/// A date or time as text.
fn typed(value: i64, data: &arrow::datatypes::DataType) -> String {
    use arrow::array::{Array, Int32Array, Int64Array};
    use arrow::compute::cast;
    use arrow::util::display::array_value_to_string;
    let array: arrow::array::ArrayRef = match data.primitive_width() {
        Some(4) => std::sync::Arc::new(Int32Array::from(vec![value as i32])),
        _ => std::sync::Arc::new(Int64Array::from(vec![value])),
    };
    let array = cast(&(array as std::sync::Arc<dyn Array>), data);
    array
        .and_then(|array| array_value_to_string(&array, 0))
        .unwrap_or_else(|_| value.to_string())
}

/// `digits` with a point before the last `scale` of them.
pub(crate) fn decimal(digits: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let plain = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, part) = plain.split_at(plain.len() - scale);
    let sign = if digits < 0 { "-" } else { "" };
    match part {
        "" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{part}"),
    }
}
