//! The things that an error about a constraint is about, in the fields that PostgreSQL's protocol has for them.

use crate::error::{Error, WITHIN};

/// The schema of a table whose name says none.
const SCHEMA: &str = "public";

/// What an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The schema of the table, or of the type.
    pub schema: Option<String>,
    /// The table.
    pub table: Option<String>,
    /// The column.
    pub column: Option<String>,
    /// The type: a domain.
    pub data_type: Option<String>,
    /// The constraint.
    pub constraint: Option<String>,
}

impl About {
    /// What an error is about whose message in PostgreSQL's words is this, with names as the catalog has them. Of errors
    /// that are about no constraint nothing is said.
    pub(crate) fn of(error: &Error, message: &str) -> About {
        if let Error::Duplicate { table, key, .. } = error {
            return About::of_table(table).constrained(key);
        }
        if !error.sqlstate().starts_with("23") {
            return About::default();
        }
        About::read(message).unwrap_or_default()
    }

    /// The same by its message alone, whose names stand in quotes.
    fn read(message: &str) -> Option<About> {
        let names: Vec<&str> = message.split('"').skip(1).step_by(2).collect();
        let name = |at: usize| names.get(at).copied();
        let starts = |text: &str| message.starts_with(text);
        if starts("null value in column ") {
            return Some(About {
                column: Some(name(0)?.to_owned()),
                ..About::of_table(name(1)?)
            });
        }
        if starts("column ") {
            return Some(About {
                column: Some(name(0)?.to_owned()),
                ..About::of_shown(name(1)?)
            });
        }
        if starts("new row for relation ") || starts("insert or update on table ") {
            return Some(About::of_table(name(0)?).constrained(name(1)?));
        }
        if starts("update or delete on table ") {
            return Some(About::of_table(name(2)?).constrained(name(1)?));
        }
        if starts("check constraint ") {
            return Some(About::of_shown(name(1)?).constrained(name(0)?));
        }
        let domain = message.strip_prefix("value for domain ");
        let domain = domain.or_else(|| message.strip_prefix("domain "))?;
        let title = domain
            .split_once(" violates check constraint ")
            .or_else(|| domain.split_once(" does not allow null values"));
        let (schema, own) = match title?.0.rsplit_once('.') {
            Some((schema, own)) => (schema, own),
            None => (SCHEMA, title?.0),
        };
        let bare = |text: &str| text.trim_matches('"').to_owned();
        let constraint = domain.split_once(" violates check constraint ");
        Some(About {
            schema: Some(bare(schema)),
            data_type: Some(bare(own)),
            constraint: constraint.map(|(_, name)| bare(name)),
            ..About::default()
        })
    }

    /// A table, as the catalog or a title names it.
    fn of_table(name: &str) -> About {
        let parts = name.split_once(WITHIN).or_else(|| name.split_once('.'));
        let (schema, table) = parts.unwrap_or((SCHEMA, name));
        About {
            schema: Some(schema.to_owned()),
            table: Some(table.to_owned()),
            ..About::default()
        }
    }

    /// A table by the name alone that it is shown by, of which the schema is not known unless it stands there.
    fn of_shown(name: &str) -> About {
        About {
            schema: name.split_once(WITHIN).map(|(schema, _)| schema.to_owned()),
            ..About::of_table(name)
        }
    }

    fn constrained(self, name: &str) -> About {
        About {
            constraint: Some(name.to_owned()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(code: &'static str, message: &str) -> [Option<String>; 5] {
        let message = message.to_owned();
        let told = Error::Constraint { code, message }.told().about;
        [
            told.schema,
            told.table,
            told.column,
            told.data_type,
            told.constraint,
        ]
    }

    #[test]
    fn constraints_are_named_apart() {
        let none = || None;
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            about(
                "23502",
                "NULL in column 'a' of table 's\u{1}t', which is declared NOT NULL: Failing row contains (null)."
            ),
            [some("s"), some("t"), some("a"), none(), none()]
        );
        assert_eq!(
            about(
                "23514",
                "new row for relation \"t\" violates check constraint \"t_a_check\": Failing row contains (1)."
            ),
            [some("public"), some("t"), none(), none(), some("t_a_check")]
        );
        assert_eq!(
            about(
                "23503",
                "update or delete on table \"p\" violates foreign key constraint \"f\" on table \"s\u{1}c\": Key (a)=(1) is still referenced from table \"c\"."
            ),
            [some("s"), some("c"), none(), none(), some("f")]
        );
        assert_eq!(
            about(
                "23514",
                "value for domain d violates check constraint \"d_check\""
            ),
            [some("public"), none(), none(), some("d"), some("d_check")]
        );
        let duplicate = Error::Duplicate {
            table: "t".into(),
            key: "t_pkey".into(),
            message: "duplicate key value violates unique constraint \"t_pkey\": Key (a)=(1) already exists.".into(),
        };
        let told = duplicate.told();
        assert_eq!(told.about.table.as_deref(), Some("t"));
        assert_eq!(told.about.constraint.as_deref(), Some("t_pkey"));
        assert_eq!(duplicate.sqlstate(), "23505");
        assert_eq!(about("22012", "division by \"zero\""), [const { None }; 5]);
    }
}
