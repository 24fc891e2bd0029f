//! Plans, built operator by operator.

use std::fmt;
use std::sync::Arc;

use crate::data::block::Block;
use crate::error::Result;
use crate::expr::syntax::{BinaryOp, Expr};
use crate::model::decimal::Decimal;
use crate::model::dimension::{Bound, Dimension};
use crate::model::schema::Schema;
use crate::operators::functions::Aggregate;
use crate::operators::memory::ArrayData;
use crate::operators::redimension::Target;
use crate::operators::reshape::Chunking;
use crate::operators::sort::SortKey;
use crate::operators::source::Crew;
use crate::operators::{histogram, quantile, variable_window};
use crate::plan::node::{Node, Operator};
use crate::storage::array::Array;

/// An array that is to be computed: operators over stored arrays. Cheap to clone. Names and types are looked at by
/// [`schema`](Plan::schema), and when it is run.
///
/// ```
/// use array::expr::{name, value};
/// use array::{Aggregate, Attribute, DataType, Dimension, Function, Model, Plan, Run, Schema};
///
/// let dimensions = vec![Dimension::integer("x", 0, 6), Dimension::integer("y", 0, 4)];
/// let schema = Schema::new(dimensions, vec![Attribute::new("v", DataType::I64)])?;
/// let rows = Plan::build(&schema, name("x") * value(10) + name("y"))
///     .filter(name("v").ge(value(20)))
///     .aggregate(&[Aggregate::new(Function::Sum, "v")], &["x"]);
/// let result = futures::executor::block_on(rows.run(&Run::new().model(Model::Materialise)))?;
/// let block = result.to_block()?;
/// assert_eq!(block.existing(), 4, "no cell of the first two rows was left");
/// assert_eq!(block.column(0).unwrap().get(2), 86.into());
/// # Ok::<(), array::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) node: Arc<Node>,
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

impl Plan {
    fn leaf(operator: Operator) -> Plan {
        Plan {
            node: Arc::new(Node::new(operator, Vec::new())),
        }
    }

    fn then(self, operator: Operator) -> Plan {
        Plan {
            node: Arc::new(Node::new(operator, vec![self.node])),
        }
    }

    fn with(self, other: Plan, operator: Operator) -> Plan {
        Plan {
            node: Arc::new(Node::new(operator, vec![self.node, other.node])),
        }
    }

    /// A stored array.
    pub fn scan(array: &Arc<Array>) -> Plan {
        Plan::leaf(Operator::Scan(array.clone()))
    }

    /// An array in memory.
    pub fn given(data: &ArrayData) -> Plan {
        Plan::leaf(Operator::Given(data.clone()))
    }

    /// A block as an array, whose positions begin at 0: its region must begin there, too.
    ///
    /// # Errors
    /// [`Error::Operator`](crate::Error::Operator) if it is not what the schema says.
    pub fn of_block(schema: &Schema, block: Block) -> Result<Plan> {
        let wrong = |what: &str| crate::Error::Operator {
            operator: "given",
            what: what.to_owned(),
        };
        if block.region().shape() != schema.shape()
            || block.region().origin().iter().any(|&at| at > 0)
        {
            return Err(wrong(
                "the block must have the shape of the schema, from position 0 on",
            ));
        }
        let fits = block.columns().len() == schema.attributes().len()
            && schema
                .attributes()
                .iter()
                .zip(block.columns())
                .all(|(attribute, column)| {
                    column
                        .as_ref()
                        .is_some_and(|of| of.values().data_type() == attribute.data_type())
                });
        if !fits {
            return Err(wrong(
                "the block must have a column of the right type for each attribute",
            ));
        }
        Ok(Plan::given(&ArrayData::of_block(schema.clone(), block)))
    }

    /// An array of one attribute whose values an expression over the dimensions gives.
    pub fn build(schema: &Schema, expr: Expr) -> Plan {
        Plan::leaf(Operator::Build(schema.clone(), expr))
    }

    /// The box between pairs of bounds, one for each dimension, both included and in either order; dimensions of the
    /// result begin at 0.
    pub fn subarray(self, bounds: &[(Bound, Bound)]) -> Plan {
        self.then(Operator::Subarray(bounds.to_vec(), Chunking::Regular))
    }

    /// As [`subarray`](Plan::subarray), with the choice of its chunks.
    pub fn subarray_in(self, bounds: &[(Bound, Bound)], chunking: Chunking) -> Plan {
        self.then(Operator::Subarray(bounds.to_vec(), chunking))
    }

    /// The cells at single coordinates of some dimensions, without these dimensions.
    pub fn slice(self, at: &[(&str, Decimal)]) -> Plan {
        let at = at.iter().map(|&(name, at)| (name.to_owned(), at)).collect();
        self.then(Operator::Slice(at))
    }

    /// The same dimensions, of which only cells between pairs of bounds exist.
    pub fn between(self, bounds: &[(Bound, Bound)]) -> Plan {
        self.then(Operator::Between(bounds.to_vec()))
    }

    /// The cells where a condition is true.
    pub fn filter(self, condition: Expr) -> Plan {
        self.then(Operator::Filter(condition))
    }

    /// More attributes, each the value of an expression.
    pub fn apply(self, added: &[(&str, Expr)]) -> Plan {
        let added = added
            .iter()
            .map(|(name, expr)| ((*name).to_owned(), expr.clone()))
            .collect();
        self.then(Operator::Apply(added))
    }

    /// Only these attributes, in this order.
    pub fn project(self, names: &[&str]) -> Plan {
        self.then(Operator::Project(owned(names)))
    }

    /// Attributes by other names: pairs of an old and a new one.
    pub fn rename(self, names: &[(&str, &str)]) -> Plan {
        let names = names
            .iter()
            .map(|&(old, new)| (old.to_owned(), new.to_owned()))
            .collect();
        self.then(Operator::Rename(names))
    }

    /// Aggregates for each coordinate of these dimensions, or over all cells.
    pub fn aggregate(self, all: &[Aggregate], by: &[&str]) -> Plan {
        self.then(Operator::Aggregate(all.to_vec(), owned(by)))
    }

    /// Aggregates over boxes of so many cells along each dimension, which become one cell each.
    pub fn regrid(self, blocks: &[u64], all: &[Aggregate]) -> Plan {
        self.then(Operator::Regrid(blocks.to_vec(), all.to_vec()))
    }

    /// Aggregates over the cells around each: so many before and after it along each dimension.
    pub fn window(self, around: &[(u64, u64)], all: &[Aggregate]) -> Plan {
        self.then(Operator::Window(around.to_vec(), all.to_vec()))
    }

    /// Aggregates over each cell that exists and the cells around it along one dimension: so many before and after it
    /// that exist, wherever they are.
    pub fn variable_window(
        self,
        dimension: &str,
        (before, after): (u64, u64),
        all: &[Aggregate],
    ) -> Plan {
        self.then(Operator::VariableWindow(variable_window::Asked {
            dimension: dimension.to_owned(),
            before,
            after,
            aggregates: all.to_vec(),
        }))
    }

    /// Quantiles of an attribute for each coordinate of these dimensions, or over all cells: one for each of `points`, 0 to
    /// 1 and rising, which are the coordinates of a last dimension `quantile`. Between two values it is on the straight
    /// line, as NumPy's default; nulls are left out, and a NaN makes all of its group NaN. All values of a group are in
    /// memory, as doubles.
    ///
    /// ```
    /// # use array::{Attribute, DataType, Dimension, Plan, Run, Schema, expr::name};
    /// let schema = Schema::new(vec![Dimension::integer("x", 0, 4)], vec![Attribute::new("v", DataType::I64)])?;
    /// let squares = Plan::build(&schema, name("x") * name("x"));
    /// let median = squares.quantile("v", &["0.5".parse()?], &[]);
    /// let result = futures::executor::block_on(median.run(&Run::new()))?.to_block()?;
    /// assert_eq!(result.column(0).unwrap().get(0), 2.5.into(), "between 1 and 4");
    /// # Ok::<(), array::Error>(())
    /// ```
    pub fn quantile(self, attribute: &str, points: &[Decimal], by: &[&str]) -> Plan {
        self.then(Operator::Quantile(quantile::Asked {
            attribute: attribute.to_owned(),
            points: points.to_vec(),
            by: owned(by),
        }))
    }

    /// How many values of an attribute lie in each of `bins` intervals of one width between two ends; without ends, between
    /// the least and the greatest value. An interval has the value that it begins with, and the last one also that it
    /// ends with, as NumPy counts them. Nulls, NaN and values outside are in none.
    pub fn histogram(self, attribute: &str, bins: u64, range: Option<(f64, f64)>) -> Plan {
        self.then(Operator::Histogram(histogram::Asked {
            attribute: attribute.to_owned(),
            bins,
            range,
        }))
    }

    /// The dimensions in this order; in the reverse one if none is named.
    pub fn transpose(self, names: &[&str]) -> Plan {
        self.then(Operator::Transpose(owned(names)))
    }

    /// The same in chunks of these lengths.
    pub fn rechunk(self, chunks: &[u64]) -> Plan {
        self.then(Operator::Rechunk(chunks.to_vec()))
    }

    /// Another array behind this one along a dimension.
    pub fn concat(self, other: Plan, dimension: &str) -> Plan {
        self.with(other, Operator::Concat(dimension.to_owned()))
    }

    /// An operator between the attributes of this array and another, cell by cell; shapes are broadcast as NumPy does it.
    pub fn elementwise(self, op: BinaryOp, other: Plan) -> Plan {
        self.with(other, Operator::Elementwise(op))
    }

    /// An operator between all attributes and one value.
    pub fn scalar(self, op: BinaryOp, value: Expr) -> Plan {
        self.then(Operator::Scalar(op, value, false))
    }

    /// An operator between one value and all attributes.
    pub fn scalar_left(self, value: Expr, op: BinaryOp) -> Plan {
        self.then(Operator::Scalar(op, value, true))
    }

    /// The opposite of all attributes.
    pub fn opposite(self) -> Plan {
        self.then(Operator::Opposite)
    }

    /// The cells of both arrays at the same coordinates, with the attributes of both.
    pub fn join(self, other: Plan) -> Plan {
        self.with(other, Operator::Join(Vec::new(), false))
    }

    /// The cells of both arrays at the same coordinates of pairs of dimensions; the other dimensions of the second come
    /// behind those of the first.
    pub fn cross_join(self, other: Plan, pairs: &[(&str, &str)]) -> Plan {
        let pairs = pairs
            .iter()
            .map(|&(a, b)| (a.to_owned(), b.to_owned()))
            .collect();
        self.with(other, Operator::Join(pairs, true))
    }

    /// The product of two matrices.
    pub fn matmul(self, other: Plan) -> Plan {
        self.with(other, Operator::Matmul)
    }

    /// The cells at other dimensions, which are attributes or dimensions of this, with these attributes, which are, too.
    pub fn redimension(self, dimensions: Vec<Dimension>, attributes: &[&str]) -> Plan {
        self.then(Operator::Redimension(Target {
            dimensions,
            attributes: owned(attributes),
            aggregates: Vec::new(),
        }))
    }

    /// As [`redimension`](Plan::redimension), with aggregates of the cells that come to one place.
    pub fn redimension_by(self, dimensions: Vec<Dimension>, all: &[Aggregate]) -> Plan {
        self.then(Operator::Redimension(Target {
            dimensions,
            attributes: Vec::new(),
            aggregates: all.to_vec(),
        }))
    }

    /// All cells as a list, sorted.
    pub fn sort(self, keys: &[SortKey]) -> Plan {
        self.then(Operator::Sort(keys.to_vec()))
    }

    /// The dimensions and attributes of the result. The length of a sorted list is that of all cells, existing or not.
    ///
    /// # Errors
    /// What is wrong with the plan: names, types, bounds.
    pub fn schema(&self) -> Result<Schema> {
        Ok(self.node.source(&Crew::default())?.schema().clone())
    }
}

impl fmt::Display for Plan {
    /// The operators, each with its inputs in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn show(node: &Node, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            if let Operator::Scan(array) = &node.operator {
                return f.write_str(array.name());
            }
            f.write_str(node.operator.name())?;
            f.write_str("(")?;
            for (at, input) in node.inputs.iter().enumerate() {
                f.write_str(if at == 0 { "" } else { ", " })?;
                show(input, f)?;
            }
            f.write_str(")")
        }
        show(&self.node, f)
    }
}
