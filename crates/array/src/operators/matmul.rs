//! The product of two matrices.

use futures::future::{BoxFuture, FutureExt};

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::expr::kernels::cast;
use crate::expr::operand::Operand;
use crate::model::schema::{Attribute, Schema};
use crate::model::types::{DataType, Scalar};
use crate::operators::source::{Input, Source};

/// The product of matrices of one attribute each. A cell that does not exist counts as zero; a null makes the row or column
/// that it is in null.
pub(crate) struct Matmul {
    inputs: [Input; 2],
    schema: Schema,
    of: DataType,
}

impl Matmul {
    /// Rows of the first by columns of the second.
    ///
    /// # Errors
    /// [`Error::Operator`].
    pub fn new(first: Input, second: Input) -> Result<Matmul> {
        let wrong = |what: String| {
            Err(Error::Operator {
                operator: "matmul",
                what,
            })
        };
        let (a, b) = (first.schema(), second.schema());
        if a.dimensions().len() != 2 || b.dimensions().len() != 2 {
            return wrong("both must have two dimensions".to_owned());
        }
        if a.attributes().len() != 1 || b.attributes().len() != 1 {
            return wrong("both must have one attribute; project one".to_owned());
        }
        if a.shape()[1] != b.shape()[0] {
            return wrong(format!(
                "the shapes {:?} and {:?} do not fit",
                a.shape(),
                b.shape()
            ));
        }
        let (one, other) = (&a.attributes()[0], &b.attributes()[0]);
        let of = one.data_type().promoted(other.data_type());
        if of == DataType::Bool {
            return wrong("a bool is no number; cast it, as in int8(...)".to_owned());
        }
        let column = b.dimensions()[1].clone();
        let mut name = column.name().to_owned();
        while a.dimensions()[0].name() == name {
            name.push_str("_2");
        }
        let attribute = Attribute::new("product", of);
        let nullable = one.is_nullable() || other.is_nullable();
        let attribute = if nullable {
            attribute.nullable()
        } else {
            attribute
        };
        let (rows, columns) = (a.dimensions()[0].clone(), b.dimensions()[1].name());
        let kept = [(rows.name(), rows.name())];
        let schema = Schema::derived(vec![rows.clone(), column.named(&name)], vec![attribute])?
            .with_parts_of(a, kept)
            .with_parts_of(b, [(columns, name.as_str())]);
        Ok(Matmul {
            schema,
            inputs: [first, second],
            of,
        })
    }

    async fn compute(&self, region: &Region) -> Result<Block> {
        let cells = region.cells("a part of a product")?;
        let [rows, columns] = [0, 1].map(|at| region.length(at) as usize);
        let grid = self.inputs[0].grid();
        let inner = self.inputs[0].schema().shape()[1];
        let steps = Grid::of_axes(vec![grid.axes()[1].clone()]);
        let (mut wholes, mut floats) = (Vec::new(), Vec::new());
        if self.of.is_float() {
            floats = vec![0.0f64; cells];
        } else {
            wholes = vec![0i128; cells];
        }
        let mut valid = vec![1u8; cells];
        for chunk in steps.overlapping(&Region::of_shape(&[inner])) {
            let range = steps.region(&chunk).ranges()[0];
            let left = Region::new([region.ranges()[0], range]);
            let right = Region::new([range, region.ranges()[1]]);
            let a = Matrix::new(&self.inputs[0].block(&left, &[true]).await?, self.of)?;
            let b = Matrix::new(&self.inputs[1].block(&right, &[true]).await?, self.of)?;
            let middle = (range.1 - range.0) as usize;
            let shape = (rows, middle, columns);
            if self.of.is_float() {
                multiply(shape, &a.floats(), &b.floats(), &mut floats, |sum, a, b| {
                    sum + a * b
                });
            } else {
                // Products of 64 bits fit into 128; so do their sums, short of 2^63 of the largest.
                let add = |sum: i128, a: i128, b: i128| sum.saturating_add(a * b);
                multiply(shape, &a.wholes(), &b.wholes(), &mut wholes, add);
            }
            a.nulls.iter().for_each(|&at| {
                let row = at / middle;
                valid[row * columns..(row + 1) * columns].fill(0);
            });
            let null = |&at: &usize| at % columns.max(1);
            b.nulls.iter().map(null).for_each(|at| {
                valid
                    .iter_mut()
                    .skip(at)
                    .step_by(columns.max(1))
                    .for_each(|of| *of = 0);
            });
        }
        let values = self.values(cells, &wholes, &floats, &valid)?;
        Block::new(region.clone(), vec![Some(Column::nullable(values, valid))])
    }

    fn values(
        &self,
        cells: usize,
        wholes: &[i128],
        floats: &[f64],
        valid: &[u8],
    ) -> Result<Buffer> {
        if self.of == DataType::F64 {
            return Ok(Buffer::of(DataType::F64, floats));
        }
        let mut values = Buffer::zeros(self.of, cells);
        for at in (0..cells).filter(|&at| valid[at] != 0) {
            let value = match floats.get(at) {
                Some(&float) => Scalar::Float(float),
                None => Scalar::Int(wholes[at]),
            };
            let fits = value.cast(self.of).ok_or_else(|| Error::Arithmetic {
                what: format!(
                    "matmul of {}: {value} is too large; cast to a wider type before",
                    self.of
                ),
            })?;
            values.set(at, fits);
        }
        Ok(values)
    }
}

/// The cells of a part of a matrix.
struct Matrix {
    column: Column,
    nulls: Vec<usize>,
}

impl Matrix {
    fn new(block: &Block, of: DataType) -> Result<Matrix> {
        let length = block.cells();
        let column = block.column(0).cloned();
        let column = column.unwrap_or_else(|| Column::new(Buffer::zeros(of, length)));
        let part = Operand::Part {
            column: &column,
            start: 0,
            length,
        };
        let (mut values, valid) = cast(&part, of, block.present())?.into_parts();
        let counts =
            |at: usize| block.exists(at) && valid.as_ref().is_none_or(|valid| valid[at] != 0);
        let nulls = (0..length)
            .filter(|&at| block.exists(at) && !counts(at))
            .collect();
        for at in (0..length).filter(|&at| !counts(at)) {
            values.set(at, Scalar::Null);
        }
        Ok(Matrix {
            column: Column::new(values),
            nulls,
        })
    }

    fn floats(&self) -> Vec<f64> {
        let values = self.column.values();
        match values.data_type() {
            DataType::F32 => values.values::<f32>().iter().map(|&of| of.into()).collect(),
            _ => values.values::<f64>().to_vec(),
        }
    }

    fn wholes(&self) -> Vec<i128> {
        let values = self.column.values();
        let whole = |at| match values.get(at) {
            Scalar::Int(value) => value,
            _ => 0,
        };
        (0..values.len()).map(whole).collect()
    }
}

/// Adds the product of two matrices, row-major, to a third: by rows, so that what is added lies side by side.
fn multiply<T: Copy>(
    (rows, middle, columns): (usize, usize, usize),
    a: &[T],
    b: &[T],
    out: &mut [T],
    add: impl Fn(T, T, T) -> T,
) {
    for row in 0..rows {
        let out = &mut out[row * columns..][..columns];
        for at in 0..middle {
            let factor = a[row * middle + at];
            let b = &b[at * columns..][..columns];
            out.iter_mut()
                .zip(b)
                .for_each(|(out, b)| *out = add(*out, factor, *b));
        }
    }
}

impl Source for Matmul {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn block<'a>(&'a self, region: &'a Region, _: &'a [bool]) -> BoxFuture<'a, Result<Block>> {
        self.compute(region).boxed()
    }
}
