//! Running statements.

use std::sync::Arc;

use array::{ArrayData, Block, Plan, Region, Run, Schema, Summary, Writer};
use store::{Snapshot, Store};

use crate::error::{Error, Result, Wrong, wrong};
use crate::lower::{Arrays, open, plan};
use crate::parse::statement;
use crate::syntax::{Name, Query, Statement};

/// What a statement has done or found.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The array that a query gives.
    Array(ArrayData),
    /// The arrays of the store.
    List(Vec<Summary>),
    /// The dimensions and attributes of an array or a query.
    Schema(Schema),
    /// An array was created, replaced, written to or removed; in words.
    Done(String),
}

/// The plan of the query in `text` over the arrays of a snapshot, or others: to be run chunk by chunk, or shown.
///
/// # Errors
/// [`Error::Syntax`], [`Error::Statement`] with a place in the text; a statement that changes something is none.
pub fn compile(text: &str, arrays: &dyn Arrays) -> Result<Plan> {
    match parsed(text)? {
        Statement::Query(query) => lowered(text, &query, arrays),
        _ => {
            let end = text.len();
            let only = Wrong {
                span: crate::error::Span { start: 0, end },
                message: "this is no query: it changes arrays, or lists them".to_owned(),
            };
            Err(Error::Statement(only.in_text(text)))
        }
    }
}

/// The operators of a statement, in brackets of one another, without running it: of a query its own, of one that stores or
/// writes those of its query. Of another, that it has none.
///
/// # Errors
/// As [`compile`].
pub fn explain(text: &str, snapshot: &Snapshot) -> Result<String> {
    let plan = |query: &Query| lowered(text, query, snapshot);
    Ok(match parsed(text)? {
        Statement::Query(query) => plan(&query)?.to_string(),
        Statement::Store { query, name } => format!("store({}, {})", plan(&query)?, name.text),
        Statement::Insert { query, name } => format!("insert({}, {})", plan(&query)?, name.text),
        Statement::Append {
            query,
            name,
            dimension,
        } => format!(
            "append({}, {}, {})",
            plan(&query)?,
            name.text,
            dimension.text
        ),
        Statement::Delete { cells, name } => format!("delete({}, {})", plan(&cells)?, name.text),
        Statement::Show(query) => format!("show({})", plan(&query)?),
        other => format!("{}: no query, so there is nothing to explain", other.name()),
    })
}

/// Whether the statement in `text` is a query, which gives an array.
///
/// # Errors
/// [`Error::Syntax`].
pub fn is_query(text: &str) -> Result<bool> {
    Ok(matches!(parsed(text)?, Statement::Query(_)))
}

/// Whether the statement in `text` changes the store, so that it must be open for writing.
///
/// # Errors
/// [`Error::Syntax`].
pub fn writes(text: &str) -> Result<bool> {
    let reads = matches!(
        parsed(text)?,
        Statement::Query(_) | Statement::List | Statement::Versions(_) | Statement::Show(_)
    );
    Ok(!reads)
}

/// Runs the statement in `text`. A query sees the store as its last commit left it; what is changed, is in one
/// transaction.
///
/// # Errors
/// [`Error::Syntax`], [`Error::Statement`] with a place in the text; [`Error::Array`] for what happens on the way. Then
/// nothing was changed.
pub async fn execute(text: &str, store: &Arc<Store>, run: &Run) -> Result<Outcome> {
    let snapshot = store.snapshot();
    match parsed(text)? {
        Statement::Query(query) => {
            let plan = lowered(text, &query, &snapshot)?;
            Ok(Outcome::Array(plan.run(run).await?))
        }
        Statement::List => Ok(Outcome::List(array::list(&snapshot)?)),
        Statement::Show(query) => Ok(Outcome::Schema(lowered(text, &query, &snapshot)?.schema()?)),
        Statement::Create { name, schema } => {
            let mut writer = Writer::begin(store)?;
            writer.create(&name.text, &schema)?;
            writer.commit()?;
            done("created", &name, "")
        }
        Statement::Versions(name) => {
            check(text, open(&name, &snapshot).map(drop))?;
            Ok(Outcome::List(array::versions(&snapshot, &name.text)?))
        }
        Statement::CreateVersion { array, version } => {
            let mut writer = Writer::begin(store)?;
            writer.create_version(&array.text, &version.text)?;
            writer.commit()?;
            done(
                "kept",
                &array,
                &format!(" as {}@{}", array.text, version.text),
            )
        }
        Statement::Remove(name) => remove(&name, store),
        Statement::Store { query, name } => {
            let plan = lowered(text, &query, &snapshot)?;
            replace(&plan, &name, store, run).await
        }
        Statement::Insert { query, name } => {
            check(text, open(&name, &snapshot).map(drop))?;
            let plan = lowered(text, &query, &snapshot)?;
            insert(&plan, &name, store, run).await
        }
        Statement::Delete { cells, name } => {
            let array = check(text, open(&name, &snapshot))?;
            if array.schema().layout() == array::Layout::Dense {
                let what = format!(
                    "array '{}' is dense, and has each of its cells: insert other values, or make it sparse with \
                     store(filter({0}, not (..)), {0})",
                    name.text
                );
                return check(text, wrong(name.span, what));
            }
            let plan = lowered(text, &cells, &snapshot)?;
            delete(&plan, &name, store, run).await
        }
        Statement::Append {
            query,
            name,
            dimension,
        } => {
            let array = check(text, open(&name, &snapshot))?;
            let known = array.schema().dimension(&dimension.text, "append");
            check(
                text,
                known.or_else(|error| wrong(dimension.span, error.to_string())),
            )?;
            let plan = lowered(text, &query, &snapshot)?;
            append(&plan, &name, &dimension, store, run).await
        }
    }
}

fn parsed(text: &str) -> Result<Statement> {
    statement(text).map_err(|wrong| Error::Syntax(wrong.in_text(text)))
}

fn check<T>(text: &str, checked: crate::error::Checked<T>) -> Result<T> {
    checked.map_err(|wrong| Error::Statement(wrong.in_text(text)))
}

fn lowered(text: &str, query: &Query, arrays: &dyn Arrays) -> Result<Plan> {
    check(text, plan(query, arrays))
}

fn done(what: &str, name: &Name, more: &str) -> Result<Outcome> {
    Ok(Outcome::Done(format!("array '{}' {what}{more}", name.text)))
}

/// Removes an array, or a version of one.
fn remove(name: &Name, store: &Arc<Store>) -> Result<Outcome> {
    let mut writer = Writer::begin(store)?;
    match (writer.delete(&name.text), name.text.rsplit_once('@')) {
        (Ok(()), _) => {}
        (Err(array::Error::NoArray { .. } | array::Error::Write { .. }), Some((of, version))) => {
            writer.drop_version(of, version)?;
        }
        (Err(error), _) => return Err(error.into()),
    }
    writer.commit()?;
    done("removed", name, "")
}

/// Creates an array with what a plan gives, in place of one of that name. Where cells do not exist, it is sparse.
async fn replace(plan: &Plan, name: &Name, store: &Arc<Store>, run: &Run) -> Result<Outcome> {
    let data = plan.run(run).await?;
    let schema = data.schema().clone();
    let all = data.existing() == schema.cells();
    let layout = if all {
        array::Layout::Dense
    } else {
        array::Layout::Sparse
    };
    let mut writer = Writer::begin(store)?.threads(run.threads());
    if writer.schema(&name.text).is_ok() {
        writer.delete(&name.text)?;
    }
    writer.create(&name.text, &schema.with_layout(layout))?;
    for block in data.blocks() {
        writer.write(&name.text, block).await?;
    }
    writer.commit()?;
    done("stored", name, &format!(": {} cells", data.existing()))
}

/// Writes what a plan gives over the cells of an array at the same coordinates' positions.
async fn insert(plan: &Plan, name: &Name, store: &Arc<Store>, run: &Run) -> Result<Outcome> {
    let data = plan.run(run).await?;
    let mut writer = Writer::begin(store)?.threads(run.threads());
    for block in data.blocks() {
        writer.write(&name.text, block).await?;
    }
    writer.commit()?;
    done("written", name, &format!(": {} cells", data.existing()))
}

/// Makes the cells of a sparse array absent that a plan over it gives.
async fn delete(plan: &Plan, name: &Name, store: &Arc<Store>, run: &Run) -> Result<Outcome> {
    let data = plan.run(run).await?;
    let mut writer = Writer::begin(store)?.threads(run.threads());
    let mut gone = 0;
    for block in data.blocks() {
        gone += writer.erase(&name.text, block).await?;
    }
    writer.commit()?;
    done("has lost", name, &format!(" {gone} cells"))
}

/// Writes what a plan gives behind the cells of an array.
async fn append(
    plan: &Plan,
    name: &Name,
    dimension: &Name,
    store: &Arc<Store>,
    run: &Run,
) -> Result<Outcome> {
    let data = plan.run(run).await?;
    let mut writer = Writer::begin(store)?.threads(run.threads());
    let schema = writer.schema(&name.text)?;
    let at = schema.dimension(&dimension.text, "append")?;
    let block = data.to_block()?;
    let mut by = vec![0; block.region().rank()];
    if let (Some(by), Some(of)) = (by.get_mut(at), schema.dimensions().get(at)) {
        *by = of.length();
    }
    let ranges = block.region().ranges().iter().zip(&by);
    let region = Region::new(ranges.map(|(&(start, end), by)| (start + by, end + by)));
    let mut moved = Block::new(region, block.columns().to_vec())?;
    if let Some(present) = block.present() {
        moved = moved.with_present(present.to_vec());
    }
    // Coordinates of a list come from the plan's own dimension.
    let listed = matches!(
        schema.dimensions()[at].coordinates(),
        array::Coordinates::Listed(_)
    );
    let own = data.schema().dimensions().get(at).filter(|_| listed);
    let coordinates: Vec<_> = own
        .map(|of| {
            (0..of.length())
                .filter_map(|at| of.coordinate(at))
                .collect()
        })
        .unwrap_or_default();
    writer
        .append(&name.text, &dimension.text, &moved, &coordinates)
        .await?;
    writer.commit()?;
    done("appended to", name, &format!(": {} cells", data.existing()))
}
