//! All cells that exist as a list, sorted.

use std::cmp::Ordering;

use futures::StreamExt;

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::region::Region;
use crate::error::{Error, Result};
use crate::model::chunking::{CHUNK_BYTES, chunk_lengths};
use crate::model::dimension::Dimension;
use crate::model::schema::Schema;
use crate::model::types::Scalar;
use crate::operators::memory::ArrayData;
use crate::operators::source::{Crew, Input};

/// An attribute to sort by, and whether the greatest comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    /// The attribute.
    pub attribute: String,
    /// Whether the greatest comes first.
    pub descending: bool,
}

/// What the sorted list is like, without sorting: its schema, but for the length, and the numbers of the keys.
///
/// # Errors
/// [`Error::Unknown`], [`Error::Operator`].
pub(crate) fn check(schema: &Schema, keys: &[SortKey]) -> Result<Vec<(usize, bool)>> {
    if keys.is_empty() {
        let what = "name at least one attribute".to_owned();
        return Err(Error::Operator {
            operator: "sort",
            what,
        });
    }
    let number = |key: &SortKey| Ok((schema.attribute(&key.attribute, "sort")?, key.descending));
    keys.iter().map(number).collect()
}

/// The schema of a list of `length` cells.
///
/// # Errors
/// [`Error::Schema`].
pub(crate) fn schema_of(schema: &Schema, length: u64) -> Result<Schema> {
    let mut name = "n".to_owned();
    while schema.attributes().iter().any(|of| of.name() == name) {
        name.push_str("_2");
    }
    let widest = schema
        .attributes()
        .iter()
        .map(|of| of.data_type().width())
        .max();
    let chunk = chunk_lengths(&[(length, 0, false)], widest.unwrap_or(1), CHUNK_BYTES)[0];
    let dimension = Dimension::integer(&name, 0, length).chunk(chunk);
    let list = Schema::derived(vec![dimension], schema.attributes().to_vec())?;
    Ok(list.with_attributes_of(schema).said_as(schema))
}

/// The cells of `input` that exist, by rising (or falling) values of the keys; nulls come last, and NaN before them. Cells
/// that are equal stay in the order of the input's chunks.
///
/// # Errors
/// Those of the input.
pub(crate) async fn sorted(input: &Input, keys: &[SortKey], crew: &Crew) -> Result<ArrayData> {
    let keys = check(input.schema(), keys)?;
    let grid = input.grid();
    let wanted = vec![true; input.schema().attributes().len()];
    let source = input.clone();
    let chunks = grid.all();
    let task = move |chunk: Vec<u64>| {
        let (source, wanted, region) = (source.clone(), wanted.clone(), grid.region(&chunk));
        async move { source.block(&region, &wanted).await }
    };
    let mut blocks = Vec::new();
    let mut found = crew.ordered(chunks, task);
    while let Some(block) = found.next().await {
        blocks.push(block?);
    }
    let mut cells: Vec<(usize, usize)> = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        cells.extend(
            (0..block.cells())
                .filter(|&cell| block.exists(cell))
                .map(|cell| (number, cell)),
        );
    }
    let value = |(block, cell): (usize, usize), key: usize| {
        blocks[block]
            .column(key)
            .map_or(Scalar::Null, |of| of.get(cell))
    };
    cells.sort_by(|&a, &b| {
        let mut order = keys
            .iter()
            .map(|&(key, falling)| compare(value(a, key), value(b, key), falling));
        order.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    let schema = schema_of(input.schema(), cells.len() as u64)?;
    let columns = schema
        .attributes()
        .iter()
        .enumerate()
        .map(|(number, attribute)| {
            let mut values = Buffer::zeros(attribute.data_type(), cells.len());
            let mut valid = vec![1; cells.len()];
            for (at, &(block, cell)) in cells.iter().enumerate() {
                if let Some(column) = blocks[block].column(number) {
                    crate::storage::sparse::copy_value(column.values(), cell, &mut values, at);
                    valid[at] = column.valid().map_or(1, |valid| valid[cell]);
                }
            }
            Some(Column::nullable(values, valid))
        });
    let block = Block::new(Region::of_shape(&[cells.len() as u64]), columns.collect())?;
    Ok(ArrayData::of_block(schema, block))
}

/// Numbers by value, NaN after them, null at the end; only numbers turn round where they fall.
fn compare(a: Scalar, b: Scalar, falling: bool) -> Ordering {
    let class = |of: Scalar| match of {
        Scalar::Null => 2,
        Scalar::Float(value) if value.is_nan() => 1,
        _ => 0,
    };
    match class(a).cmp(&class(b)) {
        Ordering::Equal => {
            let order = a.order(b).unwrap_or(Ordering::Equal);
            if falling { order.reverse() } else { order }
        }
        order => order,
    }
}
