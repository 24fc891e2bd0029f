//! Foreign keys that hold: rows refer to rows that are there.
//!
//! They are looked at when the rows of a statement are written and before these are kept, so that a statement may write
//! both: [`Children`] are rows that refer to others, [`Parents`] rows that are deleted or changed and that others may
//! refer to. What becomes of the latter may change more rows, which may be referred to in turn.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array, new_null_array};
use arrow::compute::{concat_batches, take, take_record_batch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::{Stream, StreamExt};
use memory::Traffic;
use store::Snapshot;
use table::{
    Action, BATCH_ROWS, Definition, ForeignKey, Key, KeyMap, KeySet, Rule, Scan, Table, Tables,
};

use crate::error::{Error, Result};
use crate::functions::lists::types::is_special;
use crate::run::checks::{self, Checks};
use crate::run::context::StatementContext;
use crate::run::generated::GeneratedColumns;
use crate::run::instance::Instance;
use crate::statements::write::Writing;

/// The rows that a statement writes to a table, as far as they refer to others.
pub(crate) struct Children {
    definition: Definition,
    rules: Vec<Referring>,
}

/// Values of one foreign key, each once.
struct Referring {
    rule: Rule,
    foreign: ForeignKey,
    seen: KeySet,
    values: Vec<RecordBatch>,
}

impl Children {
    pub(crate) fn new(definition: &Definition) -> Children {
        let referring = |rule: &Rule| Referring {
            rule: rule.clone(),
            foreign: definition.foreign_keys[rule.foreign_key].clone(),
            seen: KeySet::default(),
            values: Vec::new(),
        };
        Children {
            rules: definition.rules.iter().map(referring).collect(),
            definition: definition.clone(),
        }
    }

    /// Takes rows in that are to be written.
    ///
    /// # Errors
    /// If they do not fit the table.
    pub(crate) fn take(&mut self, rows: &RecordBatch) -> Result<()> {
        if self.rules.is_empty() {
            return Ok(());
        }
        let rows = table::normalise(rows, &self.definition)?;
        for own in &mut self.rules {
            let columns = rows.project(&own.foreign.columns)?;
            let new = own.seen.take(columns.columns())?;
            let places = (0..).zip(new).filter(|(_, new)| *new == Some(true));
            let places: UInt32Array = places.map(|(row, _)| row).collect();
            if !places.is_empty() {
                own.values.push(take_record_batch(&columns, &places)?);
            }
        }
        Ok(())
    }

    /// That the rows that they refer to are among `tables`, which have what was written.
    async fn check(&self, tables: &Tables) -> Result<()> {
        for own in &self.rules {
            let Some((parent, key)) = parent(tables, &own.foreign) else {
                return Err(lost(&own.rule));
            };
            for values in &own.values {
                let columns = in_order(parent.definition(), key, &own.foreign, values.columns());
                let found = parent.find(key, &columns).await?;
                if let Some(row) = found.iter().position(Option::is_none) {
                    return Err(Error::Constraint {
                        code: "23503",
                        message: format!(
                            "insert or update on table \"{}\" violates foreign key constraint \"{}\": Key ({})=({}) is not present in table \"{}\".",
                            self.definition.name,
                            own.rule.name,
                            names(&self.definition, &own.foreign.columns),
                            shown(values.columns(), row),
                            own.foreign.parent
                        ),
                    });
                }
            }
        }
        Ok(())
    }
}

/// That all rows of `own` refer to rows of `tables` by the foreign keys of `definition`.
///
/// # Errors
/// [`Error::Constraint`] names the key that is missing; those of reading.
pub(crate) async fn all_refer(
    own: &Arc<Table>,
    definition: &Definition,
    tables: &Tables,
) -> Result<()> {
    let mut children = Children::new(definition);
    let all: Vec<usize> = (0..definition.columns.len()).collect();
    let scan = Scan::new(Arc::clone(own), all, false);
    let pool = own.snapshot().pool().clone();
    let traffic = Traffic::new(pool.nodes());
    for (_, morsel) in scan.morsels() {
        let opened = scan.open(&pool, morsel, &[], &traffic, || 0).await?;
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(BATCH_ROWS)? {
            children.take(&batch)?;
        }
    }
    children.check(tables).await
}

impl Instance {
    /// That all rows of the table `name` refer to rows that are there, by its foreign keys that hold: for programs that
    /// write rows themselves, before they commit. `view` is what their transaction has reached.
    ///
    /// # Errors
    /// [`Error::Constraint`] names the key that is missing; those of reading.
    pub async fn check_references(&self, view: &Snapshot, name: &str) -> Result<()> {
        let tables = self.catalog.fork().tables(view)?;
        match tables.get(name) {
            Some(own) if !own.definition().rules.is_empty() => {
                all_refer(own, own.definition(), &tables).await
            }
            _ => Ok(()),
        }
    }
}

/// The table that a foreign key refers to, and its key.
fn parent<'t>(tables: &'t Tables, foreign: &ForeignKey) -> Option<(&'t Arc<Table>, &'t Key)> {
    let parent = tables.get(&foreign.parent)?;
    Some((parent, table::referred_key(parent.definition(), foreign)?))
}

fn lost(rule: &Rule) -> Error {
    Error::Constraint {
        code: "42830",
        message: format!(
            "foreign key constraint \"{}\" refers to a key that holds no more: drop the constraint",
            rule.name
        ),
    }
}

/// `columns`, which stand in the order of the foreign key, in that of the key.
fn in_order(
    parent: &Definition,
    key: &Key,
    foreign: &ForeignKey,
    columns: &[ArrayRef],
) -> Vec<ArrayRef> {
    let place = |column: &usize| {
        let name = &parent.columns[*column].name;
        foreign
            .parent_columns
            .iter()
            .position(|other| other == name)
    };
    let places = key.columns.iter().filter_map(place);
    places.map(|place| columns[place].clone()).collect()
}

fn names(definition: &Definition, columns: &[usize]) -> String {
    let names: Vec<&str> = columns
        .iter()
        .map(|c| &definition.columns[*c].name[..])
        .collect();
    names.join(", ")
}

fn shown(columns: &[ArrayRef], row: usize) -> String {
    let options = FormatOptions::new();
    let value = |column: &ArrayRef| {
        if is_special(column.data_type())
            && let Some(text) = checks::special(column, row)
        {
            return text;
        }
        let format = ArrayFormatter::try_new(column, &options);
        let text = format.and_then(|format| format.value(row).try_to_string());
        text.unwrap_or_else(|_| "?".to_owned())
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    values.join(", ")
}

/// The rows of a table that a statement deletes or replaces, if others may refer to them.
#[derive(Default)]
pub(crate) struct Parents {
    /// Whether others may.
    wanted: bool,
    ids: Vec<u64>,
    /// The rows in their places; empty if they are deleted.
    new: Vec<RecordBatch>,
}

impl Parents {
    /// For a statement that deletes or replaces rows of the table `name`.
    pub(crate) fn new(tables: &Tables, name: &str) -> Parents {
        Parents {
            wanted: !children_of(tables, name).is_empty(),
            ..Parents::default()
        }
    }

    /// Whether others may refer to the rows.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Takes in the ids of rows that go.
    pub(crate) fn delete(&mut self, ids: impl IntoIterator<Item = u64>) {
        if self.wanted {
            self.ids.extend(ids);
        }
    }

    /// Takes in the ids of rows, and those in their places.
    ///
    /// # Errors
    /// If these do not fit the table.
    pub(crate) fn replace(
        &mut self,
        definition: &Definition,
        ids: impl IntoIterator<Item = u64>,
        rows: &RecordBatch,
    ) -> Result<()> {
        if self.wanted {
            self.ids.extend(ids);
            self.new.push(table::normalise(rows, definition)?);
        }
        Ok(())
    }
}

/// The tables with a foreign key that holds and refers to `parent`, and these.
fn children_of(tables: &Tables, parent: &str) -> Vec<(Arc<Table>, Rule)> {
    let mut found = Vec::new();
    for name in tables.names() {
        let Some(child) = tables.get(name) else {
            continue;
        };
        let definition = child.definition();
        for rule in &definition.rules {
            if definition.foreign_keys[rule.foreign_key].parent == parent {
                found.push((Arc::clone(child), rule.clone()));
            }
        }
    }
    found
}

/// All tables whose rows a change of `name` may change, that one first.
pub(crate) fn reached(tables: &Tables, name: &str) -> Vec<String> {
    let mut all = vec![name.to_owned()];
    let mut at = 0;
    while at < all.len() {
        for (child, rule) in children_of(tables, &all[at]) {
            let passes = rule.on_delete != Action::NoAction || rule.on_update != Action::NoAction;
            let child = &child.definition().name;
            if passes && !all.contains(child) {
                all.push(child.clone());
            }
        }
        at += 1;
    }
    all
}

/// That no table outside `names` has a foreign key that holds to one of them, of which all rows go.
///
/// # Errors
/// [`Error::Constraint`] names the table.
pub(crate) fn may_empty(tables: &Tables, names: &[String]) -> Result<()> {
    for name in names {
        for (child, _) in children_of(tables, name) {
            let child = &child.definition().name;
            if !names.contains(child) {
                return Err(Error::Constraint {
                    code: "0A000",
                    message: format!(
                        "cannot truncate a table referenced in a foreign key constraint: table \"{child}\" references \"{name}\"; truncate both in one statement, or use `delete`"
                    ),
                });
            }
        }
    }
    Ok(())
}

/// Rows that went or were replaced.
struct Change {
    table: String,
    old: RecordBatch,
    /// In their places, if they were replaced.
    new: Option<RecordBatch>,
}

/// Sees to the foreign keys once a statement has written its rows to `table`, and does what they ask for.
///
/// # Errors
/// [`Error::Constraint`] for rows that would refer to none; those of reading and writing. Nothing may be kept then.
pub(crate) async fn follow(
    context: &mut StatementContext,
    mut writing: Writing,
    table: &Arc<Table>,
    children: &Children,
    parents: Parents,
) -> Result<Writing> {
    let mut changes = Vec::new();
    if !parents.ids.is_empty() {
        let all: Vec<usize> = (0..table.definition().columns.len()).collect();
        let new = match parents.new.first() {
            Some(first) => Some(concat_batches(&first.schema(), &parents.new)?),
            None => None,
        };
        changes.push(Change {
            table: table.definition().name.clone(),
            old: table.fetch(&all, &parents.ids).await?,
            new,
        });
    }
    while let Some(change) = changes.pop() {
        let tables = written(context, &writing)?;
        for (child, rule) in children_of(&tables, &change.table) {
            // A cascade may have changed the same table already.
            let tables = written(context, &writing)?;
            let name = &child.definition().name;
            let child = tables.get(name).cloned().ok_or_else(|| lost(&rule))?;
            let (next, more) = pass(context, writing, (&tables, &child), &rule, &change).await?;
            writing = next;
            changes.extend(more);
        }
    }
    if children.rules.iter().any(|own| !own.values.is_empty()) {
        children.check(&*written(context, &writing)?).await?;
    }
    Ok(writing)
}

/// Appends rows to a table, which refer to rows that are there, and says how many there were.
///
/// # Errors
/// Those of `rows`, and those of writing them. Nothing may be kept then.
pub(crate) async fn append(
    context: &mut StatementContext,
    writing: Writing,
    table: &Arc<Table>,
    rows: impl Stream<Item = Result<RecordBatch>> + Unpin,
    width: usize,
) -> Result<(Writing, u64)> {
    let definition = table.definition();
    let checks = Checks::new(context, definition).await?;
    let generated = GeneratedColumns::new(context, definition).await?;
    let mut children = Children::new(definition);
    let rows = rows.map(|batch| {
        let batch = generated.fill(batch?)?;
        children.take(&batch)?;
        Ok(batch)
    });
    let (writing, count) = writing.append(definition, &checks, rows, width).await?;
    let parents = Parents::default();
    let writing = follow(context, writing, table, &children, parents).await?;
    Ok((writing, count))
}

/// The tables with what was written.
fn written(context: &StatementContext, writing: &Writing) -> Result<Arc<Tables>> {
    let catalog = context.instance.catalog.fork();
    Ok(catalog.tables(&writing.tx.view())?)
}

/// Does what a rule asks for when rows of its parent have gone or changed.
async fn pass(
    context: &mut StatementContext,
    writing: Writing,
    (tables, child): (&Tables, &Arc<Table>),
    rule: &Rule,
    change: &Change,
) -> Result<(Writing, Option<Change>)> {
    let definition = child.definition();
    let foreign = &definition.foreign_keys[rule.foreign_key];
    let Some((parent, key)) = parent(tables, foreign) else {
        return Err(lost(rule));
    };
    let action = match change.new {
        Some(_) => rule.on_update,
        None => rule.on_delete,
    };
    let own = |rows: &RecordBatch| -> Result<Vec<ArrayRef>> {
        let places = foreign.parent_columns.iter();
        let places = places.map(|name| parent.definition().position(name));
        let places = places.collect::<table::Result<Vec<_>>>()?;
        Ok(rows.project(&places)?.columns().to_vec())
    };
    let old = own(&change.old)?;
    let kept: Vec<bool> = match &change.new {
        // Each row takes its own children with it, also where another row gets its key.
        Some(new) if action != Action::NoAction => KeyMap::same(&old, &own(new)?)?,
        _ => {
            let old = in_order(parent.definition(), key, foreign, &old);
            let there = parent.find(key, &old).await?;
            there.iter().map(Option::is_some).collect()
        }
    };
    let gone = (0..).zip(kept).filter(|(_, kept)| !kept);
    let gone: UInt32Array = gone.map(|(row, _)| row).collect();
    let lost_keys = picked(&old, &gone)?;
    let keys = KeyMap::of(&lost_keys)?;
    if keys.rows().is_empty() {
        return Ok((writing, None));
    }
    let (ids, of) = referring(child, foreign, &keys).await?;
    if ids.is_empty() {
        return Ok((writing, None));
    }
    if action == Action::NoAction {
        let row = of[0] as usize;
        return Err(referenced(&change.table, rule, definition, &lost_keys, row));
    }
    let all: Vec<usize> = (0..definition.columns.len()).collect();
    let before = child.fetch(&all, &ids).await?;
    let values = match (action, &change.new) {
        (Action::SetNull, _) => {
            let null = |at: &usize| new_null_array(before.column(*at).data_type(), ids.len());
            Some(foreign.columns.iter().map(null).collect())
        }
        (Action::Cascade, Some(new)) => {
            let new = picked(&own(new)?, &gone)?;
            Some(picked(&new, &UInt32Array::from(of))?)
        }
        _ => None,
    };
    let after = match values {
        Some(values) => Some(put(context, definition, &before, (&foreign.columns, values)).await?),
        None => None,
    };
    let name = &definition.name;
    let writing = writing.exchange(name, &ids, after.as_ref()).await?;
    let more = Change {
        table: name.clone(),
        old: before,
        new: after,
    };
    Ok((writing, Some(more)))
}

/// The rows at `places` of columns.
fn picked(columns: &[ArrayRef], places: &UInt32Array) -> Result<Vec<ArrayRef>> {
    let columns = columns.iter().map(|column| take(column, places, None));
    Ok(columns.collect::<std::result::Result<_, _>>()?)
}

/// The error of rows of `child` that refer to a key that is gone, the one in `row` of `columns`.
fn referenced(
    parent: &str,
    rule: &Rule,
    child: &Definition,
    columns: &[ArrayRef],
    row: usize,
) -> Error {
    let foreign = &child.foreign_keys[rule.foreign_key];
    Error::Constraint {
        code: "23503",
        message: format!(
            "update or delete on table \"{parent}\" violates foreign key constraint \"{}\" on table \"{}\": Key ({})=({}) is still referenced from table \"{}\".",
            rule.name,
            child.name,
            foreign.parent_columns.join(", "),
            shown(columns, row),
            child.name
        ),
    }
}

/// Rows with other values in some columns.
///
/// # Errors
/// If they fail a check then.
async fn put(
    context: &mut StatementContext,
    definition: &Definition,
    rows: &RecordBatch,
    (at, values): (&[usize], Vec<ArrayRef>),
) -> Result<RecordBatch> {
    let mut columns = rows.columns().to_vec();
    for (at, value) in at.iter().zip(values) {
        columns[*at] = value;
    }
    let names = definition.columns.iter().map(|column| &column.name);
    let columns = names
        .zip(columns)
        .map(|(name, column)| (name, column, true));
    let rows = RecordBatch::try_from_iter_with_nullable(columns)?;
    let generated = GeneratedColumns::new(context, definition).await?;
    let rows = table::normalise(&generated.fill(rows)?, definition)?;
    Checks::new(context, definition).await?.test(rows)
}

/// The ids of the rows of `child` that refer to one of `keys`, and the row of each among these.
async fn referring(
    child: &Arc<Table>,
    foreign: &ForeignKey,
    keys: &KeyMap,
) -> Result<(Vec<u64>, Vec<u32>)> {
    let scan = Scan::new(Arc::clone(child), foreign.columns.clone(), true);
    let pool = child.snapshot().pool().clone();
    let traffic = Traffic::new(pool.nodes());
    let (mut ids, mut of) = (Vec::new(), Vec::new());
    for (_, morsel) in scan.morsels() {
        let opened = scan.open(&pool, morsel, &[], &traffic, || 0).await?;
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(BATCH_ROWS)? {
            let (columns, last) = batch.columns().split_at(foreign.columns.len());
            let Some(rows) = last
                .first()
                .and_then(|ids| ids.as_any().downcast_ref::<UInt64Array>())
            else {
                continue;
            };
            for (row, found) in keys.get(columns)?.into_iter().enumerate() {
                if let Some(found) = found {
                    ids.push(rows.value(row));
                    of.push(found);
                }
            }
        }
    }
    Ok((ids, of))
}
