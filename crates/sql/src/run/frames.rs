//! Data frames that a statement reads as tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use datafusion_expr::TableSource;
use ingest::{Columns, Dataset};

use crate::error::Result;

/// Rows by the names under which a statement reads them, before it looks in the catalog.
pub(crate) type Given = Arc<HashMap<String, Arc<dyn TableSource>>>;

/// Rows of the caller that statements read as tables, by name: see [`Session::with_frames`](crate::Session::with_frames).
/// Nothing of them is copied.
#[derive(Clone, Debug, Default)]
pub struct Frames(BTreeMap<String, Arc<Dataset>>);

impl Frames {
    /// Adds batches in memory, which may be read any number of times. `name` is as it stands in statements: in lower
    /// case unless it is quoted there.
    ///
    /// # Errors
    ///
    /// If there are no columns, or two of one name; if a batch has other columns than `schema`.
    pub fn add_batches(
        &mut self,
        name: &str,
        schema: &SchemaRef,
        batches: Vec<RecordBatch>,
    ) -> Result<()> {
        let frame = Dataset::of_batches(name, schema, batches)?;
        self.0.insert(name.to_owned(), Arc::new(frame));
        Ok(())
    }

    /// Adds columns that become batches as they are read, and only those that a statement asks for.
    ///
    /// # Errors
    ///
    /// If there are no columns, or two of one name.
    pub fn add_columns(
        &mut self,
        name: &str,
        schema: &SchemaRef,
        columns: Arc<dyn Columns>,
    ) -> Result<()> {
        let frame = Dataset::of_columns(name, schema, columns)?;
        self.0.insert(name.to_owned(), Arc::new(frame));
        Ok(())
    }

    /// Adds batches that come once: a statement that reads them twice fails. They are drawn on a thread of their own.
    ///
    /// # Errors
    ///
    /// If there are no columns, or two of one name.
    pub fn add_reader(
        &mut self,
        name: &str,
        reader: Box<dyn RecordBatchReader + Send>,
    ) -> Result<()> {
        let frame = Dataset::of_reader(name, reader)?;
        self.0.insert(name.to_owned(), Arc::new(frame));
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The frame of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<Dataset>> {
        self.0.get(name)
    }

    /// The names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
