//! The table that an import fills: an existing one, or a new one as declared, as TPC-H defines it, or as inferred.

use arrow::datatypes::Schema;
use ingest::Dataset;
use store::Transaction;
use table::Definition;

use crate::database::Database;
use crate::error::Error;
use crate::import::options::{Existing, ImportOptions};
use crate::tpch::shapes;

/// Prepares the table for rows. Returns its definition, and whether its types are declared rather than inferred.
pub(crate) fn prepare(
    database: &Database,
    transaction: &mut Transaction,
    name: &str,
    dataset: &Dataset,
    options: &ImportOptions,
) -> Result<(Definition, bool), Error> {
    let tables = database.tables_at(transaction.base())?;
    let (existing, shown) = (tables.get(name), table::titled(name));
    if tables.materialized(name).is_some() {
        return Err(Error::Import(format!(
            "{shown:?} is a materialized view: no rows are imported into it"
        )));
    }
    let filled = existing.is_some_and(|table| table.rows() > 0);
    match (existing.map(|t| t.definition().clone()), options.existing) {
        (Some(_), Existing::Refuse) if filled => Err(Error::Import(format!(
            "table {shown:?} holds rows in {}; append to it with --append, or put the rows in its place with --replace",
            database.path().display()
        ))),
        (Some(definition), Existing::Append | Existing::Refuse) => {
            let made = definition.columns.iter().find(|c| c.expression().is_some());
            match made {
                None => Ok((definition, true)),
                Some(column) => Err(Error::Import(format!(
                    "column {:?} of table {shown:?} is a generated column: use `copy {shown} from` in SQL, which computes it",
                    column.name
                ))),
            }
        }
        (existing, _) => {
            let (definition, declared) = define(database, name, dataset, options)?;
            if existing.is_some() {
                table::drop(transaction, name)?;
            }
            table::create(transaction, &definition)?;
            Ok((definition, declared))
        }
    }
}

/// The definition of a new table: declared in the options, that of TPC-H for a `.tbl` file of a table of this name, or
/// inferred. Also returns whether it is one of the first two.
fn define(
    database: &Database,
    name: &str,
    dataset: &Dataset,
    options: &ImportOptions,
) -> Result<(Definition, bool), Error> {
    let known = || shapes::definition(name).filter(|_| dataset.is_tbl());
    let (mut definition, declared) = match &options.schema {
        Some(ddl) => (database.instance().definition(name, ddl)?, true),
        None => match known() {
            Some(known) => (known, true),
            None => (Definition::from_schema(name, &inferred(dataset))?, false),
        },
    };
    add_keys(&mut definition, options)?;
    if options.declare_keys {
        definition.keys.clear();
        definition.rules.clear();
    } else if !options.primary_key.is_empty() {
        definition.enforce_primary_key();
    }
    Ok((definition, declared))
}

/// The columns of the files; NOT NULL if all files say so.
fn inferred(dataset: &Dataset) -> Schema {
    let fields = dataset.schema().fields().iter().enumerate();
    let fields = fields.map(|(column, field)| {
        let nullable = !dataset.is_required(column);
        field.as_ref().clone().with_nullable(nullable)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn add_keys(definition: &mut Definition, options: &ImportOptions) -> Result<(), Error> {
    let place = |definition: &Definition, name: &String| {
        let found = definition
            .columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names: Vec<_> = definition
                .columns
                .iter()
                .map(|column| column.name.as_str())
                .collect();
            Error::Import(format!(
                "the key names column {name:?}, but table {:?} has only: {}",
                definition.name,
                names.join(", ")
            ))
        })
    };
    if !options.primary_key.is_empty() {
        let key = options
            .primary_key
            .iter()
            .map(|name| place(definition, name));
        definition.primary_key = key.collect::<Result<_, _>>()?;
        for at in definition.primary_key.clone() {
            definition.columns[at].nullable = false;
        }
    }
    for reference in &options.foreign_keys {
        let columns = reference
            .columns
            .iter()
            .map(|name| place(definition, name))
            .collect::<Result<Vec<_>, _>>()?;
        if columns.len() != reference.parent_columns.len() {
            return Err(Error::Import(format!(
                "a foreign key has {} columns but refers to {} of table {:?}; name as many",
                columns.len(),
                reference.parent_columns.len(),
                reference.parent
            )));
        }
        definition.foreign_keys.push(table::ForeignKey {
            columns,
            parent: reference.parent.clone(),
            parent_columns: reference.parent_columns.clone(),
        });
    }
    Ok(())
}
