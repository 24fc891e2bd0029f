//! Schemas: the dimensions and attributes of an array.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, listed};
use crate::model::chunking::{CHUNK_BYTES, chunk_lengths};
use crate::model::dimension::{Bound, Dimension};
use crate::model::metadata::Metadata;
use crate::model::types::{DataType, Scalar};

/// The most dimensions of an array.
pub const MAX_DIMENSIONS: usize = 32;

/// The most cells of a chunk.
pub(crate) const MOST_CHUNK_CELLS: u64 = u32::MAX as u64;

/// How the values of an attribute are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Compression {
    /// As they are, page after page.
    #[default]
    None,
    /// With zstd at this level, after the bytes of equal weight were brought together.
    Zstd(i32),
    /// With LZ4, after the bytes of equal weight were brought together.
    Lz4,
}

/// Whether cells that were never written exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Layout {
    /// Every cell exists: one that was never written has the fill values.
    #[default]
    Dense,
    /// A cell exists once it was written; chunks keep the coordinates of those that do.
    Sparse,
}

/// A named value of each cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) nullable: bool,
    pub(crate) fill: Scalar,
    pub(crate) compression: Compression,
}

impl Attribute {
    /// An attribute that is not nullable, filled with zero (false), not compressed.
    pub fn new(name: &str, data_type: DataType) -> Attribute {
        let zero = Scalar::Int(0).cast(data_type).unwrap_or(Scalar::Null);
        Attribute {
            name: name.to_owned(),
            data_type,
            nullable: false,
            fill: zero,
            compression: Compression::None,
        }
    }

    /// The same, whose cells may be null, and are where they were never written.
    pub fn nullable(mut self) -> Attribute {
        self.nullable = true;
        self.fill = Scalar::Null;
        self
    }

    /// The same, with another value of cells that were never written.
    pub fn fill(mut self, value: impl Into<Scalar>) -> Attribute {
        self.fill = value.into();
        self
    }

    /// The same, compressed.
    pub fn compressed(mut self, compression: Compression) -> Attribute {
        self.compression = compression;
        self
    }

    /// The same with another name.
    pub(crate) fn named(mut self, name: &str) -> Attribute {
        self.name = name.to_owned();
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its values.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// Whether cells may be null.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// What a cell has that was never written.
    pub fn fill_value(&self) -> Scalar {
        self.fill
    }

    /// How it is stored.
    pub fn compression(&self) -> Compression {
        self.compression
    }
}

/// The dimensions and attributes of an array, in order: the last dimension is the one along which neighbours lie side
/// by side (row-major order).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    dimensions: Vec<Dimension>,
    attributes: Vec<Attribute>,
    layout: Layout,
    /// Kept beside the rest, since stores of before have none.
    #[serde(skip)]
    metadata: Arc<Metadata>,
}

impl Schema {
    /// A schema of a dense array. Dimensions without a chunk length get one by the rule of
    /// [`chunk_lengths`](crate::chunk_lengths), for chunks of [`CHUNK_BYTES`] of the widest attribute.
    ///
    /// # Errors
    /// [`Error::Schema`], [`Error::Name`].
    pub fn new(mut dimensions: Vec<Dimension>, attributes: Vec<Attribute>) -> Result<Schema> {
        let widest = attributes.iter().map(|of| of.data_type.width()).max();
        let shape: Vec<_> = dimensions
            .iter()
            .map(|of| (of.length, of.chunk, of.growing))
            .collect();
        let chosen = chunk_lengths(&shape, widest.unwrap_or(1), CHUNK_BYTES);
        for (dimension, chunk) in dimensions.iter_mut().zip(chosen) {
            dimension.chunk = chunk;
        }
        let schema = Schema {
            dimensions,
            attributes,
            layout: Layout::Dense,
            metadata: Arc::default(),
        };
        schema.check()?;
        Ok(schema)
    }

    /// The schema of an operator's result, whose chunk lengths are known.
    ///
    /// # Errors
    /// [`Error::Schema`], [`Error::Name`]: names that two inputs share, for one.
    pub(crate) fn derived(
        dimensions: Vec<Dimension>,
        attributes: Vec<Attribute>,
    ) -> Result<Schema> {
        let schema = Schema {
            dimensions,
            attributes,
            layout: Layout::Dense,
            metadata: Arc::default(),
        };
        schema.check()?;
        Ok(schema)
    }

    /// The same with a layout.
    pub fn with_layout(mut self, layout: Layout) -> Schema {
        self.layout = layout;
        self
    }

    /// The same with this said of it.
    pub fn with_metadata(mut self, metadata: Metadata) -> Schema {
        self.metadata = Arc::new(metadata);
        self
    }

    /// The same with all that is said of `from`, whose dimensions and attributes it has.
    pub(crate) fn with_all_of(mut self, from: &Schema) -> Schema {
        self.metadata = from.metadata.clone();
        self
    }

    /// The same with what is said of the array `from` itself.
    pub(crate) fn said_as(mut self, from: &Schema) -> Schema {
        let said = from.metadata.of(None);
        if !said.is_empty() {
            Arc::make_mut(&mut self.metadata).describe(None, said.to_vec());
        }
        self
    }

    /// The same with what is said in `from` of parts that have come from there unchanged, by their names there and here.
    pub(crate) fn with_parts_of<'n>(
        mut self,
        from: &Schema,
        parts: impl IntoIterator<Item = (&'n str, &'n str)>,
    ) -> Schema {
        if !from.metadata.is_empty() {
            Arc::make_mut(&mut self.metadata).take_parts(&from.metadata, parts);
        }
        self
    }

    /// The same with what is said in `from` of the dimensions with the same names, whose coordinates are the same.
    pub(crate) fn with_dimensions_of(self, from: &Schema) -> Schema {
        if from.metadata.is_empty() {
            return self;
        }
        let own = self.dimensions.iter().map(|of| of.name().to_owned());
        let own: Vec<String> = own.collect();
        self.with_parts_of(from, own.iter().map(|name| (name.as_str(), name.as_str())))
    }

    /// The same with what is said in `from` of the attributes with the same names.
    pub(crate) fn with_attributes_of(self, from: &Schema) -> Schema {
        let own = from.attributes.iter().map(Attribute::name);
        self.with_parts_of(from, own.map(|name| (name, name)))
    }

    /// What is said of the array, its dimensions and its attributes.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Checks all of it: for what was given or read.
    ///
    /// # Errors
    /// [`Error::Schema`], [`Error::Name`].
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Schema { what });
        if self.dimensions.is_empty() || self.dimensions.len() > MAX_DIMENSIONS {
            let count = self.dimensions.len();
            return wrong(format!(
                "an array has 1 to {MAX_DIMENSIONS} dimensions, not {count}"
            ));
        }
        if self.attributes.is_empty() || self.attributes.len() > usize::from(u16::MAX - 1) {
            return wrong("an array has at least one attribute, and fewer than 65,535".to_owned());
        }
        let mut names: Vec<&str> = Vec::new();
        let all = self.dimensions.iter().map(|of| ("a dimension", of.name()));
        for (what, name) in all.chain(self.attributes.iter().map(|of| ("an attribute", of.name())))
        {
            check_name(what, name)?;
            names.push(name);
        }
        names.sort_unstable();
        if let Some(two) = names.windows(2).find(|two| two[0] == two[1]) {
            return wrong(format!("'{}' names two things; names must differ", two[0]));
        }
        for attribute in &self.attributes {
            let fits = attribute.fill.to_bytes(attribute.data_type).is_some();
            if !fits || (attribute.fill.is_null() && !attribute.nullable) {
                let Attribute { name, fill, .. } = attribute;
                return wrong(format!(
                    "attribute '{name}' cannot have the fill value {fill}"
                ));
            }
        }
        for dimension in &self.dimensions {
            dimension.check()?;
        }
        let cells = product(self.dimensions.iter().map(|of| of.length));
        let chunk = product(self.dimensions.iter().map(|of| of.chunk));
        if cells.is_none_or(|cells| cells > i64::MAX as u64 / 8) {
            return wrong("the array has more than 2^60 cells".to_owned());
        }
        if chunk.is_none_or(|cells| cells > MOST_CHUNK_CELLS) {
            return wrong("a chunk has more than 2^32 cells; take shorter ones".to_owned());
        }
        Ok(())
    }

    /// Its dimensions, the outermost first.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Its attributes.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Whether cells exist that were never written.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The cells along each dimension.
    pub fn shape(&self) -> Vec<u64> {
        self.dimensions.iter().map(|of| of.length).collect()
    }

    /// How many cells there are, existing or not.
    pub fn cells(&self) -> u64 {
        // Checked.
        self.dimensions.iter().map(|of| of.length).product()
    }

    pub(crate) fn dimensions_mut(&mut self) -> &mut [Dimension] {
        &mut self.dimensions
    }

    /// The number of an attribute; `what` says who asked.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn attribute(&self, name: &str, what: &str) -> Result<usize> {
        let found = self.attributes.iter().position(|of| of.name == name);
        found.ok_or_else(|| Error::Unknown {
            what: what.to_owned(),
            kind: "attribute",
            name: name.to_owned(),
            known: listed(self.attributes.iter().map(Attribute::name)),
        })
    }

    /// The number of a dimension; `what` says who asked.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn dimension(&self, name: &str, what: &str) -> Result<usize> {
        let found = self.dimensions.iter().position(|of| of.name == name);
        found.ok_or_else(|| Error::Unknown {
            what: what.to_owned(),
            kind: "dimension",
            name: name.to_owned(),
            known: listed(self.dimensions.iter().map(Dimension::name)),
        })
    }

    /// The positions from the first to before the last along each dimension, of a pair of bounds for each, both
    /// included and in either order.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], and [`Error::Operator`] if there are not as many pairs as dimensions.
    pub fn ranges(
        &self,
        bounds: &[(Bound, Bound)],
        operator: &'static str,
    ) -> Result<Vec<(u64, u64)>> {
        if bounds.len() != self.dimensions.len() {
            return Err(Error::Operator {
                operator,
                what: format!(
                    "it needs two bounds for each of the {} dimensions ({}), not {} pairs",
                    self.dimensions.len(),
                    listed(self.dimensions.iter().map(Dimension::name)),
                    bounds.len()
                ),
            });
        }
        let pairs = self.dimensions.iter().zip(bounds);
        pairs
            .map(|(dimension, &(one, other))| dimension.range(one, other, operator))
            .collect()
    }
}

/// The product, if it fits.
pub(crate) fn product(lengths: impl IntoIterator<Item = u64>) -> Option<u64> {
    lengths.into_iter().try_fold(1u64, u64::checked_mul)
}

/// Whether this may be a name.
///
/// # Errors
/// [`Error::Name`].
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<()> {
    if (1..=255).contains(&name.len()) && !name.contains(char::is_control) {
        return Ok(());
    }
    Err(Error::Name {
        what,
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(dimension: Dimension, attribute: Attribute) -> Result<Schema> {
        Schema::new(vec![dimension], vec![attribute])
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let x = || Dimension::integer("x", 0, 4);
        let v = || Attribute::new("v", DataType::U8);
        assert!(one(x(), v()).is_ok());
        for (schema, message) in [
            (Schema::new(vec![], vec![v()]), "1 to 32 dimensions"),
            (Schema::new(vec![x()], vec![]), "at least one attribute"),
            (one(x(), v().named("x")), "'x' names two things"),
            (one(x(), v().named("")), "1 to 255 bytes"),
            (one(x(), v().fill(300)), "fill value 300"),
            (one(x(), v().fill(Scalar::Null)), "fill value null"),
            (one(x().chunk(1 << 33), v()), "more than 2^32 cells"),
        ] {
            let error = schema.unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
