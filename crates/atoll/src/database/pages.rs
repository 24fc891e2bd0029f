//! Where the pages of a database are in its file.

use store::{Place, Vacuum};

use crate::database::Database;
use crate::database::residency::{Held, Holds};
use crate::error::Result;

/// Pages of a table that hold the same, with their places in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartPages {
    /// The table.
    pub table: String,
    /// What they hold.
    pub holds: Holds,
    /// The pages, in the order of the table's rows.
    pub places: Vec<Place>,
}

impl Database {
    /// Makes the data file as short as what it holds: pages at its end move to free space before them. Readers go on
    /// meanwhile; writers wait for milliseconds at a time.
    ///
    /// # Errors
    ///
    /// If the store was opened for reading or mapped, or the device fails.
    pub fn vacuum(&self) -> Result<Vacuum> {
        Ok(self.store().vacuum()?)
    }

    /// The pages of all tables: table by table, each with its columns, its dictionaries, and the row indexes that a version
    /// up to 0.1 left.
    ///
    /// # Errors
    ///
    /// If the catalog cannot be read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("numbers.atoll");
    /// let database = atoll::Database::create(&path, &atoll::Options::default())?;
    /// database.session().sql("create table numbers (n bigint)")?;
    /// let parts = database.pages()?;
    /// assert_eq!(parts[0].holds, atoll::Holds::Column("n".into()));
    /// assert!(parts[0].places.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn pages(&self) -> Result<Vec<PartPages>> {
        // The snapshot keeps pages where they are meanwhile.
        let snapshot = self.store().snapshot();
        let tables = self.tables_at(&snapshot)?;
        let mut names = tables.names();
        names.sort_unstable();
        let tables = names.into_iter().filter_map(|name| tables.get(name));
        let places = |held: Held| PartPages {
            table: held.table,
            holds: held.holds,
            places: held
                .pages
                .into_iter()
                .filter_map(|page| self.store().place(page))
                .collect(),
        };
        Ok(tables
            .flat_map(|table| Held::of(table))
            .map(places)
            .collect())
    }
}
