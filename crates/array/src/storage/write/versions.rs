//! Named versions: the records of an array's chunks as they were, and the pages that they need.
//!
//! A version is a copy of the array's records, in a space of its own. Pages are shared: what is written to the array goes
//! to new pages, and old ones stay for as long as a version has them.

use super::Writer;
use super::encode::free;
use crate::error::{Error, Result};
use crate::model::schema::check_name;
use crate::storage::keys::{AT, Catalog, Entry, damaged, delete_version, put_version, unpack};
use crate::storage::record::Record;

impl Writer {
    /// Keeps an array as it is now under a name. It is read as `array@version`, whatever becomes of the array; its pages
    /// are those of the array, until that is written to.
    ///
    /// # Errors
    /// [`Error::NoArray`], [`Error::Name`], [`Error::Damaged`]; [`Error::Exists`] if it has such a version.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// use array::{Array, Attribute, DataType, Dimension, Schema, Writer};
    /// use store::{Options, Store};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let store = Store::create(directory.path().join("sea.atoll"), &Options::default())?;
    /// let schema = Schema::new(vec![Dimension::integer("x", 0, 4)], vec![Attribute::new("v", DataType::I64)])?;
    /// let mut writer = Writer::begin(&store)?;
    /// writer.create("depths", &schema)?;
    /// writer.create_version("depths", "empty")?;
    /// writer.update("depths", &[(vec![2], vec![7.into()])]).await?;
    /// writer.commit()?;
    ///
    /// for (name, value) in [("depths", 7), ("depths@empty", 0)] {
    ///     let array = Array::open(&store.snapshot(), name)?;
    ///     let block = array.read(&array.region(), &[true]).await?;
    ///     assert_eq!(block.column(0).unwrap().get(2), value.into());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn create_version(&mut self, array: &str, version: &str) -> Result<()> {
        check_name("a version", version)?;
        if version.contains(AT) {
            return Err(Error::Write {
                array: array.to_owned(),
                what: format!("'{version}' cannot name a version: it has an '@'"),
            });
        }
        let now = self.entry(array)?;
        match Catalog::Transaction(&self.transaction).version(array, version) {
            Err(Error::NoVersion { .. }) => {}
            Ok(_) => {
                return Err(Error::Exists {
                    name: format!("{array}{AT}{version}"),
                });
            }
            Err(error) => return Err(error),
        }
        let entry = Entry {
            space: self.transaction.new_space(),
            schema: now.schema,
        };
        let records: Vec<_> = self.transaction.prefix(now.space, b"").collect();
        for (key, record) in records {
            self.transaction.put(entry.space, &key, &record);
        }
        put_version(&mut self.transaction, (array, version), &entry)
    }

    /// Drops a version, and frees the pages that only it had.
    ///
    /// # Errors
    /// [`Error::NoArray`], [`Error::NoVersion`], [`Error::Damaged`].
    pub fn drop_version(&mut self, array: &str, version: &str) -> Result<()> {
        let now = self.entry(array)?;
        let catalog = Catalog::Transaction(&self.transaction);
        let space = catalog.version(array, version)?.space;
        let others = catalog.versions(array)?.into_iter().map(|of| of.1.space);
        let others: Vec<u32> = others
            .filter(|&of| of != space)
            .chain([now.space])
            .collect();
        self.clear(array, space, &others)?;
        delete_version(&mut self.transaction, array, version);
        Ok(())
    }

    /// Removes a space of chunks, and frees the pages that none of the other spaces has.
    pub(super) fn clear(&mut self, name: &str, space: u32, others: &[u32]) -> Result<()> {
        let records: Vec<_> = self.transaction.prefix(space, b"").collect();
        for (key, value) in records {
            let record = unpack::<Record>(&value);
            let record = record.ok_or_else(|| damaged(name, "the record of a chunk"))?;
            free(&mut self.transaction, &key, &record, others);
        }
        self.transaction.delete_space(space);
        Ok(())
    }
}
