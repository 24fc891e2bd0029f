//! Changing what tables are: names, columns, and what is declared of them. Rows stay where they are; a column that is
//! added or dropped changes the records of all blocks, and the tail.

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use store::Transaction;

use crate::catalog::space::{all, changed, definition, free_name, space};
use crate::dictionary::DictionaryBuilder;
use crate::error::{Error, Result};
use crate::format::block::Block;
use crate::format::definition::DefinitionRecord;
use crate::format::dictionary::DictionaryRecord;
use crate::format::record::{damaged, decode};
use crate::format::{key, tail};
use crate::index::maintain;
use crate::index::settle::Place;
use crate::schema::{Column, Definition, normalise};
use crate::write::loader::{save, write_matrix};
use crate::write::sequences::drop_own;
use crate::write::{comments, encode, rights};

/// Changes what is declared of a table: defaults, keys, checks, whether NULL is allowed. Whether its rows agree is for
/// the caller to know.
///
/// # Errors
/// [`Error::NoTable`]; those of `change` and of [`Definition::validate`]; [`Error::Mismatch`] if name, columns or types
/// were changed.
pub fn redefine(
    tx: &mut Transaction,
    name: &str,
    change: impl FnOnce(&mut Definition) -> Result<()>,
) -> Result<()> {
    let before = definition(tx, name)?;
    let mut after = before.clone();
    change(&mut after)?;
    let shape = |d: &Definition| -> Vec<(String, DataType)> {
        let columns = d.columns.iter();
        columns
            .map(|c| (c.name.clone(), c.data_type.clone()))
            .collect()
    };
    if before.name != after.name || shape(&before) != shape(&after) {
        return Err(Error::Mismatch {
            table: name.to_owned(),
            what: "columns and names are not changed in this way".to_owned(),
        });
    }
    put(tx, &after)
}

/// Keeps the definition of a table.
pub(super) fn put(tx: &mut Transaction, definition: &Definition) -> Result<()> {
    definition.validate()?;
    let space = space(tx, &definition.name)?;
    let record = DefinitionRecord::write(definition)?;
    tx.put(space, key::DEFINITION, &record);
    changed(tx, &definition.name, space)
}

/// Adds a key that holds, called `own`; the primary key if `primary`. Its columns are given by their positions.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Duplicate`] if two rows have the same; [`Error::Key`] if there is such a key already;
/// those of reading and writing pages. After an error the transaction must be dropped.
pub async fn add_key(
    tx: &mut Transaction,
    name: &str,
    own: &str,
    columns: Vec<usize>,
    primary: bool,
) -> Result<()> {
    let mut definition = definition(tx, name)?;
    if primary {
        definition.primary_key.clone_from(&columns);
    }
    definition.add_key(own.to_owned(), columns, primary);
    definition.validate()?;
    if let Some(key) = definition.keys.last() {
        let place = Place {
            space: space(tx, name)?,
            definition: &definition,
        };
        maintain::add(tx, place, key).await?;
    }
    put(tx, &definition)
}

/// Drops the key called `own`, and its index.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Key`] if there is none, or if a foreign key needs it.
pub fn drop_key(tx: &mut Transaction, name: &str, own: &str) -> Result<()> {
    let mut definition = definition(tx, name)?;
    let Some(at) = definition.keys.iter().position(|key| key.name == own) else {
        return Err(Error::Key {
            table: name.to_owned(),
            what: format!("there is none called \"{own}\""),
        });
    };
    comments::comment(tx, name, |all| {
        all.keys.remove(own);
    })?;
    let key = definition.keys.remove(at);
    if key.primary {
        definition.primary_key.clear();
    }
    let place = Place {
        space: space(tx, name)?,
        definition: &definition,
    };
    maintain::remove(tx, place, &key)?;
    put(tx, &definition)
}

/// Renames a table, also in the foreign keys that refer to it.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Exists`].
pub fn rename(tx: &mut Transaction, name: &str, to: &str) -> Result<()> {
    let mut own = definition(tx, name)?;
    free_name(tx, to)?;
    let space = space(tx, name)?;
    tx.delete(key::DIRECTORY, &key::table(name));
    tx.put(key::DIRECTORY, &key::table(to), &space.to_le_bytes());
    own.name = to.to_owned();
    put(tx, &own)?;
    comments::rename(tx, name, to);
    rights::rename(tx, name, to);
    if let Some(query) = tx.get(key::DIRECTORY, &key::materialized(name)) {
        tx.put(key::DIRECTORY, &key::materialized(to), &query);
        tx.delete(key::DIRECTORY, &key::materialized(name));
    }
    for (other, _) in all(tx)? {
        let mut other = definition(tx, &other)?;
        let keys = other.foreign_keys.iter_mut();
        let refer: Vec<_> = keys.filter(|key| key.parent == name).collect();
        if !refer.is_empty() {
            refer
                .into_iter()
                .for_each(|key| to.clone_into(&mut key.parent));
            put(tx, &other)?;
        }
    }
    Ok(())
}

/// Renames a column, also in the foreign keys that refer to it.
///
/// # Errors
/// [`Error::NoTable`], [`Error::NoColumn`]; [`Error::Mismatch`] if another column has the name.
pub fn rename_column(tx: &mut Transaction, name: &str, column: &str, to: &str) -> Result<()> {
    let mut own = definition(tx, name)?;
    let position = own.position(column)?;
    to.clone_into(&mut own.columns[position].name);
    put(tx, &own)?;
    comments::comment(tx, name, |all| {
        if let Some(text) = all.columns.remove(column) {
            all.columns.insert(to.to_owned(), text);
        }
    })?;
    for (other, _) in all(tx)? {
        let mut other = definition(tx, &other)?;
        let keys = other
            .foreign_keys
            .iter_mut()
            .filter(|key| key.parent == name);
        let columns = keys.flat_map(|key| &mut key.parent_columns);
        let refer: Vec<_> = columns.filter(|referred| *referred == column).collect();
        if !refer.is_empty() {
            refer
                .into_iter()
                .for_each(|referred| to.clone_into(referred));
            put(tx, &other)?;
        }
    }
    Ok(())
}

/// Adds a column after the others. All rows that there are have `value` in it, an array of one row of its type.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Mismatch`] if a column has its name; [`Error::Null`] if `value` is NULL and must not
/// be; those of the store. After an error the transaction must be dropped.
pub fn add_column(
    tx: &mut Transaction,
    name: &str,
    column: Column,
    value: &ArrayRef,
) -> Result<()> {
    let before = definition(tx, name)?;
    let mut after = before.clone();
    after.columns.push(column);
    after.validate()?;
    let space = space(tx, name)?;
    let own = &after.columns[before.columns.len()];
    let text = matches!(own.data_type, DataType::Utf8View | DataType::BinaryView);
    let dictionary = text.then(DictionaryBuilder::default);
    let page_size = tx.base().pool().page_size();
    let rows_of = |rows: usize| take(value, &UInt32Array::from(vec![0; rows]), None);
    for (entry, bytes) in tx.prefix(space, key::BLOCK).collect::<Vec<_>>() {
        let mut block = Block::decode(&bytes, name)?;
        let values = rows_of(block.rows as usize)?;
        let alone = Definition {
            columns: vec![own.clone()],
            primary_key: vec![],
            foreign_keys: vec![],
            keys: vec![],
            rules: vec![],
            checks: vec![],
            indexes: vec![],
            on_commit: before.on_commit,
            order: vec![],
            name: name.to_owned(),
        };
        let batch = RecordBatch::try_from_iter_with_nullable([(&own.name, values, true)])?;
        let batch = normalise(&batch, &alone)?;
        let matrix = write_matrix(tx, block.bucket, |sink| {
            let values = batch.column(0);
            encode::encode(&own.name, values, dictionary.as_ref(), page_size, sink)
        })?;
        block.columns.push(matrix);
        tx.put(space, &entry, &block.encode(name)?);
    }
    if let Some(dictionary) = &dictionary {
        let position = before.columns.len();
        save(tx, space, position, &after, dictionary, page_size)?;
    }
    tails(tx, space, &before, |batch| {
        let mut columns = batch.columns().to_vec();
        columns.push(rows_of(batch.num_rows())?);
        let names = after.columns.iter().map(|c| &c.name);
        let all = names
            .zip(columns)
            .map(|(name, column)| (name, column, true));
        normalise(&RecordBatch::try_from_iter_with_nullable(all)?, &after)
    })?;
    put(tx, &after)
}

/// Drops a column with its sequences, and frees its pages.
///
/// # Errors
/// [`Error::NoTable`], [`Error::NoColumn`]; [`Error::Key`] if a key has it, and for the last column.
pub fn drop_column(tx: &mut Transaction, name: &str, column: &str) -> Result<()> {
    let before = definition(tx, name)?;
    let gone = before.position(column)?;
    free_of_keys(tx, &before, gone)?;
    let mut after = before.clone();
    drop_own(tx, &after.columns.remove(gone))?;
    let positions = after
        .foreign_keys
        .iter_mut()
        .flat_map(|key| &mut key.columns);
    let positions = positions.chain(after.keys.iter_mut().flat_map(|key| &mut key.columns));
    for position in after.primary_key.iter_mut().chain(positions) {
        *position -= usize::from(*position > gone);
    }
    // What is in order of columns is so of those before one of them.
    if let Some(at) = after.order.iter().position(|own| *own == gone) {
        after.order.truncate(at);
    }
    for position in &mut after.order {
        *position -= usize::from(*position > gone);
    }
    // An index goes with any of its columns.
    after
        .indexes
        .retain(|index| index.columns.iter().all(|own| own.column != gone));
    for own in after
        .indexes
        .iter_mut()
        .flat_map(|index| &mut index.columns)
    {
        own.column -= usize::from(own.column > gone);
    }
    let space = space(tx, name)?;
    for (entry, bytes) in tx.prefix(space, key::BLOCK).collect::<Vec<_>>() {
        let mut block = Block::decode(&bytes, name)?;
        if gone >= block.columns.len() {
            return Err(damaged(name, "the record of a block"));
        }
        block.pages_of(gone).for_each(|page| tx.free_page(page));
        block.remove(gone);
        tx.put(space, &entry, &block.encode(name)?);
    }
    if let Some(bytes) = tx.get(space, &key::dictionary(gone)) {
        let record: DictionaryRecord = decode(&bytes, name)?;
        record.page_ids().for_each(|page| tx.free_page(page));
    }
    // Each of those behind it has the number before.
    for position in gone..before.columns.len() {
        match tx.get(space, &key::dictionary(position + 1)) {
            Some(bytes) => tx.put(space, &key::dictionary(position), &bytes),
            None => tx.delete(space, &key::dictionary(position)),
        }
    }
    let left: Vec<usize> = (0..before.columns.len()).filter(|at| *at != gone).collect();
    tails(tx, space, &before, |batch| Ok(batch.project(&left)?))?;
    comments::comment(tx, name, |all| {
        all.columns.remove(column);
    })?;
    put(tx, &after)
}

/// That no key has the column at `position`, and that it is not the only one.
fn free_of_keys(tx: &Transaction, definition: &Definition, position: usize) -> Result<()> {
    let column = &definition.columns[position].name;
    let refused = |what: String| {
        Err(Error::Key {
            table: definition.name.clone(),
            what,
        })
    };
    if definition.columns.len() == 1 {
        return refused(format!("'{column}' is its only column; drop the table"));
    }
    let keys = definition.foreign_keys.iter().flat_map(|key| &key.columns);
    let keys = keys.chain(definition.keys.iter().flat_map(|key| &key.columns));
    if definition
        .primary_key
        .iter()
        .chain(keys)
        .any(|at| *at == position)
    {
        return refused(format!("column '{column}' is in it"));
    }
    for (other, _) in all(tx)? {
        let other = self::definition(tx, &other)?;
        let mut keys = other.foreign_keys.iter();
        let refers =
            keys.any(|key| key.parent == definition.name && key.parent_columns.contains(column));
        if refers {
            return refused(format!(
                "table '{}' refers to column '{column}'",
                other.name
            ));
        }
    }
    Ok(())
}

/// Writes the chunks of the tail anew.
fn tails(
    tx: &mut Transaction,
    space: u32,
    before: &Definition,
    change: impl Fn(RecordBatch) -> Result<RecordBatch>,
) -> Result<()> {
    for (entry, bytes) in tx.prefix(space, key::TAIL).collect::<Vec<_>>() {
        let chunk = tail::decode(&bytes, before)
            .ok_or_else(|| damaged(&before.name, "a chunk of its tail"))?;
        let changed = change(chunk.rows.clone())?;
        tx.put(space, &entry, &tail::encode(&chunk.with_rows(changed))?);
    }
    Ok(())
}
