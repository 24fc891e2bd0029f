//! Queries for the row of one key, `select a, b from t where id = 5`: answered from the index, without a plan.
//!
//! Planning takes many times as long as such a row takes to find; so does handing the statement to a worker. So what a session
//! knows as such a query from its text, its tree or its preparation is answered where the session is awaited. Any other
//! query, and any that says more, is planned.

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use memory::Traffic;
use syntax::key_query::{KeyQuery, KeyValue};
use syntax::names::known;
use syntax::system::is_of_catalog;
use table::{Privileges, Table, Tables};

use crate::error::Result;
use crate::run::answer::Answer;
use crate::run::clock::Clock;
use crate::run::origins::Origins;
use crate::run::visible;
use crate::statements::scope::{Look, Scope};

/// The answer of `query`, with these parameters, if it asks for the row of one key; none if it is to be planned.
///
/// # Errors
/// [`Error::Denied`](crate::error::Error::Denied) for whom may not read the table; those of reading the catalog, the index and the row.
pub(crate) async fn answer(
    scope: &mut Scope<'_>,
    (query, parameters): (&KeyQuery, &[KeyValue]),
    started: Instant,
) -> Result<Option<Answer>> {
    // The name may be that of rows which the caller, or a part of the statement, has given.
    if scope.always_plans() || scope.has_given() {
        return Ok(None);
    }
    let Some(found) = found(scope, &query.table)? else {
        return Ok(None);
    };
    let table = &found.table;
    let definition = table.definition();
    let (Some(columns), Some((key, values))) =
        (query.columns(definition), query.key(definition, parameters))
    else {
        return Ok(None);
    };
    if !table.has_index(key) {
        return Ok(None);
    }
    found.check(scope)?;
    let instance = &scope.instance;
    let traffic = Arc::new(Traffic::new(instance.workers().nodes()));
    instance.work.begin(&traffic);
    let mut clock = Clock::new(started, Arc::clone(&traffic));
    clock.planned();
    clock.ran_on = "index";
    let row = table.find(key, &values).await?.into_iter().flatten().next();
    let (positions, schema) = chosen(table.schema(), columns)?;
    let seen = visible::schema(&schema);
    let mut batches = Vec::new();
    if let Some(row) = row {
        let node = workers::here().map_or(0, |here| here.node);
        let values = table.row(&positions, row, (&traffic, node)).await?;
        let one = RecordBatch::try_new(Arc::clone(&schema), values)?;
        batches.push(if Arc::ptr_eq(&seen, &schema) {
            one
        } else {
            visible::batch(&one, &seen)?
        });
    }
    let origins = Origins::of_table(&found.name, table.definition(), &positions);
    Ok(Some(
        Answer::rows_of(seen, batches, &clock).with_origins(origins),
    ))
}

/// What is known of a query before it runs: the types of its parameters, its columns, and where these come from.
pub(crate) type Known = (Vec<DataType>, SchemaRef, Origins);

/// What is known of `query`, some of whose parameters are `declared`; none if it is to be planned to know it.
///
/// # Errors
/// As [`answer`], before any row is looked for.
pub(crate) fn of_table(
    scope: &mut Scope<'_>,
    query: &KeyQuery,
    declared: &[Option<DataType>],
) -> Result<Option<Known>> {
    if scope.always_plans() || scope.has_given() {
        return Ok(None);
    }
    let Some(found) = found(scope, &query.table)? else {
        return Ok(None);
    };
    let definition = found.table.definition();
    let (Some(columns), Some(parameters)) = (
        query.columns(definition),
        query.parameters(definition, declared),
    ) else {
        return Ok(None);
    };
    found.check(scope)?;
    let (positions, schema) = chosen(found.table.schema(), columns)?;
    let origins = Origins::of_table(&found.name, definition, &positions);
    Ok(Some((parameters, visible::schema(&schema), origins)))
}

/// The positions of the columns of an answer, and its schema, of a table that has the columns of `own`; `columns` as
/// [`KeyQuery::columns`] gives them.
pub(super) fn chosen(
    own: SchemaRef,
    columns: Option<Vec<(usize, String)>>,
) -> Result<(Vec<usize>, SchemaRef)> {
    let Some(columns) = columns else {
        return Ok(((0..own.fields().len()).collect(), own));
    };
    let (positions, names): (Vec<usize>, Vec<String>) = columns.into_iter().unzip();
    let own = own.project(&positions)?;
    let fields = own.fields().iter().zip(names);
    let fields = fields.map(|(field, name)| field.as_ref().clone().with_name(name));
    let schema = Schema::new(fields.collect::<Vec<Field>>());
    Ok((positions, Arc::new(schema)))
}

/// A table that a query names.
struct Found {
    /// Its name in the catalog.
    name: String,
    table: Arc<Table>,
    /// Where it is looked up whether it may be read; none if everybody may.
    checked_in: Option<Arc<Tables>>,
}

impl Found {
    /// That whose statement it is may read the table.
    fn check(&self, scope: &Scope<'_>) -> Result<()> {
        let Some(tables) = &self.checked_in else {
            return Ok(());
        };
        let rights = scope.rights(tables)?;
        rights.check(tables, &self.name, Privileges::SELECT)
    }
}

/// The table that the statement means by a name; none if it is another thing than a table, or is to be planned.
fn found(scope: &mut Scope<'_>, written: &str) -> Result<Option<Found>> {
    let tables = match scope.look()? {
        Look::Wait => return Ok(None),
        Look::Tables(tables) => tables,
        Look::Snapshot(snapshot) => {
            let catalog = &scope.instance.catalog;
            let is_plain = scope.sees_one_schema() && !is_of_catalog(written);
            if is_plain && scope.may_everything(&snapshot) {
                // No other table is looked at.
                let name = known(written);
                let table = catalog.table(&snapshot, &name)?;
                return Ok(table.map(|table| Found {
                    name,
                    table,
                    checked_in: None,
                }));
            }
            catalog.tables(&snapshot)?
        }
    };
    let name = scope.path().resolve(&tables, written);
    let table = tables.get(&name).cloned();
    let table = table.filter(|_| tables.materialized(&name).is_none());
    Ok(table.map(|table| Found {
        name,
        table,
        checked_in: Some(tables),
    }))
}
