//! Indexes: of keys that hold, and those that are declared.

use table::{Definition, IndexColumn, Tables};

use crate::messages::numbers::{table_number, type_number};
use crate::names::{base, catalog_name, permanent, quoted, schema_of};
use crate::scan::catalog::build::Built;
use crate::scan::catalog::system;

/// An index of a table.
pub(crate) struct TableIndex<'t> {
    /// The table's name in the catalog.
    pub table: &'t str,
    definition: &'t Definition,
    name: &'t str,
    method: &'t str,
    unique: bool,
    primary: bool,
    columns: Vec<IndexColumn>,
    /// What it is made of, if that is not only columns.
    items: &'t [(String, String)],
    predicate: Option<&'t str>,
}

/// All indexes, by their tables and names.
pub(crate) fn indexes(all: &Tables) -> Vec<TableIndex<'_>> {
    let mut found = Vec::new();
    for table in permanent(all.names()) {
        let Some(definition) = all.get(table).map(|table| table.definition()) else {
            continue;
        };
        let plain = |column: &usize| IndexColumn {
            column: *column,
            descending: false,
            nulls_first: false,
        };
        found.extend(definition.keys.iter().map(|key| TableIndex {
            table,
            definition,
            name: &key.name,
            method: "btree",
            unique: true,
            primary: key.primary,
            columns: key.columns.iter().map(plain).collect(),
            items: &[],
            predicate: None,
        }));
        found.extend(definition.indexes.iter().map(|index| TableIndex {
            table,
            definition,
            name: &index.name,
            method: &index.method,
            unique: false,
            primary: false,
            columns: index.columns.clone(),
            items: &index.items,
            predicate: index.predicate.as_deref(),
        }));
    }
    found.sort_by(|a, b| (a.table, a.name).cmp(&(b.table, b.name)));
    found
}

impl TableIndex<'_> {
    /// Its name in the catalog: it is in the schema of its table.
    pub(crate) fn full_name(&self) -> String {
        catalog_name(schema_of(self.table), self.name)
    }

    /// Its number.
    pub(crate) fn number(&self) -> i64 {
        table_number(&self.full_name())
    }

    /// The number of its method.
    pub(super) fn method_number(&self) -> i64 {
        match self.method {
            "hash" => 405,
            "brin" => 3580,
            _ => 403,
        }
    }

    /// How many columns it has.
    pub(super) fn width(&self) -> usize {
        if self.items.is_empty() {
            self.columns.len()
        } else {
            self.items.len()
        }
    }

    /// The statement that makes it.
    pub(crate) fn text(&self) -> String {
        let column = |own: &IndexColumn| {
            let name = self.definition.columns.get(own.column);
            let mut text = quoted(name.map_or("", |column| column.name.as_str()));
            if own.descending {
                text += " DESC";
            }
            match (own.descending, own.nulls_first) {
                (false, true) => text += " NULLS FIRST",
                (true, false) => text += " NULLS LAST",
                _ => {}
            }
            text
        };
        let columns: Vec<String> = if self.items.is_empty() {
            self.columns.iter().map(column).collect()
        } else {
            let items = self.items.iter();
            items
                .map(|(text, order)| format!("{text}{order}"))
                .collect()
        };
        let condition = match self.predicate {
            Some(text) => format!(" WHERE ({text})"),
            None => String::new(),
        };
        format!(
            "CREATE {}INDEX {} ON {}.{} USING {} ({}){condition}",
            if self.unique { "UNIQUE " } else { "" },
            quoted(self.name),
            quoted(schema_of(self.table)),
            quoted(base(self.table)),
            self.method,
            columns.join(", ")
        )
    }

    /// Places of its columns; 0 for an expression.
    fn places(&self) -> Vec<i16> {
        if !self.items.is_empty() {
            let columns = || self.definition.columns.iter();
            let place = |(text, _): &(String, String)| {
                let found = columns().position(|own| quoted(&own.name) == *text);
                found.map_or(0, |at| (at + 1) as i16)
            };
            return self.items.iter().map(place).collect();
        }
        let place = |own: &IndexColumn| (own.column + 1) as i16;
        self.columns.iter().map(place).collect()
    }

    /// The class of operators of each of its columns; 0 for an expression.
    fn classes(&self) -> Vec<i32> {
        let class = |place: i16| {
            let at = usize::try_from(place).ok()?.checked_sub(1)?;
            let column = self.definition.columns.get(at)?;
            let class = system::class_of(type_number(&column.data_type).into());
            i32::try_from(class).ok()
        };
        let places = self.places().into_iter();
        places.map(|place| class(place).unwrap_or(0)).collect()
    }

    /// A number for each of its columns that says how it is ordered.
    fn orders(&self) -> Vec<i16> {
        if !self.items.is_empty() {
            let order = |(_, order): &(String, String)| match order.as_str() {
                " NULLS FIRST" => 2,
                " DESC" => 3,
                " DESC NULLS LAST" => 1,
                _ => 0,
            };
            return self.items.iter().map(order).collect();
        }
        let order = |own: &IndexColumn| i16::from(own.descending) + 2 * i16::from(own.nulls_first);
        self.columns.iter().map(order).collect()
    }
}

/// `pg_index`.
pub(super) fn by_number(all: &Tables) -> Built {
    let indexes = indexes(all);
    let rows = indexes.len();
    let width = || indexes.iter().map(|own| own.width() as i64);
    let built = Built::default()
        .numbers("indexrelid", indexes.iter().map(TableIndex::number))
        .numbers(
            "indrelid",
            indexes.iter().map(|own| table_number(own.table)),
        )
        .numbers("indnatts", width())
        .numbers("indnkeyatts", width())
        .vectors("indkey", indexes.iter().map(TableIndex::places))
        .vectors("indoption", indexes.iter().map(TableIndex::orders))
        .nothing("indpred", rows)
        .nothing("indexprs", rows)
        .type_vectors("indclass", indexes.iter().map(TableIndex::classes))
        .truths("indisunique", indexes.iter().map(|own| own.unique))
        .truths("indisprimary", indexes.iter().map(|own| own.primary));
    [
        ("indnullsnotdistinct", false),
        ("indisclustered", false),
        ("indisvalid", true),
        ("indisreplident", false),
        ("indimmediate", true),
        ("indisready", true),
        ("indislive", true),
        ("indisexclusion", false),
        ("indcheckxmin", false),
    ]
    .into_iter()
    .fold(built, |built, (name, value)| built.truth(name, value, rows))
}

/// `pg_indexes`.
pub(super) fn by_name(all: &Tables) -> Built {
    let indexes = indexes(all);
    Built::default()
        .names("schemaname", indexes.iter().map(|own| schema_of(own.table)))
        .names("tablename", indexes.iter().map(|own| base(own.table)))
        .names("indexname", indexes.iter().map(|own| own.name))
        .nothing("tablespace", indexes.len())
        .names("indexdef", indexes.iter().map(TableIndex::text))
}
