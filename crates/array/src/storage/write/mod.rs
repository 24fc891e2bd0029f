//! Writing arrays: what one transaction changes.

mod dense;
mod encode;
mod sparse;
mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

use store::{Store, Transaction};

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::grid::Grid;
use crate::data::region::Region;
use crate::error::{Error, Result, listed};
use crate::model::decimal::Decimal;
use crate::model::schema::{Layout, Schema, check_name};
use crate::model::types::Scalar;
use crate::storage::cells::Cells;
use crate::storage::keys::{AT, Catalog, Entry, Target, delete_entry, put_entry};
use crate::storage::plane::Counters;

/// Changes to arrays of a store that become visible and durable together, with [`commit`](Writer::commit), or not at all:
/// dropping it undoes them. There is one writer of a store at a time.
#[derive(Debug)]
pub struct Writer {
    transaction: Transaction,
    counters: Counters,
    /// How many threads compress a chunk.
    threads: usize,
}

impl Writer {
    /// Begins, after the writer before has ended.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn begin(store: &Arc<Store>) -> Result<Writer> {
        Ok(Writer::of(store.begin()?))
    }

    /// Adds to what a transaction changes; [`into_transaction`](Writer::into_transaction) gives it back.
    pub fn of(transaction: Transaction) -> Writer {
        Writer {
            transaction,
            counters: Counters::default(),
            threads: 1,
        }
    }

    /// The same, whose chunks are compressed by up to `threads` threads, of which the caller is one. Without, by the caller
    /// alone.
    pub fn threads(mut self, threads: usize) -> Writer {
        self.threads = threads.max(1);
        self
    }

    /// The transaction, for other changes that are to happen together with these.
    pub fn into_transaction(self) -> Transaction {
        self.transaction
    }

    /// The schema of an array, as it is now.
    ///
    /// # Errors
    /// [`Error::NoArray`], [`Error::Damaged`].
    pub fn schema(&self, name: &str) -> Result<Schema> {
        Ok(self.entry(name)?.schema)
    }

    fn entry(&self, name: &str) -> Result<Entry> {
        let catalog = Catalog::Transaction(&self.transaction);
        let found = catalog.entry(name);
        if let Err(Error::NoArray { .. }) = found
            && let Some((array, version)) = name.rsplit_once(AT)
            && catalog.version(array, version).is_ok()
        {
            return Err(Error::Write {
                array: array.to_owned(),
                what: format!("its version '{version}' is only read"),
            });
        }
        found
    }

    fn target(&self, name: &str) -> Result<Target> {
        let entry = self.entry(name)?;
        let versions = Catalog::Transaction(&self.transaction).versions(name)?;
        let versions = versions.into_iter().map(|(_, of)| of.space).collect();
        Ok(Target { entry, versions })
    }

    /// Creates an array, none of whose cells is written: it takes no room but for its entry.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Taken`], [`Error::Name`], [`Error::Schema`].
    pub fn create(&mut self, name: &str, schema: &Schema) -> Result<()> {
        check_name("an array", name)?;
        if name.contains(AT) {
            let what =
                "'@' in the name of an array stands before that of a version; choose another";
            return Err(Error::Write {
                array: name.to_owned(),
                what: what.to_owned(),
            });
        }
        if let Some(what) = Catalog::Transaction(&self.transaction).other(name) {
            return Err(Error::Taken {
                name: name.to_owned(),
                what,
            });
        }
        schema.check()?;
        match self.entry(name) {
            Err(Error::NoArray { .. }) => {}
            Ok(_) => {
                return Err(Error::Exists {
                    name: name.to_owned(),
                });
            }
            Err(error) => return Err(error),
        }
        let entry = Entry {
            space: self.transaction.new_space(),
            schema: schema.clone(),
        };
        put_entry(&mut self.transaction, name, &entry)
    }

    /// Deletes an array, and frees its pages.
    ///
    /// # Errors
    /// [`Error::NoArray`], [`Error::Damaged`]; [`Error::Write`] if it has versions.
    pub fn delete(&mut self, name: &str) -> Result<()> {
        let entry = self.entry(name)?;
        let versions = Catalog::Transaction(&self.transaction).versions(name)?;
        if !versions.is_empty() {
            let versions = listed(versions.iter().map(|of| of.0.as_str()));
            return Err(Error::Write {
                array: name.to_owned(),
                what: format!("it has versions, which need it: drop {versions} first"),
            });
        }
        self.clear(name, entry.space, &[])?;
        delete_entry(&mut self.transaction, name);
        Ok(())
    }

    /// Writes the cells of a block that exist where its region is. Other cells, and attributes that the block does not
    /// have, stay as they are, whether or not the region ends where chunks do.
    ///
    /// # Errors
    /// [`Error::NoArray`]; [`Error::Write`] if the block does not fit: its region, a type, a null in an attribute that is
    /// not nullable; [`Error::Store`], [`Error::Buffer`], [`Error::Damaged`].
    pub async fn write(&mut self, name: &str, block: &Block) -> Result<()> {
        let target = self.target(name)?;
        let schema = &target.entry.schema;
        check_block(name, schema, block)?;
        for chunk in Grid::of(schema).overlapping(block.region()) {
            match schema.layout() {
                Layout::Dense => self.write_dense(name, &target, &chunk, block).await?,
                Layout::Sparse => self.write_sparse(name, &target, &chunk, block).await?,
            }
        }
        Ok(())
    }

    /// Makes the cells of a sparse array absent that exist in a block, whose values do not matter. Returns how many of
    /// them were there.
    ///
    /// # Errors
    /// As [`write`](Writer::write); [`Error::Write`] if the array is dense.
    pub async fn erase(&mut self, name: &str, block: &Block) -> Result<u64> {
        let target = self.target(name)?;
        let schema = &target.entry.schema;
        if schema.layout() == Layout::Dense {
            return Err(Error::Write {
                array: name.to_owned(),
                what: "it is dense, and has each of its cells: set them to other values, or make a sparse array"
                    .to_owned(),
            });
        }
        check_block(name, schema, block)?;
        let mut gone = 0;
        for chunk in Grid::of(schema).overlapping(block.region()) {
            gone += self.erase_sparse(name, &target, &chunk, block).await?;
        }
        Ok(gone)
    }

    /// Makes an array longer along a growing dimension, by `more` cells that are not written: those of a dense array have
    /// the fill values. `coordinates` are those of the new positions, where the dimension has a list of them.
    ///
    /// # Errors
    /// [`Error::NoArray`]; [`Error::Unknown`], [`Error::Schema`] if the dimension does not grow.
    pub fn grow(
        &mut self,
        name: &str,
        dimension: &str,
        more: u64,
        coordinates: &[Decimal],
    ) -> Result<()> {
        let mut entry = self.entry(name)?;
        let what = format!("growing array '{name}'");
        let at = entry.schema.dimension(dimension, &what)?;
        entry.schema.dimensions_mut()[at].grow(more, coordinates)?;
        entry.schema.check()?;
        put_entry(&mut self.transaction, name, &entry)
    }

    /// Makes an array longer along a growing dimension, and writes a block behind what was there: its region begins at
    /// the end of that dimension. `coordinates` are those of the new positions, where the dimension has a list of them.
    ///
    /// # Errors
    /// As [`write`](Writer::write); [`Error::Unknown`], [`Error::Schema`] if the dimension does not grow.
    pub async fn append(
        &mut self,
        name: &str,
        dimension: &str,
        block: &Block,
        coordinates: &[Decimal],
    ) -> Result<()> {
        let mut entry = self.entry(name)?;
        let what = format!("append to array '{name}'");
        let at = entry.schema.dimension(dimension, &what)?;
        let rank = entry.schema.dimensions().len();
        let length = entry.schema.dimensions()[at].length();
        if block.region().rank() != rank || block.region().start(at) != length {
            return Err(Error::Write {
                array: name.to_owned(),
                what: format!(
                    "what is appended along '{dimension}' must begin at position {length}, and have {rank} dimensions"
                ),
            });
        }
        entry.schema.dimensions_mut()[at].grow(block.region().length(at), coordinates)?;
        entry.schema.check()?;
        check_block(name, &entry.schema, block)?;
        put_entry(&mut self.transaction, name, &entry)?;
        self.write(name, block).await
    }

    /// Sets all attributes of single cells, given by their positions. Of a cell that comes twice, the later counts.
    ///
    /// # Errors
    /// As [`write`](Writer::write).
    pub async fn update(&mut self, name: &str, cells: &[(Vec<u64>, Vec<Scalar>)]) -> Result<()> {
        let schema = self.schema(name)?;
        let whole = Region::of_shape(&schema.shape());
        let mut by_chunk: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
        for (at, (position, values)) in cells.iter().enumerate() {
            let cell = Region::new(position.iter().map(|&at| (at, at.saturating_add(1))));
            if cell.rank() != whole.rank()
                || !whole.contains(&cell)
                || values.len() != schema.attributes().len()
            {
                return Err(Error::Write {
                    array: name.to_owned(),
                    what: format!(
                        "a cell at {position:?} with {} values does not fit the shape {:?} and {} attributes",
                        values.len(),
                        schema.shape(),
                        schema.attributes().len()
                    ),
                });
            }
            let dimensions = schema.dimensions().iter().zip(position);
            let chunk = dimensions.map(|(of, at)| at / of.chunk_length()).collect();
            by_chunk.entry(chunk).or_default().push(at);
        }
        for numbers in by_chunk.into_values() {
            let few: Vec<_> = numbers.iter().map(|&at| &cells[at]).collect();
            let block = block_of(name, &schema, &few)?;
            self.write(name, &block).await?;
        }
        Ok(())
    }

    /// Makes the changes durable and visible, in this order; returns the new version of the store.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn commit(self) -> Result<u64> {
        Ok(self.transaction.commit()?)
    }

    fn cells<'a>(&'a self, name: &'a str, entry: &'a Entry) -> Cells<'a> {
        Cells {
            name,
            space: entry.space,
            schema: &entry.schema,
            catalog: Catalog::Transaction(&self.transaction),
            counters: &self.counters,
        }
    }
}

/// The block of single cells of one chunk.
fn block_of(name: &str, schema: &Schema, cells: &[&(Vec<u64>, Vec<Scalar>)]) -> Result<Block> {
    let rank = schema.dimensions().len();
    let ranges = (0..rank).map(|at| {
        let positions = cells.iter().map(|(position, _)| position[at]);
        (
            positions.clone().min().unwrap_or(0),
            positions.max().map_or(0, |last| last + 1),
        )
    });
    let region = Region::new(ranges);
    let count = region.cells("a chunk")?;
    let mut present = vec![0; count];
    let attributes = schema.attributes().iter();
    let mut columns: Vec<_> = attributes
        .map(|of| (Buffer::zeros(of.data_type(), count), vec![1u8; count]))
        .collect();
    for (position, values) in cells {
        let cell = (0..rank).fold(0, |sum, at| {
            sum * region.length(at) as usize + (position[at] - region.start(at)) as usize
        });
        present[cell] = 1;
        for ((number, (buffer, valid)), value) in columns.iter_mut().enumerate().zip(values) {
            let attribute = &schema.attributes()[number];
            let Some(fitting) = value.cast(attribute.data_type()) else {
                return Err(Error::Write {
                    array: name.to_owned(),
                    what: format!(
                        "{value} is no {} for attribute '{}'",
                        attribute.data_type(),
                        attribute.name()
                    ),
                });
            };
            buffer.set(cell, fitting);
            valid[cell] = u8::from(!value.is_null());
        }
    }
    let columns = columns
        .into_iter()
        .map(|(values, valid)| Some(Column::nullable(values, valid)));
    Ok(Block::new(region, columns.collect())?.with_present(present))
}

/// Whether a block may be written to an array of this schema.
fn check_block(name: &str, schema: &Schema, block: &Block) -> Result<()> {
    let wrong = |what: String| {
        Err(Error::Write {
            array: name.to_owned(),
            what,
        })
    };
    let whole = Region::of_shape(&schema.shape());
    if block.region().rank() != whole.rank() || !whole.contains(block.region()) {
        let (shape, ranges) = (schema.shape(), block.region().ranges());
        return wrong(format!(
            "the box {ranges:?} is not within its shape {shape:?}"
        ));
    }
    if block.columns().len() != schema.attributes().len() {
        let (given, needed) = (block.columns().len(), schema.attributes().len());
        return wrong(format!("{given} columns are given for {needed} attributes"));
    }
    let given = schema.attributes().iter().zip(block.columns());
    for (attribute, column) in given {
        let Some(column) = column else {
            continue;
        };
        let (of, needed) = (column.values().data_type(), attribute.data_type());
        if of != needed {
            return wrong(format!(
                "attribute '{}' is {needed}, not {of}",
                attribute.name()
            ));
        }
        let null = |valid: &[u8]| (0..valid.len()).any(|at| valid[at] == 0 && block.exists(at));
        if !attribute.is_nullable() && column.valid().is_some_and(null) {
            return wrong(format!(
                "attribute '{}' is not nullable, and a null is given",
                attribute.name()
            ));
        }
    }
    Ok(())
}
