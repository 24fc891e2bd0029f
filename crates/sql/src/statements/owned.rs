//! Sequences that belong to columns: those of identity columns, of `serial`, and of `owned by`.

use syntax::names::{base, schema_of};
use syntax::sequences::SequenceOptions;
use table::{Column, Definition, Generated, Position, Tables};

use crate::bind::definition::NewSequence;
use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::run::context::StatementContext;
use crate::run::defaults::next_of;
use crate::run::instance::Instance;
use crate::statements::asked::stays_unused;
use crate::statements::relations::taken;
use crate::statements::scope::Scope;
use crate::statements::write::Writing;

/// The most bytes of a name.
const LONGEST: usize = 255;

/// Creates the sequences of new columns, and says in the definition where they are. Names of what is `gone` are free.
///
/// # Errors
/// For options that do not go with each other; those of the store.
pub(crate) fn create(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    definition: &mut Definition,
    new: Vec<NewSequence>,
    gone: &[String],
) -> Result<()> {
    let mut names: Vec<String> = Vec::new();
    for own in new {
        let column = &definition.columns[own.column].name;
        let base = format!("{}_{column}_seq", definition.name);
        let is_free = |name: &str| -> Result<bool> {
            let own = name == definition.name || names.iter().any(|other| other == name);
            Ok(!own && (gone.iter().any(|gone| gone == name) || !taken(context, name)?))
        };
        let name = match &own.options.name {
            None => free_name(&base, is_free)?,
            Some(written) => {
                let name = scope.new_name(written)?;
                if !is_free(&name)? {
                    return Err(Error::coded(
                        "42P07",
                        format!("relation \"{}\" already exists", syntax::names::base(&name)),
                    ));
                }
                name
            }
        };
        scope.claim(std::slice::from_ref(&name))?;
        make(&scope.instance, writing, &name, &own.options)?;
        let column = &mut definition.columns[own.column];
        match own.always {
            Some(always) => {
                column.generated = Some(Generated::Identity {
                    sequence: name.clone(),
                    always,
                });
            }
            None => column.default = Some(next_of(&name)),
        }
        column.sequences.push(name.clone());
        names.push(name);
    }
    Ok(())
}

/// The numbers that `rows` rows get which are there when a column of a new sequence is added: an expression over them. The
/// sequence goes on behind these.
///
/// # Errors
/// If there are more rows than numbers; those of the store.
pub(crate) fn numbered(
    scope: &Scope<'_>,
    writing: &mut Writing,
    column: &Column,
    options: &SequenceOptions,
    rows: u64,
) -> Result<String> {
    let Some(name) = column.sequences.first() else {
        return Err(Error::Defect {
            message: "a column of numbers has no sequence".into(),
        });
    };
    let number = scope.instance.sequences.new_number(&writing.tx)?;
    let mut own = options.new_sequence(number)?;
    let last = i128::from(rows.saturating_sub(1)) * i128::from(own.increment);
    let last = i64::try_from(i128::from(own.start) + last).ok();
    let last = last.filter(|last| (own.min..=own.max).contains(last));
    let Some(last) = last else {
        return Err(Error::coded(
            "2200H",
            format!(
                "nextval: reached the end of sequence \"{}\" for the rows that are there",
                base(name)
            ),
        ));
    };
    own.first = Position {
        value: last,
        called: true,
    };
    table::change_sequence(&mut writing.tx, name, &own)?;
    Ok(format!(
        "cast({} + (row_number() over () - 1) * ({}) as bigint)",
        own.start, own.increment
    ))
}

/// `base`, or that with a number behind it, that is free.
fn free_name(base: &str, is_free: impl Fn(&str) -> Result<bool>) -> Result<String> {
    let mut number = 0;
    loop {
        let behind = match number {
            0 => String::new(),
            number => number.to_string(),
        };
        let mut end = base.len().min(LONGEST - behind.len());
        while !base.is_char_boundary(end) {
            end -= 1;
        }
        let name = format!("{}{behind}", &base[..end]);
        if is_free(&name)? {
            return Ok(name);
        }
        number += 1;
    }
}

/// Creates a sequence.
///
/// # Errors
/// For options that do not go with each other; those of the store.
pub(crate) fn make(
    instance: &Instance,
    writing: &mut Writing,
    name: &str,
    options: &SequenceOptions,
) -> Result<()> {
    let number = instance.sequences.new_number(&writing.tx)?;
    let own = options.new_sequence(number)?;
    table::create_sequence(&mut writing.tx, name, &own)?;
    Ok(())
}

/// The column that a sequence belongs to.
pub(crate) struct Owner {
    pub table: String,
    pub column: usize,
    /// Whether it is an identity column, which cannot be without.
    pub identity: bool,
}

/// The owner of a sequence.
pub(crate) fn owner(tables: &Tables, sequence: &str) -> Option<Owner> {
    for name in tables.names() {
        let columns = &tables.get(name)?.definition().columns;
        let owns = |own: &table::Column| own.sequences.iter().any(|other| other == sequence);
        if let Some(column) = columns.iter().position(owns) {
            let own = columns[column].identity();
            return Some(Owner {
                table: name.to_owned(),
                column,
                identity: own.is_some_and(|(own, _)| own == sequence),
            });
        }
    }
    None
}

/// Gives a sequence another owner, or none.
///
/// # Errors
/// If it is that of an identity column; if there is no such column.
pub(crate) fn give(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    sequence: &str,
    to: Option<&(String, String)>,
) -> Result<()> {
    if let Some(before) = owner(&context.tables, sequence) {
        if before.identity {
            return Err(Error::unsupported(format!(
                "cannot change ownership of identity sequence: Sequence \"{sequence}\" is linked to table \"{}\".",
                before.table
            )));
        }
        let_go(scope, writing, &before, sequence)?;
    }
    let Some((table, column)) = to else {
        return Ok(());
    };
    if context.tables.get(table).is_none() && taken(context, table)? {
        return Err(Error::coded(
            "42809",
            format!("sequence cannot be owned by relation \"{table}\": it is no table"),
        ));
    }
    if schema_of(table) != schema_of(sequence) {
        return Err(Error::coded(
            "55000",
            "sequence must be in same schema as table it is linked to",
        ));
    }
    context.rights.check_owner(&context.tables, table)?;
    let own = context.table(table)?;
    let definition = own.definition();
    let mut columns = definition.columns.iter();
    let Some(at) = columns.position(|own| own.name == *column) else {
        return Err(unknown_column(column, definition));
    };
    scope.claim(std::slice::from_ref(table))?;
    table::redefine(&mut writing.tx, table, |definition| {
        definition.columns[at].sequences.push(sequence.to_owned());
        Ok(())
    })?;
    Ok(())
}

/// Takes a sequence from its owner.
///
/// # Errors
/// Those of the table.
pub(crate) fn let_go(
    scope: &Scope<'_>,
    writing: &mut Writing,
    owner: &Owner,
    sequence: &str,
) -> Result<()> {
    scope.claim(std::slice::from_ref(&owner.table))?;
    table::redefine(&mut writing.tx, &owner.table, |definition| {
        let own = &mut definition.columns[owner.column].sequences;
        own.retain(|other| other != sequence);
        Ok(())
    })?;
    Ok(())
}

/// The right to drop the sequences of these columns, which no default asks but those of the tables `but`. `what` is
/// what goes, for messages.
///
/// # Errors
/// If one does.
pub(crate) fn may_go<'c>(
    scope: &Scope<'_>,
    context: &StatementContext,
    columns: impl IntoIterator<Item = &'c table::Column>,
    what: &str,
    but: &[&str],
) -> Result<()> {
    for column in columns {
        for sequence in &column.sequences {
            scope.claim(std::slice::from_ref(sequence))?;
            stays_unused(context, sequence, what, but)?;
        }
    }
    Ok(())
}
