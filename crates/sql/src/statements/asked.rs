//! Which defaults of columns ask sequences: these are not dropped.

use syntax::asked::asked;
use syntax::names::{base, session_of};
use table::Definition;

use crate::error::{Error, Result};
use crate::run::context::StatementContext;

/// That no default of a column asks a sequence that goes with `what`, but in the tables `but`.
///
/// # Errors
/// [`Error::Constraint`] with the first column that does.
pub(crate) fn stays_unused(
    context: &StatementContext,
    name: &str,
    what: &str,
    but: &[&str],
) -> Result<()> {
    for table in context.tables.names() {
        let Some(of) = context.tables.get(table).filter(|_| !but.contains(&table)) else {
            continue;
        };
        for column in &of.definition().columns {
            let asked = column.default.as_deref().map(asked).transpose()?;
            if asked.is_some_and(|asked| asked.iter().any(|one| one == name)) {
                return Err(Error::Constraint {
                    code: "2BP01",
                    message: format!(
                        "cannot drop {what} because other objects depend on it: default value for column {} of table {table} depends on sequence {name}",
                        column.name
                    ),
                });
            }
        }
    }
    Ok(())
}

/// That a default of a table that outlives the session asks no sequence that does not.
///
/// # Errors
/// If one does, with the column's name.
pub(crate) fn stays_there(table: &str, column: &str, text: &str) -> Result<()> {
    if session_of(table).is_some() {
        return Ok(());
    }
    let asked = asked(text)?;
    match asked.iter().find(|name| session_of(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::unsupported(format!(
            "the default of column \"{column}\" asks the temporary sequence \"{}\", which goes with the session, and the table stays: take a permanent sequence",
            base(name)
        ))),
    }
}

/// The same for all columns of a table.
///
/// # Errors
/// As [`stays_there`].
pub(crate) fn stay_there(definition: &Definition) -> Result<()> {
    definition.columns.iter().try_for_each(|column| {
        let text = column.default.as_deref();
        text.map_or(Ok(()), |text| {
            stays_there(&definition.name, &column.name, text)
        })
    })
}
