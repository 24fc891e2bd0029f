//! Two inputs cell by cell: joins on dimensions, and what arithmetic on whole arrays is made of.

use futures::future::{BoxFuture, FutureExt};

use crate::data::block::Block;
use crate::data::grid::{Axis, Grid};
use crate::data::region::Region;
use crate::data::strided::{respread, row_major};
use crate::error::{Error, Result, listed};
use crate::model::dimension::Dimension;
use crate::model::schema::{Attribute, Schema};
use crate::operators::source::{Input, Source};

/// The cells of two inputs that belong together, with the attributes of both. A cell exists where both do.
pub(crate) struct Zip {
    sides: [Side; 2],
    schema: Schema,
    grid: Grid,
}

struct Side {
    input: Input,
    /// For each dimension of the input the one of the result that it is, and whether it has one cell for all of them.
    into: Vec<(usize, bool)>,
}

/// How two inputs' dimensions belong together.
#[derive(Debug, Clone)]
pub(crate) enum Matching {
    /// The same dimensions, with the same coordinates.
    Same,
    /// As NumPy broadcasts: the last dimensions, by their order; one of length 1, or missing, is the same for all cells.
    Broadcast,
    /// These pairs of names; other dimensions of the second input come behind those of the first.
    Pairs(Vec<(String, String)>),
}

impl Zip {
    /// Brings two inputs together. Attributes of the second whose names the first has get `_2` behind.
    ///
    /// # Errors
    /// [`Error::Operator`], [`Error::Unknown`]; [`Error::Schema`] for names that clash.
    pub fn new(
        operator: &'static str,
        first: Input,
        second: Input,
        matching: &Matching,
    ) -> Result<Zip> {
        let (a, b) = (first.schema(), second.schema());
        let (left, right) = match matching {
            Matching::Same => same(operator, a, b)?,
            Matching::Broadcast => broadcast(operator, a, b)?,
            Matching::Pairs(pairs) => crossed(operator, a, b, pairs)?,
        };
        let rank = left
            .iter()
            .chain(&right)
            .map(|of| of.0 + 1)
            .max()
            .unwrap_or(0);
        let mut dimensions: Vec<Option<(Dimension, Axis)>> = vec![None; rank];
        // For each dimension of the result the one of an input that it is.
        let mut origins: Vec<Option<(&Schema, &str)>> = vec![None; rank];
        for (input, into) in [(&first, &left), (&second, &right)] {
            let (grid, schema) = (input.grid(), input.schema());
            for (at, &(to, stretched)) in into.iter().enumerate() {
                let of = (schema.dimensions()[at].clone(), grid.axes()[at].clone());
                if dimensions[to].is_none()
                    || (!stretched && dimensions[to].as_ref().is_some_and(|of| of.0.length() == 1))
                {
                    origins[to] = Some((schema, schema.dimensions()[at].name()));
                    dimensions[to] = Some(of);
                }
            }
        }
        let (mut dimensions, axes): (Vec<_>, Vec<_>) = dimensions.into_iter().flatten().unzip();
        unique_names(&mut dimensions, a);
        let mut attributes = a.attributes().to_vec();
        let mut added = Vec::with_capacity(b.attributes().len());
        for attribute in b.attributes() {
            let mut name = attribute.name().to_owned();
            while attributes.iter().any(|of| of.name() == name) {
                name.push_str("_2");
            }
            attributes.push(attribute.clone().named(&name));
            added.push((attribute.name(), name));
        }
        let names: Vec<String> = dimensions.iter().map(|of| of.name().to_owned()).collect();
        let mut schema = Schema::derived(dimensions, attributes)?
            .with_attributes_of(a)
            .with_parts_of(b, added.iter().map(|(of, name)| (*of, name.as_str())));
        for ((from, there), here) in origins.into_iter().flatten().zip(&names) {
            schema = schema.with_parts_of(from, [(there, here.as_str())]);
        }
        Ok(Zip {
            schema,
            grid: Grid::of_axes(axes),
            sides: [
                Side {
                    input: first,
                    into: left,
                },
                Side {
                    input: second,
                    into: right,
                },
            ],
        })
    }
}

type Into = Vec<(usize, bool)>;

/// Gives dimensions that share a name with another one a name of their own.
fn unique_names(dimensions: &mut [Dimension], first: &Schema) {
    for at in 1..dimensions.len() {
        let mut name = dimensions[at].name().to_owned();
        let taken = |name: &str| {
            dimensions[..at].iter().any(|of| of.name() == name)
                || first.attributes().iter().any(|of| of.name() == name)
        };
        while taken(&name) {
            name.push_str("_2");
        }
        dimensions[at] = dimensions[at].clone().named(&name);
    }
}

fn shapes(operator: &'static str, what: &str, a: &Schema, b: &Schema) -> Error {
    Error::Operator {
        operator,
        what: format!("{what}; the shapes are {:?} and {:?}", a.shape(), b.shape()),
    }
}

fn same(operator: &'static str, a: &Schema, b: &Schema) -> Result<(Into, Into)> {
    let both = a.dimensions().iter().zip(b.dimensions());
    let agree = both.into_iter().all(|(a, b)| agrees(a, b));
    if a.dimensions().len() != b.dimensions().len() || !agree {
        return Err(shapes(
            operator,
            "both need the same dimensions, with the same coordinates",
            a,
            b,
        ));
    }
    let into: Into = (0..a.dimensions().len()).map(|at| (at, false)).collect();
    Ok((into.clone(), into))
}

/// Whether two dimensions have the same coordinates.
fn agrees(a: &Dimension, b: &Dimension) -> bool {
    let ends = |of: &Dimension| {
        [0, of.length() / 2, of.length().saturating_sub(1)].map(|at| of.coordinate(at))
    };
    match (a.coordinates(), b.coordinates()) {
        _ if a.length() != b.length() => false,
        _ if a.length() == 0 => true,
        (
            crate::model::dimension::Coordinates::Listed(a),
            crate::model::dimension::Coordinates::Listed(b),
        ) => a == b,
        // The others are regular, so two of them tell; of a list beside one all are looked at.
        _ if a.length() < 1 << 16 => (0..a.length()).all(|at| a.coordinate(at) == b.coordinate(at)),
        _ => ends(a) == ends(b),
    }
}

fn broadcast(operator: &'static str, a: &Schema, b: &Schema) -> Result<(Into, Into)> {
    let (one, other) = (a.shape(), b.shape());
    let rank = one.len().max(other.len());
    let lengths =
        |shape: &[u64], at: usize| (at + shape.len()).checked_sub(rank).map(|at| shape[at]);
    for at in 0..rank {
        let both = (lengths(&one, at), lengths(&other, at));
        if let (Some(x), Some(y)) = both
            && x != y
            && x != 1
            && y != 1
        {
            let what = "lengths must be equal, or one of them 1, from the last dimension on";
            return Err(shapes(operator, what, a, b));
        }
    }
    let into = |shape: &[u64], other: &[u64]| {
        let shift = rank - shape.len();
        let stretched =
            |at: usize| shape[at] == 1 && lengths(other, at + shift).is_some_and(|of| of != 1);
        (0..shape.len())
            .map(|at| (at + shift, stretched(at)))
            .collect()
    };
    Ok((into(&one, &other), into(&other, &one)))
}

fn crossed(
    operator: &'static str,
    a: &Schema,
    b: &Schema,
    pairs: &[(String, String)],
) -> Result<(Into, Into)> {
    let left: Into = (0..a.dimensions().len()).map(|at| (at, false)).collect();
    let mut matched: Vec<Option<usize>> = vec![None; b.dimensions().len()];
    for (one, other) in pairs {
        let (one, other) = (a.dimension(one, operator)?, b.dimension(other, operator)?);
        if !agrees(&a.dimensions()[one], &b.dimensions()[other]) || matched.contains(&Some(one)) {
            let names = listed([a.dimensions()[one].name(), b.dimensions()[other].name()]);
            let what =
                format!("dimensions {names} do not have the same coordinates, or one comes twice");
            return Err(shapes(operator, &what, a, b));
        }
        matched[other] = Some(one);
    }
    let mut next = left.len();
    let right = matched.into_iter().map(|of| {
        let to = of.unwrap_or(next);
        next += usize::from(of.is_none());
        (to, false)
    });
    let right = right.collect();
    Ok((left, right))
}

impl Side {
    /// The cells of a region of the result, as this input has them.
    async fn block(&self, region: &Region, wanted: &[bool]) -> Result<Block> {
        let range = |&(to, stretched): &(usize, bool)| {
            if stretched {
                (0, 1)
            } else {
                region.ranges()[to]
            }
        };
        let inner = Region::new(self.into.iter().map(range));
        let block = self.input.block(&inner, wanted).await?;
        let plain = inner == *region && self.into.iter().enumerate().all(|(at, of)| of.0 == at);
        if plain {
            return Ok(block);
        }
        let cells = row_major(&inner.shape());
        let mut steps = vec![0; region.rank()];
        for (at, &(to, stretched)) in self.into.iter().enumerate() {
            steps[to] = if stretched { 0 } else { cells[at] };
        }
        respread(&block, region, &steps)
    }
}

impl Source for Zip {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn grid(&self) -> Grid {
        self.grid.clone()
    }

    fn block<'a>(&'a self, region: &'a Region, wanted: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        async move {
            let (left, right) = wanted.split_at(self.sides[0].input.schema().attributes().len());
            let first = self.sides[0].block(region, left).await?;
            let second = self.sides[1].block(region, right).await?;
            let columns = [first.columns(), second.columns()].concat();
            let both = first.with_columns(columns);
            Ok(match second.present() {
                None => both,
                Some(present) => both.restricted(present.to_vec()),
            })
        }
        .boxed()
    }
}

/// The attributes of two inputs that an operator on whole arrays brings together: each with the one of the same number, or,
/// where one input has a single attribute, each of the other with that.
///
/// # Errors
/// [`Error::Operator`].
pub(crate) fn pairs(
    operator: &'static str,
    a: &[Attribute],
    b: &[Attribute],
) -> Result<Vec<(usize, usize)>> {
    match (a.len(), b.len()) {
        (one, other) if one == other => Ok((0..one).map(|at| (at, at)).collect()),
        (_, 1) => Ok((0..a.len()).map(|at| (at, 0)).collect()),
        (1, _) => Ok((0..b.len()).map(|at| (0, at)).collect()),
        (one, other) => Err(Error::Operator {
            operator,
            what: format!("{one} attributes do not go with {other}; project one or as many"),
        }),
    }
}
