//! Indexes: of keys that hold, and those that are declared.

use arrow::datatypes::DataType;
use messages::numbers::table_number;
use syntax::deparse;
use syntax::names::{base, catalog_name, exact, permanent, quoted, schema_of};
use table::{Column, Definition, IndexColumn, Tables};

use crate::pg_catalog::build::Built;
use crate::pg_catalog::composites::{as_table, plain_column};
use crate::pg_catalog::expressions::over_columns;
use crate::pg_catalog::system;
use crate::pg_catalog::types::typed;

/// An index of a table.
pub struct TableIndex<'t> {
    all: &'t Tables,
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
pub fn indexes(all: &Tables) -> Vec<TableIndex<'_>> {
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
            all,
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
            all,
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
    pub fn full_name(&self) -> String {
        catalog_name(schema_of(self.table), self.name)
    }

    /// Its number.
    pub fn number(&self) -> i64 {
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

    /// The statement that makes it, on a table that is called `on` there; `pretty`: with as few parentheses as it needs.
    pub fn text(&self, on: &str, pretty: bool) -> String {
        let columns: Vec<String> = self
            .parts()
            .into_iter()
            .map(|(text, order)| text + &order)
            .collect();
        let condition = self.condition(pretty);
        let condition = condition.map_or_else(String::new, |text| format!(" WHERE {text}"));
        format!(
            "CREATE {}INDEX {} ON {on} USING {} ({}){condition}",
            if self.unique { "UNIQUE " } else { "" },
            quoted(self.name),
            self.method,
            columns.join(", ")
        )
    }

    /// The same on its table with its schema.
    fn full_text(&self) -> String {
        self.text(&quoted(&exact(self.table)), false)
    }

    /// What it is made of: each column or expression, and its order behind it.
    fn parts(&self) -> Vec<(String, String)> {
        if !self.items.is_empty() {
            return self.items.to_vec();
        }
        let part = |own: &IndexColumn| {
            let name = self.definition.columns.get(own.column);
            let order = match (own.descending, own.nulls_first) {
                (true, true) => " DESC",
                (false, true) => " NULLS FIRST",
                (true, false) => " DESC NULLS LAST",
                (false, false) => "",
            };
            let name = name.map_or("", |column| column.name.as_str());
            (quoted(name), order.to_owned())
        };
        self.columns.iter().map(part).collect()
    }

    /// The column or expression at a place, from 1 on; nothing behind the last, as in PostgreSQL.
    pub fn part(&self, place: usize) -> String {
        let mut parts = self.parts().into_iter();
        let found = place.checked_sub(1).and_then(|at| parts.nth(at));
        found.map_or_else(String::new, |(text, _)| text)
    }

    /// The condition on its rows.
    fn condition(&self, pretty: bool) -> Option<String> {
        let text = self.predicate?;
        let Some(kept) = over_columns(self.all, self.definition, text) else {
            return Some(format!("({text})"));
        };
        let shown = pretty.then(|| deparse::pretty(&kept)).flatten();
        Some(shown.unwrap_or(kept))
    }

    /// Its expressions, with commas between them; none if it has columns alone.
    fn expressions(&self) -> Option<String> {
        let parts = self.parts().into_iter().zip(self.places());
        let expressions = parts.filter_map(|((text, _), place)| (place == 0).then_some(text));
        let expressions: Vec<String> = expressions.collect();
        (!expressions.is_empty()).then(|| expressions.join(", "))
    }

    /// Its columns as those of a table, which is called as it: what PostgreSQL has in `pg_attribute` of it.
    pub(super) fn as_table(&self) -> Definition {
        let mut columns: Vec<Column> = Vec::new();
        for ((text, _), place) in self.parts().into_iter().zip(self.places()) {
            let own = usize::try_from(place).ok().and_then(|at| at.checked_sub(1));
            let own = own.and_then(|at| self.definition.columns.get(at));
            let mut column = match own {
                Some(own) => own.clone(),
                None => plain_column(name_of(&text), DataType::Utf8View),
            };
            let first = column.name.clone();
            let taken = |name: &str| columns.iter().any(|own| own.name == name);
            let mut more = 0;
            while taken(&column.name) {
                more += 1;
                column.name = format!("{first}{more}");
            }
            (column.nullable, column.default, column.generated) = (true, None, None);
            columns.push(column);
        }
        Definition {
            checks: self.definition.checks.clone(),
            ..as_table(self.full_name(), columns)
        }
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
            let class = system::class_of(typed(self.all, self.definition, column).0);
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

/// What PostgreSQL calls the column of an index for an expression: as the function that it calls, or `expr`.
fn name_of(text: &str) -> String {
    let name = text.split('(').next().unwrap_or_default().trim();
    let is_name = !name.is_empty()
        && text.ends_with(')')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name {
        name.to_owned()
    } else {
        "expr".to_owned()
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
        .texts("indpred", indexes.iter().map(|own| own.condition(false)))
        .texts("indexprs", indexes.iter().map(TableIndex::expressions))
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
        .names("indexdef", indexes.iter().map(TableIndex::full_text))
}
