//! Errors for names that nothing has, with the names that come close.

use datafusion::common::utils::datafusion_strsim::levenshtein;
use table::{Definition, Tables, titled};

use crate::error::Error;

/// Names among `names` that a person may have meant by `name`, nearest first, at most three.
pub(crate) fn nearest(name: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let mut near: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let distance = levenshtein(&wanted, &lower);
            let related = wanted.len() >= 3
                && (lower.contains(&wanted) || wanted.contains(&lower) && lower.len() >= 3);
            // At most half of it is written otherwise, as in PostgreSQL.
            (related || distance <= (wanted.chars().count() / 2).min(3))
                .then_some((distance, candidate))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(_, name)| name).take(3).collect()
}

/// The error for a table that is not among `tables`.
pub(crate) fn unknown_table(name: &str, tables: &Tables) -> Error {
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
pub(crate) fn unknown_column(name: &str, definition: &Definition) -> Error {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_near() {
        let names = || ["lineitem", "orders", "part", "partsupp", "nation"].map(String::from);
        assert_eq!(nearest("linitem", names()), ["lineitem"]);
        assert_eq!(nearest("order", names()), ["orders"]);
        assert_eq!(nearest("zzz", names()), Vec::<String>::new());
        // All names of one letter are as near to each other.
        assert!(nearest("a", ["b", "c"].map(String::from)).is_empty());
        assert_eq!(nearest("A", ["a", "c"].map(String::from)), ["a"]);
    }
}
