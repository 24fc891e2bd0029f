//! Schemas: `<v:double null, k:int32> [x=0:99,10; latitude=-25.42:-25.52:-0.001; year=2000:*,5]`.

use array::{Attribute, Compression, DataType, Decimal, Dimension, Layout, Scalar, Schema};

use super::Parser;
use crate::error::{Checked, wrong};
use crate::lex::Token;

/// The most coordinates of a dimension that a text may give by a step: as many as an array has cells at most.
const MOST: u64 = 1 << 60;

impl Parser {
    /// Attributes, dimensions, and `sparse` if only cells exist that were written.
    pub(super) fn schema(&mut self) -> Checked<Schema> {
        let span = self.span();
        self.need("<")?;
        let mut attributes = Vec::new();
        loop {
            attributes.push(self.attribute()?);
            if !self.sign(",") {
                break;
            }
        }
        self.need(">")?;
        let dimensions = self.dimensions()?;
        let layout = if self.word("sparse") {
            Layout::Sparse
        } else {
            Layout::Dense
        };
        match Schema::new(dimensions, attributes) {
            Ok(schema) => Ok(schema.with_layout(layout)),
            Err(error) => wrong(span, error.to_string()),
        }
    }

    /// The name of a type.
    pub(super) fn data_type(&mut self) -> Checked<DataType> {
        let of = self.name("a type")?;
        let found = DataType::of_name(&of.text.to_ascii_lowercase());
        found.ok_or(()).or_else(|()| {
            let known: Vec<_> = DataType::ALL.iter().map(|of| of.name()).collect();
            let (text, known) = (&of.text, known.join(", "));
            wrong(
                of.span,
                format!("there is no type `{text}`; there are {known}"),
            )
        })
    }

    /// `v:double null default 0 compression 'zstd'`.
    fn attribute(&mut self) -> Checked<Attribute> {
        let name = self.name("the name of an attribute")?;
        self.need(":")?;
        let data_type = self.data_type()?;
        let mut attribute = Attribute::new(&name.text, data_type);
        if self.word("null") {
            attribute = attribute.nullable();
        }
        if self.word("default") {
            attribute = attribute.fill(self.constant()?);
        }
        if self.word("compression") {
            let span = self.span();
            let how = match self.next() {
                Token::Text(how) => how,
                Token::Name { text, .. } => text,
                _ => return wrong(span, "expected 'zstd', 'lz4' or 'none'"),
            };
            attribute = attribute.compressed(match how.as_str() {
                "zstd" => Compression::Zstd(1),
                "lz4" => Compression::Lz4,
                "none" => Compression::None,
                _ => {
                    return wrong(
                        span,
                        format!(
                            "there is no compression '{how}'; there are 'zstd', 'lz4' and 'none'"
                        ),
                    );
                }
            });
        }
        Ok(attribute)
    }

    /// A value of its own.
    fn constant(&mut self) -> Checked<Scalar> {
        let span = self.span();
        // Not a comparison: the `>` that may follow ends the attributes.
        match self.signed()? {
            array::expr::Expr::Value(value) => Ok(value),
            _ => wrong(span, "expected a number, true, false or null"),
        }
    }

    /// What stands in square brackets.
    pub(super) fn dimensions(&mut self) -> Checked<Vec<Dimension>> {
        self.need("[")?;
        let mut all = Vec::new();
        loop {
            all.push(self.dimension()?);
            if !self.sign(";") {
                break;
            }
        }
        self.need("]")?;
        Ok(all)
    }

    /// `x=0:99,10`: first and last coordinate, perhaps a step, and the cells of a chunk.
    fn dimension(&mut self) -> Checked<Dimension> {
        let name = self.name("the name of a dimension")?.text;
        self.need("=")?;
        let mut dimension = if self.sign("{") {
            let mut list = vec![self.decimal("a coordinate")?];
            while self.sign(",") {
                list.push(self.decimal("a coordinate")?);
            }
            self.need("}")?;
            Dimension::listed(&name, list)
        } else {
            self.range(&name)?
        };
        if self.word("growing") {
            dimension = dimension.growing();
        }
        if self.sign(",") {
            dimension = dimension.chunk(self.count()?);
        }
        Ok(dimension)
    }

    fn range(&mut self, name: &str) -> Checked<Dimension> {
        let span = self.span();
        let first = self.decimal("the first coordinate, or a list in { }")?;
        self.need(":")?;
        let last = if self.sign("*") {
            None
        } else {
            Some(self.decimal("the last coordinate, or *")?)
        };
        let step = if self.sign(":") {
            Some(self.decimal("a step")?)
        } else {
            None
        };
        let one = step.unwrap_or(Decimal::from(1));
        let length = match last {
            None => 0,
            Some(last) => match first.steps_to(last, one).filter(|&steps| steps < MOST) {
                Some(steps) => steps + 1,
                None => {
                    return wrong(
                        span,
                        format!("steps of {one} do not lead from {first} to {last}"),
                    );
                }
            },
        };
        let dimension = match (first.to_i64(), step) {
            (Some(start), None) => Dimension::integer(name, start, length),
            _ => Dimension::regular(name, first, one, length),
        };
        Ok(if last.is_none() {
            dimension.growing()
        } else {
            dimension
        })
    }
}
