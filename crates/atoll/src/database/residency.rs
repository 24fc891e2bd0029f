//! Where the pages of a database are.

use std::collections::BTreeMap;

use buffer::{PageId, Pool};
use futures::executor::block_on;
use table::{Part, Table};

use crate::database::Database;
use crate::error::Result;

/// Where the pages of a database's tables are at home, and those in memory really are.
///
/// Every page of every table counts. Rows that are not in a block yet, the tail, have no pages:
/// they are in the catalog, which is in memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Residency {
    /// Size of a page in memory, in bytes.
    pub page_size: usize,
    /// The home nodes, by index; the operating system's number of those whose memory was asked
    /// for, `None` where the machine has but one node or is not the one at hand.
    pub nodes: Vec<Option<u32>>,
    /// By table; its columns as they were created, then its dictionaries, indexes of keys, and the row indexes that a version up to 0.1 left.
    pub parts: Vec<PartResidency>,
    /// Of the tables that have one.
    pub tails: Vec<Tail>,
    /// What could not be found out; usually empty.
    pub notes: Vec<String>,
}

/// Pages of a table that hold the same.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PartResidency {
    /// The table.
    pub table: String,
    /// What they hold.
    pub holds: Holds,
    /// Pages by home node.
    pub pages: Vec<u64>,
    /// Of these, pages in the buffer pool.
    pub resident: Vec<u64>,
    /// Of those in the pool, pages by the operating system's number of the node their memory is
    /// on; `None` where the system does not say.
    pub found: Option<BTreeMap<u32, u64>>,
}

/// What the pages of a [`PartResidency`] hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holds {
    /// Values and validity of a column.
    Column(String),
    /// The labels of a column's dictionary.
    Dictionary(String),
    /// The index of a key that holds, by its name.
    Key(String),
    /// The row index of a foreign key, which a version up to 0.1 made and nothing reads. It goes when
    /// the table's rows change next.
    RowIndex {
        /// The columns that refer.
        columns: Vec<String>,
        /// The table referred to.
        parent: String,
    },
}

impl Holds {
    /// What they hold of `table`, as it is shown: `lineitem.l_tax`, `lineitem.l_shipmode, dictionary` or
    /// `lineitem.l_orderkey -> orders, row index`.
    pub fn name(&self, table: &str) -> String {
        match self {
            Holds::Column(column) => format!("{table}.{column}"),
            Holds::Dictionary(column) => format!("{table}.{column}, dictionary"),
            Holds::Key(key) => format!("{table}.{key}, index"),
            Holds::RowIndex { columns, parent } => {
                format!("{table}.{} -> {parent}, row index", columns.join("+"))
            }
        }
    }
}

/// Rows of a table that are not in a block yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tail {
    /// The table.
    pub table: String,
    /// How many rows.
    pub rows: u64,
    /// Their bytes in the catalog.
    pub bytes: u64,
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
    /// assert_eq!(residency.parts[0].holds, atoll::Holds::Column("n".into()));
    /// assert_eq!(residency.parts[0].resident, residency.parts[0].pages);
    /// # Ok(())
    /// # }
    /// ```
    pub fn residency(&self, load: bool) -> Result<Residency> {
        let pool = self.store().pool();
        let tables = self.tables_at(&self.store().snapshot())?;
        let mut names = tables.names();
        names.sort_unstable();
        let tables: Vec<&Table> = names
            .into_iter()
            .filter_map(|name| tables.get(name).map(|table| &**table))
            .collect();
        let parts: Vec<Held> = tables.iter().copied().flat_map(Held::of).collect();
        let mut notes = Vec::new();
        if load {
            let mut room = pool.frames();
            for page in parts.iter().flat_map(|part| &part.pages) {
                let Some(less) = room.checked_sub(1) else {
                    notes.push("the pool has no room for all pages: --pool makes it larger".into());
                    break;
                };
                block_on(pool.pin(*page)).map_err(table::Error::from)?;
                room = less;
            }
        }
        let nodes = pool.statistics().nodes;
        let residency = |part: Held| part.residency(pool, nodes.len(), &mut notes);
        Ok(Residency {
            page_size: pool.page_size(),
            nodes: nodes.iter().map(|node| node.os_node).collect(),
            parts: parts.into_iter().map(residency).collect(),
            tails: tables.into_iter().filter_map(tail).collect(),
            notes,
        })
    }
}

fn tail(table: &Table) -> Option<Tail> {
    let rows = table.tail_rows() as u64;
    (rows > 0).then(|| Tail {
        table: table::titled(&table.definition().name).into_owned(),
        rows,
        bytes: table.tail_bytes(),
    })
}

/// Pages of a table that hold the same.
pub(crate) struct Held {
    pub table: String,
    pub holds: Holds,
    pub pages: Vec<PageId>,
}

impl Held {
    /// All that a table has in the store.
    pub fn of(table: &Table) -> impl Iterator<Item = Held> {
        let definition = table.definition();
        let name = |column: usize| definition.columns[column].name.clone();
        let named = move |(part, pages)| {
            let holds = match part {
                Part::Column(column) => Holds::Column(name(column)),
                Part::Dictionary(column) => Holds::Dictionary(name(column)),
                Part::Key(key) => Holds::Key(definition.keys[key].name.clone()),
                Part::RowIndex(key) => {
                    let key = &definition.foreign_keys[key];
                    Holds::RowIndex {
                        columns: key.columns.iter().copied().map(name).collect(),
                        parent: key.parent.clone(),
                    }
                }
            };
            Held {
                table: table::titled(&definition.name).into_owned(),
                holds,
                pages,
            }
        };
        table.parts().into_iter().map(named)
    }

    fn residency(self, pool: &Pool, nodes: usize, notes: &mut Vec<String>) -> PartResidency {
        let (mut pages, mut resident) = (vec![0; nodes], vec![0; nodes]);
        let mut addresses = Vec::new();
        for page in &self.pages {
            let home = pool.home_of(*page);
            pages[home] += 1;
            if let Some(pin) = pool.try_pin(*page) {
                resident[home] += 1;
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
        PartResidency {
            table: self.table,
            holds: self.holds,
            pages,
            resident,
            found: found.ok(),
        }
    }
}
