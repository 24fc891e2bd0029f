//! What clients of PostgreSQL's protocol are told of an error: its message in PostgreSQL's words, and apart from it the detail
//! and the hint, which [`Error`]'s one line has at its end.

use crate::about::About;
use crate::error::{Error, Or, readable};
use crate::near::is_near;

/// An error in the parts that PostgreSQL's protocol has for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What is wrong, without the place, which [`Error::position`] has.
    pub message: String,
    /// More of it, if there is more.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Where in a value it is.
    pub context: Option<String>,
    /// What it is about, for programs.
    pub about: About,
}

/// The part that follows a message.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Detail,
    Hint,
    /// A sentence of detail, and others that say what to do.
    Both,
}

/// How messages of PostgreSQL begin which have more behind `: `, and what that is.
const OPENINGS: [(&str, Part); 26] = [
    (
        "duplicate key value violates unique constraint ",
        Part::Detail,
    ),
    ("new row for relation ", Part::Detail),
    ("insert or update on table ", Part::Detail),
    ("update or delete on table ", Part::Detail),
    (
        "cannot truncate a table referenced in a foreign key constraint",
        Part::Both,
    ),
    ("cannot use generated column ", Part::Detail),
    ("cannot insert a non-DEFAULT value into column ", Part::Both),
    ("cannot change ownership of identity sequence", Part::Detail),
    ("cannot drop ", Part::Detail),
    ("cannot alter type of a column ", Part::Detail),
    ("foreign key constraint ", Part::Detail),
    ("column ", Part::Detail),
    ("could not create unique index ", Part::Detail),
    ("invalid enum label ", Part::Detail),
    ("invalid input syntax for type json", Part::Detail),
    ("malformed array literal: ", Part::Detail),
    ("string is not a valid identifier: ", Part::Detail),
    ("aggregate function calls cannot be nested", Part::Detail),
    (
        "current transaction is aborted, commands ignored until end of transaction block",
        Part::Hint,
    ),
    (
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
        Part::Hint,
    ),
    ("numeric field overflow: ", Part::Detail),
    ("source string too short for ", Part::Detail),
    ("MERGE command cannot affect row a second time", Part::Hint),
    ("materialized view ", Part::Hint),
    ("date/time field value out of range: ", Part::Hint),
    ("operator is not unique: ", Part::Hint),
];

/// What stands between the detail of an error about JSON and its context.
const JSON_PLACE: &str = " JSON data, line ";

impl Error {
    /// The error in the parts that PostgreSQL's protocol has for it.
    pub fn told(&self) -> Told {
        let mut told = match self {
            Error::UnknownTable {
                name, candidates, ..
            } => Told {
                // Clients have commands of their own that list what there is.
                hint: match candidates.as_slice() {
                    [] => None,
                    near => Some(format!("Did you mean {}?", Or(near))),
                },
                ..Told::of(format!("relation \"{name}\" does not exist"))
            },
            Error::UnknownColumn {
                name,
                candidates,
                relation,
                ..
            } => {
                // All that there is says nothing to a client, which has commands that list it.
                let near = is_near(name, candidates).then_some(candidates);
                Told {
                    hint: near.map(|near| format!("Did you mean {}?", Or(near))),
                    ..Told::of(match relation {
                        Some(table) => {
                            format!("column \"{name}\" of relation \"{table}\" does not exist")
                        }
                        // PostgreSQL quotes no name that has the table with it.
                        None if name.contains('.') => format!("column {name} does not exist"),
                        None => format!("column \"{name}\" does not exist"),
                    })
                }
            }
            Error::TableExists { name } => Told {
                hint: Some(
                    "Use `create or replace table`, `create table if not exists`, or drop it first."
                        .into(),
                ),
                ..Told::of(format!("relation \"{name}\" already exists"))
            },
            Error::Syntax { message, .. } => syntax(message),
            Error::Invalid { message, .. } => reworded(message).unwrap_or_else(|| parted(message)),
            other => {
                let text = other.to_string();
                reworded(&text).unwrap_or_else(|| parted(&text))
            }
        };
        told.about = About::of(self, &told.message);
        told.message = readable(&told.message);
        told.detail = told.detail.map(|detail| readable(&detail));
        told.hint = told.hint.map(|hint| readable(&hint));
        told
    }
}

impl Told {
    fn of(message: String) -> Told {
        Told {
            message,
            ..Told::default()
        }
    }
}

/// What the parser did not expect; what it did is the detail.
fn syntax(message: &str) -> Told {
    let found = message
        .strip_prefix("expected: ")
        .and_then(|rest| rest.rsplit_once(", found: "));
    match found {
        Some((expected, found)) => Told {
            detail: Some(format!("Expected {expected}.")),
            ..Told::of(match found {
                "EOF" => "syntax error at end of input".to_string(),
                found => format!("syntax error at or near \"{found}\""),
            })
        },
        None => Told::of(format!("syntax error: {message}")),
    }
}

/// A message that says what PostgreSQL says in other words.
fn reworded(text: &str) -> Option<Told> {
    if let Some(rest) = text.strip_prefix("NULL in column '") {
        let (column, rest) = rest.split_once("' of table '")?;
        let (table, rest) = rest.split_once("', which")?;
        let row = rest.split_once(": Failing row");
        return Some(Told {
            detail: row.map(|(_, values)| format!("Failing row{values}")),
            ..Told::of(format!(
                "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
            ))
        });
    }
    if let Some(rest) = text.strip_suffix("\" contains NULL: change those rows first") {
        let (column, table) = rest.split_once("\" of table \"")?;
        return Some(Told {
            hint: Some("Change those rows first.".into()),
            ..Told::of(format!(
                "{column}\" of relation \"{table}\" contains null values"
            ))
        });
    }
    if let Some(rest) = text.strip_suffix("\" exists already") {
        let (column, table) = rest.split_once("\" of table \"")?;
        return Some(Told::of(format!(
            "{column}\" of relation \"{table}\" already exists"
        )));
    }
    if let Some(rest) = text.strip_prefix("no function \"") {
        let (name, rest) = rest.split_once('"')?;
        let near = rest.split_once("(did you mean ");
        let near = near.and_then(|(_, rest)| rest.split_once("?)"));
        return Some(Told {
            hint: near.map(|(near, _)| format!("Did you mean {near}?")),
            ..Told::of(format!("function {name} does not exist"))
        });
    }
    if let Some((call, hint)) = text.split_once(") does not exist: ")
        && text.starts_with("function ")
    {
        return Some(Told {
            hint: Some(sentence(hint)),
            ..Told::of(format!("{call}) does not exist"))
        });
    }
    if let Some(view) = text.strip_prefix("there is no view ") {
        return Some(Told::of(format!("view {view} does not exist")));
    }
    if text.contains(" to store in a Decimal") || text.contains(" to store in a decimal") {
        return Some(Told {
            detail: Some(field_overflow(text).unwrap_or_else(|| text.to_string())),
            ..Told::of("numeric field overflow".into())
        });
    }
    let (before, rest) = text.split_once("\" must appear in the GROUP BY clause")?;
    let (_, column) = before.rsplit_once("column \"")?;
    rest.contains("part of an aggregate function").then(|| {
        Told::of(format!(
            "column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function"
        ))
    })
}

/// A hint, which stands by itself, from what stood behind a colon.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}

/// Which numbers a decimal has room for, in PostgreSQL's words, from Arrow's: `1.0000 is too large to store in a decimal
/// of precision 4. Max is 0.9999`.
fn field_overflow(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(" to store in a decimal of precision ")?;
    let (precision, rest) = rest.split_once(". M")?;
    let (_, end) = rest.split_once(" is ")?;
    let precision: usize = precision.parse().ok()?;
    let places = end.split_once('.').map_or(0, |(_, places)| places.len());
    let room = match precision.checked_sub(places)? {
        0 => "1".to_string(),
        whole => format!("10^{whole}"),
    };
    Some(format!(
        "A field with precision {precision}, scale {places} must round to an absolute value less than {room}."
    ))
}

/// A message, and what is behind it if it is one of [`OPENINGS`].
fn parted(text: &str) -> Told {
    let whole = || Told::of(text.to_string());
    let opening = OPENINGS
        .iter()
        .find(|(opening, _)| text.starts_with(opening));
    let Some((opening, part)) = opening else {
        return whole();
    };
    let Some(end) = end(text, opening.len()) else {
        return whole();
    };
    let (message, rest) = (text[..end].to_string(), text[end + 2..].trim());
    let some = |text: &str| Some(text.to_string());
    match part {
        Part::Detail => {
            let (detail, context) = match rest.split_once(JSON_PLACE) {
                Some((detail, place)) => (detail, some(&format!("{}{place}", &JSON_PLACE[1..]))),
                None => (rest, None),
            };
            Told {
                detail: some(detail),
                context,
                ..Told::of(message)
            }
        }
        Part::Hint => Told {
            hint: some(rest),
            ..Told::of(message)
        },
        Part::Both => {
            let (detail, hint) = match rest.split_once(". ") {
                Some((detail, hint)) => (format!("{detail}."), some(hint)),
                None => (rest.to_string(), None),
            };
            Told {
                message,
                detail: Some(detail),
                hint,
                ..Told::default()
            }
        }
    }
}

/// Where the first `: ` is that is in no quotes, from `from` on.
fn end(text: &str, from: usize) -> Option<usize> {
    let mut quoted = text[..from].matches('"').count() % 2 == 1;
    for (at, letter) in text[from..].char_indices() {
        match letter {
            '"' => quoted = !quoted,
            ':' if !quoted && text[from + at + 1..].starts_with(' ') => return Some(from + at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_room_are_details() {
        let null = "NULL in column 'a' of table 't', which is declared NOT NULL: Failing row contains (null, 1).";
        let told = Error::invalid(null).told();
        assert_eq!(
            told.message,
            "null value in column \"a\" of relation \"t\" violates not-null constraint"
        );
        assert_eq!(
            told.detail.as_deref(),
            Some("Failing row contains (null, 1).")
        );
        for (arrow, wanted) in [
            (
                "1.0000 is too large to store in a decimal of precision 4. Max is 0.9999",
                "precision 4, scale 4 must round to an absolute value less than 1.",
            ),
            (
                "-1000.00 is too small to store in a decimal of precision 5. Min is -999.99",
                "precision 5, scale 2 must round to an absolute value less than 10^3.",
            ),
        ] {
            let told = Error::invalid(arrow).told();
            assert_eq!(told.message, "numeric field overflow");
            assert_eq!(told.detail, Some(format!("A field with {wanted}")));
        }
    }

    #[test]
    fn details_and_hints_come_off() {
        let error = Error::Constraint {
            code: "23505",
            message: "duplicate key value violates unique constraint \"a: b\": Key (a)=(1) already exists.".into(),
        };
        let told = error.told();
        assert_eq!(
            told.message,
            "duplicate key value violates unique constraint \"a: b\""
        );
        assert_eq!(told.detail.as_deref(), Some("Key (a)=(1) already exists."));
        let error = Error::invalid(
            "cannot insert a non-DEFAULT value into column \"a\": Column \"a\" is of it. Use that.",
        );
        let told = error.told();
        assert_eq!(told.detail.as_deref(), Some("Column \"a\" is of it."));
        assert_eq!(told.hint.as_deref(), Some("Use that."));
        assert_eq!(
            Error::invalid("something else: it").told().message,
            "something else: it"
        );
    }

    #[test]
    fn messages_are_in_postgresqls_words() {
        let told = |message: &str| Error::invalid(message).told();
        assert_eq!(
            told("NULL in column 'a' of table 't', which is declared NOT NULL").message,
            "null value in column \"a\" of relation \"t\" violates not-null constraint"
        );
        let found = told("column \"a\" of table \"t\" contains NULL: change those rows first");
        assert_eq!(
            found.message,
            "column \"a\" of relation \"t\" contains null values"
        );
        let found = told(
            "column in SELECT must be in GROUP BY or an aggregate function: While expanding wildcard, column \"t.a\" must appear in the GROUP BY clause or must be part of an aggregate function, currently only \"min(t.a)\" appears",
        );
        assert_eq!(
            found.message,
            "column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        let found = told("function abs() does not exist: it takes 1 argument, not 0");
        assert_eq!(found.message, "function abs() does not exist");
        assert_eq!(found.hint.as_deref(), Some("It takes 1 argument, not 0."));
        let syntax = |message: &str| {
            Error::Syntax {
                message: message.into(),
                position: None,
            }
            .told()
            .message
        };
        assert_eq!(
            syntax("expected: an expression, found: )"),
            "syntax error at or near \")\""
        );
        assert_eq!(
            syntax("expected: identifier, found: EOF"),
            "syntax error at end of input"
        );
    }

    #[test]
    fn names_that_nothing_has_are_told_as_postgresql_tells_them() {
        let unknown = |name: &str, relation: Option<&str>| Error::UnknownColumn {
            name: name.into(),
            candidates: vec!["depth".into(), "width".into()],
            relation: relation.map(String::from),
            position: None,
        };
        let told = unknown("x", None).told();
        assert_eq!(told.message, "column \"x\" does not exist");
        assert_eq!(told.hint, None);
        let told = unknown("t.dept", None).told();
        assert_eq!(told.hint.as_deref(), Some("Did you mean depth or width?"));
        let told = unknown("x", Some("t")).told();
        assert_eq!(
            told.message,
            "column \"x\" of relation \"t\" does not exist"
        );
        assert_eq!(
            unknown("t.x", None).told().message,
            "column t.x does not exist"
        );
        let told = Error::UnknownTable {
            name: "s\u{1}t".into(),
            candidates: vec![],
            position: None,
        };
        assert_eq!(told.told().message, "relation \"s.t\" does not exist");
    }
}
