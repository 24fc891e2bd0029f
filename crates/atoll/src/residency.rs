//! Where the pages of a database are.

use std::collections::BTreeMap;

use buffer::{PageId, Pool};
use futures::executor::block_on;

use crate::{Database, Result};

/// Where the pages of a database's tables are at home, and those in memory really are.
///
/// Pages of blocks count: values and validity of each column. Dictionaries, row indexes of
/// foreign keys and rows that are not in a block yet are not in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Residency {
    /// Size of a page in memory, in bytes.
    pub page_size: usize,
    /// The home nodes, by index; the operating system's number of those whose memory was asked
    /// for, `None` where the machine has but one node or is not the one at hand.
    pub nodes: Vec<Option<u32>>,
    /// By table and column, as they were created.
    pub columns: Vec<ColumnResidency>,
    /// What could not be found out; usually empty.
    pub notes: Vec<String>,
}

/// A column of a [`Residency`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnResidency {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// Pages by home node.
    pub pages: Vec<u64>,
    /// Of these, pages in the buffer pool.
    pub resident: Vec<u64>,
    /// Of those in the pool, pages by the operating system's number of the node their memory is
    /// on; `None` where the system does not say.
    pub found: Option<BTreeMap<u32, u64>>,
}

impl Database {
    /// Where the pages of all tables are. With `load` they are read into the buffer pool first, as
    /// many as it has frames; without, those count that are in it already.
    ///
    /// # Errors
    ///
    /// If the catalog cannot be read; with `load`, if a page cannot.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("numbers.atoll");
    /// let database = atoll::Database::create(&path, &atoll::Options::default())?;
    /// database.session().sql("create table numbers (n bigint)")?;
    /// let residency = database.residency(true)?;
    /// assert_eq!(residency.columns[0].column, "n");
    /// assert!(residency.columns[0].resident.iter().sum::<u64>() <= residency.columns[0].pages.iter().sum());
    /// # Ok(())
    /// # }
    /// ```
    pub fn residency(&self, load: bool) -> Result<Residency> {
        let pool = self.store().pool();
        let mut notes = Vec::new();
        let mut columns = self.columns()?;
        if load {
            let mut room = pool.frames();
            for page in columns.iter().flat_map(|column| &column.pages) {
                let Some(less) = room.checked_sub(1) else {
                    notes.push("the pool has no room for all pages: --pool makes it larger".into());
                    break;
                };
                block_on(pool.pin(page.id)).map_err(table::Error::from)?;
                room = less;
            }
        }
        let nodes = pool.statistics().nodes;
        let mut out = Vec::with_capacity(columns.len());
        for column in &mut columns {
            out.push(column.residency(pool, nodes.len(), &mut notes));
        }
        Ok(Residency {
            page_size: pool.page_size(),
            nodes: nodes.iter().map(|node| node.os_node).collect(),
            columns: out,
            notes,
        })
    }

    /// The columns of all tables with their pages.
    fn columns(&self) -> Result<Vec<ColumnPages>> {
        let pool = self.store().pool();
        let tables = self.tables_at(&self.store().snapshot())?;
        let mut names = tables.names();
        names.sort_unstable();
        let mut columns = Vec::new();
        for table in names.into_iter().filter_map(|name| tables.get(name)) {
            let first = columns.len();
            let definition = table.definition();
            columns.extend(definition.columns.iter().map(|column| ColumnPages {
                table: definition.name.clone(),
                column: column.name.clone(),
                pages: Vec::new(),
            }));
            for block in (0..table.blocks()).map(|at| table.block(at)) {
                let home = pool.node_of(block.bucket);
                for (column, matrix) in columns[first..].iter_mut().zip(&block.columns) {
                    let pages = matrix.page_ids().map(|id| HomedPage { id, home });
                    column.pages.extend(pages);
                }
            }
        }
        Ok(columns)
    }
}

struct ColumnPages {
    table: String,
    column: String,
    pages: Vec<HomedPage>,
}

struct HomedPage {
    id: PageId,
    /// Index of its home node.
    home: usize,
}

impl ColumnPages {
    fn residency(&self, pool: &Pool, nodes: usize, notes: &mut Vec<String>) -> ColumnResidency {
        let (mut pages, mut resident) = (vec![0; nodes], vec![0; nodes]);
        let mut addresses = Vec::new();
        for page in &self.pages {
            pages[page.home] += 1;
            if let Some(pin) = pool.try_pin(page.id) {
                resident[page.home] += 1;
                addresses.push(pin.as_ptr());
            }
        }
        // Once unpinned a frame may take another page, and stays where it is.
        let found = memory::residency(&addresses).map(|nodes| {
            let mut found = BTreeMap::new();
            for node in nodes.into_iter().flatten() {
                *found.entry(node).or_default() += 1;
            }
            found
        });
        if let Err(error) = &found {
            let note = error.to_string();
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        ColumnResidency {
            table: self.table.clone(),
            column: self.column.clone(),
            pages,
            resident,
            found: found.ok(),
        }
    }
}
