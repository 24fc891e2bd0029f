//! From a statement to a plan over the arrays of a snapshot.

use std::sync::Arc;

use array::{Array, Bound, Chunking, DataType, Dimension, Error as ArrayError, Plan, Schema};
use store::Snapshot;

use crate::error::{Checked, Span, wrong};
use crate::syntax::{Call, Name, Operator, Query, Side};

/// The arrays that a query can name: those of a snapshot, or of a transaction that has changed some.
pub trait Arrays {
    /// The array of a name, or the version of one: `name@version`.
    ///
    /// # Errors
    /// [`NoArray`](array::Error::NoArray), and those of reading its definition.
    fn open(&self, name: &str) -> array::Result<Arc<Array>>;

    /// The names of all, for a message. None if they cannot be read.
    fn names(&self) -> Vec<String>;
}

impl Arrays for Snapshot {
    fn open(&self, name: &str) -> array::Result<Arc<Array>> {
        Array::open(self, name)
    }

    fn names(&self) -> Vec<String> {
        array::names(self).unwrap_or_default()
    }
}

/// The plan of a query. What is wrong is said at the operator whose it is.
pub(crate) fn plan(query: &Query, arrays: &dyn Arrays) -> Checked<Plan> {
    match query {
        Query::Array(name) => Ok(Plan::scan(&open(name, arrays)?)),
        Query::Call(call) => lower(call, arrays),
    }
}

/// A stored array.
pub(crate) fn open(name: &Name, arrays: &dyn Arrays) -> Checked<Arc<Array>> {
    arrays.open(&name.text).or_else(|error| {
        let mut known = arrays.names();
        known.truncate(20);
        let message = match (&error, known.is_empty()) {
            (ArrayError::NoArray { .. }, false) => {
                format!("{error}; there are {}", known.join(", "))
            }
            _ => error.to_string(),
        };
        wrong(name.span, message)
    })
}

fn lower(call: &Call, arrays: &dyn Arrays) -> Checked<Plan> {
    let inputs = call
        .inputs
        .iter()
        .map(|of| plan(of, arrays))
        .collect::<Checked<Vec<_>>>()?;
    let plan = over(call, inputs)?;
    // What does not fit is found here, where the operator stands.
    match plan.schema() {
        Ok(_) => Ok(plan),
        Err(error) => wrong(call.span, error.to_string()),
    }
}

fn over(call: &Call, inputs: Vec<Plan>) -> Checked<Plan> {
    let mut inputs = inputs.into_iter();
    match (inputs.next(), inputs.next()) {
        (Some(first), Some(second)) => over_two(call, first, second),
        (Some(input), None) => over_one(call, input),
        (None, _) => match &call.operator {
            Operator::Build(schema, expr) => Ok(Plan::build(schema, expr.clone())),
            _ => wrong(call.span, "an array is missing"),
        },
    }
}

/// An operator on two arrays.
fn over_two(call: &Call, first: Plan, second: Plan) -> Checked<Plan> {
    Ok(match &call.operator {
        Operator::Binary(op, _) => first.elementwise(*op, second),
        Operator::Join => first.join(second),
        Operator::Matmul => first.matmul(second),
        Operator::CrossJoin(pairs) => {
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(a, b)| (a.as_str(), b.as_str()))
                .collect();
            first.cross_join(second, &pairs)
        }
        Operator::Concat(Some(along)) => first.concat(second, along),
        Operator::Concat(None) => {
            let along = schema(&first, call.span)?.dimensions()[0].name().to_owned();
            first.concat(second, &along)
        }
        _ => return wrong(call.span, "this operator takes one array"),
    })
}

/// An operator on one array.
fn over_one(call: &Call, input: Plan) -> Checked<Plan> {
    let span = call.span;
    Ok(match &call.operator {
        Operator::Scan => input,
        Operator::Opposite => input.opposite(),
        Operator::Subarray(bounds) => {
            let pairs = pairs(&input, bounds, span, "subarray")?;
            input.subarray(&pairs)
        }
        Operator::Between(bounds) => {
            let pairs = pairs(&input, bounds, span, "between")?;
            input.between(&pairs)
        }
        Operator::Subset(bounds) => subset(input, bounds, span)?,
        Operator::Slice(at) => {
            let at: Vec<_> = at.iter().map(|(name, at)| (name.as_str(), *at)).collect();
            input.slice(&at)
        }
        Operator::Filter(condition) => input.filter(condition.clone()),
        Operator::Apply(added) => {
            let added = added.iter().map(|(name, of)| (name.as_str(), of.clone()));
            input.apply(&added.collect::<Vec<_>>())
        }
        Operator::Project(names) => input.project(&refs(names)),
        Operator::Rename(names) => {
            let names: Vec<_> = names
                .iter()
                .map(|(a, b)| (a.as_str(), b.as_str()))
                .collect();
            input.rename(&names)
        }
        Operator::Aggregate(all, by) => input.aggregate(all, &refs(by)),
        Operator::Window(around, all) if around.len().is_multiple_of(2) => {
            let around: Vec<_> = around.chunks(2).map(|two| (two[0], two[1])).collect();
            input.window(&around, all)
        }
        Operator::Window(..) => {
            let what = "window: give how many cells before and after, for each dimension";
            return wrong(span, what);
        }
        Operator::VariableWindow(along, around, all) => input.variable_window(along, *around, all),
        Operator::Quantile(of, points, by) => input.quantile(of, points, &refs(by)),
        Operator::Histogram(of, bins, range) => input.histogram(of, *bins, *range),
        Operator::Regrid(blocks, all) => input.regrid(blocks, all),
        Operator::Transpose(names) => input.transpose(&refs(names)),
        Operator::Rechunk(chunks) => input.rechunk(chunks),
        Operator::Binary(op, Some((value, Side::Right))) => input.scalar(*op, value.clone()),
        Operator::Binary(op, Some((value, Side::Left))) => input.scalar_left(value.clone(), *op),
        Operator::Redimension(dimensions, attributes, all) => {
            match (attributes.is_empty(), all.is_empty()) {
                (true, false) => input.redimension_by(dimensions.clone(), all),
                (_, true) => redimension(&input, dimensions, attributes, span)?,
                (false, false) => {
                    let what = "redimension: give attributes or aggregates, not both";
                    return wrong(span, what);
                }
            }
        }
        Operator::Sort(keys) => input.sort(keys),
        _ => return wrong(span, "this operator takes two arrays"),
    })
}

fn refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// The dimensions and attributes of a plan.
fn schema(plan: &Plan, span: Span) -> Checked<Schema> {
    plan.schema()
        .or_else(|error| wrong(span, error.to_string()))
}

/// Cells where their attributes and dimensions say. A type that is said must be the attribute's.
fn redimension(
    input: &Plan,
    dimensions: &[Dimension],
    attributes: &[(String, Option<DataType>)],
    span: Span,
) -> Checked<Plan> {
    let names: Vec<&str> = attributes.iter().map(|(name, _)| name.as_str()).collect();
    let plan = input.clone().redimension(dimensions.to_vec(), &names);
    let made = schema(&plan, span)?;
    let said = made.attributes().iter().zip(attributes);
    for (attribute, (name, of)) in said {
        let (is, of) = (attribute.data_type(), of.unwrap_or(attribute.data_type()));
        if is != of {
            let what = format!(
                "redimension: attribute '{name}' is {is}, not {of}: cast it before, with apply"
            );
            return wrong(span, what);
        }
    }
    Ok(plan)
}

/// Bounds as SciDB has them: the first of all dimensions, then the second of all.
fn pairs(
    plan: &Plan,
    bounds: &[Bound],
    span: Span,
    operator: &str,
) -> Checked<Vec<(Bound, Bound)>> {
    let rank = schema(plan, span)?.dimensions().len();
    if bounds.len() != 2 * rank {
        let what = format!(
            "{operator}: {rank} dimensions need {} bounds, first one for each dimension, then the other for each; there are {}",
            2 * rank,
            bounds.len()
        );
        return wrong(span, what);
    }
    Ok((0..rank)
        .map(|at| (bounds[at], bounds[rank + at]))
        .collect())
}

/// SAVIME's: bounds of the dimensions that are named, and chunks as the input has them.
fn subset(plan: Plan, bounds: &[(String, Bound, Bound)], span: Span) -> Checked<Plan> {
    let schema = plan
        .schema()
        .or_else(|error| wrong(span, error.to_string()))?;
    let mut pairs = vec![(Bound::Edge, Bound::Edge); schema.dimensions().len()];
    for (name, low, high) in bounds {
        match schema.dimension(name, "subset") {
            Ok(at) => pairs[at] = (*low, *high),
            Err(error) => return wrong(span, error.to_string()),
        }
    }
    Ok(plan.subarray_in(&pairs, Chunking::Inherited))
}
