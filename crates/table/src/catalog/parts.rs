//! All pages of a table, by what they hold.

use buffer::PageId;

use crate::catalog::table::Table;
use crate::format::key;
use crate::format::run::Run;

/// What some pages of a table hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Values, validity and shreds of this column, of all blocks.
    Column(usize),
    /// The labels of this column's dictionary.
    Dictionary(usize),
    /// The index of this key, by its place in [`Definition::keys`](crate::Definition::keys).
    Key(usize),
    /// The row index of this foreign key, which a version up to 0.1 made and nothing reads. It goes
    /// when the table's rows change next.
    RowIndex(usize),
}

impl Table {
    /// The table's pages: every column, then the dictionaries that there are, the indexes of keys that have pages, and
    /// the row indexes that an earlier version left.
    ///
    /// No page is in two parts, and together they are all that the table has in the store.
    ///
    /// A column of constants has no page.
    pub fn parts(&self) -> Vec<(Part, Vec<PageId>)> {
        let body = &self.body;
        let column = |column: usize| {
            let blocks = body.blocks.iter();
            let pages = blocks.flat_map(|block| block.value.pages_of(column));
            (Part::Column(column), pages.collect())
        };
        let dictionaries = body.dictionaries.iter().enumerate();
        let dictionaries = dictionaries.filter_map(|(column, slot)| {
            let ids = slot.record.as_ref()?.page_ids().collect();
            Some((Part::Dictionary(column), ids))
        });
        let indexes = body.row_indexes.iter();
        let indexes = indexes.map(|(key, ids)| (Part::RowIndex(*key), ids.clone()));
        let keys = body.definition.keys.iter().enumerate();
        let keys = keys.map(|(at, own)| {
            let prefix = key::index(own.number, key::KEY_RUN);
            let runs = self.snapshot.prefix(body.space, &prefix);
            let runs = runs.filter_map(|(_, bytes)| Run::of(bytes));
            let ids = runs.flat_map(|run| run.page_ids().collect::<Vec<_>>());
            (Part::Key(at), ids.collect::<Vec<_>>())
        });
        let keys = keys.filter(|(_, pages)| !pages.is_empty());
        (0..body.definition.columns.len())
            .map(column)
            .chain(dictionaries)
            .chain(keys)
            .chain(indexes)
            .collect()
    }

    /// Bytes of the rows in the tail, as the catalog keeps them: these have no pages, and are in
    /// memory for as long as the table is open. See [`tail_rows`](Table::tail_rows).
    pub fn tail_bytes(&self) -> u64 {
        let chunks = self.body.tail.iter();
        chunks.map(|chunk| chunk.bytes.len() as u64).sum()
    }
}
