//! Whether whose statement it is may do what it asks, by what the statement is called and what it changes.

use syntax::names::{of_schema, schema_of};
use table::{Privileges, ROLES};

use crate::error::{Result, WITHIN};
use crate::run::context::StatementContext;

/// Whether there is something of this name: a table, a view, a sequence, a type, an array or a schema.
pub(crate) fn is_there(context: &StatementContext, name: &str) -> bool {
    match name.strip_suffix(WITHIN) {
        Some(schema) => context.tables.has_schema(schema),
        None => {
            let tables = &context.tables;
            tables.get(name).is_some()
                || tables.view(name).is_some()
                || tables.sequence(name).is_some()
                || tables.has_type(name)
                // What cannot be read is not taken for nothing.
                || context.array(name).map_or(true, |array| array.is_some())
        }
    }
}

/// That a statement called `what` may change all that `names` are of. What is not there is for the statement to find.
///
/// # Errors
/// [`Error::Denied`](crate::error::Error::Denied).
pub(crate) fn check(context: &StatementContext, what: &str, names: &[&str]) -> Result<()> {
    if context.rights.is_all() {
        return Ok(());
    }
    let names = names.iter().filter(|name| **name != ROLES);
    for name in names {
        one(context, what, name)?;
    }
    Ok(())
}

/// Whether a statement called so makes what it names, and does not add something to it.
pub(crate) fn makes(what: &str) -> bool {
    what.starts_with("CREATE ") && !matches!(what, "CREATE VERSION" | "CREATE INDEX")
}

fn one(context: &StatementContext, what: &str, name: &str) -> Result<()> {
    let (rights, tables) = (&context.rights, &context.tables);
    if makes(what) {
        return rights.check_creates(tables, name);
    }
    if !is_there(context, name) {
        return Ok(());
    }
    let wanted = match what {
        "INSERT" | "COPY FROM" => Privileges::INSERT,
        "UPDATE" => Privileges::UPDATE,
        "DELETE" => Privileges::DELETE,
        "TRUNCATE TABLE" => Privileges::TRUNCATE,
        // They look at each thing themselves.
        "MERGE" | "GRANT" | "REVOKE" => return Ok(()),
        // Whose schema it is may empty it.
        _ if what.starts_with("DROP ")
            && !name.ends_with(WITHIN)
            && rights.owns(tables, &of_schema(schema_of(name))) =>
        {
            return Ok(());
        }
        _ => return rights.check_owner(tables, name),
    };
    rights.check(tables, name, wanted)
}
