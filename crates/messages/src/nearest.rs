//! Errors for names that nothing has, with the names that come close.

use table::{Definition, Tables, titled};

use crate::error::Error;
use crate::near::nearest;

/// The error for a table that is not among `tables`.
pub fn unknown_table(name: &str, tables: &Tables) -> Error {
    let names = tables.names().into_iter().chain(tables.views());
    // Those of sessions are nobody else's.
    let names = names.filter(|name| !name.starts_with("pg_temp_"));
    let names = names.map(|name| titled(name).into_owned());
    Error::UnknownTable {
        name: name.to_string(),
        candidates: nearest(&titled(name), names),
        position: None,
    }
}

/// The error for a column that the table of `definition` does not have.
pub fn unknown_column(name: &str, definition: &Definition) -> Error {
    let names = definition.columns.iter().map(|c| c.name.clone());
    Error::UnknownColumn {
        name: name.to_string(),
        candidates: nearest(name, names),
        relation: definition
            .name
            .rsplit(table::WITHIN)
            .next()
            .map(String::from),
        position: None,
    }
}

/// The message for a function that there is none of, from the planner's, which names another one however far it is.
pub(crate) fn unknown_function(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("nvalid function '")?;
    let (name, rest) = rest.split_once("'. Did you mean '")?;
    let (other, _) = rest.split_once("'?")?;
    let near = nearest(name, [other.to_string()]);
    Some(if near.is_empty() {
        format!("no function \"{name}\"")
    } else {
        format!("no function \"{name}\" (did you mean {other}?)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_suggested_only_if_it_is_near() {
        let of = |name: &str, other: &str| {
            unknown_function(&format!(
                "Invalid function '{name}'. Did you mean '{other}'?"
            ))
        };
        assert_eq!(
            of("lenght", "length").as_deref(),
            Some("no function \"lenght\" (did you mean length?)")
        );
        assert_eq!(
            of("nosuch", "cosh").as_deref(),
            Some("no function \"nosuch\"")
        );
        assert_eq!(unknown_function("invalid function \"group by\""), None);
    }
}
