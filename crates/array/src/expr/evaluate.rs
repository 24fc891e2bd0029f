//! Evaluating an expression over the cells of a block.

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::region::Region;
use crate::error::Result;
use crate::expr::bind::{Node, Typed};
use crate::expr::kernels;
use crate::expr::operand::{Operand, column};
use crate::model::dimension::Dimension;
use crate::model::schema::Schema;
use crate::model::types::DataType;

/// Cells that are worked on at a time: what each operator in between makes of them stays in the first caches.
const PIECE: usize = 4096;

/// The cells that an expression is evaluated over.
pub(crate) struct Over<'a> {
    pub schema: &'a Schema,
    pub block: &'a Block,
}

impl Over<'_> {
    /// The value for each cell of the block. Columns of attributes that the expression looks at must be there.
    ///
    /// # Errors
    /// [`Error::Arithmetic`](crate::Error::Arithmetic), by a cell that exists.
    pub fn evaluate(&self, expr: &Typed) -> Result<Column> {
        let cells = self.block.cells();
        let mut values = Buffer::zeros(expr.of, cells);
        let mut valid: Option<Vec<u8>> = None;
        let width = expr.of.width();
        for start in (0..cells).step_by(PIECE) {
            let length = PIECE.min(cells - start);
            let part = self.piece(expr, start, length)?.into_column();
            let bytes = &mut values.bytes_mut()[start * width..][..length * width];
            bytes.copy_from_slice(part.values().bytes());
            if let Some(of_part) = part.valid() {
                let valid = valid.get_or_insert_with(|| vec![1; cells]);
                valid[start..start + length].copy_from_slice(of_part);
            }
        }
        Ok(column(values, valid))
    }

    /// A byte for each cell, 1 where a condition is true: not where it is null.
    ///
    /// # Errors
    /// As [`evaluate`](Over::evaluate).
    pub fn test(&self, condition: &Typed) -> Result<Vec<u8>> {
        let column = self.evaluate(condition)?;
        let bits = column.values().values::<u8>();
        Ok(match column.valid() {
            None => bits.to_vec(),
            Some(valid) => bits.iter().zip(valid).map(|(a, b)| a & b).collect(),
        })
    }

    fn piece(&self, expr: &Typed, start: usize, length: usize) -> Result<Operand<'_>> {
        let live = self
            .block
            .present()
            .map(|present| &present[start..start + length]);
        Ok(match &expr.node {
            Node::Attribute(number) => match self.block.column(*number) {
                Some(column) => Operand::Part {
                    column,
                    start,
                    length,
                },
                // Asked for by `Typed::attributes`.
                None => Operand::Constant {
                    value: crate::model::types::Scalar::Null,
                    of: expr.of,
                    length,
                },
            },
            Node::Dimension(number) => {
                let dimension = &self.schema.dimensions()[*number];
                let values = coordinates(dimension, self.block.region(), *number, start, length);
                Operand::Owned(Column::new(values))
            }
            Node::Value(value) => Operand::Constant {
                value: *value,
                of: expr.of,
                length,
            },
            Node::Unary(op, a) => {
                Operand::Owned(kernels::unary(*op, &self.piece(a, start, length)?, live)?)
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.piece(a, start, length)?, self.piece(b, start, length)?);
                Operand::Owned(kernels::binary(*op, &a, &b, live)?)
            }
            Node::Cast(a) => match self.piece(a, start, length)? {
                // A literal that its type holds becomes it at once.
                Operand::Constant { value, .. } if value.cast(expr.of).is_some() => {
                    Operand::Constant {
                        value,
                        of: expr.of,
                        length,
                    }
                }
                a => Operand::Owned(kernels::cast(&a, expr.of, live)?),
            },
            Node::If(condition, a, b) => {
                let condition = self.piece(condition, start, length)?;
                let (a, b) = (self.piece(a, start, length)?, self.piece(b, start, length)?);
                Operand::Owned(kernels::choose(&condition, &a, &b))
            }
        })
    }
}

/// The coordinates along a dimension of cells of a region, by their row-major numbers.
fn coordinates(
    dimension: &Dimension,
    region: &Region,
    number: usize,
    start: usize,
    length: usize,
) -> Buffer {
    let inner: u64 = (number + 1..region.rank())
        .map(|at| region.length(at))
        .product();
    let count = region.length(number).max(1);
    let position = |cell: usize| region.start(number) + (cell as u64 / inner.max(1)) % count;
    let cells = start..start + length;
    let coordinate = |cell| dimension.coordinate(position(cell));
    if dimension.is_integer() {
        let whole = |cell| coordinate(cell).and_then(|of| of.to_i64()).unwrap_or(0);
        return Buffer::of(DataType::I64, &cells.map(whole).collect::<Vec<i64>>());
    }
    let float = |cell| coordinate(cell).map_or(0.0, |of| of.to_f64());
    Buffer::of(DataType::F64, &cells.map(float).collect::<Vec<f64>>())
}
