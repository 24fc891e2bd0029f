//! Foreign keys that hold: rows refer to rows that are there.
//!
//! They are looked at when the rows of a statement are written and before these are kept, so that a statement may write
//! both: [`Children`] are rows that refer to others, [`Parents`] rows that are deleted or changed and that others may
//! refer to. What becomes of the latter may change more rows, which may be referred to in turn.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{CastOptions, cast_with_options, concat_batches, take, take_record_batch};
use futures::{Stream, StreamExt};
use table::{Action, Definition, ForeignKey, Key, KeyMap, KeySet, Rule, Table, Tables};

use crate::error::{Error, Result};
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::generated::GeneratedColumns;
use crate::statements::deferred::{self, Pending, any_mixed};
use crate::statements::referred::{in_order, lost, parent, picked, referenced, referring};
use crate::statements::write::Writing;

/// The rows that a statement writes to a table, as far as they refer to others.
pub(crate) struct Children {
    definition: Definition,
    rules: Vec<Referring>,
}

/// Values of one foreign key, each once.
pub(super) struct Referring {
    rule: Rule,
    pub(super) foreign: ForeignKey,
    seen: KeySet,
    values: Vec<RecordBatch>,
    /// Whether a row has a part of a key that is to be there whole or not at all.
    mixed: bool,
}

impl Referring {
    pub(super) fn new(definition: &Definition, rule: &Rule) -> Referring {
        Referring {
            rule: rule.clone(),
            foreign: definition.foreign_keys[rule.foreign_key].clone(),
            seen: KeySet::default(),
            values: Vec::new(),
            mixed: false,
        }
    }

    /// Takes in what rows have in the columns of the foreign key, in its order.
    pub(super) fn take(&mut self, columns: &RecordBatch) -> Result<()> {
        self.mixed |= self.rule.full && any_mixed(columns.columns());
        let new = self.seen.take(columns.columns())?;
        let places = (0..).zip(new).filter(|(_, new)| *new == Some(true));
        let places: UInt32Array = places.map(|(row, _)| row).collect();
        if !places.is_empty() {
            self.values.push(take_record_batch(columns, &places)?);
        }
        Ok(())
    }
}

impl Children {
    pub(crate) fn new(definition: &Definition) -> Children {
        Children::of_columns(definition, None)
    }

    /// Values of one foreign key that rows have been found to have.
    pub(super) fn of(definition: &Definition, referring: Referring) -> Children {
        Children {
            definition: definition.clone(),
            rules: vec![referring],
        }
    }

    /// Only those foreign keys that have one of these columns.
    fn of_columns(definition: &Definition, columns: Option<&[usize]>) -> Children {
        let referring = |rule: &Rule| Referring::new(definition, rule);
        let own = |rule: &&Rule| {
            let mut its = definition.foreign_keys[rule.foreign_key].columns.iter();
            columns.is_none_or(|columns| its.any(|at| columns.contains(at)))
        };
        Children {
            rules: definition.rules.iter().filter(own).map(referring).collect(),
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
            own.take(&rows.project(&own.foreign.columns)?)?;
        }
        Ok(())
    }

    /// The keys that are not among `tables`, which have what was written.
    pub(super) async fn missing(&self, tables: &Tables) -> Result<Vec<Pending>> {
        let mut pending = Vec::new();
        for own in &self.rules {
            let of = |values: Vec<ArrayRef>, mixed| Pending {
                child: self.definition.name.clone(),
                rule: own.rule.name.clone(),
                values,
                mixed,
                parent: None,
            };
            if own.mixed {
                pending.push(of(Vec::new(), true));
            }
            if own.values.is_empty() {
                continue;
            }
            let (parent, key) = parent(tables, &own.foreign, &own.rule)?;
            let schema = own.values[0].schema();
            let values = concat_batches(&schema, &own.values)?;
            let columns = in_order(parent.definition(), key, &own.foreign, values.columns())?;
            let lost = UInt32Array::from(parent.lacking(key, &columns).await?);
            if !lost.is_empty() {
                pending.push(of(picked(values.columns(), &lost)?, false));
            }
        }
        Ok(pending)
    }
}

/// Looks at what rows refer to that is not there, now, or notes it for the end of the transaction.
async fn settle(
    context: &StatementContext,
    tables: &Tables,
    writing: &mut Writing,
    pending: Vec<Pending>,
) -> Result<()> {
    for own in pending {
        let child = tables.get(&own.child).map(|child| child.definition());
        let rule = child.and_then(|child| deferred::rules(child, &own.rule).next());
        if rule.is_some_and(|rule| defers(context, &own.child, rule)) {
            writing.pending.push(own);
        } else {
            deferred::check(tables, &[own]).await?;
        }
    }
    Ok(())
}

/// Whether a foreign key of `table` is looked at when the transaction ends.
fn defers(context: &StatementContext, table: &str, rule: &Rule) -> bool {
    let said = context.deferrals.as_ref();
    said.is_some_and(|said| said.defers(table, rule))
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
            let passes = rule.on_delete.changes_rows() || rule.on_update.changes_rows();
            let child = &child.definition().name;
            if passes && !all.contains(child) {
                all.push(child.clone());
            }
        }
        at += 1;
    }
    all
}

/// The tables that have a foreign key that holds to one of `names`, or to one of these tables, and are none of `names`.
pub(crate) fn referring_tables(tables: &Tables, names: &[String]) -> Vec<String> {
    let mut all = names.to_vec();
    let mut at = 0;
    while at < all.len() {
        for (child, _) in children_of(tables, &all[at]) {
            let child = &child.definition().name;
            if !all.contains(child) {
                all.push(child.clone());
            }
        }
        at += 1;
    }
    all.split_off(names.len())
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
                        "cannot truncate a table referenced in a foreign key constraint: Table \"{child}\" references \"{name}\". Truncate table \"{child}\" at the same time, or use TRUNCATE ... CASCADE."
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
    let mut changed = Vec::new();
    while let Some(change) = changes.pop() {
        let tables = written(context, &writing)?;
        for (child, rule) in children_of(&tables, &change.table) {
            // A cascade may have changed the same table already.
            let tables = written(context, &writing)?;
            let name = &child.definition().name;
            let child = tables.get(name).cloned().ok_or_else(|| lost(&rule))?;
            let (next, more) = pass(context, writing, (&tables, &child), &rule, &change).await?;
            writing = next;
            if let Some((more, own)) = more {
                changes.push(more);
                changed.extend(own);
            }
        }
    }
    let wanted = |own: &Referring| own.mixed || !own.values.is_empty();
    let all = std::iter::once(children).chain(&changed);
    let all: Vec<&Children> = all.filter(|own| own.rules.iter().any(wanted)).collect();
    if !all.is_empty() {
        let tables = written(context, &writing)?;
        for own in all {
            let missing = own.missing(&tables).await?;
            settle(context, &tables, &mut writing, missing).await?;
        }
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
    rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
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
pub(crate) fn written(context: &StatementContext, writing: &Writing) -> Result<Arc<Tables>> {
    let catalog = context.instance.catalog.fork();
    Ok(catalog.tables(&writing.tx.view())?)
}

/// Does what a rule asks for when rows of its parent have gone or changed. Returns the rows that it has changed, and what
/// these refer to now.
#[expect(clippy::too_many_lines, reason = "one thing after the other")]
async fn pass(
    context: &mut StatementContext,
    mut writing: Writing,
    (tables, child): (&Tables, &Arc<Table>),
    rule: &Rule,
    change: &Change,
) -> Result<(Writing, Option<(Change, Option<Children>)>)> {
    let definition = child.definition();
    let foreign = &definition.foreign_keys[rule.foreign_key];
    let (parent, key) = parent(tables, foreign, rule)?;
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
    let new = change.new.as_ref().map(&own).transpose()?;
    let gone = gone((parent, key), foreign, (&old, new), action).await?;
    let lost_keys = picked(&old, &gone)?;
    let (ids, of) = referring(child, foreign, &lost_keys).await?;
    if ids.is_empty() {
        return Ok((writing, None));
    }
    if action == Action::NoAction && defers(context, &definition.name, rule) {
        writing.pending.push(Pending {
            child: definition.name.clone(),
            rule: rule.name.clone(),
            values: lost_keys,
            mixed: false,
            parent: Some(change.table.clone()),
        });
        return Ok((writing, None));
    }
    if !action.changes_rows() {
        let row = of[0] as usize;
        return Err(referenced(&change.table, rule, definition, &lost_keys, row));
    }
    let all: Vec<usize> = (0..definition.columns.len()).collect();
    let before = child.fetch(&all, &ids).await?;
    let columns = match change.new {
        None if !rule.delete_columns.is_empty() => {
            let places = rule.delete_columns.iter();
            places.map(|place| foreign.columns[*place]).collect()
        }
        _ => foreign.columns.clone(),
    };
    let values = match (action, &change.new) {
        (Action::SetNull | Action::SetDefault, _) => {
            Some(set(context, definition, (&columns, ids.len()), action).await?)
        }
        (Action::Cascade, Some(new)) => {
            let new = picked(&own(new)?, &gone)?;
            let new = picked(&new, &UInt32Array::from(of))?;
            Some(of_types(definition, &columns, &new)?)
        }
        _ => None,
    };
    let after = match values {
        Some(values) => Some(put(context, definition, &before, (&columns, values)).await?),
        None => None,
    };
    let refer = match &after {
        Some(after) => {
            let mut refer = Children::of_columns(definition, Some(&columns));
            refer.take(after)?;
            Some(refer)
        }
        None => None,
    };
    let name = &definition.name;
    let writing = writing.exchange(name, &ids, after.as_ref()).await?;
    let more = Change {
        table: name.clone(),
        old: before,
        new: after,
    };
    Ok((writing, Some((more, refer))))
}

/// Values with the types of these columns.
///
/// # Errors
/// If one has no such value.
fn of_types(
    definition: &Definition,
    columns: &[usize],
    values: &[ArrayRef],
) -> Result<Vec<ArrayRef>> {
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let columns = columns.iter().zip(values);
    let cast = columns
        .map(|(at, value)| cast_with_options(value, &definition.columns[*at].data_type, &strict));
    Ok(cast.collect::<std::result::Result<_, _>>()?)
}

/// NULLs, or the defaults of columns, for so many rows.
async fn set(
    context: &mut StatementContext,
    definition: &Definition,
    (columns, rows): (&[usize], usize),
    action: Action,
) -> Result<Vec<ArrayRef>> {
    let same = UInt32Array::from(vec![0; rows]);
    let mut values = Vec::with_capacity(columns.len());
    for at in columns {
        let column = &definition.columns[*at];
        values.push(if action == Action::SetDefault {
            take(&context.default_value(column).await?, &same, None)?
        } else {
            new_null_array(&column.data_type, rows)
        });
    }
    Ok(values)
}

/// The keys of `old` that no row has any more once `action` is to be taken.
async fn gone(
    (parent, key): (&Arc<Table>, &Key),
    foreign: &ForeignKey,
    (old, new): (&[ArrayRef], Option<Vec<ArrayRef>>),
    action: Action,
) -> Result<UInt32Array> {
    let kept: Vec<bool> = match new {
        // Each row takes its own children with it, also where another row gets its key.
        Some(new) if action != Action::NoAction => KeyMap::same(old, &new)?,
        _ => {
            let old = in_order(parent.definition(), key, foreign, old)?;
            let there = parent.find(key, &old).await?;
            there.iter().map(Option::is_some).collect()
        }
    };
    let gone = (0..).zip(kept).filter(|(_, kept)| !kept);
    Ok(gone.map(|(row, _)| row).collect())
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
