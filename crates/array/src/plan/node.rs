//! The nodes of a plan, and the operator that each becomes.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use crate::data::block::Block;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::expr::syntax::{BinaryOp, Expr, UnaryOp, name};
use crate::model::decimal::Decimal;
use crate::model::dimension::Bound;
use crate::model::schema::Schema;
use crate::operators::aggregate::Grouped;
use crate::operators::build::Build;
use crate::operators::cellwise::{Apply, Filter, Project};
use crate::operators::functions::Aggregate;
use crate::operators::histogram::{self, Histogram};
use crate::operators::matmul::Matmul;
use crate::operators::memory::ArrayData;
use crate::operators::quantile::{self, Quantile};
use crate::operators::redimension::{Redimension, Target};
use crate::operators::reshape::{Between, Chunking, Concat, Rechunk, Subarray, Transpose};
use crate::operators::scan::Scan;
use crate::operators::sort::{self, SortKey};
use crate::operators::source::{Crew, Input, Source};
use crate::operators::variable_window::{self, VariableWindow};
use crate::operators::window::Window;
use crate::operators::zip::{Matching, Zip, pairs};
use crate::storage::array::Array;

/// An operator and its inputs.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub operator: Operator,
    pub inputs: Vec<Arc<Node>>,
    /// How many operators stand in one another.
    pub depth: usize,
}

/// What an operator does, without its inputs.
#[derive(Debug, Clone)]
pub(crate) enum Operator {
    Scan(Arc<Array>),
    Given(ArrayData),
    Build(Schema, Expr),
    Subarray(Vec<(Bound, Bound)>, Chunking),
    Slice(Vec<(String, Decimal)>),
    Between(Vec<(Bound, Bound)>),
    Transpose(Vec<String>),
    Rechunk(Vec<u64>),
    Concat(String),
    Filter(Expr),
    Apply(Vec<(String, Expr)>),
    Project(Vec<String>),
    Rename(Vec<(String, String)>),
    Aggregate(Vec<Aggregate>, Vec<String>),
    Regrid(Vec<u64>, Vec<Aggregate>),
    Window(Vec<(u64, u64)>, Vec<Aggregate>),
    VariableWindow(variable_window::Asked),
    Quantile(quantile::Asked),
    Histogram(histogram::Asked),
    /// An operator on two whole arrays, cell by cell.
    Elementwise(BinaryOp),
    /// An operator on a whole array and one value, which stands on the left if the flag is set.
    Scalar(BinaryOp, Expr, bool),
    Opposite,
    Join(Vec<(String, String)>, bool),
    Matmul,
    Redimension(Target),
    Sort(Vec<SortKey>),
}

impl Operator {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Operator::Scan(_) => "scan",
            Operator::Given(_) => "given",
            Operator::Build(..) => "build",
            Operator::Subarray(..) => "subarray",
            Operator::Slice(_) => "slice",
            Operator::Between(_) => "between",
            Operator::Transpose(_) => "transpose",
            Operator::Rechunk(_) => "rechunk",
            Operator::Concat(_) => "concat",
            Operator::Filter(_) => "filter",
            Operator::Apply(_) => "apply",
            Operator::Project(_) => "project",
            Operator::Rename(_) => "rename",
            Operator::Aggregate(..) => "aggregate",
            Operator::Regrid(..) => "regrid",
            Operator::Window(..) => "window",
            Operator::VariableWindow(_) => "variable_window",
            Operator::Quantile(_) => "quantile",
            Operator::Histogram(_) => "histogram",
            Operator::Elementwise(op) | Operator::Scalar(op, ..) => match op {
                BinaryOp::Add => "add",
                BinaryOp::Subtract => "subtract",
                BinaryOp::Multiply => "multiply",
                BinaryOp::Divide => "divide",
                _ => "compare",
            },
            Operator::Opposite => "opposite",
            Operator::Join(_, true) => "cross_join",
            Operator::Join(_, false) => "join",
            Operator::Matmul => "matmul",
            Operator::Redimension(_) => "redimension",
            Operator::Sort(_) => "sort",
        }
    }

    /// The operator over inputs, of which there are as many as it takes.
    ///
    /// # Errors
    /// Those of the operators.
    pub fn over(&self, inputs: &[Input], crew: &Crew) -> Result<Input> {
        let input = |at: usize| inputs[at].clone();
        Ok(match self {
            Operator::Scan(array) => Arc::new(Scan {
                array: array.clone(),
            }),
            Operator::Given(data) => Arc::new(data.clone()),
            Operator::Build(schema, expr) => Arc::new(Build::new(schema, expr)?),
            Operator::Subarray(bounds, chunking) => {
                Arc::new(Subarray::new(input(0), bounds, *chunking)?)
            }
            Operator::Slice(at) => Arc::new(Subarray::slice(input(0), at)?),
            Operator::Between(bounds) => Arc::new(Between::new(input(0), bounds)?),
            Operator::Transpose(names) => Arc::new(Transpose::new(input(0), names)?),
            Operator::Rechunk(chunks) => Arc::new(Rechunk::new(input(0), chunks)?),
            Operator::Concat(along) => Arc::new(Concat::new(input(0), input(1), along)?),
            Operator::Filter(condition) => Arc::new(Filter::new(input(0), condition)?),
            Operator::Apply(added) => Arc::new(Apply::new(input(0), added)?),
            Operator::Project(names) => Arc::new(Project::new(input(0), names)?),
            Operator::Rename(names) => Arc::new(Project::renamed(input(0), names)?),
            Operator::Aggregate(all, by) => Arc::new(Grouped::by(input(0), all, by, crew.clone())?),
            Operator::Regrid(blocks, all) => {
                Arc::new(Grouped::regrid(input(0), blocks, all, crew.clone())?)
            }
            Operator::Window(around, all) => Arc::new(Window::new(input(0), around, all)?),
            Operator::VariableWindow(asked) => Arc::new(VariableWindow::new(input(0), asked)?),
            Operator::Quantile(asked) => Arc::new(Quantile::new(input(0), asked, crew.clone())?),
            Operator::Histogram(asked) => Arc::new(Histogram::new(input(0), asked, crew.clone())?),
            Operator::Elementwise(op) => elementwise(self.name(), input(0), input(1), *op)?,
            Operator::Scalar(op, value, left) => {
                let with = |of: Expr| {
                    if *left {
                        value.clone().with(*op, of)
                    } else {
                        of.with(*op, value.clone())
                    }
                };
                each(input(0), with)?
            }
            Operator::Opposite => each(input(0), |of| of.unary(UnaryOp::Negate))?,
            Operator::Join(pairs, crossed) => {
                let matching = if *crossed {
                    Matching::Pairs(pairs.clone())
                } else {
                    Matching::Same
                };
                Arc::new(Zip::new(self.name(), input(0), input(1), &matching)?)
            }
            Operator::Matmul => Arc::new(Matmul::new(input(0), input(1))?),
            Operator::Redimension(target) => {
                Arc::new(Breaker::redimension(input(0), target, crew)?)
            }
            Operator::Sort(keys) => Arc::new(Breaker::sort(input(0), keys, crew)?),
        })
    }
}

/// Each attribute of an input with an expression in its place.
fn each(input: Input, with: impl Fn(Expr) -> Expr) -> Result<Input> {
    let names: Vec<String> = input
        .schema()
        .attributes()
        .iter()
        .map(|of| of.name().to_owned())
        .collect();
    let exprs = names.iter().map(|of| with(name(of.clone()))).collect();
    replaced(input, exprs, names)
}

/// Two inputs with an operator between their attributes.
fn elementwise(operator: &'static str, a: Input, b: Input, op: BinaryOp) -> Result<Input> {
    let (left, right) = (
        a.schema().attributes().to_vec(),
        b.schema().attributes().to_vec(),
    );
    let numbers = pairs(operator, &left, &right)?;
    let named = |at: (usize, usize)| match left.len() {
        1 => right[at.1].name().to_owned(),
        _ => left[at.0].name().to_owned(),
    };
    let names = if right.len() == 1 || left.len() == right.len() {
        numbers
            .iter()
            .map(|&(at, _)| left[at].name().to_owned())
            .collect()
    } else {
        numbers.iter().map(|&at| named(at)).collect()
    };
    let both: Input = Arc::new(Zip::new(operator, a, b, &Matching::Broadcast)?);
    let all: Vec<String> = both
        .schema()
        .attributes()
        .iter()
        .map(|of| of.name().to_owned())
        .collect();
    let expr = |&(at, to): &(usize, usize)| {
        name(all[at].clone()).with(op, name(all[left.len() + to].clone()))
    };
    let exprs = numbers.iter().map(expr).collect();
    replaced(both, exprs, names)
}

/// An input with only these expressions, by these names.
fn replaced(input: Input, exprs: Vec<Expr>, names: Vec<String>) -> Result<Input> {
    let count = input.schema().attributes().len();
    // Names that cannot be taken, for as long as the old ones are there.
    let added = exprs.into_iter().enumerate().map(|(at, expr)| {
        let mut fresh = format!("result {at}");
        while input
            .schema()
            .attributes()
            .iter()
            .any(|of| of.name() == fresh)
        {
            fresh.push('\'');
        }
        (fresh, expr)
    });
    let added: Vec<_> = added.collect();
    let apply: Input = Arc::new(Apply::new(input, &added)?);
    let named = names
        .into_iter()
        .enumerate()
        .map(|(at, name)| (count + at, name))
        .collect();
    Ok(Arc::new(Project::of(apply, named)?))
}

/// An operator that needs all of its input before it has a first cell: it is computed when the first is asked for, once.
struct Breaker {
    input: Input,
    crew: Crew,
    schema: Schema,
    what: Breaking,
    made: futures::lock::Mutex<Option<ArrayData>>,
}

enum Breaking {
    Redimension(Target),
    Sort(Vec<SortKey>),
}

impl Breaker {
    fn redimension(input: Input, target: &Target, crew: &Crew) -> Result<Breaker> {
        let schema = Redimension::new(input.schema(), target)?.schema;
        Ok(Breaker::new(
            input,
            crew,
            schema,
            Breaking::Redimension(target.clone()),
        ))
    }

    /// The list is as long as there are cells, which is known only afterwards: until then, as many as can be.
    fn sort(input: Input, keys: &[SortKey], crew: &Crew) -> Result<Breaker> {
        sort::check(input.schema(), keys)?;
        let schema = sort::schema_of(input.schema(), input.schema().cells())?;
        Ok(Breaker::new(
            input,
            crew,
            schema,
            Breaking::Sort(keys.to_vec()),
        ))
    }

    fn new(input: Input, crew: &Crew, schema: Schema, what: Breaking) -> Breaker {
        Breaker {
            input,
            crew: crew.clone(),
            schema,
            what,
            made: futures::lock::Mutex::new(None),
        }
    }

    async fn data(&self) -> Result<ArrayData> {
        let mut made = self.made.lock().await;
        if let Some(data) = &*made {
            return Ok(data.clone());
        }
        let data = match &self.what {
            Breaking::Redimension(target) => {
                let redimension = Redimension::new(self.input.schema(), target)?;
                redimension.run(&self.input, &self.crew).await?
            }
            Breaking::Sort(keys) => sort::sorted(&self.input, keys, &self.crew).await?,
        };
        *made = Some(data.clone());
        Ok(data)
    }
}

impl Source for Breaker {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let data = self.data().await?;
            // A sorted list may be shorter than it could have been: behind its end no cell exists.
            let there = Region::of_shape(&data.schema().shape());
            let common = region.intersection(&there);
            if common == *region {
                return data.block(region, wanted).await;
            }
            let mut assembly = crate::data::assembly::Assembly::new(&self.schema, region, wanted)?;
            if !common.is_empty() {
                assembly.put(&data.block(&common, wanted).await?);
            }
            assembly.finish()
        }
        .boxed()
    }
}

/// More levels than this are refused: each is a call in the one before.
pub(crate) const DEEPEST: usize = 256;

impl Node {
    /// An operator over inputs.
    pub fn new(operator: Operator, inputs: Vec<Arc<Node>>) -> Node {
        let depth = inputs.iter().map(|of| of.depth).max().unwrap_or(0) + 1;
        Node {
            operator,
            inputs,
            depth,
        }
    }

    /// The operators as a tree of sources that compute when they are asked.
    ///
    /// # Errors
    /// Those of the operators, and [`Error::Operator`] if too many stand in one another.
    pub fn source(&self, crew: &Crew) -> Result<Input> {
        self.check_depth()?;
        self.pipeline(crew)
    }

    /// That not too many operators stand in one another.
    ///
    /// # Errors
    /// [`Error::Operator`] if they do.
    pub fn check_depth(&self) -> Result<()> {
        if self.depth > DEEPEST {
            return Err(Error::Operator {
                operator: self.operator.name(),
                what: format!("more than {DEEPEST} operators stand in one another"),
            });
        }
        Ok(())
    }

    fn pipeline(&self, crew: &Crew) -> Result<Input> {
        let inputs = self
            .inputs
            .iter()
            .map(|of| of.pipeline(crew))
            .collect::<Result<Vec<_>>>()?;
        self.operator.over(&inputs, crew)
    }
}
