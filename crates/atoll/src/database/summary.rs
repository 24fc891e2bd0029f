//! What tables there are.

use arrow::datatypes::DataType;
use table::{Action, Table};

/// A table as [`Database::tables`](crate::Database::tables) lists it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TableSummary {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Its columns, in order.
    pub columns: Vec<ColumnSummary>,
    /// The columns of its primary key, if it has one.
    pub primary_key: Vec<String>,
    /// Its declared references to other tables.
    pub foreign_keys: Vec<KeySummary>,
}

/// A column of a [`TableSummary`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnSummary {
    /// Its name.
    pub name: String,
    /// Its type; [`type_name`](crate::type_name) gives the SQL name.
    pub data_type: DataType,
    /// Whether it may hold NULL.
    pub nullable: bool,
}

/// A foreign key of a [`TableSummary`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KeySummary {
    /// The columns that refer.
    pub columns: Vec<String>,
    /// The table referred to.
    pub parent: String,
    /// The columns referred to.
    pub parent_columns: Vec<String>,
    /// Its name, if it holds; one that is only declared has none.
    pub name: Option<String>,
    /// What becomes of rows that refer to one that is deleted: `no action`, `restrict`, `cascade`, `set null`
    /// or `set default`.
    pub on_delete: &'static str,
    /// What becomes of them when its key changes.
    pub on_update: &'static str,
}

/// As SQL says it.
fn action(action: Action) -> &'static str {
    match action {
        Action::NoAction => "no action",
        Action::Cascade => "cascade",
        Action::SetNull => "set null",
        Action::SetDefault => "set default",
        Action::Restrict => "restrict",
    }
}

impl TableSummary {
    pub(crate) fn of(table: &Table) -> TableSummary {
        let definition = table.definition();
        let names = |columns: &[usize]| -> Vec<String> {
            columns
                .iter()
                .filter_map(|i| definition.columns.get(*i))
                .map(|c| c.name.clone())
                .collect()
        };
        TableSummary {
            name: table::titled(&definition.name).into_owned(),
            rows: table.rows(),
            columns: definition
                .columns
                .iter()
                .map(|c| ColumnSummary {
                    name: c.name.clone(),
                    data_type: c.data_type.clone(),
                    nullable: c.nullable,
                })
                .collect(),
            primary_key: names(&definition.primary_key),
            foreign_keys: definition
                .foreign_keys
                .iter()
                .enumerate()
                .map(|(at, key)| {
                    let mut rules = definition.rules.iter();
                    let rule = rules.find(|rule| rule.foreign_key == at);
                    let (on_delete, on_update) = rule
                        .map_or((Action::NoAction, Action::NoAction), |rule| {
                            (rule.on_delete, rule.on_update)
                        });
                    KeySummary {
                        columns: names(&key.columns),
                        parent: table::titled(&key.parent).into_owned(),
                        parent_columns: key.parent_columns.clone(),
                        name: rule.map(|rule| rule.name.clone()),
                        on_delete: action(on_delete),
                        on_update: action(on_update),
                    }
                })
                .collect(),
        }
    }
}
